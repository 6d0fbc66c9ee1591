"""The health of tenants for the platform; no content of jobs. Each call is bounded, and says if it has not read all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from common.errors import Busy
from common.history.expected import AsOf
from common.history.health import JobHealth
from common.history.job_directory import JobDirectory
from common.history.listed_health import ListedHealth
from common.history.projected_summary import ProjectedSummaries
from common.history.summary import Summary
from common.jobs.calendars import Calendars, RememberedCalendars
from common.jobs.corrupt import readable
from common.jobs.job import ACTIVE, DELETED, Job
from common.jobs.not_running import stopped_now
from common.projection.totals import RunTotals
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Expression

# Jobs of which it is read whether they are overdue.
MAX_JOBS: Final = 500


@dataclass(slots=True)
class JobCounts:
    """How many of a tenant's jobs are how, and how late the most overdue one is.

    `read`: the jobs that were looked at for overdue ones; without `complete` these are not all.
    """

    read: int = 0
    active: int = 0
    paused: int = 0
    failing: int = 0
    not_running: int = 0
    stopped_by: dict[str, int] = field(default_factory=dict)
    overdue: int = 0
    most_late_s: float = 0.0
    complete: bool = True


@dataclass(frozen=True, slots=True)
class TenantHealth:
    """Reads the health of tenants for an operator."""

    jobs_table: Table
    summaries: ProjectedSummaries
    directory: JobDirectory
    listed: ListedHealth
    health: JobHealth

    def runs(self, tenant: str, from_at: int, until_at: int, now: float) -> tuple[RunTotals, bool]:
        """The totals of the runs, and whether these are all up to now."""
        projected = self.summaries.between(tenant, from_at, until_at, now)
        is_fresh = projected.fresh_at >= min(until_at, int(now))
        return Summary.of_hours(projected.hourly).total(), is_fresh

    def jobs(self, tenant: str, as_of: AsOf, retention_days: int) -> JobCounts:
        """All jobs by state and failures, and how many of the first MAX_JOBS are overdue."""
        existing = Expression("#state <> :deleted", {":deleted": DELETED})
        query = Query(
            tenant,
            sk_prefix=keys.JOB_PREFIX,
            where=existing,
            page=MAX_JOBS + 1,
        )
        items = islice(self.jobs_table.query(query), MAX_JOBS + 1)
        jobs = list(readable(items))
        counts = JobCounts(complete=len(jobs) <= MAX_JOBS)
        jobs = jobs[:MAX_JOBS]
        counts.read = len(jobs)
        stopped = stopped_now(self.jobs_table, tenant)
        counts.not_running, counts.stopped_by = len(stopped.notes), stopped.reasons
        states, failing = self._counted(tenant, jobs, as_of.now, is_all=counts.complete)
        counts.active, counts.paused, counts.failing = (
            states[ACTIVE],
            states.total() - states[ACTIVE],
            failing,
        )
        calendars = RememberedCalendars(Calendars(self.jobs_table))
        health_of = self.listed.of_jobs(tenant, jobs, as_of, calendars, retention_days)
        remaining = [job for job in jobs if job.job_id not in health_of]
        health_of |= self.health.of_jobs(remaining, as_of, calendars)
        for health in health_of.values():
            if health.overdue:
                counts.overdue += 1
                counts.most_late_s = max(counts.most_late_s, health.overdue.late_s or 0.0)
        return counts

    def _counted(
        self, tenant: str, jobs: Sequence[Job], now: float, *, is_all: bool
    ) -> tuple[Counter[str], int]:
        """The states of all jobs, and how many fail; of `jobs` if these are all, or while the directory is made."""
        if not is_all:
            try:
                listed = self.directory.listed(tenant, now)
                streaks = self.directory.streaks(tenant)
                failing = sum(streaks[job.job_id].failures > 0 for job in listed if job.job_id in streaks)
                return Counter(job.state for job in listed), failing
            except Busy:
                pass
        failing = sum(job.is_failing or job.failures_in_row > 0 for job in jobs)
        return Counter(job.state for job in jobs), failing
