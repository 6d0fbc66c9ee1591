"""The spans of ticks and runs: their ids, times, links and attributes, over a world."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.config import Config
from common.planning.execution import trace_id, traceparent
from common.runs.outcome import Outcome
from common.storage.outgoing import Steps, at_once
from common.tracing import export
from common.tracing import spans as span_rules
from common.tracing.export import SpanExport
from common.tracing.spans import Span, is_sampled, tick_id, windows_between
from executor import handler
from executor.run_spans import RunSpans
from executor.targets import Kind, Target
from executor.targets.events import Event
from scheduler import handler as tick_handler
from scheduler import tick_spans
from scheduler.summary import TickSummary
from tests.executor.contexts import event
from tests.manual_clock import ManualClock
from tests.scheduler_handler import serve
from tests.worlds import World, at, job

MAX_SPANS = 1_000
MAX_TEXT = 256

QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/minute8-prod-executions"


@dataclass
class Traced:
    """A world whose executor notes spans, and what was exported."""

    world: World
    run_spans: RunSpans
    spans: list[Span] = field(default_factory=list)

    def run_until(self, text: str) -> None:
        """Run, and export as the handler does: here all batches at once."""
        received_at = self.world.clock.now()
        self.world.run_until(text)
        self.run_spans.export(received_at, {f"message-{number}": received_at - 60 for number in range(50)})

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


def traced(world: World, ratio: float = 1.0) -> Traced:
    spans: list[Span] = []

    def take(sent: Sequence[Span]) -> None:
        spans.extend(sent)

    run_spans = RunSpans(SpanExport(lambda: take, world.clock), QUEUE, ratio, world.clock)
    world.executor = replace(
        world.executor, note=run_spans.note, kinds=run_spans.flagging(world.executor.kinds)
    )
    return Traced(world, run_spans, spans)


def plan(world: World, *, ratio: float = 1.0, **fields: object) -> Traced:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", **fields))
    return traced(world, ratio)


def test_a_run_is_a_chain_of_queue_run_and_call_that_links_to_its_tick(world: World) -> None:
    seen = plan(world, payload="secret words")
    seen.run_until("2026-11-21T03:16:00Z")
    queue, run, call = seen.spans
    assert [span.name for span in seen.spans] == ["queue", "run", "call"]
    assert [span.kind for span in seen.spans] == ["internal", "consumer", "client"]
    assert (queue.parent, run.parent, call.parent) == (None, queue.id, run.id)
    assert run.link == tick_id(QUEUE, at("2026-11-21T03:15:00Z"))
    assert queue.ended_at - queue.started_at == 60
    assert run.attributes | {"messaging.message.id": ""} == {
        "minute8.tenant": "alice",
        "minute8.job": "once",
        "minute8.run": "alice:once:20261121T031500Z",
        "minute8.attempt": 1,
        "minute8.trigger": "schedule",
        "minute8.due_at": at("2026-11-21T03:15:00Z"),
        "minute8.status": "succeeded",
        "minute8.lateness_s": 0.0,
        "messaging.system": "aws_sqs",
        "messaging.message.id": "",
    }
    assert "secret words" not in repr(seen.spans)


def test_the_call_is_the_span_that_the_target_gets_as_its_parent(world: World) -> None:
    seen = plan(world)
    seen.run_until("2026-11-21T03:16:00Z")
    [(_, context)] = world.target.calls
    [call] = seen.named("call")
    assert context["traceparent"] == f"00-{call.id.trace_id:032x}-{call.id.span_id:016x}-01"


def test_a_retry_is_in_the_same_trace_and_links_to_the_attempt_before(world: World) -> None:
    seen = plan(world, retry={"max_attempts": 2})
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom", error="x")
    seen.run_until("2026-11-21T03:30:00Z")
    first, second = seen.named("run")
    assert (first.attributes["minute8.attempt"], second.attributes["minute8.attempt"]) == (1, 2)
    assert (first.attributes["minute8.status"], second.attributes["minute8.status"]) == ("retrying", "failed")
    assert (first.id.trace_id, first.id) == (second.id.trace_id, second.link)
    assert len({span.id for span in seen.spans}) == 6
    assert [span.error for span in seen.named("call")] == ["Boom", "Boom"]
    assert first.error and second.error


def test_a_run_that_is_skipped_has_no_call(world: World) -> None:
    seen = plan(world)
    world.store.delete("alice", "once")
    seen.run_until("2026-11-21T03:16:00Z")
    assert [span.name for span in seen.spans] == ["queue", "run"]
    assert seen.spans[1].attributes["minute8.reason"] == "deleted"
    assert seen.spans[1].error == ""


def test_a_second_delivery_of_a_run_that_has_ended_has_no_spans(world: World) -> None:
    seen = plan(world)
    [body] = world.sqs.bodies
    seen.run_until("2026-11-21T03:16:00Z")
    before = len(seen.spans)
    world.sqs.send_message_batch(
        QueueUrl="queue", Entries=[{"Id": "0", "DelaySeconds": 0, "MessageBody": body}]
    )
    seen.run_until("2026-11-21T03:17:00Z")
    assert (before, len(seen.spans)) == (3, 3)


HTTP = {"kind": "http", "url": "https://hooks.example.com/x", "method": "POST"}


@pytest.mark.parametrize(("fields", "status"), [({"target": HTTP}, 503), ({}, None)])
def test_a_status_of_http_and_long_words_of_a_target_are_bounded_attributes(
    world: World, fields: dict[str, Any], status: int | None
) -> None:
    """A function can give its error the name of a status of HTTP, with more digits than a number may have."""
    kinds = {**world.executor.kinds, "http": Kind(world.target)}
    world.executor = replace(world.executor, kinds=kinds)
    seen = plan(world, retry={"max_attempts": 2}, **fields)
    named = "Http503" if status else "Http" + "9" * 90
    answers = iter([Outcome(ok=False, error_type=named), Outcome(ok=False, error_type="E" * 5_000)])
    world.target.answer = lambda event: next(answers)
    seen.run_until("2026-11-21T03:30:00Z")
    first, second = seen.named("call")
    assert first.attributes.get("http.response.status_code") == status
    longest = max(len(str(value)) for span in seen.spans for value in (*span.attributes.values(), span.error))
    assert longest <= MAX_TEXT
    assert second.error.startswith("EEE")


@pytest.mark.parametrize(("ratio", "spans", "flag"), [(0.0, 0, "00"), (1.0, 3, "01")])
def test_the_ratio_keeps_all_spans_of_a_run_or_none_and_the_target_knows(
    world: World, ratio: float, spans: int, flag: str
) -> None:
    seen = plan(world, ratio=ratio)
    seen.run_until("2026-11-21T03:16:00Z")
    assert len(seen.spans) == spans
    [(_, context)] = world.target.calls
    assert context["traceparent"] == traceparent(context["execution_id"], 1)[:-2] + flag


def test_a_call_in_steps_has_the_flag_of_the_ratio_too() -> None:
    seen: list[Event] = []

    def steps(target: Target, event: Event, timeout_s: float) -> Steps[Outcome]:
        seen.append(event)
        return Outcome(ok=True)
        yield

    kind = Kind(lambda *call: at_once(steps(*call)), steps)
    run_spans = RunSpans(SpanExport(lambda: lambda spans: None, ManualClock(0)), QUEUE, 0.0, ManualClock(0))
    flagged = run_spans.flagging({"lambda": kind})["lambda"]
    sent = event()
    assert flagged.in_steps
    at_once(flagged.in_steps({}, sent, 1.0))
    flagged.call({}, sent, 1.0)
    parents = [each["minute8"].pop("traceparent") for each in seen]
    assert parents == [sent["minute8"]["traceparent"][:-2] + "00"] * 2
    assert [{**each, "minute8": {**each["minute8"], "traceparent": "x"}} for each in seen] == [
        {**sent, "minute8": {**sent["minute8"], "traceparent": "x"}}
    ] * 2


def test_a_batch_notes_no_more_than_is_exported(world: World) -> None:
    seen = plan(world)
    noted: list[tuple[object, object, float]] = []
    world.executor = replace(world.executor, note=lambda *result: noted.append(result))
    world.run_until("2026-11-21T03:16:00Z")
    for _ in range(MAX_SPANS):
        seen.run_spans.note(*noted[0])  # type: ignore[arg-type]
    assert len(seen.run_spans._recorded) * 3 < MAX_SPANS + 3
    seen.run_spans.export(0, {})
    assert len(seen.spans) <= MAX_SPANS
    assert len(seen.spans) > MAX_SPANS * 0.6


@given(st.integers(0, 2**128 - 1), st.floats(0, 1))
def test_sampling_decides_as_opentelemetry_does(number: int, ratio: float) -> None:
    from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

    decision = TraceIdRatioBased(ratio).should_sample(None, number, "run").decision
    assert is_sampled(number, ratio) is (decision is Decision.RECORD_AND_SAMPLE)


@given(st.integers(0, 10**10), st.integers(1, 30), st.integers(0, 10**6))
def test_each_due_time_of_a_window_has_the_id_of_a_tick_that_planned_it(
    start: int, windows: int, offset: int
) -> None:
    start -= start % 600
    end = start + 600 * windows
    due_at = start + offset % (end - start)
    assert tick_id(QUEUE, due_at) in {tick_id(QUEUE, window) for window in windows_between(start, end)}


def test_ticks_of_two_stages_have_other_ids() -> None:
    assert tick_id(QUEUE, 0) != tick_id(QUEUE.replace("prod", "dev"), 0)


def test_a_tick_has_a_span_for_each_ten_minutes_that_it_planned_and_at_least_one() -> None:
    summary = TickSummary(now=1_080.0, start=1_200, end=1_800, planning_until=1_800, planned=7)
    [span] = tick_spans.spans_of(summary, 1_081.5, QUEUE)
    assert (span.name, span.kind, span.started_at, span.ended_at) == ("tick", "producer", 1_080.0, 1_081.5)
    assert (span.id, span.attributes["minute8.planned"]) == (tick_id(QUEUE, 1_799), 7)
    longer = replace(summary, planning_until=1_200 + 600 * 50)
    spans = list(tick_spans.spans_of(longer, 1_081.5, QUEUE))
    assert len(spans) == tick_spans.MAX_WINDOWS
    assert spans[-1].id == tick_id(QUEUE, 1_200 + 600 * 50 - 1)
    [nothing] = tick_spans.spans_of(replace(summary, planning_until=1_200), 1_081.5, QUEUE)
    assert nothing.id != span.id


@pytest.mark.parametrize("part", ["publish_lag", "note_suspects"])
def test_a_tick_that_raises_has_a_span_with_its_error(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    exported: list[Span] = []

    def fails(*_: object) -> None:
        raise LookupError("secret words")

    serve(world, monkeypatch)
    config = Config.from_env({"OTLP_ENDPOINT": "https://otlp.example", "EXECUTIONS_QUEUE_URL": QUEUE})
    monkeypatch.setattr(tick_handler, "config", lambda: config)
    monkeypatch.setattr(
        export, "span_export", lambda: SpanExport(lambda: lambda spans: exported.extend(spans), world.clock)
    )
    monkeypatch.setattr(tick_handler, part, fails)
    with pytest.raises(LookupError):
        tick_handler.handle({}, None)
    assert exported and {(span.name, span.error) for span in exported} == {("tick", "LookupError")}
    is_planned = part != "publish_lag"
    assert ("minute8.planned" in exported[0].attributes) == is_planned


def test_the_handler_reads_when_a_message_was_sent_and_exports_after_the_batch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = plan(world)
    [body] = world.sqs.bodies
    world.clock.move_to(at("2026-11-21T03:15:00Z"))
    monkeypatch.setattr(handler, "_executor", lambda: world.executor)
    monkeypatch.setattr(handler, "_redelivery", lambda: world.redelivery)
    monkeypatch.setattr(handler, "_spans", lambda: seen.run_spans)
    sent_at = at("2026-11-21T03:08:01Z")
    record = {"messageId": "a", "body": body, "attributes": {"SentTimestamp": str(sent_at * 1_000)}}
    assert handler.handle({"Records": [record]}, None) == {"batchItemFailures": []}
    assert [span.name for span in seen.spans] == ["queue", "run", "call"]
    assert seen.spans[0].started_at == sent_at


def test_a_function_without_the_code_of_spans_goes_on_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody has set the address by hand: deploy/spans.js packages the code only with the parameter."""
    config = Config.from_env({"OTLP_ENDPOINT": "https://otlp.example", "EXECUTIONS_QUEUE_URL": QUEUE})
    serve(world, monkeypatch)
    monkeypatch.setitem(sys.modules, "common.tracing.export", None)
    for with_spans in (handler, tick_handler):
        monkeypatch.setattr(with_spans, "config", lambda: config)
    handler._spans.cache_clear()
    assert handler._spans() is None
    handler._spans.cache_clear()
    assert tick_handler.handle({}, None)["planned"] == 0
    assert caplog.messages.count("spans are not exported") == 2


def test_without_a_collector_there_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    off = Config.from_env({"OTLP_ENDPOINT": "off"})
    assert off.otlp_endpoint == ""
    monkeypatch.setattr(handler, "config", lambda: off)
    handler._spans.cache_clear()
    assert handler._spans() is None
    handler._spans.cache_clear()


def test_ids_are_never_zero() -> None:
    assert span_rules.span_number("a") > 0
    assert int(trace_id("a"), 16) > 0
    assert traceparent("a", 1)[36:52] != "0" * 16
