"""When the jobs of a directory fire: computed for the look that shows it, each distinct schedule once."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from common.clock import CpuBudget
from common.history.job_directory import ListedJob
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.jobs.job import ACTIVE
from common.limits import PAGE_CPU_S
from common.planning.execution import job_key
from common.projection.totals import HOUR_S
from common.storage.table import Table
from common.timing.density import MINUTE_S, due_times
from common.timing.excluded_days import NO_DAYS, Excluded
from common.timing.fires import next_fires
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule

AHEAD_S: Final = DAY_S

NextFire = Callable[[ListedJob], int | None]


@dataclass(frozen=True, slots=True)
class Ahead:
    """How many executions are due in each hour of AHEAD_S. `jobs`: those that were counted, of all active ones."""

    start: int
    hours: Mapping[int, int]
    jobs: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Fires:
    """The fire times of a tenant's jobs from `now` on, of as many as there is time for."""

    tenant: str
    calendars: RememberedCalendars
    now: float
    budget: CpuBudget
    _schedules: dict[str, Schedule] = field(default_factory=dict)
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
            schedule = self._schedule(job.schedule)
            excluded: Excluded = NO_DAYS
            with suppress(MissingCalendar):
                excluded = self.calendars.excluded(self.tenant, schedule)
            times = next_fires(schedule, math.ceil(self.now), 1, excluded=excluded)
            self._next[job.schedule] = times[0] if times else None
        return self._next[job.schedule]

    def day(self, jobs: Iterable[ListedJob]) -> Ahead:
        """What active jobs have due in the 24 hours from the next whole minute on.

        Dates that calendars exclude are counted.
        """
        start = int(self.now) // MINUTE_S * MINUTE_S + MINUTE_S
        by_schedule: defaultdict[str, list[str]] = defaultdict(list)
        for job in jobs:
            if job.state == ACTIVE:
                by_schedule[job.schedule].append(job.job_id)
        hours: Counter[int] = Counter()
        counted = 0
        for text, job_ids in by_schedule.items():
            schedule = self._schedule(text)
            delay_s = schedule.jitter_s + schedule.spread_s
            # Without a delay, all jobs of a schedule are due at the same times.
            for job_id in job_ids if delay_s else job_ids[:1]:
                if self.budget.is_spent:
                    return Ahead(start, hours, counted, complete=False)
                jobs_alike = 1 if delay_s else len(job_ids)
                for at in due_times(schedule, job_key(self.tenant, job_id), start - delay_s, start + AHEAD_S):
                    if start <= at < start + AHEAD_S:
                        hours[at - at % HOUR_S] += jobs_alike
                counted += jobs_alike
        return Ahead(start, hours, counted, complete=True)

    def _schedule(self, text: str) -> Schedule:
        if text not in self._schedules:
            self._schedules[text] = Schedule.from_item(json.loads(text))
        return self._schedules[text]
