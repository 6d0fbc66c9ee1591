"""Which jobs make a minute crowded, and what would spread them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from common.jobs.job import Job
from common.timing.cron import runs_freely
from common.timing.density import MINUTE_S
from common.timing.fires import fires
from common.timing.schedule import MINUTE8, CronTiming, EveryTiming, ManyTiming

# How far ahead the lists of what is coming reach.
MAX_AHEAD_DAYS: Final = 2
_JOBS_NAMED: Final = 5
_PROPOSED_JITTER_S: Final = 300


def jobs_in(jobs: Iterable[Job], minute: int) -> list[Job]:
    """Some active jobs without jitter that are due in a minute. These jobs could be spread."""
    return list(islice((job for job in jobs if _is_in(job, minute)), _JOBS_NAMED))


def _is_in(job: Job, minute: int) -> bool:
    if job.schedule.jitter_s or job.schedule.spread_s:
        return False
    first = max(minute, job.effective_at)
    return next(fires(job.schedule, first, minute + MINUTE_S), None) is not None


def proposal(job: Job) -> dict[str, Any] | None:
    """A change of the job's schedule that moves it out of a crowded minute; None if there is none.

    A cron job with one fixed minute gets `H` there: a minute of its own, always the same. Any other job gets jitter.
    """
    timing = job.schedule.timing
    if isinstance(timing, CronTiming) and timing.dialect == MINUTE8:
        *seconds, minute, hour, day, month, weekday = str(job.spec.schedule.get("cron", "")).split()
        if not seconds and minute.isdecimal():
            return {"cron": " ".join(["H", hour, day, month, weekday])}
        if not seconds and (step := minute.removeprefix("*/")).isdecimal() and runs_freely(minute):
            return {"cron": " ".join([f"H/{step}", hour, day, month, weekday])}
    if isinstance(timing, CronTiming | EveryTiming | ManyTiming):
        return {"jitter_s": _PROPOSED_JITTER_S}
    return None
