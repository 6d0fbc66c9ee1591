"""When the jobs of a directory fire, and what would move one out of a crowded minute.

Fires are computed for the look that shows them, each distinct schedule once.

A look at fires has so much processor time. If that does not do for all jobs, it is of some, and says so.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from msgspec.json import Decoder

from common.clock import CpuBudget
from common.history.job_directory import ListedJob
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.jobs.job import ACTIVE, Job
from common.limits import MAX_PACED, PAGE_CPU_S
from common.planning.execution import job_key
from common.planning.pace import PaceForecast, forecast
from common.projection.totals import HOUR_S
from common.storage.bounded import Instant, JobId
from common.storage.table import Table
from common.timing.cron import runs_freely
from common.timing.density import MINUTE_S, due_times
from common.timing.excluded_days import NO_DAYS, Excluded
from common.timing.fires import due_at, fires, next_fires
from common.timing.instants import DAY_S
from common.timing.schedule import MINUTE8, CronTiming, EveryTiming, ManyTiming, Schedule

AHEAD_S: Final = DAY_S
# Of a crowded minute so many jobs are named.
_NAMED: Final = 5
_SCHEDULES: Final = Decoder(Schedule)

NextFire = Callable[[ListedJob], int | None]


class UpcomingPosition(NamedTuple):
    """After which execution a list goes on: its fire time and job."""

    at: Instant
    job_id: JobId


class UpcomingExecution(NamedTuple):
    """One coming execution. They sort as they are listed."""

    fire_at: int
    job_id: str
    due_at: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """How many executions are due in each hour of AHEAD_S. `jobs`: those that were counted, of all active ones."""

    start: int
    hours: Mapping[int, int]
    jobs: int
    complete: bool


@dataclass(slots=True)
class PacedJobs:
    """The executions of jobs that share a pace: when each is due without it, and its tolerance."""

    per_second: int
    due: list[tuple[int, int]] = field(default_factory=list)

    def forecast(self) -> PaceForecast:
        """The delays that the pace causes if no other jobs share it. It takes 3 µs an execution."""
        return forecast(self.due, self.per_second)


@dataclass(slots=True)
class KeyedJobs:
    """How many executions are due at each second of jobs that share the permits of a concurrency key."""

    limit: int
    due: Counter[int] = field(default_factory=Counter)

    @property
    def crowded(self) -> int:
        """How many are due at a second at which as many as the limit are due already: these wait or are skipped."""
        return sum(max(0, count - self.limit) for count in self.due.values())


@dataclass(slots=True)
class TenantDensity:
    """How many executions are due in each minute, what jobs share by key, and some jobs of each minute."""

    minutes: Counter[int] = field(default_factory=Counter)
    paces: dict[str, PacedJobs] = field(default_factory=dict)
    concurrency: dict[str, KeyedJobs] = field(default_factory=dict)
    # Jobs without jitter and spread: these could be spread.
    named: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    shared: int = 0

    def add(self, job: ListedJob, schedule: Schedule, due: Sequence[int]) -> None:
        """Add what a job shares with others."""
        if job.concurrency:
            key, limit = json.loads(job.concurrency)
            keyed = self.concurrency.setdefault(key, KeyedJobs(limit))
            keyed.limit = min(keyed.limit, limit)
            keyed.due.update(due)
        if pace := schedule.pace:
            paced = self.paces.setdefault(pace.key, PacedJobs(pace.per_second))
            paced.per_second = min(paced.per_second, pace.per_second)
            paced.due += ((at, pace.tolerance_s) for at in due)
        if job.concurrency or schedule.pace:
            self.shared += len(due)


@dataclass(slots=True)
class Fires:
    """The fire times of a tenant's jobs from `now` on. `jobs`: how many active ones; `is_cut`: not all of them."""

    tenant: str
    calendars: RememberedCalendars
    now: float
    budget: CpuBudget
    jobs: int = 0
    is_cut: bool = False
    _schedules: dict[str, tuple[Schedule, Excluded | None]] = field(default_factory=dict)
    _next: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def of(cls, jobs: Table, tenant: str, now: float, cpu_s: float = PAGE_CPU_S) -> Fires:
        """Computed within so much processor time from now on; calendars are in the jobs table."""
        return cls(tenant, RememberedCalendars(Calendars(jobs)), now, CpuBudget(cpu_s))

    def next(self, job: ListedJob) -> int | None:
        """The job's next fire time; None if it has none, or there is no time left."""
        if job.schedule not in self._next:
            if self.budget.is_spent:
                return None
            schedule, excluded = self._schedule(job.schedule)
            times = next_fires(schedule, math.ceil(self.now), 1, excluded=excluded or NO_DAYS)
            self._next[job.schedule] = times[0] if times else None
        return self._next[job.schedule]

    def day(self, jobs: Iterable[ListedJob]) -> Ahead:
        """What active jobs have due in the 24 hours from the next whole minute on."""
        start = int(self.now) // MINUTE_S * MINUTE_S + MINUTE_S
        hours: Counter[int] = Counter()
        for schedule, excluded, of_schedule in self._groups(jobs):
            delay_s = schedule.jitter_s + schedule.spread_s
            for job in of_schedule if delay_s else of_schedule[:1]:
                key = job_key(self.tenant, job.job_id)
                for at in due_times(schedule, key, start - delay_s, start + AHEAD_S, excluded):
                    if start <= at < start + AHEAD_S:
                        hours[at - at % HOUR_S] += 1 if delay_s else len(of_schedule)
        return Ahead(start, hours, self.jobs, complete=not self.is_cut)

    def coming(self, jobs: Iterable[ListedJob], start: int, end: int) -> Iterator[UpcomingExecution]:
        """The executions with fire times in [start, end), in their order, however many jobs there are."""
        streams = []
        for schedule, excluded, of_schedule in self._groups(jobs):
            instants = fires(schedule, max(start, math.ceil(self.now)), end, excluded=excluded)
            if (first := next(instants, None)) is not None:
                streams.append(self._executions(schedule, of_schedule, chain([first], instants)))
        return heapq.merge(*streams)

    def minute(self, jobs: Iterable[ListedJob], minute: int) -> list[UpcomingExecution]:
        """The executions that are due in the minute that begins then, in the order of their seconds."""
        due_then = []
        for schedule, excluded, of_schedule in self._groups(jobs):
            delay_s = schedule.jitter_s + schedule.spread_s
            instants = fires(schedule, minute - delay_s, minute + MINUTE_S, excluded=excluded)
            executions = self._executions(schedule, of_schedule, instants)
            due_then += [
                execution for execution in executions if minute <= execution.due_at < minute + MINUTE_S
            ]
        return sorted(due_then, key=lambda execution: (execution.due_at, execution.job_id))

    def density(self, jobs: Iterable[ListedJob], start: int, end: int) -> TenantDensity:
        """How many executions with fire times in [start, end) are due in each minute."""
        density, start = TenantDensity(), max(start, math.ceil(self.now))
        for schedule, excluded, of_schedule in self._groups(jobs):
            has_delay = schedule.jitter_s or schedule.spread_s
            due: list[int] = []
            for job in of_schedule:
                if not due or has_delay:
                    due = list(due_times(schedule, job_key(self.tenant, job.job_id), start, end, excluded))
                    alike = 1 if has_delay else len(of_schedule)
                    for at in due:
                        density.minutes[at - at % MINUTE_S] += alike
                density.add(job, schedule, due)
            if not has_delay:
                for minute in {at - at % MINUTE_S for at in due}:
                    named = density.named[minute]
                    named += (job.job_id for job in of_schedule[: _NAMED - len(named)])
            if density.shared > MAX_PACED:
                self.is_cut = True
                break
        return density

    def _executions(
        self, schedule: Schedule, jobs: Sequence[ListedJob], instants: Iterable[int]
    ) -> Iterator[UpcomingExecution]:
        for at in instants:
            for job in jobs:
                due = due_at(schedule, job_key(self.tenant, job.job_id), at)
                yield UpcomingExecution(at, job.job_id, due)

    def _groups(self, jobs: Iterable[ListedJob]) -> Iterator[tuple[Schedule, Excluded, list[ListedJob]]]:
        """The active jobs by schedule, by their ids, while there is time. A missing calendar plans no job."""
        by_schedule: defaultdict[str, list[ListedJob]] = defaultdict(list)
        for job in sorted(jobs):
            if job.state == ACTIVE:
                by_schedule[job.schedule].append(job)
        self.jobs, self.is_cut = 0, False
        for text, of_schedule in by_schedule.items():
            if self.budget.is_spent:
                self.is_cut = True
                return
            schedule, excluded = self._schedule(text)
            self.jobs += len(of_schedule)
            if excluded is not None:
                yield schedule, excluded, of_schedule

    def _schedule(self, text: str) -> tuple[Schedule, Excluded | None]:
        if text not in self._schedules:
            schedule = _SCHEDULES.decode(text)
            try:
                excluded: Excluded | None = self.calendars.excluded(self.tenant, schedule)
            except MissingCalendar:
                excluded = None
            self._schedules[text] = schedule, excluded
        return self._schedules[text]


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
