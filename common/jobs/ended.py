"""Jobs of which a run ended or was not planned, and that may have ended with it, or do not run: noted for a later look.

A note says only that a job with `after_completion: delete` may have ended; or also why a job does not run, which an
outage may do to any number of jobs. A planner or a tick looks at the job and its runs, and deletes the job
(`scheduler/removal.py`). The executor asks for that (`common/planning/queue.py`). It could not delete the
job itself: each deletion writes the tenant's counts, and 100,000 one-offs can end at the same second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from common.jobs.calendars import Calendars, MissingCalendar
from common.limits import END_NOTE_KEPT_S
from common.planning.execution import Execution, split_run_name
from common.storage import keys
from common.storage.table import Query, Table
from common.timing.compiled import names_years
from common.timing.excluded_days import Excluded
from common.timing.fires import local_date, next_fires
from common.timing.schedule import SKIP, AtTiming, Schedule

if TYPE_CHECKING:
    from common.jobs.job import Job
    from common.jobs.not_running import NotRunning

# A run that no other follows so soon is told when it is skipped once.
RARE_S: Final = 43_200


@dataclass(frozen=True, slots=True)
class Note:
    """One noted run of a job."""

    key: keys.Key
    tenant: str
    job_id: str
    fire_at: int
    trigger_id: str
    not_running: NotRunning | None


class EndedJobs:
    """The notes, in the due table."""

    def __init__(self, due: Table, jobs: Table) -> None:
        self._due = due
        self._calendars = Calendars(jobs)

    def run_ended(self, job: Job, execution: Execution, now: float) -> bool:
        """Note a job that is to be deleted, if it has no fire time left. Returns whether that is so."""
        after = max(execution.fire_at, int(now))
        is_over = not fires_again(job.schedule, after, self.excluded(job))
        if is_over:
            self.note(execution, now)
        return is_over

    def note(self, execution: Execution, now: float, not_running: NotRunning | None = None) -> None:
        """Let a tick look at the job, and tell that it does not run. Repeating it changes nothing."""
        key = keys.ended(execution.tenant, execution.job_id, execution.run_name)
        attributes = {"not_running": not_running.note(now)} if not_running else {}
        self._due.put({**key, "expires_at": int(now) + END_NOTE_KEPT_S, **attributes})

    def excluded(self, job: Job) -> Excluded:
        """The dates of its calendars that exist."""
        try:
            return self._calendars.excluded(job.tenant, job.schedule)
        except MissingCalendar:
            return ()

    def noted(self) -> Iterator[Note]:
        """All notes."""
        from common.jobs.not_running import NotRunning  # an executor reads none

        for partition in keys.partitions("ENDED"):
            for item in self._due.query(Query(partition)):
                tenant, job_id, run_name = item["sk"].split("#", 2)
                fire_at, trigger_id = split_run_name(run_name) or (0, "")
                not_running = NotRunning.of_item(item)
                yield Note(keys.key_of(item), tenant, job_id, fire_at, trigger_id, not_running)

    def forget(self, notes: Sequence[Note]) -> None:
        """Delete these notes. Those that are left because of throttling do no harm: the next tick looks again."""
        self._due.delete_many([note.key for note in notes])


def fires_again(schedule: Schedule, after: int, excluded: Excluded) -> bool:
    """Whether a fire time is later than `after`. Pure."""
    if isinstance(schedule.timing, AtTiming):
        return schedule.timing.at > after
    if schedule.end_at is None and any(map(is_endless, schedule.parts)):
        return True
    first = max(after + 1, schedule.start_at or 0)
    return bool(next_fires(schedule, first, 1, until=schedule.end_at, excluded=excluded))


def is_endless(schedule: Schedule) -> bool:
    """Whether a single schedule fires for ever. One that fires on the dates of calendars ends with them. Pure."""
    is_one_off = isinstance(schedule.timing, AtTiming)
    is_bounded = schedule.end_at is not None or schedule.include_calendars or names_years(schedule.timing)
    return not is_one_off and not is_bounded


def may_end(schedule: Schedule) -> bool:
    """Whether a schedule can come to its end, or never fire. Pure."""
    excludes = any(part.exclude_weekdays for part in schedule.parts)
    return excludes or schedule.end_at is not None or not any(map(is_endless, schedule.parts))


def is_one_off(schedule: Schedule) -> bool:
    """Whether it names single instants alone. Pure."""
    return all(isinstance(part.timing, AtTiming) for part in schedule.parts)


def is_rare(schedule: Schedule, at: int) -> bool:
    """Whether no fire time follows this one soon, so that nobody can wait for three skips. Pure."""
    return not next_fires(schedule, at + 1, 1, until=at + RARE_S)


def why_over(job: Job, fired_at: int, now: float, excluded: Callable[[], Excluded]) -> str:
    """Why no fire time of an active job is left, in words; empty if there is one, or it is a one-off whose time came.

    `fired_at` is its newest fire time; 0: not known. `excluded` is asked for what its calendars exclude, unless the
    schedule's next time is on the same date.
    """
    from common.jobs.job import ACTIVE

    schedule, after = job.schedule, max(int(now) + 1, job.effective_at)
    if job.state != ACTIVE or not may_end(schedule):
        return ""
    if is_one_off(schedule):
        return _why_never(job, after, excluded)
    first = max(after, schedule.start_at or 0)
    coming = next_fires(schedule, first, 1, until=schedule.end_at)
    if coming and (not schedule.named_calendars or _is_same_date(schedule, coming[0], fired_at)):
        return ""
    if coming and next_fires(schedule, first, 1, until=schedule.end_at, excluded=excluded()):
        return ""
    if coming:
        names = ", ".join(schedule.named_calendars)
        return f"no fire time is left: no date of its calendars ({names}) is to come"
    return _what_ends(job)


def _what_ends(job: Job) -> str:
    schedule = job.schedule
    if schedule.end_at is not None or any(part.end_at is not None for part in schedule.parts):
        limit = "max_runs" if job.spec.schedule.get("max_runs") is not None else "end_at"
        return f"no fire time is left before its {limit} ends it"
    if any(part.exclude_weekdays for part in schedule.parts):
        return "no fire time is left: it excludes the weekdays on which it fires"
    return "no fire time is left: what its schedule names is past"


def _why_never(job: Job, after: int, excluded: Callable[[], Excluded]) -> str:
    last_at = max(part.timing.at for part in job.schedule.parts if isinstance(part.timing, AtTiming))
    if last_at < after:
        was_paused = any(pause.from_at <= last_at < pause.until_at for pause in job.pauses)
        return "its time came while the job was paused" if was_paused else ""
    days = excluded() if job.schedule.named_calendars else ()
    is_left = next_fires(job.schedule, after, 1, excluded=days)
    return "" if is_left else "no fire time is left: its date is excluded"


def _is_same_date(schedule: Schedule, at: int, fired_at: int) -> bool:
    is_plain = len(schedule.parts) == 1 and schedule.on_excluded == SKIP
    return is_plain and local_date(schedule, at) == local_date(schedule, fired_at)
