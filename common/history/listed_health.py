"""The health of the jobs on a page, from the projection: a bounded number of requests for any jobs and runs.

The newest runs are read as they are now; older outcomes are what ticks have written down. A job that is older than
these, and has none there, is asked itself. The health of tenants, for the platform, has no content of jobs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, cast

from common.errors import Busy
from common.history.expected import AsOf
from common.history.health import HEALTH_ATTRIBUTES, OUTCOMES, Health, JobHealth, overdue_of
from common.history.job_directory import JobDirectory
from common.history.live_runs import LiveRuns
from common.history.projected_summary import ProjectedSummaries
from common.history.runs_by_time import RunsByTime
from common.jobs.calendars import Calendars, RememberedCalendars
from common.jobs.corrupt import readable
from common.jobs.job import ACTIVE, Job
from common.jobs.not_running import stopped_now
from common.planning.execution import SCHEDULE
from common.projection.outcomes import JobOutcomes, LastOutcomes, RunOutcome
from common.projection.totals import RunTotals, Summary
from common.runs.run import Run, Status, readable_runs
from common.storage import keys
from common.storage.table import Query, Table
from common.timing.instants import DAY_S

# Records of live runs that a page reads, a hundred in a request.
_MAX_LIVE: Final = 500
# Of each job of a long page.
_LIVE_OF_EACH_JOB: Final = 10


@dataclass(slots=True)
class _Runs:
    """What a page shows of a job: the newest runs first. Those that are not among `read` have a short outcome alone."""

    runs: list[Run] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    # There are more live runs than were read: what is older than this one would leave a gap.
    from_name: str = ""

    @property
    def scheduled_until(self) -> int | None:
        """The end of the fire times of which a scheduled run is known; None: not known from these."""
        return next((run.fire_at + 1 for run in self.runs if run.trigger == SCHEDULE), None)

    def add(self, ended: Iterable[Run], whole_from: float) -> None:
        """Add runs that have ended. A live run may be older than all outcomes that are known to be whole."""
        self.runs = [run for run in (*self.runs, *ended) if run.fire_at >= whole_from]
        self.runs.sort(key=lambda run: run.run_name, reverse=True)


class ListedHealth:
    """Reads the health of a page of jobs of one tenant."""

    def __init__(self, runs: Table, by_time: RunsByTime, directory: JobDirectory) -> None:
        self._runs = runs
        self._by_time = by_time
        self._directory = directory
        self._outcomes = JobOutcomes(runs)

    def last_outcomes(self, tenant: str, now: float) -> LastOutcomes | None:
        """The last outcomes of all jobs as ticks wrote them down; None: they have written nothing down yet.

        Raises:
            Busy: they are being read.
        """

        def existing() -> Collection[str] | None:
            try:
                return {job.job_id for job in self._directory.listed(tenant, now)}
            except Busy:
                return None

        state = self._by_time.states.recent(now)
        if state is None:
            return None
        return self._outcomes.of_tenant(tenant, state, now, existing)

    def of_jobs(
        self,
        tenant: str,
        jobs: Sequence[Job],
        as_of: AsOf,
        calendars: RememberedCalendars,
        retention_days: int,
    ) -> dict[str, Health]:
        """The health of jobs by id; outcomes but the last have no seconds. Jobs that are left out must be asked."""
        state = self._by_time.states.recent(as_of.now)
        if state is None:
            return {}
        with suppress(Busy):
            last = self.last_outcomes(tenant, as_of.now)
            kept_from = int(as_of.now) - retention_days * DAY_S
            live = self._by_time.live.of_tenant(tenant, state)
            if last and live.complete:
                kept = replace(last, since=max(last.since, kept_from))
                return self._of_jobs(tenant, jobs, as_of, calendars, kept, live)
        return {}

    def _of_jobs(
        self,
        tenant: str,
        jobs: Sequence[Job],
        as_of: AsOf,
        calendars: RememberedCalendars,
        last: LastOutcomes,
        live: LiveRuns,
    ) -> dict[str, Health]:
        runs_of_jobs = self._newest(tenant, [job.job_id for job in jobs], live, as_of.now)
        for job_id, of_job in runs_of_jobs.items():
            ended = (run for run in last.of(job_id) if (run.run_name, job_id) not in live.executions)
            newer = [_short(tenant, job_id, run) for run in ended if run.run_name > of_job.from_name]
            of_job.add(newer, last.whole_from)
        self._complete(tenant, runs_of_jobs)
        day_ago = math.ceil(as_of.now) - DAY_S
        health = {}
        for job in jobs:
            of_job = runs_of_jobs[job.job_id]
            since = of_job.scheduled_until
            if of_job.from_name and len(of_job.runs) < _LIVE_OF_EACH_JOB:  # most of its newest have no record
                continue
            if since is None and (of_job.runs or job.created_at < last.whole_from):
                continue
            runs = of_job.runs[:OUTCOMES]
            late = overdue_of(job, since or day_ago, as_of, calendars)
            health[job.job_id] = Health(runs, job.failures_in_row, late, job.not_running)
        return health

    def _newest(self, tenant: str, job_ids: Sequence[str], live: LiveRuns, now: float) -> dict[str, _Runs]:
        """The live runs of each job, so many that a page is bounded."""
        runs_of_jobs = {job_id: _Runs() for job_id in job_ids}
        most = min(OUTCOMES, max(_LIVE_OF_EACH_JOB, _MAX_LIVE // max(1, len(runs_of_jobs))))
        run_names: defaultdict[str, list[str]] = defaultdict(list)
        for run_name, job_id in live.keys_until(now):
            if live.executions[run_name, job_id].fire_at > now:  # it was cancelled beforehand
                continue
            if job_id in runs_of_jobs and len(run_names[job_id]) < most:
                run_names[job_id].append(run_name)
            elif job_id in runs_of_jobs:
                runs_of_jobs[job_id].from_name = run_names[job_id][-1]
        run_keys = [keys.run(tenant, job_id, name) for job_id, names in run_names.items() for name in names]
        records = self._runs.get_many(run_keys, consistent=False, attributes=HEALTH_ATTRIBUTES)
        for run in readable_runs(records):
            runs_of_jobs[run.job_id].runs.append(run)
            runs_of_jobs[run.job_id].read.add(run.run_name)
        return runs_of_jobs

    def _complete(self, tenant: str, runs_of_jobs: Mapping[str, _Runs]) -> None:
        """Read the last run of each job, if it is not live. If its record has expired, so have the older ones."""
        short = {
            job_id: of_job.runs[0].run_name
            for job_id, of_job in runs_of_jobs.items()
            if of_job.runs and of_job.runs[0].run_name not in of_job.read
        }
        run_keys = [keys.run(tenant, job_id, run_name) for job_id, run_name in short.items()]
        records = self._runs.get_many(run_keys, consistent=False, attributes=HEALTH_ATTRIBUTES)
        read = {run.job_id: run for run in readable_runs(records)}
        for job_id in short:
            if job_id in read:
                runs_of_jobs[job_id].runs[0] = read[job_id]
            else:
                runs_of_jobs[job_id].runs.clear()


def _short(tenant: str, job_id: str, outcome: RunOutcome) -> Run:
    """What is known of a run whose record is not read."""
    return Run(
        tenant=tenant,
        job_id=job_id,
        run_name=outcome.run_name,
        fire_at=outcome.fire_at,
        due_at=outcome.fire_at,
        schedule_revision=0,
        trigger=outcome.trigger,
        status=cast(Status, outcome.status),
        reason=outcome.reason,
    )


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
        query = Query(tenant, sk_prefix=keys.JOB_PREFIX, page=MAX_JOBS + 1)
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
