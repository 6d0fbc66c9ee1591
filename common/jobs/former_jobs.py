"""Deleted jobs, and the ends of their open runs. Each leaves one item under a prefix of its own: no read of live jobs
meets it.

The item keeps the revision: a job that is created again under the same id continues counting, so queued messages of
the deleted job never match the new one. It also has the skips, and what explanations, dead letters and events need. It
stays beside a job that is created again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from common.jobs.job import DELETED, Job
from common.limits import FORMER_KEPT_S
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.runs.run import Run, readable_runs
from common.runs.states import QUEUED, RETRYING, RUNNING
from common.storage import keys
from common.storage.expressions import Attribute, Condition
from common.storage.table import Query, Table
from common.storage.wire import Item

_STORED_FIELDS: Final = (
    "tenant",
    "job_id",
    "spec",
    "schedule",
    "payload",
    "revision",
    "schedule_revision",
    "effective_at",
    "created_at",
    "updated_at",
    "imported_from",
    "skips",
)

# Tenant and job id.
JobName = tuple[str, str]


def former_item(job: Job) -> Item:
    """The item that a deleted job leaves."""
    item = job.to_item()
    return {
        **keys.former_job(job.tenant, job.job_id),
        **{name: item[name] for name in _STORED_FIELDS if name in item},
        "expires_at": job.updated_at + FORMER_KEPT_S,
    }


def former_job(item: Mapping[str, Any]) -> Job | None:
    """The deleted job of such an item. None for an item that only says that runs may be left."""
    return Job.from_item({**item, "state": DELETED, "group": "", "shard": 0}) if "revision" in item else None


def as_deleted(old: Job | None) -> Condition:
    """The condition on the former job's item that the job was not created and deleted again since it was read."""
    revision = Attribute("revision")
    return revision == old.revision if old else revision.is_absent


def load_jobs(jobs: Table, names: Sequence[JobName]) -> dict[JobName, Job]:
    """The jobs that exist, and the deleted ones. Only jobs that do not exist cost a second read."""
    stored = {(job.tenant, job.job_id): job for job in _read(jobs, [keys.job(*name) for name in names])}
    missing = [keys.former_job(*name) for name in names if name not in stored]
    former = {(job.tenant, job.job_id): job for job in _read(jobs, missing)}
    return stored | former


def _read(jobs: Table, item_keys: Sequence[keys.Key]) -> list[Job]:
    from common.jobs.corrupt import stored_job  # executors rarely read a job alone

    if len(item_keys) > 1:
        items = list(jobs.get_many(item_keys))
    else:
        items = [item for key in item_keys if (item := jobs.get(key))]
    read = (
        former_job(item) if item["sk"].startswith(keys.FORMER_PREFIX) else stored_job(item) for item in items
    )
    return [job for job in read if job]


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
