"""Spans, as OpenTelemetry has them, and their ids. Pure, and without OpenTelemetry's packages.

No id travels in a message: the ids of ticks are derived from their windows, those of runs from their executions. So an
executor can link to the tick that planned its run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from common.timing.windows import WINDOW_S, window_start

# Of a text in an attribute.
MAX_TEXT: Final = 256
_LOW_64: Final = 2**64 - 1


class SpanId(NamedTuple):
    """Which span: its trace's id of 128 bits, and its own of 64."""

    trace_id: int
    span_id: int


@dataclass(frozen=True, slots=True)
class Span:
    """A span that has ended. Instants are epoch seconds. `error`: its type; empty if none."""

    name: str
    kind: Literal["producer", "consumer", "client", "internal"]
    id: SpanId
    started_at: float
    ended_at: float
    parent: SpanId | None = None
    link: SpanId | None = None
    attributes: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    error: str = ""


def span_number(text: str) -> int:
    """The 64 bits of a span that this text names."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) or 1  # of zeros only is not valid


def tick_id(queue_url: str, due_at: int) -> SpanId:
    """The tick that plans what is due then. The address of the executions queue names account, region and stage."""
    name = f"{queue_url}#tick#{window_start(due_at)}"
    return SpanId(
        int.from_bytes(hashlib.sha256(name.encode()).digest()[:16]) or 1, span_number(f"{name}#span")
    )


def windows_between(start: int, end: int) -> range:
    """The starts of the whole ten minutes that [start, end) touches."""
    return range(window_start(start), end, WINDOW_S)


def is_sampled(trace_id: int, ratio: float) -> bool:
    """Whether a trace is kept: OpenTelemetry's rule `TraceIdRatioBased`, so that others decide the same."""
    return trace_id & _LOW_64 < round(ratio * (_LOW_64 + 1))


def short(text: str) -> str:
    """A text from a tenant or a target as an attribute."""
    return text[:MAX_TEXT]
