"""What a first look at a tenant shows of its jobs: those that fail, and those that fire next. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.history.job_directory import ListedJob, Streak
from common.history.next_fires import NextFire
from common.jobs.job import ACTIVE
from common.jobs.not_running import NotRunning


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A job whose last runs failed."""

    job_id: str
    name: str
    failures_in_row: int


def failing(
    jobs: Sequence[ListedJob], streaks: Mapping[str, Streak], muted: Collection[str]
) -> tuple[list[FailingJob], int]:
    """The active jobs that fail, the most failures in a row first, and how many more of them are muted. Pure."""
    failing_jobs = [
        FailingJob(job.job_id, job.name, streak.failures)
        for job in jobs
        if job.state == ACTIVE and (streak := streaks.get(job.job_id)) and streak.failures
    ]
    shown = [job for job in failing_jobs if job.job_id not in muted]
    shown.sort(key=lambda job: (-job.failures_in_row, job.job_id))
    return shown, len(failing_jobs) - len(shown)


def not_running(jobs: Iterable[ListedJob], streaks: Mapping[str, Streak]) -> list[NotRunning]:
    """The jobs that do not run, and the addresses that are switched off, the newest first. Pure."""
    revisions = {job.job_id: job.revision for job in jobs}
    notes = [
        streak.not_running
        for streak in streaks.values()
        if streak.not_running
        and (streak.not_running.is_address or revisions.get(streak.not_running.name) == streak.revision)
    ]
    return sorted(notes, key=lambda note: (-note.since_at, note.name))


def soonest(jobs: Iterable[ListedJob], next_fire: NextFire, most: int) -> list[tuple[int, ListedJob]]:
    """The active jobs that fire next, with their fire times, the earliest first."""
    times = ((next_fire(job), job) for job in jobs if job.state == ACTIVE)
    known = ((at, job) for at, job in times if at is not None)
    return heapq.nsmallest(most, known, key=lambda pair: (pair[0], pair[1].job_id))
