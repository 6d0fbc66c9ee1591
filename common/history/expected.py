"""Expected against actual: what became of each instant at which a job was due. Pure; `now` is an argument.

The same function serves a job, all jobs of a tenant, and an explanation of one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from common.history.schedule_history import DueInstant
from common.planning.execution import SCHEDULE
from common.runs import states
from common.runs.run import Run
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
    run: Run | None = None


def outcomes(due: Iterable[DueInstant], runs: Sequence[Run], as_of: AsOf) -> Iterator[InstantOutcome]:
    """What became of each due instant, by fire time. Runs that were planned before a change are among them.

    `runs` are the job's, by fire time, from the first due instant on; also those after the last one that may
    count earlier fire times as missed.
    """
    scheduled = [run for run in runs if run.trigger == SCHEDULE]
    by_time = {run.fire_at: run for run in scheduled if not _is_unplannable(run)}
    covers = [run for run in scheduled if run.skipped_from_at]
    unplannable = [run for run in scheduled if _is_unplannable(run)]
    expected = []
    for instant in due:
        run = by_time.pop(instant.fire_at, None)
        if run is None:
            run = _covering(instant, covers) or _unplannable_before(instant, unplannable, scheduled)
        expected.append(_outcome_of(instant, run, as_of))
    not_due = [
        replace(
            _recorded(DueInstant(run.fire_at, run.due_at, run.schedule_revision), run, as_of), is_due=False
        )
        for run in by_time.values()
    ]
    return iter(sorted([*expected, *not_due], key=lambda instant: instant.fire_at))


def count_by_status(instants: Iterable[InstantOutcome]) -> dict[str, int]:
    """How many due instants have each status, in the order of `STATUSES`."""
    statuses = [instant.status for instant in instants if instant.is_due]
    return {status: count for status in STATUSES if (count := statuses.count(status))}


def _outcome_of(due: DueInstant, run: Run | None, as_of: AsOf) -> InstantOutcome:
    if run is not None:
        return _recorded(due, run, as_of)
    status, detail, late_s = _unrecorded(due, as_of)
    return InstantOutcome(
        due.fire_at, due.due_at, due.schedule_revision, status, late_s=late_s, detail=detail
    )


def _unrecorded(due: DueInstant, as_of: AsOf) -> tuple[str, str, float | None]:
    late_s = as_of.now - due.due_at - due.tolerance_s
    if late_s <= ON_TIME_S:
        return TO_COME, "", None
    if due.fire_at < as_of.kept_from_at:
        return NOT_KEPT, "", None
    if due.fire_at >= as_of.planned_until:
        return OVERDUE, "no tick has planned it yet", late_s
    if late_s <= NO_RECORD_AFTER_S:
        return OVERDUE, "its run is planned", late_s
    return NO_RECORD, "it was planned, and nothing is recorded", late_s


def _recorded(due: DueInstant, run: Run, as_of: AsOf) -> InstantOutcome:
    status: str = run.status
    late_s = run.lateness_s
    if status == states.SKIPPED:
        status = _skipped(due, run)
    elif status == states.QUEUED:
        status, late_s = QUEUED, max(0.0, as_of.now - due.due_at)
    elif status in (states.RUNNING, states.RETRYING):
        status = RUNNING
    elif late_s is not None:
        status = LATE if late_s > ON_TIME_S else ON_TIME
    else:  # the run ended before an attempt
        status = CANCELLED if run.error_type == states.CANCELLED else ON_TIME
    return InstantOutcome(
        due.fire_at,
        _due_at_of(due, run),
        due.schedule_revision,
        status,
        late_s=late_s,
        reason=run.reason,
        detail=run.detail,
        run=run,
    )


def _due_at_of(due: DueInstant, run: Run) -> int:
    """When the instant was due, with the delay of its pace, and by the schedule that was in force when it began."""
    is_own = run.fire_at == due.fire_at and not run.skipped_from_at
    return run.due_at if is_own else due.due_at


def _skipped(due: DueInstant, run: Run) -> str:
    if run.reason == states.CANCELLED and due.fire_at == run.fire_at:
        return CANCELLED
    if run.skipped_from_at and run.reason in (states.MISSED, states.CANCELLED):
        return MISSED
    return SKIPPED


def _covering(due: DueInstant, covers: Iterable[Run]) -> Run | None:
    """The record of several missed fire times that counts this instant."""
    return next((run for run in covers if run.skipped_from_at <= due.fire_at <= run.fire_at), None)


def _is_unplannable(run: Run) -> bool:
    """A window that could not be planned for the job has one record, under the window's start."""
    return run.schedule_revision == 0 and run.reason == states.INVALID


def _unplannable_before(due: DueInstant, unplannable: Sequence[Run], scheduled: Sequence[Run]) -> Run | None:
    """The record of the unplannable window that contains this instant: no other run began in between."""
    start = max((run.fire_at for run in unplannable if run.fire_at <= due.fire_at), default=None)
    if start is None:
        return None
    planned = (run.fire_at for run in scheduled if not _is_unplannable(run))
    if any(start <= fire_at < due.fire_at for fire_at in planned):
        return None
    return next(run for run in unplannable if run.fire_at == start)
