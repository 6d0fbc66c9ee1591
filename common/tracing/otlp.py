"""Spans over OTLP, by OpenTelemetry's own packages. The only file that imports them: a layer of its own brings them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from common.storage.connections import MAX_IDLE_S, LastUse
from common.tracing.spans import Span, SpanId
from common.version import VERSION

_PATH: Final = "/v1/traces"
_KINDS: Final = {
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
    "client": SpanKind.CLIENT,
    "internal": SpanKind.INTERNAL,
}
_SCOPE: Final = InstrumentationScope("minute8", VERSION)


class NotTaken(Exception):
    """The collector has refused the spans, or was not reached."""


class Collector:
    """A collector at a base address, as OTEL_EXPORTER_OTLP_ENDPOINT gives it."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], stage: str, timeout_s: float) -> None:
        # Its own lines would show addresses and answers, several for each failure.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
        self._exporter = partial(
            OTLPSpanExporter,
            endpoint=endpoint.rstrip("/").removesuffix(_PATH) + _PATH,
            headers=dict(headers),
            timeout=timeout_s,
            compression=Compression.Gzip,
        )
        self._resource = Resource(
            {"service.name": "minute8", "service.version": VERSION, "deployment.environment.name": stage}
        )
        # Its `shutdown` has no types.
        self._connected: Any = self._exporter()
        self._used = LastUse()

    def send(self, spans: Sequence[Span]) -> None:
        """Send these spans, and wait for the answer. Raises NotTaken."""
        if not self._used.is_within(MAX_IDLE_S):  # as in a frozen environment
            self._connected.shutdown()
            self._connected = self._exporter()
        result = self._connected.export([_readable(span, self._resource) for span in spans])
        self._used = LastUse()
        if result is not SpanExportResult.SUCCESS:
            raise NotTaken


def read_headers(text: str) -> dict[str, str]:
    """`name=value,name=value` with percent-encoded values, as in OTEL_EXPORTER_OTLP_HEADERS.

    Raises ValueError, without a word of the text: it is secret.
    """
    headers = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = pair.partition("=")
        name, value = name.strip().lower(), unquote(value.strip())
        if not (equals and name and f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
            raise ValueError("the headers for the collector are not name=value,name=value")
        headers[name] = value
    return headers


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=_context(span.id),
        parent=_context(span.parent) if span.parent else None,
        resource=resource,
        attributes=span.attributes,
        links=[Link(_context(span.link))] if span.link else [],
        kind=_KINDS[span.kind],
        instrumentation_scope=_SCOPE,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
        start_time=_nanoseconds(span.started_at),
        end_time=_nanoseconds(max(span.started_at, span.ended_at)),
    )


def _context(span: SpanId) -> SpanContext:
    return SpanContext(
        span.trace_id, span.span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def _nanoseconds(at: float) -> int:
    return int(at * 1_000_000) * 1_000
