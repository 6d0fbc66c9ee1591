"""The coming fire times of a job that are cancelled beforehand, noted on its item: lists of jobs read no runs.

It is a copy of what the runs' records say, and only they decide what runs. A note moves no revision.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from common.jobs.job import Job
from common.storage import keys
from common.storage.tables import ConditionFailed, Expression, Table


def note_skips(jobs: Table, tenant: str, job_id: str, schedule_revision: int, skips: Sequence[int]) -> None:
    """Note these fire times, in the place of what was noted. If the job's times have changed, they mean nothing."""
    change = Expression("SET #skips = :skips", {":skips": list(skips)})
    same_times = Expression("#schedule_revision = :revision", {":revision": schedule_revision})
    with suppress(ConditionFailed):
        jobs.update(keys.job(tenant, job_id), change, same_times)


def kept_skips(old: Job | None, new: Job) -> tuple[int, ...]:
    """What stays noted when a job changes: all, unless its times change."""
    return old.skips if old and old.schedule_revision == new.schedule_revision else ()
