"""Spans over OTLP to a collector, and what a collector that is dead, slow or refuses costs."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from common import telemetry
from common.clock import SystemClock
from common.config import Config
from common.storage import aws
from common.storage.connections import LastUse
from common.tracing import export
from common.tracing.export import SpanExport, span_export
from common.tracing.spans import Span, SpanId, tick_id
from tests.manual_clock import ManualClock
from tests.tracing.collector import attributes_of, open_collector

EXPORT_S = 1.0
MAX_IDLE_S = 30.0
MAX_SPANS = 1_000
REST_S = 60.0

SECRET = "k3y-of-the-collector"
TICK = tick_id("queue", 600)
RUN = Span(
    "run",
    "consumer",
    SpanId(2**128 - 1, 5),
    1_795_455_953.25,
    1_795_455_954.5,
    parent=SpanId(2**128 - 1, 4),
    link=TICK,
    attributes={"minute8.tenant": "alice", "minute8.attempt": 2, "minute8.lateness_s": 0.5, "late": True},
    error="Boom",
)


@dataclass
class Log:
    """The logger of a function; keeps its lines."""

    lines: list[dict[str, object]] = field(default_factory=list)

    def warning(self, message: str, **fields: object) -> None:
        self.lines.append({"level": "warning", "message": message, **fields})

    def error(self, message: str, **fields: object) -> None:
        self.lines.append({"level": "error", "message": message, **fields})


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    kept = Log()
    monkeypatch.setattr(telemetry, "logger", lambda: kept)
    span_export.cache_clear()
    yield kept
    span_export.cache_clear()
    logging.getLogger("opentelemetry").setLevel(logging.NOTSET)


def settings(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    configured = Config.from_env({"STAGE": "prod", **values})
    monkeypatch.setattr(export, "config", lambda: configured)


class Failing:
    """What sends spans, and fails as told. `connections`: how often it was asked for."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.connections = 0
        self.sent: list[int] = []

    def connect(self) -> export.Send:
        self.connections += 1
        return self.send

    def send(self, spans: Sequence[Span]) -> None:
        self.sent.append(len(spans))
        if error := self.errors.pop(0):
            raise error


def test_a_collector_gets_spans_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_collector() as collector:
        settings(monkeypatch, OTLP_ENDPOINT=collector.address, OTLP_HEADERS="/minute8/prod/otlp")
        monkeypatch.setattr(aws, "read_parameter", {"/minute8/prod/otlp": f"X-Key={SECRET},a=b%20c"}.get)
        exporter = span_export()
        assert exporter is not None
        assert exporter.export([RUN])
    assert collector.paths == ["/v1/traces"]
    assert {name: collector.headers[0][name] for name in ("x-key", "a")} == {"x-key": SECRET, "a": "b c"}
    [resource], [span] = collector.resources, collector.spans
    named = attributes_of(resource.resource)
    assert (named["service.name"], named["deployment.environment.name"]) == ("minute8", "prod")
    assert span.trace_id == RUN.id.trace_id.to_bytes(16)
    assert (span.span_id, span.parent_span_id) == ((5).to_bytes(8), (4).to_bytes(8))
    assert [(link.trace_id, link.span_id) for link in span.links] == [
        (TICK.trace_id.to_bytes(16), TICK.span_id.to_bytes(8))
    ]
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
        1_795_455_953_250_000_000,
        1_795_455_954_500_000_000,
    )
    assert attributes_of(span) == dict(RUN.attributes)
    assert (span.kind, span.status.code, span.status.message) == (5, 2, "Boom")  # CONSUMER, ERROR


@pytest.mark.parametrize("path", ["/", "/v1/traces", "/v1/traces/", "/otlp"])
def test_an_endpoint_may_name_the_path_of_traces(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    with open_collector() as collector:
        settings(monkeypatch, OTLP_ENDPOINT=collector.address + path)
        exporter = span_export()
        assert exporter is not None
        assert exporter.export([RUN])
    assert collector.paths == ["/otlp/v1/traces" if path == "/otlp" else "/v1/traces"]


def test_a_collector_that_refuses_is_left_alone_for_a_minute_and_its_headers_are_read_again(
    log: Log,
) -> None:
    clock, collector = ManualClock(1_000.0), Failing(ValueError(SECRET), None)
    exporter = SpanExport(collector.connect, clock)
    assert not exporter.export([RUN])
    clock.sleep(REST_S - 0.1)
    assert not exporter.export([RUN])
    assert collector.sent == [1]
    clock.sleep(0.1)
    assert exporter.export([RUN])
    assert (collector.sent, collector.connections) == ([1, 1], 2)
    assert [(line["level"], line["problem"]) for line in log.lines] == [("warning", "ValueError")]
    assert SECRET not in repr(log.lines)


def test_a_refusal_of_the_collector_shows_no_header(
    monkeypatch: pytest.MonkeyPatch,
    log: Log,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with open_collector() as collector:
        collector.status = 403
        settings(monkeypatch, OTLP_ENDPOINT=collector.address, OTLP_HEADERS="/name")
        monkeypatch.setattr(aws, "read_parameter", lambda name: f"x-key={SECRET}")
        exporter = span_export()
        assert exporter is not None
        assert not exporter.export([RUN])
    assert [line["problem"] for line in log.lines] == ["NotTaken"]
    assert (caplog.records, capsys.readouterr()) == ([], ("", ""))


def test_headers_that_do_not_exist_are_named(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    with open_collector() as collector:
        settings(monkeypatch, OTLP_ENDPOINT=collector.address, OTLP_HEADERS="/name")
        monkeypatch.setattr(aws, "read_parameter", lambda name: None)
        exporter = span_export()
        assert exporter is not None
        assert not exporter.export([RUN])
    assert ([line["problem"] for line in log.lines], collector.paths) == (["NoHeaders"], [])


@pytest.mark.parametrize("text", ["no equals", "a=b,=c", "a=line%0Abreak", "a=b%C3%A9", "naïve=1"])
def test_headers_that_are_none_are_refused_without_being_shown(text: str) -> None:
    from common.tracing.otlp import read_headers

    with pytest.raises(ValueError, match=r"are not name=value,name=value$"):
        read_headers(text)
    assert read_headers(" , A=1==, b = 2 ,") == {"a": "1==", "b": "2"}


def test_a_connection_is_kept_until_it_was_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_collector() as collector:
        settings(monkeypatch, OTLP_ENDPOINT=collector.address)
        exporter = span_export()
        assert exporter is not None
        assert exporter.export([RUN])
        assert exporter.export([RUN])
        assert (len(collector.paths), len(collector.ports)) == (2, 1)
        monkeypatch.setattr(LastUse, "is_within", lambda used, seconds: seconds > MAX_IDLE_S)
        assert exporter.export([RUN])
        assert len(collector.ports) == 2


def test_a_collector_that_never_answers_costs_one_limit_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts connections and says nothing. What sends them in vain ends by itself."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings(monkeypatch, OTLP_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}")
        exporter = span_export()
        assert exporter is not None
        began_at = time.monotonic()
        assert not any(exporter.export([RUN]) for _ in range(50))
        assert time.monotonic() - began_at < 3 * EXPORT_S
        assert exporter._thread is not None
        exporter._thread.join(20 * EXPORT_S)
        assert not exporter._thread.is_alive()


def test_nothing_is_sent_beside_an_export_that_is_still_under_way() -> None:
    clock, goes_on, sent = ManualClock(0.0), threading.Event(), []

    def send(spans: Sequence[Span]) -> None:
        sent.append(len(spans))
        assert goes_on.wait(60)

    exporter = SpanExport(lambda: send, clock)
    assert not exporter.export([RUN])
    clock.sleep(10 * REST_S)
    assert not exporter.export([RUN])
    goes_on.set()
    assert exporter._thread is not None
    exporter._thread.join()
    clock.sleep(REST_S)
    assert exporter.export([RUN])
    assert sent == [1, 1]


def test_a_batch_has_a_bounded_number_of_spans() -> None:
    collector = Failing(None)
    assert SpanExport(collector.connect, SystemClock()).export([RUN] * (MAX_SPANS + 1))
    assert collector.sent == [MAX_SPANS]


def test_without_a_thread_spans_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    collector, clock = Failing(None), ManualClock(0.0)
    exporter = SpanExport(collector.connect, clock)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert not exporter.export([RUN])
    clock.sleep(REST_S)
    assert exporter.export([RUN])


def test_a_function_without_the_layer_goes_on(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    settings(monkeypatch, OTLP_ENDPOINT="https://collector.example")
    monkeypatch.setitem(sys.modules, "common.tracing.otlp", None)
    with telemetry.spans_are_packaged():
        span_export()
    assert [line["message"] for line in log.lines] == ["spans are not exported"]


def test_nothing_is_sent_where_there_is_nothing_to_send() -> None:
    collector = Failing()
    assert not SpanExport(collector.connect, SystemClock()).export([])
    assert collector.connections == 0
