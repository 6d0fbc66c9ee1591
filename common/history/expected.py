"""Expected against actual: what became of each instant at which a job was due. Pure; `now` is an argument.

The same function serves a job, all jobs of a tenant, and an explanation of one instant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from common.history.schedule_history import DueInstant
from common.planning.execution import SCHEDULE
from common.runs import states
from common.timing.windows import NO_RECORD_AFTER_S

ON_TIME: Final = "on_time"
LATE: Final = "late"
RUNNING: Final = "running"
QUEUED: Final = "queued"
SKIPPED: Final = "skipped"
MISSED: Final = "missed"
CANCELLED: Final = "cancelled"
TO_COME: Final = "to_come"
OVERDUE: Final = "overdue"
NO_RECORD: Final = "no_record"
NOT_KEPT: Final = "not_kept"
# docs/insight.md says what each means.
STATUSES: Final = (
    ON_TIME,
    LATE,
    RUNNING,
    QUEUED,
    SKIPPED,
    MISSED,
    CANCELLED,
    TO_COME,
    OVERDUE,
    NO_RECORD,
    NOT_KEPT,
)
# The statuses that need no attention.
QUIET: Final = frozenset({ON_TIME, TO_COME, RUNNING, QUEUED, NOT_KEPT})

# Up to this lateness a run is on time, and a due instant without a run is still to come.
ON_TIME_S: Final = 10

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AsOf:
    """The state at `now`: ticks have planned up to `planned_until`, and records are kept from `kept_from_at` on."""

    now: float
    planned_until: float
    kept_from_at: float


@dataclass(frozen=True, slots=True)
class InstantOutcome:
    """What became of one instant. `is_due` is False for a run that was planned before its job changed."""

    fire_at: int
    due_at: int
    schedule_revision: int
    status: str
    is_due: bool = True
    late_s: float | None = None
    reason: str = ""
    detail: str = ""
    record: Record | None = None


def outcomes(due: Iterable[DueInstant], records: Sequence[Record], as_of: AsOf) -> Iterator[InstantOutcome]:
    """What became of each due instant, by fire time. Runs that were planned before a change are among them.

    `records` are the job's, by fire time, from the first due instant on; also those after the last one that may
    count earlier fire times as missed.
    """
    scheduled = [record for record in records if record.get("trigger", SCHEDULE) == SCHEDULE]
    by_name = {(record["fire_at"], record["schedule_revision"]): record for record in scheduled}
    covers = [record for record in scheduled if "skipped_from_at" in record]
    unplannable = [record for record in scheduled if _is_unplannable(record)]
    expected = []
    for instant in due:
        record = by_name.pop((instant.fire_at, instant.schedule_revision), None)
        if record is None:
            record = _covering(instant, covers) or _unplannable_before(instant, unplannable, scheduled)
        expected.append(_outcome_of(instant, record, as_of))
    not_due = [_not_due(record, as_of) for record in by_name.values() if not _is_unplannable(record)]
    return iter(
        sorted([*expected, *not_due], key=lambda instant: (instant.fire_at, instant.schedule_revision))
    )


def count_by_status(instants: Iterable[InstantOutcome]) -> dict[str, int]:
    """How many due instants have each status, in the order of `STATUSES`."""
    statuses = [instant.status for instant in instants if instant.is_due]
    return {status: count for status in STATUSES if (count := statuses.count(status))}


def _outcome_of(due: DueInstant, record: Record | None, as_of: AsOf) -> InstantOutcome:
    if record is not None:
        return _recorded(due, record, as_of)
    status, detail, late_s = _unrecorded(due, as_of)
    return InstantOutcome(
        due.fire_at, due.due_at, due.schedule_revision, status, late_s=late_s, detail=detail
    )


def _unrecorded(due: DueInstant, as_of: AsOf) -> tuple[str, str, float | None]:
    late_s = as_of.now - due.due_at - due.tolerance_s
    if due.fire_at >= due.planned_until:
        return MISSED, "the job changed before a tick had planned this fire time", None
    if late_s <= ON_TIME_S:
        return TO_COME, "", None
    if due.fire_at < as_of.kept_from_at:
        return NOT_KEPT, "", None
    if due.fire_at >= as_of.planned_until:
        return OVERDUE, "no tick has planned it yet", late_s
    if late_s <= NO_RECORD_AFTER_S:
        return OVERDUE, "its run is planned", late_s
    return NO_RECORD, "it was planned, and nothing is recorded", late_s


def _recorded(due: DueInstant, record: Record, as_of: AsOf) -> InstantOutcome:
    status, late_s = record["status"], record.get("lateness_s")
    if status == states.SKIPPED:
        status = _skipped(due, record)
    elif status == states.QUEUED:
        status, late_s = QUEUED, max(0.0, as_of.now - due.due_at)
    elif status in (states.RUNNING, states.RETRYING):
        status = RUNNING
    elif late_s is not None:
        status = LATE if late_s > ON_TIME_S else ON_TIME
    else:  # the run ended before an attempt
        status = CANCELLED if record.get("error_type") == states.CANCELLED else ON_TIME
    return InstantOutcome(
        due.fire_at,
        _due_at_of(due, record),
        due.schedule_revision,
        status,
        late_s=late_s,
        reason=record.get("reason", ""),
        detail=record.get("detail", ""),
        record=record,
    )


def _due_at_of(due: DueInstant, record: Record) -> int:
    """When the instant was due, with the delay of its pace. Only the record of the same fire time has that delay."""
    has_delay = due.tolerance_s and record["fire_at"] == due.fire_at
    return int(record.get("due_at", due.due_at)) if has_delay else due.due_at


def _skipped(due: DueInstant, record: Record) -> str:
    if record["reason"] == states.CANCELLED and due.fire_at == record["fire_at"]:
        return CANCELLED
    if "skipped_from_at" in record and record["reason"] in (states.MISSED, states.CANCELLED):
        return MISSED
    return SKIPPED


def _covering(due: DueInstant, covers: Iterable[Record]) -> Record | None:
    """The record of several missed fire times that counts this instant."""
    return next(
        (record for record in covers if record["skipped_from_at"] <= due.fire_at <= record["fire_at"]), None
    )


def _is_unplannable(record: Record) -> bool:
    """A window that could not be planned for the job has one record, under the window's start."""
    return record["schedule_revision"] == 0 and record.get("reason") == states.INVALID


def _unplannable_before(
    due: DueInstant, unplannable: Sequence[Record], scheduled: Sequence[Record]
) -> Record | None:
    """The record of the unplannable window that contains this instant: no other run began in between."""
    start = max(
        (record["fire_at"] for record in unplannable if record["fire_at"] <= due.fire_at), default=None
    )
    if start is None:
        return None
    planned = (record["fire_at"] for record in scheduled if not _is_unplannable(record))
    if any(start <= fire_at < due.fire_at for fire_at in planned):
        return None
    return next(record for record in unplannable if record["fire_at"] == start)


def _not_due(record: Record, as_of: AsOf) -> InstantOutcome:
    planned = DueInstant(
        record["fire_at"], record.get("due_at", record["fire_at"]), record["schedule_revision"], math.inf
    )
    outcome = _recorded(planned, record, as_of)
    return InstantOutcome(
        outcome.fire_at,
        outcome.due_at,
        outcome.schedule_revision,
        outcome.status,
        is_due=False,
        late_s=outcome.late_s,
        reason=outcome.reason,
        detail=outcome.detail,
        record=record,
    )
