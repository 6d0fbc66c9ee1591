"""Which retries, waiting runs, skips and queued executions an edit of a job ends."""

from __future__ import annotations

from itertools import islice
from typing import Final

from common.jobs.calendars import Calendars, MissingCalendar
from common.jobs.fates import EndedFire, Wait, ended_by
from common.jobs.job import Job, exists
from common.runs.records import Runs
from common.runs.states import CANCELLED, QUEUED, RETRYING, SKIPPED
from common.storage.table import Table
from common.timing.excluded_days import Excluded
from common.timing.fires import fires, scattered_at
from common.timing.windows import planning_end

# So many are named, the oldest first.
MAX_NAMED: Final = 50
# So many fire times that may be in the queue are compared.
_MAX_QUEUED: Final = 1_000


def ended_fires(jobs: Table, runs: Runs, old: Job | None, new: Job, now: float) -> list[EndedFire]:
    """What waits of the old job and does not run by the new one. Only a change of the times costs a read.

    Of the records it looks at the newest ones, MAX_RECORDS_READ.
    """
    if not exists(old) or old is None or old.schedule_revision == new.schedule_revision:
        return []
    calendars = Calendars(jobs)

    def excluded(job: Job) -> Excluded:
        return calendars.excluded(job.tenant, job.schedule)

    try:
        both = excluded(old), excluded(new)
        waiting = sorted({**_queued(old, both[0], now), **_recorded(runs, old, now)}.items())
    except MissingCalendar:
        return []
    return list(islice(ended_by(old, new, waiting, both), MAX_NAMED))


def _queued(job: Job, excluded: Excluded, now: float) -> dict[int, Wait]:
    """The fire times that may be planned already, and are not due yet."""
    schedule, until = job.schedule, planning_end(now)
    delay_s = schedule.spread_s + schedule.jitter_s + schedule.tolerance_s
    times = fires(schedule, max(job.effective_at, int(now) - delay_s), until, excluded=excluded)
    return {
        fire_at: "due time"
        for fire_at in islice(times, _MAX_QUEUED)
        if scattered_at(schedule, job.key, fire_at) > now
    }


def _recorded(runs: Runs, job: Job, now: float) -> dict[int, Wait]:
    waiting: dict[int, Wait] = {}
    for run in runs.newest_scheduled(job.tenant, job.job_id):
        if run.status == RETRYING:
            waiting[run.fire_at] = "retry"
        elif run.status == QUEUED:
            waiting[run.fire_at] = "turn"
        elif run.status == SKIPPED and run.reason == CANCELLED and run.fire_at > now:
            waiting[run.fire_at] = "skip"
    return waiting
