"""The health of tenants, for the platform: counts and lateness, failing and overdue jobs. Shows no content of jobs.

Each call is bounded: it says whether it has read everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.history.expected import Moment
from common.history.health import JobHealth
from common.history.summary import Day
from common.history.tenant_runs import TenantRuns
from common.history.walk import Place
from common.jobs.calendars import Calendars, RememberedCalendars
from common.jobs.job import ACTIVE, DELETED, WITHOUT_PAYLOAD, Job
from common.storage import keys
from common.storage.tables import Expression, Table

# The most failed runs and jobs that are read of one tenant.
MAX_FAILURES: Final = 1_000
MAX_JOBS: Final = 500
_AT_ONCE: Final = 100
_THREADS: Final = 32


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed runs of a tenant in a range: how many of how many jobs, and the last one's time."""

    count: int = 0
    jobs: int = 0
    last_at: float | None = None
    complete: bool = True


@dataclass(slots=True)
class JobCounts:
    """How many of a tenant's jobs are active, paused, failing and overdue, and how late the most overdue one is."""

    read: int = 0
    active: int = 0
    paused: int = 0
    failing: int = 0
    overdue: int = 0
    most_late_s: float = 0.0
    complete: bool = True


class TenantHealth:
    """Reads the health of tenants for an operator."""

    def __init__(self, jobs: Table, runs: Table) -> None:
        self._jobs = jobs
        self._runs = runs
        self._tenant_runs = TenantRuns(jobs, runs)
        self._health = JobHealth(runs)

    def failures(self, tenants: Sequence[str], from_at: float, until_at: float) -> dict[str, Failures]:
        """The failed runs of each tenant in [from_at, until_at): one query each."""

        def of(tenant: str) -> Failures:
            # One failure before the range ends the reading.
            items = self._runs.query(
                tenant,
                index=keys.FAILURES,
                newest_first=True,
                page=_AT_ONCE,
                attributes=("job_id", "failed_at"),
            )
            times: list[float] = []
            jobs: set[str] = set()
            for seen, item in enumerate(items):
                if item["failed_at"] < from_at or seen == MAX_FAILURES:
                    complete = item["failed_at"] < from_at
                    return Failures(len(times), len(jobs), max(times, default=None), complete)
                if item["failed_at"] < until_at:
                    times.append(float(item["failed_at"]))
                    jobs.add(item["job_id"])
            return Failures(len(times), len(jobs), max(times, default=None))

        with ThreadPoolExecutor(min(_THREADS, len(tenants)) or 1) as pool:
            return dict(zip(tenants, pool.map(of, tenants), strict=True))

    def runs(self, tenant: str, from_at: int, until_at: int, now: float) -> tuple[Day, bool]:
        """The totals of up to 10,000 runs of up to 1,000 jobs, the newest first, and whether these are all."""
        summary, following = self._tenant_runs.summary(tenant, Place.start(now, from_at, until_at))
        return summary.total(), following is None

    def jobs(self, tenant: str, moment: Moment) -> JobCounts:
        """The first MAX_JOBS jobs: how many are active, paused, failing, overdue."""
        there = Expression("#state <> :deleted", {":deleted": DELETED})
        items = self._jobs.query(
            tenant,
            sk_prefix=keys.JOB_PREFIX,
            where=there,
            page=MAX_JOBS + 1,
            attributes=WITHOUT_PAYLOAD,
        )
        jobs = [Job.from_item(item) for item in islice(items, MAX_JOBS + 1)]
        found = JobCounts(complete=len(jobs) <= MAX_JOBS)
        jobs = jobs[:MAX_JOBS]
        found.read = len(jobs)
        found.active = sum(job.state == ACTIVE for job in jobs)
        found.paused = found.read - found.active
        found.failing = sum(job.failures_in_row > 0 for job in jobs)
        calendars = RememberedCalendars(Calendars(self._jobs))
        for health in self._health.of_jobs(jobs, moment, calendars).values():
            if health.overdue:
                found.overdue += 1
                found.most_late_s = max(found.most_late_s, health.overdue.late_s or 0.0)
        return found
