"""Makes a tenant's projection again from its runs, in steps: a day of some jobs at a time.

A run that the projection has and its job has not is taken out. What is newer than the log that ticks have followed is
theirs.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

from common.planning.execution import parse_execution_id
from common.planning.log import ExecutionLog
from common.projection.days import ProjectedDays, day_start
from common.projection.entry import ATTRIBUTES, RunEntry, RunKey, window_of
from common.projection.outcomes import JobOutcomes
from common.projection.state import Again, ProjectionStates, next_look
from common.projection.windows import ProjectedRuns
from common.runs.run import Run, readable_runs
from common.storage import keys
from common.storage.bounded import Instant, JobIdOrEmpty
from common.storage.table import Query, Table
from common.timing.instants import DAY_S

JOBS_A_STEP: Final = 200
_THREADS: Final = 16


class RebuildPosition(NamedTuple):
    """Where the next step goes on: the day, and the job after which. `since`: the first day."""

    since: Instant
    day: Instant
    after_job: JobIdOrEmpty = ""


@dataclass(frozen=True, slots=True)
class RebuiltStep:
    """How many runs a step has read, and where the next one goes on; None: it was the last."""

    runs: int
    next: RebuildPosition | None


class Rebuild:
    """The tables that it reads and writes."""

    def __init__(self, jobs: Table, runs: Table, due: Table) -> None:
        self._jobs = jobs
        self._runs = runs
        self._windows = ProjectedRuns(runs)
        self._days = ProjectedDays(runs)
        self._states = ProjectionStates(due)
        self._outcomes = JobOutcomes(runs)
        self._log = ExecutionLog(due)

    def start(self, now: float, days: int) -> RebuildPosition:
        """The first step of a rebuild of so many days back."""
        since = day_start(int(now)) - days * DAY_S
        return RebuildPosition(since, since)

    def day(self, tenant: str, day: int, now: float) -> None:
        """Make one day anew. Raises Busy."""
        cursor: RebuildPosition | None = RebuildPosition(day, day)
        while cursor and cursor.day == day:
            cursor = self.step(tenant, cursor, now).next
        self._outcomes.forget(tenant)

    def step(self, tenant: str, cursor: RebuildPosition, now: float) -> RebuiltStep:
        """Project the runs of some jobs on one day again. Repeating it changes nothing. Raises Busy."""
        state = self._states.read()
        end = min(state.until_of(tenant) if state else 0, cursor.day + DAY_S)
        job_ids = list(islice(self._job_ids(tenant, cursor.after_job), JOBS_A_STEP + 1))
        is_last = len(job_ids) <= JOBS_A_STEP
        job_ids = job_ids[:JOBS_A_STEP]
        last_job = keys.LAST if is_last else job_ids[-1]
        count = self._project(tenant, cursor, job_ids, last_job, end, now) if cursor.day < end else 0
        if not is_last:
            return RebuiltStep(count, RebuildPosition(cursor.since, cursor.day, last_job))
        if cursor.day < day_start(int(now)):
            self._days.roll_up(tenant, cursor.day)
            return RebuiltStep(count, RebuildPosition(cursor.since, cursor.day + DAY_S))
        self._outcomes.forget(tenant)
        return RebuiltStep(count, None)

    def runs_between(self, tenant: str, start: int, end: int) -> Iterator[Run]:
        """The runs of all jobs with fire times in [start, end), as far as the projection needs them."""
        job_ids = self._job_ids(tenant, "")
        while of_step := list(islice(job_ids, JOBS_A_STEP)):
            yield from self._runs_between(tenant, of_step, start, end)

    def _job_ids(self, tenant: str, after_job: str) -> Iterator[str]:
        """The ids of existing and former jobs after one, in order, each once."""
        last = after_job
        for job_id in heapq.merge(
            *(self._ids(tenant, prefix, after_job) for prefix in (keys.JOB_PREFIX, keys.FORMER_PREFIX))
        ):
            if job_id > last:
                yield job_id
            last = job_id

    def _ids(self, tenant: str, prefix: str, after_job: str) -> Iterator[str]:
        between = keys.jobs_between(prefix, after_job, "")
        for item in self._jobs.query(Query(tenant, sk_between=between, attributes=("sk",))):
            yield item["sk"].removeprefix(prefix)

    def _project(
        self, tenant: str, cursor: RebuildPosition, job_ids: list[str], last_job: str, end: int, now: float
    ) -> int:
        changes: defaultdict[int, dict[RunKey, RunEntry | None]] = defaultdict(dict)
        for window in self._windows.between(tenant, cursor.day, end, consistent=True):
            if not self._windows.is_whole(tenant, window):
                self._windows.remove(tenant, window.start)
                continue
            for entry in self._windows.runs_of(tenant, window):
                if cursor.after_job < entry.job_id <= last_job:
                    changes[window.start][entry.key] = None
        expires_at: defaultdict[int, int] = defaultdict(int)
        looks = []
        runs = self._runs_between(tenant, job_ids, cursor.day, end)
        for run in runs:
            entry = RunEntry.of_run(run)
            start = window_of(entry.run_name)
            changes[start][entry.key] = entry
            expires_at[start] = max(expires_at[start], run.expires_at)
            if entry.is_open:
                execution = parse_execution_id(tenant, run.execution_id)
                looks.append(Again(next_look(execution, run.stuck_since, now), execution))
        self._log.look_again(looks)
        for start, of_window in changes.items():
            self._windows.merge(tenant, start, of_window, expires_at[start])
        return len(runs)

    def _runs_between(self, tenant: str, job_ids: list[str], start: int, end: int) -> list[Run]:
        def of_job(job_id: str) -> list[Run]:
            partition = keys.runs_of_job(tenant, job_id)
            between = keys.runs_between(start, end)
            items = self._runs.query(Query(partition, sk_between=between, attributes=ATTRIBUTES))
            return list(readable_runs(items))

        with ThreadPoolExecutor(min(_THREADS, len(job_ids)) or 1) as pool:
            return list(chain.from_iterable(pool.map(of_job, job_ids)))
