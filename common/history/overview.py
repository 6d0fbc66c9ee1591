"""What a first look at a tenant shows of its jobs: those that fail, and those that fire next. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from common.history.job_directory import ListedJob
from common.history.next_fires import NextFire
from common.jobs.job import ACTIVE


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A job whose last runs failed."""

    job_id: str
    name: str
    failures_in_row: int


def failing(
    jobs: Sequence[ListedJob], failures: dict[str, tuple[int, int]], muted: Collection[str]
) -> tuple[list[FailingJob], int]:
    """The active jobs that fail, the most failures in a row first, and how many more of them are muted. Pure."""
    failing_jobs = [
        FailingJob(job.job_id, job.name, failures[job.job_id][0])
        for job in jobs
        if job.job_id in failures and job.state == ACTIVE
    ]
    shown = [job for job in failing_jobs if job.job_id not in muted]
    shown.sort(key=lambda job: (-job.failures_in_row, job.job_id))
    return shown, len(failing_jobs) - len(shown)


def soonest(jobs: Iterable[ListedJob], next_fire: NextFire, most: int) -> list[tuple[int, ListedJob]]:
    """The active jobs that fire next, with their fire times, the earliest first."""
    times = ((next_fire(job), job) for job in jobs if job.state == ACTIVE)
    known = ((at, job) for at, job in times if at is not None)
    return heapq.nsmallest(most, known, key=lambda pair: (pair[0], pair[1].job_id))
