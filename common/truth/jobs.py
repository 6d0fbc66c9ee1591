"""One job: can its item be read, has it its due entry, and are its texts stored?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from common.jobs.corrupt import stored_job
from common.jobs.job import ACTIVE, CORRUPT, Job
from common.planning.directory import Shard, expiry
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex
from common.storage import keys
from common.storage.expressions import Attribute
from common.storage.table import Tables
from common.storage.transactions import Transaction
from common.storage.wire import Item
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S
from common.truth.contradiction import (
    ENTRY_MISSING,
    ENTRY_WRONG,
    JOB_CORRUPT,
    TEXT_MISSING,
    Contradiction,
    job_subject,
)
from common.truth.recount import recount
from common.truth.unplanned import OF_REPAIR, Unplanned, since

# The entry of a one-off job is looked for until so long after its window; then nothing reads it.
ONE_OFF_CHECKED_S: Final = 2 * DAY_S


def read_job(item: Item) -> Job | str:
    """The job of an item; text: why it cannot be read."""
    job = stored_job(item)
    return job.note if job.state == CORRUPT else job


def needs_entry(job: Job, now: float) -> bool:
    """Whether ticks need the job's due entry. Pure."""
    if job.state != ACTIVE:
        return False
    is_one_off = expiry(job.group) is not None
    return not is_one_off or int(job.group.removeprefix("at|")) + WINDOW_S + ONE_OFF_CHECKED_S > now


@dataclass(frozen=True, slots=True)
class JobChecks:
    """Compares one job with what belongs to it. Each read is consistent, and a job that changes is read again."""

    tables: Tables
    unplanned: Unplanned

    def look(self, tenant: str, job_id: str) -> list[Contradiction]:
        """What contradicts the job."""
        key = keys.job(tenant, job_id)
        item = self.tables.jobs.get(key)
        while item:
            contradictions = list(self._compared(tenant, job_id, item))
            again = self.tables.jobs.get(key) if contradictions else item
            if again == item:
                return contradictions
            item = again
        return []

    def _compared(self, tenant: str, job_id: str, item: Item) -> Iterator[Contradiction]:
        subject, job = job_subject(tenant, job_id), read_job(item)
        if isinstance(job, str):
            yield Contradiction(JOB_CORRUPT, subject, job)
            return
        texts = [text for text in job.texts if text.reference]
        text_keys = [keys.job_text(tenant, job_id, text.sha256) for text in texts]
        stored = {text["sk"] for text in self.tables.jobs.get_many(text_keys, attributes=("pk", "sk"))}
        if missing := [key["sk"] for key in text_keys if key["sk"] not in stored]:
            yield Contradiction(TEXT_MISSING, subject, f"its large text {missing[0]} is not stored")
        if not needs_entry(job, self.unplanned.clock.now()):
            return
        entry = self.tables.due.get(keys.due_entry(job.group, job.shard, tenant, job_id))
        if entry is None:
            detail = f"it is active, and shard {job.shard} of {job.group} has no entry of it"
            yield Contradiction(ENTRY_MISSING, subject, detail, lambda: self._write_entry(job))
        elif problem := entry_problem(entry, job):
            yield Contradiction(ENTRY_WRONG, subject, problem, lambda: self._write_entry(job))

    def _write_entry(self, job: Job) -> None:
        """Plan what no tick planned, then write the entry. What a tick announces in between is pending."""
        planned_until = self.unplanned.plan(job)
        index, tx = DueIndex(self.tables.due), Transaction(self.tables.due.client)
        unchanged = Attribute("revision") == job.revision
        tx.check(self.tables.jobs, keys.job(job.tenant, job.job_id), unchanged)
        index.put_entry(tx, job.due_entry(), job.group, job.shard)
        index.put_pending(tx, since(job, planned_until).due_entry(), OF_REPAIR)
        tx.commit()
        recount(self.tables.due, Shard(job.group, job.shard))


def entry_problem(item: Item, job: Job) -> str:
    """What is wrong with a job's due entry; empty if nothing is. Pure."""
    try:
        entry = DueEntry.decode(item["entry"])
    except Exception as error:  # noqa: BLE001  whatever somebody wrote there
        return f"its due entry is unreadable: {error!r}"[:300]
    if entry == job.due_entry():
        return ""
    return f"its due entry is of schedule revision {entry.schedule_revision}, and differs from the job's"
