"""What is coming: the next executions of a tenant's jobs as a list, and as a density per minute.

A call reads up to MAX_JOBS definitions, and nothing else but the calendars that they name.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, NamedTuple

from common.clock import CpuBudget
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.jobs.corrupt import readable
from common.jobs.job import ACTIVE, Job
from common.limits import MAX_PACED
from common.planning.pace import PaceForecast, forecast
from common.positions import Instant, JobIdOrEmpty
from common.storage import keys
from common.storage.table import Query, Table
from common.timing.density import Density, by_minute, due_times
from common.timing.excluded_days import Excluded
from common.timing.fires import due_at, fires

MAX_JOBS: Final = 1_000
# One call counts so many executions by minute; a single job may have more.
MAX_COUNTED: Final = 200_000


@dataclass(frozen=True, slots=True)
class UpcomingExecution:
    """One coming execution."""

    fire_at: int
    due_at: int
    job_id: str


class UpcomingPosition(NamedTuple):
    """Where a list continues: among the jobs after `after_job`, after the fire time `at` of the job `job_id`."""

    after_job: JobIdOrEmpty = ""
    at: Instant = 0
    job_id: JobIdOrEmpty = ""
    # The last of these jobs, if their time was up before MAX_JOBS were looked at.
    last_job: JobIdOrEmpty = ""


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
    """How many executions are due at each second of jobs that share the places of a concurrency key."""

    limit: int
    due: Counter[int] = field(default_factory=Counter)

    @property
    def crowded(self) -> int:
        """How many are due at a second at which as many as the limit are due already: these wait or are skipped."""
        return sum(max(0, count - self.limit) for count in self.due.values())


@dataclass(frozen=True, slots=True)
class DensityPage:
    """The density of some jobs, and what they share by key. `after_job` is the last job, empty if none is left."""

    density: Density
    jobs: Sequence[Job]
    paces: Mapping[str, PacedJobs]
    concurrency: Mapping[str, KeyedJobs]
    after_job: str


class Upcoming:
    """The tenant always comes from the credential."""

    def __init__(self, jobs: Table) -> None:
        self._jobs = jobs

    def page(
        self, tenant: str, cursor: UpcomingPosition, start: int, end: int, now: float, limit: int
    ) -> tuple[list[UpcomingExecution], UpcomingPosition | None]:
        """The next executions with fire times in [start, end) after `cursor`, the earliest first; and the next place.

        A tenant with more than MAX_JOBS jobs gets them in chunks of that size, each in its own order. A chunk is
        smaller if looking for the first execution of each job takes too long.
        """
        jobs, last_job = self.jobs(tenant, cursor.after_job)
        coming, cut_after = self._chunk(jobs, cursor, max(start, math.ceil(now), cursor.at), end)
        merged = heapq.merge(*coming, key=lambda execution: (execution.fire_at, execution.job_id))
        rest = (
            execution
            for execution in merged
            if (execution.fire_at, execution.job_id) > (cursor.at, cursor.job_id)
        )
        page: list[UpcomingExecution] = []
        budget = CpuBudget()
        for execution in rest:
            if page and (len(page) == limit or budget.is_spent):
                last = page[-1]
                return page, UpcomingPosition(cursor.after_job, last.fire_at, last.job_id, cut_after)
            page.append(execution)
        last_job = cut_after or last_job
        return page, UpcomingPosition(last_job) if last_job else None

    def _chunk(
        self, jobs: Sequence[Job], cursor: UpcomingPosition, start: int, end: int
    ) -> tuple[list[Iterator[UpcomingExecution]], str]:
        """The executions of as many jobs as there is time for, and the last one's id; empty if that are all.

        The jobs of a list's next page are those of the page before.
        """
        calendars = RememberedCalendars(Calendars(self._jobs))
        coming: list[Iterator[UpcomingExecution]] = []
        budget = CpuBudget()
        last_job = ""
        for job in jobs:
            if last_job and (job.job_id > cursor.last_job if cursor.last_job else budget.is_spent):
                return coming, last_job
            executions = _coming(job, start, end, calendars)
            coming.append(chain(list(islice(executions, 1)), executions))
            last_job = job.job_id
        return coming, ""

    def density(self, tenant: str, after_job: str, start: int, end: int, now: float) -> DensityPage:
        """How many executions of the next jobs are due in each minute; fire times in [start, end)."""
        jobs, last_job = self.jobs(tenant, after_job)
        density = Density(max(start, math.ceil(now)), end)
        calendars = RememberedCalendars(Calendars(self._jobs))
        counted: list[Job] = []
        paces: dict[str, PacedJobs] = {}
        keyed: dict[str, KeyedJobs] = {}
        paced = 0
        budget = CpuBudget()
        for job in jobs:
            excluded = _excluded(job, calendars)
            if excluded is None:
                continue
            pace = job.schedule.pace
            due: list[int] = []
            concurrency = job.spec.concurrency
            if pace or concurrency:
                begin = max(density.start, job.effective_at)
                due = list(due_times(job.schedule, job.key, begin, end, excluded))
                counts = by_minute(due)
            else:
                counts = density.of_job(job.schedule, job.key, job.effective_at, excluded)
            is_full = density.total + counts.total() > MAX_COUNTED or (due and paced + len(due) > MAX_PACED)
            if counted and (is_full or budget.is_spent):
                return DensityPage(density, counted, paces, keyed, counted[-1].job_id)
            density.add(counts)
            counted.append(job)
            paced += len(due)
            if concurrency and due:
                places = keyed.setdefault(concurrency.key, KeyedJobs(concurrency.limit))
                places.limit = min(places.limit, concurrency.limit)
                places.due.update(due)
            if pace and due:
                shared = paces.setdefault(pace.key, PacedJobs(pace.per_second))
                shared.per_second = min(shared.per_second, pace.per_second)
                shared.due += ((at, pace.tolerance_s) for at in due)
        return DensityPage(density, counted, paces, keyed, last_job)

    def jobs(self, tenant: str, after_job: str) -> tuple[list[Job], str]:
        """The active ones of the next MAX_JOBS jobs, and the last one's id; empty if no job follows."""
        after = keys.job(tenant, after_job) if after_job else None
        items = self._jobs.query(Query(tenant, sk_prefix=keys.JOB_PREFIX, after=after, limit=MAX_JOBS + 1))
        read = list(items)
        jobs = readable(read[:MAX_JOBS])  # lists of jobs name those that cannot be read
        last_job = read[MAX_JOBS - 1]["sk"].removeprefix(keys.JOB_PREFIX) if len(read) > MAX_JOBS else ""
        return [job for job in jobs if job.state == ACTIVE], last_job


def _coming(job: Job, start: int, end: int, calendars: RememberedCalendars) -> Iterator[UpcomingExecution]:
    excluded = _excluded(job, calendars)
    if excluded is None:
        return
    for at in fires(job.schedule, max(start, job.effective_at), end, excluded=excluded):
        yield UpcomingExecution(at, due_at(job.schedule, job.key, at), job.job_id)


def _excluded(job: Job, calendars: RememberedCalendars) -> Excluded | None:
    try:
        return calendars.excluded(job.tenant, job.schedule)
    except MissingCalendar:  # it cannot be planned
        return None
