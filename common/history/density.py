"""How many executions are due in each minute, which minutes are crowded, and what would spread them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from common.jobs.job import ACTIVE, Job
from common.timing.cron import runs_freely
from common.timing.fires import due_at, fires
from common.timing.schedule import MINUTE8, CronTiming, EveryTiming, Schedule

MINUTE_S: Final = 60
# How far ahead the lists of what is coming reach.
MOST_AHEAD_DAYS: Final = 2
# A minute is crowded if it has this many times the average, and at least so many executions.
CROWDED_TIMES: Final = 3
CROWDED_LEAST: Final = 10
CROWDED_SHOWN: Final = 10
_JOBS_NAMED: Final = 5
_PROPOSED_JITTER_S: Final = 300


@dataclass(slots=True)
class Density:
    """Executions by minute: the instant at which a minute begins -> how many are due in it, jitter included."""

    start: int
    end: int
    minutes: Counter[int] = field(default_factory=Counter)
    # Equal schedules without jitter and spread have equal fire times.
    _known: dict[tuple[Schedule, int, int], Counter[int]] = field(default_factory=dict)

    def add(self, schedule: Schedule, job_key: str, effective_at: int, excluded: Container[str] = ()) -> int:
        """Add an active job's executions with fire times in [start, end). Returns how many."""
        begin = max(self.start, effective_at)
        if schedule.jitter_s or schedule.spread_s or schedule.calendars:
            found = _minutes(schedule, job_key, begin, self.end, excluded)
        else:
            key = schedule, begin, self.end
            if key not in self._known:
                self._known[key] = _minutes(schedule, job_key, begin, self.end, excluded)
            found = self._known[key]
        self.minutes.update(found)
        return found.total()

    @property
    def total(self) -> int:
        return self.minutes.total()

    def crowded(self) -> list[tuple[int, int]]:
        """The most crowded minutes, with their counts; the earliest of equals first."""
        return crowded(self.minutes, self.end - self.start)


def crowded(minutes: Mapping[int, int], span_s: int) -> list[tuple[int, int]]:
    """The minutes with at least three times the average of the span, and ten executions; the fullest first."""
    average = sum(minutes.values()) / max(1, span_s // MINUTE_S)
    least = max(CROWDED_LEAST, CROWDED_TIMES * average)
    found = [(minute, count) for minute, count in minutes.items() if count >= least]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:CROWDED_SHOWN]


def _minutes(schedule: Schedule, key: str, start: int, end: int, excluded: Container[str]) -> Counter[int]:
    if start >= end:
        return Counter()
    times = fires(schedule, start, end, excluded=excluded)
    return Counter(due // MINUTE_S * MINUTE_S for due in (due_at(schedule, key, at) for at in times))


def jobs_in(jobs: Iterable[Job], minute: int) -> list[Job]:
    """Some of the jobs without jitter that are due in a minute: those that could be spread."""
    return list(islice((job for job in jobs if _is_in(job, minute)), _JOBS_NAMED))


def _is_in(job: Job, minute: int) -> bool:
    if job.state != ACTIVE or job.schedule.jitter_s or job.schedule.spread_s:
        return False
    first = max(minute, job.effective_at)
    return next(fires(job.schedule, first, minute + MINUTE_S), None) is not None


def proposal(job: Job) -> dict[str, Any] | None:
    """A change of the job's schedule that moves it out of a crowded minute; None if there is none.

    A cron job with one fixed minute gets `H` there: a minute of its own, always the same. Any other job gets jitter.
    """
    timing = job.schedule.timing
    if isinstance(timing, CronTiming) and timing.dialect == MINUTE8:
        *seconds, minute, hour, day, month, weekday = str(job.schedule_given.get("cron", "")).split()
        if not seconds and minute.isdecimal():
            return {"cron": " ".join(["H", hour, day, month, weekday])}
        if not seconds and (step := minute.removeprefix("*/")).isdecimal() and runs_freely(minute):
            return {"cron": " ".join([f"H/{step}", hour, day, month, weekday])}
    if isinstance(timing, CronTiming | EveryTiming):
        return {"jitter_s": _PROPOSED_JITTER_S}
    return None
