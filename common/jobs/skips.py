"""The coming fire times of a job that are cancelled beforehand, noted on its item: lists of jobs read no runs.

The note is a copy: the runs' records decide what runs. Noting does not change the job's revision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from common.jobs.job import Job
from common.storage import keys
from common.storage.conflicts import TransactionConflict, retry_on_conflict
from common.storage.expressions import PRESENT, Attribute, Condition, change
from common.storage.table import Table


def note_skips(
    jobs: Table,
    tenant: str,
    job_id: str,
    cancelled: Callable[[], Sequence[int]],
    sleep: Callable[[float], None],
) -> None:
    """Store the fire times that `cancelled` reads as the note. Nothing is written if the job is gone.

    Two calls may read and write in any order. So each reads again after its write, and repeats if the result differs.
    Raises Busy.
    """
    key = keys.job(tenant, job_id)

    def attempt() -> None:
        skips = list(cancelled())
        is_noted = jobs.update_if(key, change({"skips": skips}), PRESENT)
        if is_noted and list(cancelled()) != skips:
            raise TransactionConflict([key])

    retry_on_conflict(attempt, f"what job {job_id!r} skips", sleep=sleep)


def same_skips(old: Job) -> Condition:
    """The condition that the note is still the one that was read. The revision does not show that."""
    noted = Attribute("skips")
    same = noted == list(old.skips)
    return same if old.skips else noted.is_absent | same


def kept_skips(old: Job | None, now: float) -> tuple[int, ...]:
    """The noted fire times after a change of the job: all that come. If its times have changed, they may again."""
    return tuple(fire_at for fire_at in old.skips if fire_at > now) if old else ()
