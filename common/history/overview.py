"""What a first look at a tenant needs, in a bounded number of reads: its jobs, what failed, and the next 24 hours."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from common.clock import CpuBudget
from common.history.density import due_times
from common.history.job_directory import ListedJob
from common.jobs.job import ACTIVE
from common.planning.execution import job_key
from common.projection.totals import HOUR_S
from common.timing.schedule import Schedule

AHEAD_S: Final = 24 * HOUR_S
# A tenth of a second of a whole core; the function has less.
_AHEAD_CPU_S: Final = 0.3


@dataclass(slots=True)
class Ahead:
    """How many executions are due in each hour. `jobs`: those that were counted, of all active ones."""

    start: int
    hours: Counter[int] = field(default_factory=Counter)
    jobs: int = 0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A job whose last runs failed."""

    job_id: str
    name: str
    failures_in_row: int


def ahead(tenant: str, jobs: Iterable[ListedJob], now: float) -> Ahead:
    """The executions of active jobs in the next 24 hours by hour, within a budget of time.

    Jobs with equal schedules are counted once for all of them. Dates of calendars are counted. Pure but for
    the clock of the processor.
    """
    start, budget = int(now) + 1, CpuBudget(_AHEAD_CPU_S)
    result = Ahead(start)
    known: dict[str, Counter[int]] = {}
    for job in jobs:
        if job.state != ACTIVE:
            continue
        counts = known.get(job.schedule)
        if counts is None:
            if budget.is_spent:
                result.complete = False
                continue
            schedule = Schedule.from_item(json.loads(job.schedule))
            key = job_key(tenant, job.job_id)
            times = due_times(schedule, key, start, start + AHEAD_S)
            counts = Counter(at - at % HOUR_S for at in times)
            if not (schedule.jitter_s or schedule.spread_s):
                known[job.schedule] = counts
        result.hours.update(counts)
        result.jobs += 1
    return result


def failing(
    jobs: Sequence[ListedJob], failures: dict[str, tuple[int, int]], most: int
) -> tuple[int, list[FailingJob]]:
    """How many active jobs fail, and those with the most failures in a row. Pure."""
    failing_jobs = [
        FailingJob(job.job_id, job.name, failures[job.job_id][0])
        for job in jobs
        if job.job_id in failures and job.state == ACTIVE
    ]
    failing_jobs.sort(key=lambda job: (-job.failures_in_row, job.job_id))
    return len(failing_jobs), failing_jobs[:most]


def soonest(
    jobs: Iterable[ListedJob], next_fire: Callable[[ListedJob], int | None], most: int
) -> list[tuple[int, ListedJob]]:
    """The active jobs that fire next, with their fire times, the earliest first. Pure but for `next_fire`."""
    times = ((next_fire(job), job) for job in jobs if job.state == ACTIVE)
    known = ((at, job) for at, job in times if at is not None)
    return heapq.nsmallest(most, known, key=lambda pair: (pair[0], pair[1].job_id))
