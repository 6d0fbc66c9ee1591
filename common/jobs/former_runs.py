"""The open runs of a job that was deleted: each gets its message, and an executor ends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from common.jobs.job import Job
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.runs.run import Run, readable_runs
from common.runs.states import QUEUED, RETRYING, RUNNING
from common.storage import keys
from common.storage.table import Query, Table

# Of a job whose runs need no permits, so many of the newest are looked at.
_NEWEST: Final = 100


@dataclass(frozen=True, slots=True)
class FormerRuns:
    """The runs of deleted jobs, in the runs table."""

    runs: Table
    queue: ExecutionsQueue

    def end(self, job: Job) -> None:
        """Have executors end the runs that may go on for days: those with permits, places in line, or callbacks.

        Others end by their own messages. Repeating it does no harm.
        """
        if not job.spec.is_limited and not job.spec.callback_timeout_s:
            return
        newest = Query(keys.runs_of_job(job.tenant, job.job_id), newest_first=True, limit=_NEWEST)
        items = [*self.runs.query(newest), *self.runs.get_many(list(self._in_keys(job)))]
        runs = {run.run_name: run for run in readable_runs(items)}
        self.queue.send(
            [next_message(run) for run in runs.values() if run.status in (QUEUED, RUNNING, RETRYING)]
        )

    def _in_keys(self, job: Job) -> Iterator[keys.Key]:
        """The runs that have permits of its keys, or wait for them."""
        item_keys = [keys.overlap_permit(job.tenant, job.job_id)]
        if job.spec.concurrency:
            item_keys.append(keys.key_permits(job.tenant, job.spec.concurrency.key))
        names: dict[str, None] = {}
        for item in self.runs.get_many(item_keys):
            for part in (item.get("holders"), item.get("waiting")):
                names |= dict.fromkeys(part if isinstance(part, dict) else ())
        for name in names:
            job_id, _, run_name = name.partition(":")
            if job_id == job.job_id and run_name:
                yield keys.run(job.tenant, job_id, run_name)


def next_message(run: Run) -> Execution:
    """The execution that brings an open run to an executor: its attempt, or the one that it waits for."""
    execution = run.execution
    return execution if run.status == RUNNING else replace(execution, attempt=run.attempt + 1)
