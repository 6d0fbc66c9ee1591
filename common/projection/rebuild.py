"""Makes a tenant's projection again from its runs, in steps: a day of some jobs at a time, or a part of it.

A run that the projection has and its job has not is taken out. What is newer than the log that ticks have followed is
theirs. However many runs there are, a step has a bounded number of them in memory.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, NamedTuple

from common.errors import Damaged
from common.planning.execution import execution_id, parse_execution_id
from common.planning.log import ExecutionLog
from common.projection.days import ProjectedDays, day_start
from common.projection.entry import ATTRIBUTES, RunEntry, RunKey, window_of
from common.projection.outcomes import JobOutcomes
from common.projection.state import Again, ProjectionStates, next_look
from common.projection.windows import ProjectedRuns
from common.runs.run import Number, Run, readable_runs
from common.storage import keys
from common.storage.bounded import Instant, JobIdOrEmpty, KeyTextOrEmpty
from common.storage.table import Query, Table
from common.timing.instants import DAY_S

JOBS_A_STEP: Final = 200
# A step projects so many runs, and has twice as many in memory: some 20 MB.
RUNS_A_STEP: Final = 20_000
# So many jobs are read at once, and so many runs of each: together a part.
JOBS_A_PART: Final = 16
RUNS_A_READ: Final = 100


class RebuildPosition(NamedTuple):
    """Where the next step goes on: the day, and the job after which. `since`: the first day.

    If the jobs had too many runs, it goes on with the same ones, up to `last_job`, from the run of this name on.
    """

    since: Instant
    day: Instant
    after_job: JobIdOrEmpty = ""
    from_run: KeyTextOrEmpty = ""
    last_job: KeyTextOrEmpty = ""


@dataclass(frozen=True, slots=True)
class RebuiltStep:
    """How many runs a step has read, and where the next one goes on; None: it was the last."""

    runs: int
    next: RebuildPosition | None


class _RunOfBlock(NamedTuple):
    entry: RunEntry
    expires_at: int
    stuck_since: Number

    @classmethod
    def of(cls, run: Run) -> _RunOfBlock:
        return cls(RunEntry.of_run(run), run.expires_at, run.stuck_since)


@dataclass(slots=True)
class _Block:
    """The earliest runs from the name `first` on; `until`: the first name that is left. None: there is no such run."""

    first: str
    until: str
    runs: dict[RunKey, _RunOfBlock | None] = field(default_factory=dict)

    def put(self, key: RunKey, run: Run | None) -> None:
        """Add a run, unless it is not looked for."""
        if not self.first <= key[0] < self.until:
            return
        self.runs[key] = _RunOfBlock.of(run) if run else None
        if len(self.runs) >= 2 * RUNS_A_STEP:
            self.cut()

    def cut(self) -> None:
        """Leave what is beyond RUNS_A_STEP. Runs of one name stay together, so that each step has some."""
        if len(self.runs) > RUNS_A_STEP:
            names = sorted(self.runs)
            later = (name for name, _ in names[RUNS_A_STEP:] if name > names[0][0])
            self.until = next(later, self.until)
            self.runs = {key: self.runs[key] for key in names if key[0] < self.until}


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
        last_job = cursor.last_job or keys.LAST
        if len(job_ids) > JOBS_A_STEP:
            last_job = min(last_job, job_ids[JOBS_A_STEP - 1])
        count = 0
        if cursor.day < end:
            first, until = keys.runs_between(cursor.day, end)
            block = _Block(cursor.from_run or first, until)
            of_step = (job_id for job_id in job_ids if job_id <= last_job)
            self._read(tenant, cursor._replace(last_job=last_job), of_step, end, block)
            count = self._project(tenant, block, now)
            if block.until < until:
                return RebuiltStep(count, cursor._replace(from_run=block.until, last_job=last_job))
        if last_job != keys.LAST:
            return RebuiltStep(count, RebuildPosition(cursor.since, cursor.day, last_job))
        if cursor.day < day_start(int(now)):
            self._days.roll_up(tenant, cursor.day)
            return RebuiltStep(count, RebuildPosition(cursor.since, cursor.day + DAY_S))
        self._outcomes.forget(tenant)
        return RebuiltStep(count, None)

    def runs_between(self, tenant: str, start: int, end: int) -> Iterator[list[Run]]:
        """The runs of all jobs with fire times in [start, end), as far as the projection needs them, in parts.

        A part may be empty. No more than two parts are in memory.
        """
        block = _Block(*keys.runs_between(start, end))
        return self._parts(tenant, self._job_ids(tenant, ""), block)

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

    def _read(
        self, tenant: str, cursor: RebuildPosition, job_ids: Iterable[str], end: int, block: _Block
    ) -> None:
        """Read the earliest runs of these jobs, and what the projection has of them."""
        start = window_of(cursor.from_run) if cursor.from_run else cursor.day
        for window in self._windows.between(tenant, start, end, consistent=True):
            if keys.runs_between(window.start, None)[0] >= block.until:
                break
            try:
                for entry in self._windows.runs_of(tenant, window, passes_over=False):
                    if window_of(entry.run_name) != window.start:
                        raise Damaged(f"{entry.run_name} is of another window")
                    if cursor.after_job < entry.job_id <= cursor.last_job:
                        block.put(entry.key, None)
            except ValueError:
                self._windows.remove(tenant, window.start)
        for part in self._parts(tenant, iter(job_ids), block):
            for run in part:
                block.put((run.run_name, run.job_id), run)
        block.cut()

    def _project(self, tenant: str, block: _Block, now: float) -> int:
        """Merge the block's runs into their windows. Returns how many runs."""
        changes: defaultdict[int, dict[RunKey, RunEntry | None]] = defaultdict(dict)
        expires_at: defaultdict[int, int] = defaultdict(int)
        looks = []
        for key, run in block.runs.items():
            start = window_of(key[0])
            changes[start][key] = run and run.entry
            if run is None:
                continue
            expires_at[start] = max(expires_at[start], run.expires_at)
            if run.entry.is_open:
                execution = parse_execution_id(tenant, execution_id(tenant, key[1], key[0]))
                looks.append(Again(next_look(execution, run.stuck_since, now), execution))
        self._log.look_again(looks)
        for start, of_window in changes.items():
            self._windows.merge(tenant, start, of_window, expires_at[start])
        return sum(1 for run in block.runs.values() if run)

    def _parts(self, tenant: str, job_ids: Iterator[str], block: _Block) -> Iterator[list[Run]]:
        """The runs of these jobs, of each in the order of their names, until those that are not looked for."""
        reading: list[Iterator[Run]] = []
        with ThreadPoolExecutor(JOBS_A_PART) as pool:
            while True:
                following = islice(job_ids, JOBS_A_PART - len(reading))
                reading += [self._of_job(tenant, job_id, block) for job_id in following]
                if not reading:
                    return
                reads = list(pool.map(lambda runs: list(islice(runs, RUNS_A_READ)), reading))
                yield list(chain.from_iterable(reads))
                reading = [
                    runs
                    for runs, read in zip(reading, reads, strict=True)
                    if len(read) == RUNS_A_READ and read[-1].run_name < block.until
                ]

    def _of_job(self, tenant: str, job_id: str, block: _Block) -> Iterator[Run]:
        partition, between = keys.runs_of_job(tenant, job_id), (block.first, block.until)
        query = Query(partition, sk_between=between, page=RUNS_A_READ, attributes=ATTRIBUTES)
        return readable_runs(self._runs.query(query))
