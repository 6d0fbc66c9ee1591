"""What the owner of a job should know: what never runs, what goes on, credentials in plain text, what an edit ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import to_builtins

from common.jobs.calendars import Calendars, MissingCalendar
from common.jobs.job import Job, exists
from common.jobs.not_running import ENDED, NEVER_FIRES
from common.jobs.placeholders import SECRET_MARK
from common.jobs.revisions import EndedFire, Wait, ended_by
from common.runs.records import Runs
from common.runs.states import CANCELLED, QUEUED, RETRYING, SKIPPED
from common.storage.domains import KNOWN_REGIONS
from common.storage.table import Table
from common.tenants.audit import credentials_in
from common.timing.excluded_days import Excluded
from common.timing.fires import fires, scattered_at
from common.timing.windows import MISSED_AFTER_S, planning_end


def job_warnings(job: Job) -> Iterator[str]:
    """Sentences about a job as it is stored. A large payload is not looked at."""
    if job.not_running in (ENDED, NEVER_FIRES):
        yield "It fires never again: no fire time is left."
    yield from catch_up_warnings(job.spec.catch_up, job.spec.start_deadline_s)
    region = str(job.spec.target.get("arn", "::::")).split(":")[3]
    if region and region not in KNOWN_REGIONS:
        yield f"The target is in {region}, a region that Minute8 does not know: is its name right?"
    function_s, timeout_s = job.function_timeout_s, job.spec.timeout_s
    if function_s > timeout_s:
        yield f"your function may run {function_s} s, timeout_s is {timeout_s}: after a timeout others wait for it"
    for name, value in {"payload": job.payload.text or "", **to_builtins(job.spec)}.items():
        for credential in credentials_in(value):
            yield (
                f"The {name} has {credential} in plain text, for all readers of the job: "
                f"name a secret as {SECRET_MARK}NAME."
            )


def catch_up_warnings(catch_up: str, start_deadline_s: int | None) -> Iterator[str]:
    """That what is caught up would be too late to start."""
    if catch_up != "none" and start_deadline_s is not None and start_deadline_s <= MISSED_AFTER_S:
        yield (
            f"catch_up runs what was missed by over {MISSED_AFTER_S} s, "
            f"and start_deadline_s of {start_deadline_s} skips it"
        )


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
