"""What a first look at a tenant needs, in a bounded number of reads: its jobs, what failed, and the next 24 hours."""

from __future__ import annotations

import heapq
import json
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from common.clock import CpuBudget
from common.history.job_directory import ListedJob
from common.jobs.job import ACTIVE
from common.planning.execution import job_key
from common.projection.totals import HOUR_S
from common.timing.density import due_times
from common.timing.schedule import Schedule

AHEAD_S: Final = 24 * HOUR_S
# A tenth of a second of a whole core; the function has less.
_AHEAD_CPU_S: Final = 0.3
# Schedules that stay in memory with at most so many times of an hour, some 10 MB.
_KNOWN_SCHEDULES: Final = 20_000
_KNOWN_TIMES: Final = 120


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


@dataclass(frozen=True, slots=True)
class _Hours:
    """A schedule's executions from a full hour on: by hour, and the seconds in the first hour and in the 25th."""

    counts: tuple[tuple[int, int], ...]
    first: array[int]
    last: array[int]


def ahead(tenant: str, jobs: Iterable[ListedJob], now: float) -> Ahead:
    """The executions of active jobs in the next 24 hours by hour, within a budget of time.

    Jobs with equal schedules are counted once for all of them, and a schedule once in an hour for all requests. Dates
    of calendars are counted. Pure but for the clock of the processor.
    """
    start, budget = int(now) + 1, CpuBudget(_AHEAD_CPU_S)
    result = Ahead(start)
    by_schedule: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        if job.state == ACTIVE:
            by_schedule[job.schedule].append(job.job_id)
    for schedule, job_ids in by_schedule.items():
        if budget.is_spent:
            result.complete = False
            break
        hours = _hours(schedule, start - start % HOUR_S)
        if hours is not None:
            for at, count in _from(hours, start):
                result.hours[at] += count * len(job_ids)
            result.jobs += len(job_ids)
            continue
        for job_id in job_ids:
            times = due_times(_parsed(schedule), job_key(tenant, job_id), start, start + AHEAD_S)
            result.hours.update(at - at % HOUR_S for at in times)
            result.jobs += 1
    return result


@lru_cache(maxsize=_KNOWN_SCHEDULES)
def _hours(text: str, hour: int) -> _Hours | None:
    """From this hour on; None if each job has its own times, or if there are too many to keep."""
    schedule = _parsed(text)
    if schedule.jitter_s or schedule.spread_s:
        return None
    counts: Counter[int] = Counter()
    first, last = array("H"), array("H")
    for at in due_times(schedule, "", hour, hour + AHEAD_S + HOUR_S):
        counts[at - at % HOUR_S] += 1
        if at < hour + HOUR_S:
            first.append(at - hour)
        elif at >= hour + AHEAD_S:
            last.append(at - hour - AHEAD_S)
    if max(len(first), len(last)) > _KNOWN_TIMES:
        return None
    return _Hours(tuple(counts.items()), first, last)


def _from(hours: _Hours, start: int) -> Iterator[tuple[int, int]]:
    """The counts of the 24 hours from `start` on, which is in the first hour."""
    second, hour = start % HOUR_S, start - start % HOUR_S
    for at, count in hours.counts:
        if at == hour:
            count -= bisect_left(hours.first, second)
        elif at == hour + AHEAD_S:
            count = bisect_left(hours.last, second)
        if count:
            yield at, count


def _parsed(text: str) -> Schedule:
    return Schedule.from_item(json.loads(text))


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
