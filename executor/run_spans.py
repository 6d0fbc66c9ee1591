"""The spans of a batch's runs: `queue` (enqueued to received), `run` (received to recorded), and `call` of the target.

The ids of trace and call are those of the traceparent that the target gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from common.clock import Clock
from common.planning.execution import SCHEDULE, Execution, trace_id, traceparent
from common.tracing.export import MAX_SPANS, SpanExport
from common.tracing.spans import Span, SpanId, is_sampled, short, span_number, tick_id
from executor.calling import Called
from executor.pipeline import Decided
from executor.recorder import Report, has_started
from executor.targets import Kind, Target
from executor.targets.events import Event

Result = TypeVar("Result")
_SPANS_OF_A_RUN = 3


class Recorded(NamedTuple):
    """An attempt whose result was recorded between these instants."""

    item: Called | Decided
    report: Report
    from_at: float
    until_at: float


class RunSpans:
    """Notes what a batch records, and exports its spans at the end. `ratio`: the share of runs that have spans."""

    def __init__(self, export: SpanExport, queue_url: str, ratio: float, clock: Clock) -> None:
        self._export = export
        self._queue_url = queue_url
        self._ratio = ratio
        self._clock = clock
        self._recorded: list[Recorded] = []

    def note(self, item: Called | Decided, report: Report, from_at: float) -> None:
        """Note that a result was recorded, which began at `from_at`. In any thread."""
        has_span = isinstance(item, Called) or report.result == "skipped"
        if (
            has_span
            and len(self._recorded) * _SPANS_OF_A_RUN < MAX_SPANS
            and self._keeps(report.execution.execution_id)
        ):
            self._recorded.append(Recorded(item, report, from_at, self._clock.now()))

    def flagging(self, kinds: Mapping[str, Kind]) -> Mapping[str, Kind]:
        """Kinds whose calls tell the target by the flag of `traceparent` whether the run has spans.

        https://www.w3.org/TR/trace-context/#sampled-flag
        """

        def flagged(
            call: Callable[[Target, Event, float], Result],
        ) -> Callable[[Target, Event, float], Result]:
            return lambda target, event, timeout_s: call(target, self._flagged(event), timeout_s)

        return {
            name: replace(kind, call=flagged(kind.call), in_steps=kind.in_steps and flagged(kind.in_steps))
            for name, kind in kinds.items()
        }

    def _flagged(self, event: Event) -> Event:
        context = event["minute8"]
        if self._keeps(context["execution_id"]):
            return event
        parent = context["traceparent"].removesuffix("01") + "00"
        return {**event, "minute8": {**context, "traceparent": parent}}

    def _keeps(self, execution_id: str) -> bool:
        return is_sampled(int(trace_id(execution_id), 16), self._ratio)

    def export(self, received_at: float, sent_at: Mapping[str, float]) -> None:
        """Export the spans of a batch that was received then. `sent_at`: when each message was sent, by its id."""
        recorded, self._recorded = self._recorded, []
        spans: list[Span] = []
        for noted in recorded:
            spans += spans_of(noted, received_at, sent_at.get(noted.item.claim.message_id), self._queue_url)
        self._export.export(spans)


def spans_of(noted: Recorded, received_at: float, sent_at: float | None, queue_url: str) -> Iterator[Span]:
    """The spans of an attempt, parents first. Pure."""
    report, execution = noted.report, noted.report.execution
    run = _run_id(execution)
    queued = None
    if sent_at is not None:
        queued = SpanId(run.trace_id, span_number(f"{execution.execution_id}#{execution.attempt}#queue"))
        yield Span("queue", "internal", queued, sent_at, received_at, attributes=_names(execution))
    attributes = _names(execution) | {
        "minute8.trigger": execution.trigger,
        "minute8.due_at": execution.due_at,
        "minute8.status": report.result,
        "messaging.system": "aws_sqs",
        "messaging.message.id": short(noted.item.claim.message_id),
    }
    if report.detail:
        attributes["minute8.reason"] = short(report.detail)
    if has_started(report):
        attributes["minute8.lateness_s"] = report.lateness_s
    yield Span(
        "run",
        "consumer",
        run,
        received_at,
        noted.until_at,
        parent=queued,
        link=_origin(execution, queue_url),
        attributes=attributes,
        error=short(report.detail or report.result) if report.result in ("failed", "retrying") else "",
    )
    if isinstance(noted.item, Called):
        yield _call(noted.item, run, noted.from_at)


def _call(called: Called, run: SpanId, ended_at: float) -> Span:
    claim, outcome, kind = called.claim, called.outcome, called.claimed.attempt.job.spec.target["kind"]
    attributes: dict[str, str | int | float | bool] = {
        "minute8.target": kind,
        "minute8.status": "ok" if outcome.ok else "throttled" if outcome.throttled else "failed",
    }
    error = "" if outcome.ok else short(outcome.error_type or "failed")
    if error:
        attributes["error.type"] = error
        if kind == "http" and error[4:].isdecimal():  # a function can name its errors so, too
            attributes["http.response.status_code"] = int(error[4:])
    number = traceparent(claim.execution.execution_id, claim.execution.attempt).split("-")[2]
    return Span(
        "call",
        "client",
        SpanId(run.trace_id, int(number, 16)),
        called.called_at,
        ended_at,
        parent=run,
        attributes=attributes,
        error=error,
    )


def _run_id(execution: Execution) -> SpanId:
    name = execution.execution_id
    return SpanId(int(trace_id(name), 16), span_number(f"{name}#{execution.attempt}#run"))


def _origin(execution: Execution, queue_url: str) -> SpanId | None:
    """What led to this attempt: the attempt before it, or the tick; None for a run by hand or of a backfill."""
    if execution.attempt > 1:
        name = execution.execution_id
        return SpanId(int(trace_id(name), 16), span_number(f"{name}#{execution.attempt - 1}#run"))
    return tick_id(queue_url, execution.due_at) if execution.trigger == SCHEDULE else None


def _names(execution: Execution) -> dict[str, str | int | float | bool]:
    return {
        "minute8.tenant": execution.tenant,
        "minute8.job": execution.job_id,
        "minute8.run": execution.execution_id,
        "minute8.attempt": execution.attempt,
    }
