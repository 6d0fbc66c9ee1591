"""What would move a job out of a crowded minute. Pure."""

from __future__ import annotations

from typing import Any, Final

from common.jobs.job import Job
from common.timing.cron import runs_freely
from common.timing.schedule import MINUTE8, CronTiming, EveryTiming, ManyTiming

# How far ahead the lists of what is coming reach.
MAX_AHEAD_DAYS: Final = 2
_PROPOSED_JITTER_S: Final = 300


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
