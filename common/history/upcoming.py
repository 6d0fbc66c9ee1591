"""What is coming: the next executions of all of a tenant's jobs, as a list and as a density per minute.

A call reads up to MAX_JOBS definitions, and nothing else but the calendars that they name.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from common.history.density import Density, by_minute, due_times
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.jobs.job import ACTIVE
from common.jobs.timed import ATTRIBUTES, TimedJob
from common.planning.pace import Foreseen, foreseen
from common.storage import keys
from common.storage.tables import Table
from common.timing.fires import due_at, fires

MAX_JOBS: Final = 1_000
# The most executions that one call counts by minute; a single job may have more.
MAX_COUNTED: Final = 200_000
# The most of these that have paces: each gets a place.
MAX_PACED: Final = 50_000


@dataclass(frozen=True, slots=True)
class Coming:
    """One coming execution."""

    fire_at: int
    due_at: int
    job_id: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list continues: among the jobs after `after_job`, after the fire time `at` of the job `job_id`."""

    after_job: str = ""
    at: int = 0
    job_id: str = ""


@dataclass(slots=True)
class PacedJobs:
    """The executions of jobs that share a pace: when each is due without it, and its tolerance."""

    per_second: int
    due: list[tuple[int, int]] = field(default_factory=list)

    def foreseen(self) -> Foreseen:
        """What the pace does with them, if no others share it. Places each: 3 µs an execution."""
        return foreseen(self.due, self.per_second)


@dataclass(frozen=True, slots=True)
class DensityPage:
    """The density of some jobs, and their paces by key. `after_job` is the last job, empty if none is left."""

    density: Density
    jobs: Sequence[TimedJob]
    paces: Mapping[str, PacedJobs]
    after_job: str


class Upcoming:
    """The tenant always comes from the credential."""

    def __init__(self, jobs: Table) -> None:
        self._jobs = jobs

    def page(
        self, tenant: str, place: Place, start: int, end: int, now: float, limit: int
    ) -> tuple[list[Coming], Place | None]:
        """The next executions with fire times in [start, end) after `place`, the earliest first; and the next place.

        A tenant with more than MAX_JOBS jobs gets them in chunks of that size, each in its own order.
        """
        jobs, last_job = self.jobs(tenant, place.after_job)
        start = max(start, math.ceil(now))
        calendars = RememberedCalendars(Calendars(self._jobs))
        coming = (_coming(job, max(start, place.at), end, calendars) for job in jobs)
        merged = heapq.merge(*coming, key=lambda one: (one.fire_at, one.job_id))
        rest = (one for one in merged if (one.fire_at, one.job_id) > (place.at, place.job_id))
        found = list(islice(rest, limit + 1))
        if len(found) > limit:
            return found[:limit], Place(place.after_job, found[limit - 1].fire_at, found[limit - 1].job_id)
        return found, Place(last_job) if last_job else None

    def density(self, tenant: str, after_job: str, start: int, end: int, now: float) -> DensityPage:
        """How many executions of the next jobs are due in each minute; fire times in [start, end)."""
        jobs, last_job = self.jobs(tenant, after_job)
        density = Density(max(start, math.ceil(now)), end)
        calendars = RememberedCalendars(Calendars(self._jobs))
        counted: list[TimedJob] = []
        paces: dict[str, PacedJobs] = {}
        paced = 0
        for job in jobs:
            excluded = _excluded(job, calendars)
            if excluded is None:
                continue
            pace = job.schedule.pace
            due: list[int] = []
            if pace:
                begin = max(density.start, job.effective_at)
                due = list(due_times(job.schedule, job.key, begin, end, excluded))
                found = by_minute(due)
            else:
                found = density.of_job(job.schedule, job.key, job.effective_at, excluded)
            is_full = density.total + found.total() > MAX_COUNTED or (due and paced + len(due) > MAX_PACED)
            if counted and is_full:
                return DensityPage(density, counted, paces, counted[-1].job_id)
            density.add(found)
            counted.append(job)
            if pace and due:
                paced += len(due)
                shared = paces.setdefault(pace.key, PacedJobs(pace.per_second))
                shared.per_second = min(shared.per_second, pace.per_second)
                shared.due += ((at, pace.tolerance_s) for at in due)
        return DensityPage(density, counted, paces, last_job)

    def jobs(self, tenant: str, after_job: str) -> tuple[list[TimedJob], str]:
        """The active ones of the next MAX_JOBS jobs, and the last one's id; empty if no job follows."""
        after = keys.job(tenant, after_job) if after_job else None
        items = self._jobs.query(
            tenant, sk_prefix=keys.JOB_PREFIX, after=after, limit=MAX_JOBS + 1, attributes=ATTRIBUTES
        )
        jobs = [TimedJob.from_item(item) for item in items]
        last_job = jobs[MAX_JOBS - 1].job_id if len(jobs) > MAX_JOBS else ""
        return [job for job in jobs[:MAX_JOBS] if job.state == ACTIVE], last_job


def _coming(job: TimedJob, start: int, end: int, calendars: RememberedCalendars) -> Iterator[Coming]:
    excluded = _excluded(job, calendars)
    if excluded is None:
        return
    for at in fires(job.schedule, max(start, job.effective_at), end, excluded=excluded):
        yield Coming(at, due_at(job.schedule, job.key, at), job.job_id)


def _excluded(job: TimedJob, calendars: RememberedCalendars) -> Container[str] | None:
    try:
        return calendars.excluded(job.tenant, job.schedule.calendars)
    except MissingCalendar:  # it cannot be planned
        return None
