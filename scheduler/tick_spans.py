"""The spans of a tick: one for each ten minutes that it planned, which the runs due in them link to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from common.tracing.spans import Span, SpanId, span_number, tick_id, windows_between
from scheduler.summary import TickSummary

# Of a tick after a long outage: the newest ones.
MAX_WINDOWS: Final = 12


def spans_of(summary: TickSummary, ended_at: float, queue_url: str, error: str = "") -> Iterator[Span]:
    """The spans of a tick that has planned until then. `error`: the type of what its further work raised. Pure."""
    attributes: dict[str, str | int | float | bool] = {
        "minute8.planned": summary.planned,
        "minute8.missed": summary.missed,
        "minute8.entries_read": summary.entries_read,
        "minute8.shares": summary.shares,
        "minute8.bad_entries": summary.bad_entries,
        "minute8.window_start": summary.start,
        "minute8.window_end": summary.planning_until,
    }
    windows = windows_between(summary.start, summary.planning_until)[-MAX_WINDOWS:]
    ids = [tick_id(queue_url, window) for window in windows] or [_of_nothing(summary.now, queue_url)]
    for span_id in ids:
        yield Span("tick", "producer", span_id, summary.now, ended_at, attributes=attributes, error=error)


def failed_span(began_at: float, ended_at: float, queue_url: str, error: str) -> Span:
    """The span of a tick that could not plan. No run links to it: another tick plans its window. Pure."""
    return Span("tick", "producer", _of_nothing(began_at, queue_url), began_at, ended_at, error=error)


def _of_nothing(now: float, queue_url: str) -> SpanId:
    """A tick that found its window planned."""
    number = span_number(f"{queue_url}#tick#{now}")
    return SpanId(number, number)
