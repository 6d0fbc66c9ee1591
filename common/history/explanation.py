"""The explanation of one instant of one job: whether it was or is due, what became of it, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from common.history import expected
from common.history.eras import Eras
from common.history.expected import Expected
from common.history.explain import UNKNOWN, DatesOf, Reason, gap_before, why_not
from common.runs.outcome import last_attempt
from common.timing.instants import rfc3339

NOT_DUE: Final = "not_due"
_STATUS_WORDS: Final = {
    expected.SKIPPED: "it was skipped",
    expected.MISSED: "it was missed",
    expected.CANCELLED: "it was cancelled",
    expected.QUEUED: "it waits for its turn",
    expected.NO_RECORD: "nothing is recorded, which must never be: ask the platform's operator to run `minute8 doctor`",
    expected.NOT_KEPT: "its run is no longer kept",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """`status` is one of `expected.STATUSES`, `not_due` or `unknown`. `found` are the runs and due instants there."""

    status: str
    text: str
    reasons: Sequence[Reason]
    found: Sequence[Expected]


def explain(
    eras: Eras, at: int, found: Sequence[Expected], now: float, dates_of: DatesOf, blocks: Sequence[Reason]
) -> Explanation:
    """Explain an instant. `found` is what `expected` says of it; `blocks` is what would stop a run now."""
    reasons = why_not(eras, at, dates_of)
    due = next((one for one in found if one.is_due), None)
    outside = [one for one in found if not one.is_due]
    if reasons is None and due is not None:
        return _due(eras, at, due, found, now, blocks)
    reasons = reasons or []
    if any(one.code == UNKNOWN for one in reasons):
        status, begin = UNKNOWN, "It is not known whether it was due."
    else:
        status, begin = NOT_DUE, "It is not due." if at > now else "It was not due."
    words = [begin, *(one.text for one in reasons), *(_outside(one) for one in outside)]
    return Explanation(status, " ".join(words), reasons, found)


def _due(
    eras: Eras, at: int, due: Expected, found: Sequence[Expected], now: float, blocks: Sequence[Reason]
) -> Explanation:
    era = eras.at(at)
    words = [_became(due, now)]
    if era and era.times and (gap := gap_before(era.times.schedule, at)):
        words.append(gap)
    waits = due.status in (expected.TO_COME, expected.OVERDUE)
    stops = list(blocks) if waits else []
    words += ["As things are now, it would be skipped.", *(one.text for one in stops)] if stops else []
    reasons = [*stops, *([Reason(due.reason, due.detail)] if due.reason else [])]
    return Explanation(due.status, " ".join(words), reasons, found)


def _became(due: Expected, now: float) -> str:
    late = f"{due.late_s:.1f} s" if due.late_s is not None else ""
    jitter = f" (at {rfc3339(due.due_at)}, with its jitter)" if due.due_at != due.fire_at else ""
    ended = f"; it {_ended(due)}" if due.record else ""
    match due.status:
        case expected.TO_COME:
            return (
                f"It is due{jitter} and has not started yet."
                if due.due_at <= now
                else f"It will be due{jitter}."
            )
        case expected.ON_TIME | expected.LATE | expected.RUNNING:
            started = f"It was due{jitter} and started {late} later" if late else f"It was due{jitter}"
            return f"{started}{ended}."
        case expected.OVERDUE:
            return f"It was due{jitter} {late} ago and has not started; {due.detail}."
    detail = f": {due.detail}" if due.detail else ""
    words = f"{_STATUS_WORDS[due.status]}{detail}"
    return f"It was due{jitter}; {words.replace('cancelled: cancelled', 'cancelled', 1)}."


def _ended(one: Expected) -> str:
    record = one.record or {}
    status = str(record.get("status", ""))
    last = last_attempt(record)
    error = ": ".join(
        text for name in ("error_type", "error") if (text := record.get(name) or last.get(name, ""))
    )
    words = {
        "running": "is running",
        "retrying": "waits for its next attempt",
        "queued": "waits for its turn",
        "dispatched": "was handed to its target",
        "skipped": "was skipped",
    }.get(status, status)
    return f"{words} ({error})" if error else words


def _outside(one: Expected) -> str:
    """A run at an instant that is not due: it was planned before the job changed."""
    detail = f": {one.detail}" if one.detail else ""
    planned = f"A run was planned by schedule revision {one.schedule_revision} before the job changed"
    return f"{planned}; it {_ended(one)}{detail}."
