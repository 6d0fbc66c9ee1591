"""The coming fire times of a job that are cancelled beforehand, noted on its item: lists of jobs read no runs.

The note is a copy: the runs' records decide what runs. Noting does not change the job's revision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from common.jobs.job import Job
from common.storage import keys
from common.storage.conflicts import ConditionFailed, TransactionConflict, retry_on_conflict
from common.storage.table import Table
from common.storage.transactions import MAX_WRITES
from common.storage.wire import Expression
from common.timing.instants import DAY_S

# Fire times further ahead are neither skipped nor noted: the next ones of a rare cron are found slowly.
SKIPPED_AHEAD_S = 366 * DAY_S

# One call skips, takes back or notes them in a transaction, which has a record and an audit entry of each.
MAX_SKIPPED: Final = MAX_WRITES // 2


def note_skips(
    jobs: Table,
    tenant: str,
    job_id: str,
    schedule_revision: int,
    cancelled: Callable[[], Sequence[int]],
    sleep: Callable[[float], None],
) -> None:
    """Store the fire times that `cancelled` reads as the note. Nothing is written if the job's times have changed.

    Two calls may read and write in any order. So each reads again after its write, and repeats if the result differs.
    Raises Busy.
    """
    key = keys.job(tenant, job_id)
    same_times = Expression("#schedule_revision = :revision", {":revision": schedule_revision})

    def attempt() -> None:
        skips = list(cancelled())
        try:
            jobs.update(key, Expression("SET #skips = :skips", {":skips": skips}), same_times)
        except ConditionFailed:
            return
        if list(cancelled()) != skips:
            raise TransactionConflict([key])

    retry_on_conflict(attempt, f"what job {job_id!r} skips", sleep=sleep)


def same_skips(old: Job) -> Expression:
    """The condition that the note is still the one that was read. The revision does not show that."""
    words = "#skips = :skips" if old.skips else "(attribute_not_exists(#skips) OR #skips = :skips)"
    return Expression(words, {":skips": list(old.skips)})


def kept_skips(old: Job | None, new: Job) -> tuple[int, ...]:
    """The noted fire times after a change of the job: all of them, unless its times change."""
    return old.skips if old and old.schedule_revision == new.schedule_revision else ()
