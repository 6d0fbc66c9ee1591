"""What happened to a tenant's jobs: failed runs, overdue jobs, and which problems have ended. Every look is bounded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.history.expected import AsOf
from common.history.failed_runs import error_of
from common.history.health import JobHealth
from common.jobs.calendars import Calendars, RememberedCalendars
from common.jobs.job import ACTIVE, DELETED, WITHOUT_PAYLOAD, Job
from common.notices.message import About
from common.notices.state import FAILED, OVERDUE, Problem
from common.planning.due_index import DueIndex
from common.planning.execution import SCHEDULE
from common.runs.states import SUCCEEDED
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Item
from common.timing.instants import compact_time

# The most failed runs that are read of a tenant in one look; the newest are read.
MAX_FAILURES: Final = 2_000
# The most jobs whose lateness is examined in one look.
MAX_SEARCHED: Final = 200
# The most jobs that are read to find them: paused and deleted ones are read, too.
MAX_READ: Final = 2_000
# How many runs after a failed one are searched for a success.
_NEWER_RUNS: Final = 20
_PAGE: Final = 200
_FAILURE: Final = ("job_id", "sk", "failed_at", "trigger")
_RUN: Final = ("sk", "status", "trigger")


@dataclass(frozen=True, slots=True)
class Named:
    """What a filter needs to know of a job."""

    name: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """Reads the tables. `pool` runs the reads of single jobs."""

    jobs: Table
    runs: Table
    index: DueIndex
    pool: Executor

    def failures(self, tenant: str, since: float) -> tuple[list[Problem], bool]:
        """The failed runs of a tenant since an instant, the oldest first, and whether these are all."""
        items = list(
            islice(
                self.runs.query(
                    Query(
                        tenant,
                        index=keys.FAILURES,
                        since=since,
                        newest_first=True,
                        page=_PAGE,
                        attributes=_FAILURE,
                    )
                ),
                MAX_FAILURES + 1,
            )
        )
        return [_failure(item) for item in reversed(items[:MAX_FAILURES])], len(items) <= MAX_FAILURES

    def named(self, tenant: str, job_ids: Iterable[str]) -> dict[str, Named]:
        """Name and tags of jobs; a job that does not exist has neither."""
        wanted = sorted(set(job_ids))
        items = self.jobs.get_many([keys.job(tenant, job_id) for job_id in wanted], consistent=False)
        found = {item["job_id"]: _named(item) for item in items if item["state"] != DELETED}
        return dict.fromkeys(wanted, Named()) | found

    def ended(self, tenant: str, problems: Sequence[Problem]) -> list[str]:
        """The keys of the problems that are over: one query for each."""
        over = self.pool.map(lambda problem: self._is_over(tenant, problem), problems)
        return [problem.key for problem, is_over in zip(problems, over, strict=True) if is_over]

    def _is_over(self, tenant: str, problem: Problem) -> bool:
        """Whether a run of the schedule has succeeded since, or this one by a retry; or an overdue one has begun."""
        items = self.runs.query(
            Query(
                keys.runs_of_job(tenant, problem.job_id),
                sk_between=(problem.run_name, keys.LAST),
                newest_first=True,
                page=_NEWER_RUNS,
                attributes=_RUN,
                consistent=False,
            )
        )
        newer = islice(items, _NEWER_RUNS)
        if problem.kind == OVERDUE:
            return any(_of_schedule(run) for run in newer)
        return any(
            run["status"] == SUCCEEDED
            and (run["sk"] == problem.run_name or (_of_schedule(run) and not problem.by_hand))
            for run in newer
        )

    def overdue(self, tenant: str, after_job: str, now: float) -> tuple[list[tuple[Problem, Named]], str]:
        """The overdue ones among the next jobs after one, and the job after which to go on; empty at the end."""
        mark = self.index.mark()
        if mark is None:
            return [], ""
        jobs, following = self._active(tenant, after_job)
        calendars = RememberedCalendars(Calendars(self.jobs))
        as_of = AsOf(now, mark.planned_until, -math.inf)
        health = JobHealth(self.runs).of_jobs(jobs, as_of, calendars)
        late = [
            (_overdue(job.job_id, one.due_at, one.fire_at), Named(job.name, tuple(job.tags)))
            for job in jobs
            if (one := health[job.job_id].overdue) is not None
        ]
        return late, following

    def _active(self, tenant: str, after_job: str) -> tuple[list[Job], str]:
        """The active ones among the next jobs, and the last one that was read; empty if none follows."""
        items = self.jobs.query(
            Query(
                tenant,
                sk_prefix=keys.JOB_PREFIX,
                after=keys.job(tenant, after_job) if after_job else None,
                limit=MAX_READ + 1,
                page=MAX_SEARCHED + 1,
                attributes=WITHOUT_PAYLOAD,
                consistent=False,
            )
        )
        jobs: list[Job] = []
        last = ""
        for read, item in enumerate(items):
            if read == MAX_READ or len(jobs) == MAX_SEARCHED:
                return jobs, last
            last = item["job_id"]
            if item["state"] == ACTIVE:
                jobs.append(Job.from_item(item))
        return jobs, ""

    def about(self, tenant: str, problems: Sequence[Problem]) -> dict[str, About]:
        """What a message says of these problems: the error of the last run, the job's owner and runbook."""
        job_ids = sorted({problem.job_id for problem in problems})
        jobs = {
            item["job_id"]: item
            for item in self.jobs.get_many([keys.job(tenant, one) for one in job_ids], consistent=False)
            if item["state"] != DELETED
        }
        failed = {
            (one.job_id, one.run_name) for one in problems if one.kind == FAILED and one.recovered_at is None
        }
        runs = {
            (item["job_id"], item["sk"]): item
            for item in self.runs.get_many(
                [keys.run(tenant, *one) for one in sorted(failed)], consistent=False
            )
        }
        return {
            one.key: _about(tenant, one, jobs.get(one.job_id), runs.get((one.job_id, one.run_name)))
            for one in problems
        }


def _failure(item: Item) -> Problem:
    at = float(item["failed_at"])
    return Problem(FAILED, item["job_id"], at, at, item["sk"], by_hand=not _of_schedule(item))


def _overdue(job_id: str, due_at: int, fire_at: int) -> Problem:
    return Problem(OVERDUE, job_id, float(due_at), float(due_at), compact_time(fire_at), runs=0)


def _of_schedule(run: Item) -> bool:
    return bool(run.get("trigger", SCHEDULE) == SCHEDULE)


def _named(item: Item) -> Named:
    return Named(item.get("name", ""), tuple(item.get("tags", ())))


def _about(tenant: str, problem: Problem, job: Item | None, run: Item | None) -> About:
    error_type, error = error_of(run) if run else ("", "")
    execution_id = f"{tenant}:{problem.job_id}:{problem.run_name}" if run else ""
    who = {name: str((job or {}).get(name, "")) for name in ("owner", "runbook")}
    return About(execution_id, error_type, error, **who)
