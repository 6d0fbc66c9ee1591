"""Runs that go on for hours, after the due table has lost what it knew of them: when ticks look again, and messages.

The projection knows the open ones of those that ticks have read. What is newer is read from the runs of all jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from msgspec.structs import replace

from common.clock import Clock
from common.errors import Busy
from common.jobs.former_jobs import next_message
from common.planning.chores import Done
from common.planning.execution import Execution, execution_id, parse_execution_id
from common.planning.log import ExecutionLog
from common.planning.postponed import Postponed
from common.planning.queue import ExecutionsQueue
from common.projection.days import ProjectedDays
from common.projection.entry import OPEN, RunKey
from common.projection.rebuild import Rebuild
from common.projection.state import Again
from common.projection.windows import ProjectedRuns
from common.runs.run import Run, readable_runs
from common.runs.states import QUEUED
from common.storage import keys
from common.storage.table import Tables
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, followed_from, window_start

# A run can be due so long after its fire time, and so be read later.
_DUE_LATER_S: Final = 3_600
_RUNS_A_STEP: Final = 1_000


@dataclass(frozen=True, slots=True)
class OpenRuns:
    """The open runs of a deployment."""

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock

    def note(self, tenants: Sequence[str], read_until: object, done: Done) -> None:
        """Have the next tick look at the open runs again, and send the messages of those that wait.

        `read_until`: up to where ticks had read the runs of all, if it is an instant.
        """
        now = self.clock.now()
        unread_from = max(followed_from(read_until, int(now)), int(now) - DAY_S) - _DUE_LATER_S

        def note(tenant: str) -> None:
            batch: dict[RunKey, bool] = {}
            before = self.clock.now()
            until = before + (done.until - before) / 2  # whoever has most leaves time for the others
            for part in self._parts(tenant, unread_from, now):
                if self.clock.now() >= until:
                    raise Busy("no time to look for its open runs: rebuild-runs notes them")
                batch |= part
                if len(batch) >= _RUNS_A_STEP:
                    self._note(tenant, batch, now)
                    batch.clear()
            self._note(tenant, batch, now)

        done.each(tenants, note)

    def _parts(self, tenant: str, unread_from: int, now: float) -> Iterator[Mapping[RunKey, bool]]:
        """Those that go on, and those that ticks may not have read: whether each is open. Some come twice.

        Each part has at most some thousand, and perhaps none.
        """
        days, windows = ProjectedDays(self.tables.runs), ProjectedRuns(self.tables.runs)
        for start, end in days.not_ended(tenant, int(now) + DAY_S):
            for window in windows.between(tenant, start, end):
                entries = windows.runs_of(tenant, window)
                while part := list(islice(entries, _RUNS_A_STEP)):
                    yield {entry.key: True for entry in part if entry.is_open}
        rebuild = Rebuild(self.tables.jobs, self.tables.runs, self.tables.due)
        for runs in rebuild.runs_between(tenant, unread_from, int(now) + 1):
            yield {(run.run_name, run.job_id): run.status in OPEN for run in runs}

    def _note(self, tenant: str, runs: Mapping[RunKey, bool], now: float) -> None:
        next_tick = window_start(int(now)) + WINDOW_S
        names = (execution_id(tenant, job_id, run_name) for run_name, job_id in runs)
        ExecutionLog(self.tables.due).look_again(
            Again(next_tick, parse_execution_id(tenant, name)) for name in names
        )
        run_keys = [
            keys.run(tenant, job_id, run_name) for (run_name, job_id), is_open in runs.items() if is_open
        ]
        records = readable_runs(self.tables.runs.get_many(run_keys))
        waiting = [message for run in records if (message := _kept_message(run, now))]
        self.queue.send(Postponed(self.tables.due, self.queue, self.clock).postpone_distant(waiting))


def _kept_message(run: Run, now: float) -> Execution | None:
    """The message of a run that waits; None: it waits for no message, or the queue has that of its call. Pure.

    If the queue has it, too, the second one that comes finds the run's record. A first attempt looks at once.
    """
    if run.status == QUEUED:
        return next_message(run)
    if run.doing == "call" or not run.stuck_since or run.is_stuck(now):
        return None
    return replace(run.going_on(run.stuck_since), not_before_at=int(run.stuck_since) + 1)
