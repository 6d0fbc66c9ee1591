"""Deleted jobs. Each leaves one item under a prefix of its own, so that no read of live jobs meets deleted ones.

The item keeps the revision: a job that is created again under the same id continues counting, so queued messages of
the deleted job never match the new one. It also has the skips, and what explanations, dead letters and events need. It
stays beside a job that is created again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from common.jobs.job import DELETED, Job
from common.limits import FORMER_KEPT_S
from common.storage import keys
from common.storage.expressions import Attribute, Condition
from common.storage.table import Table
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
    "origin",
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
