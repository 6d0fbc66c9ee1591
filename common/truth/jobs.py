"""One job: can its item be read, are its times as they were written, has it its due entry, are its texts stored?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec import structs

from common.errors import InvalidInput
from common.jobs.corrupt import stored_job
from common.jobs.job import ACTIVE, CORRUPT, Job
from common.jobs.revisions import next_second
from common.jobs.stored_text import hash_fits
from common.planning.directory import Directory, Shard, expiry, recount
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex, read_entry
from common.planning.pace import pace_number
from common.storage import keys
from common.storage.expressions import Attribute
from common.storage.table import Tables
from common.storage.transactions import Transaction
from common.storage.unreadable import Unreadable
from common.storage.wire import Item
from common.timing.groups import group_key
from common.timing.instants import DAY_S, rfc3339
from common.timing.schedule import Schedule
from common.timing.windows import WINDOW_S
from common.truth.contradiction import (
    ENTRY_MISSING,
    ENTRY_WRONG,
    JOB_CORRUPT,
    JOB_MISPLACED,
    JOB_TIMES,
    TEXT_MISSING,
    Contradiction,
    job_subject,
)
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
    group = group_key(job.schedule)
    is_one_off = expiry(group) is not None
    return not is_one_off or int(group.removeprefix("at|")) + WINDOW_S + ONE_OFF_CHECKED_S > now


# What a job's written schedule means; what nobody wrote is as in another schedule. Raises InvalidInput.
Resolve = Callable[[Job, Schedule], Schedule]


def as_stored(job: Job, known: Schedule) -> Schedule:
    """For who cannot read what clients write (ticks): the stored schedules are compared with each other alone."""
    return known


def decided_schedule(job: Job, planned: Schedule | None, resolve: Resolve) -> Schedule | None:
    """The schedule that the job has to have; None: a person decides. `planned` is that of a due entry in its group.

    The written one decides, and its anchor is that of the entry, by which ticks plan. If job and entry agree with each
    other and not with it, a repair would take runs away that happen now. Pure.
    """
    written = resolve(job, job.schedule)
    if job.state != ACTIVE:
        return written
    by_entry = planned if planned and planned == resolve(job, planned) else None
    if job.schedule == written:
        return by_entry if by_entry and group_key(job.schedule) != job.group else job.schedule
    if by_entry or planned:
        return by_entry
    return written if group_key(written) == job.group else None


def with_possible_times(job: Job, item: Item | None, now: float) -> Job:
    """The job with a start and a revision of its times that it can have: nothing before its creation or after its
    last change, and no later revision than its own.

    What is damaged is as its due entry says, by which ticks plan; without one its times are in force from now on. Pure.
    """
    stored, latest_at = read_entry(item, item["pk"]) if item else None, next_second(now)
    entry = stored if isinstance(stored, DueEntry) else None
    effective_at, revision = job.effective_at, job.schedule_revision
    if not job.created_at <= effective_at <= job.updated_at + 1:
        effective_at = min(entry.effective_at if entry else effective_at, latest_at)
    if not 1 <= revision <= job.revision:
        revision = entry.schedule_revision if entry else min(revision, job.revision)
    return structs.replace(job, effective_at=effective_at, schedule_revision=revision)


class _Place(NamedTuple):
    """Where an entry of a job lies, and its schedule; None: it cannot be read."""

    group: str
    shard: int
    schedule: Schedule | None


@dataclass(frozen=True, slots=True)
class JobChecks:
    """Compares one job with what belongs to it. Each read is consistent, and a job that changes is read again."""

    tables: Tables
    unplanned: Unplanned
    resolve: Resolve = as_stored

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
        stored = {text["sk"] for text in self.tables.jobs.get_many(text_keys) if hash_fits(text)}
        if missing := [key["sk"] for key in text_keys if key["sk"] not in stored]:
            yield Contradiction(
                TEXT_MISSING, subject, f"its large text {missing[0]} is not stored, or is another one"
            )
        if contradiction := self._times(job) or self._place(job):
            yield contradiction
            return  # the rest depends on it
        if needs_entry(job, self.unplanned.clock.now()):
            yield from self._entry(job)

    def _entry(self, job: Job) -> Iterator[Contradiction]:
        """Whether ticks plan it as it says."""
        entry = self.tables.due.get(keys.due_entry(job.group, job.shard, job.tenant, job.job_id))
        possible = with_possible_times(job, entry, self.unplanned.clock.now())
        if possible != job:
            since = rfc3339(job.effective_at)
            detail = f"no job has times of revision {job.schedule_revision} that are in force from {since} on"
            yield self._repairable(JOB_TIMES, detail, job, possible)
        elif entry is None:
            detail = f"it is active, and shard {job.shard} of {job.group} has no entry of it"
            yield self._repairable(ENTRY_MISSING, detail, job, job)
        elif problem := entry_problem(entry, job):
            yield self._repairable(ENTRY_WRONG, problem, job, job)

    def _times(self, job: Job) -> Contradiction | None:
        """Whether its schedule is as it was written."""
        try:
            if is_as_written(job, self.resolve):
                return None
            planned = [place.schedule for place in self._places(job) if place.schedule]
            schedule = decided_schedule(job, planned[0] if planned else None, self.resolve)
        except InvalidInput:  # a later version wrote it
            return None
        subject = job_subject(job.tenant, job.job_id)
        if schedule is None:
            detail = "its times are not those of the schedule that was written; ticks plan by these times"
            return Contradiction(JOB_TIMES, subject, detail)
        if schedule == job.schedule:
            return None
        detail = f"its times are not those of the schedule that was written: {dict(job.spec.schedule)}"[:300]
        return self._repairable(JOB_TIMES, detail, job, structs.replace(job, schedule=schedule))

    def _place(self, job: Job) -> Contradiction | None:
        """Whether it is in the group of its schedule, and in the shard in which its entry is."""
        group = group_key(job.schedule) if job.state == ACTIVE else ""
        if group == job.group and (not group or self._has_entry(job) or not self._places(job)):
            return None
        detail = (
            f"it says that it is in shard {job.shard} of {job.group or 'no group'}; its entry is in {group}"
        )
        return self._repairable(JOB_MISPLACED, detail, job, job)

    def _has_entry(self, job: Job) -> bool:
        key = keys.due_entry(job.group, job.shard, job.tenant, job.job_id)
        return self.tables.due.get(key) is not None

    def _places(self, job: Job) -> list[_Place]:
        """Its due entries in the groups that it may belong to, if they are of those groups."""
        schedules = {job.schedule, self.resolve(job, job.schedule)}
        groups = dict.fromkeys([*(group_key(schedule) for schedule in schedules), job.group])
        shards = [(job.group, job.shard)]
        for group in filter(None, groups):
            listed = Directory(self.tables.due).shards(
                keys.directory_partition(group), keys.begins_between(group, group)
            )
            shards += (shard[:2] for shard in listed if isinstance(shard, Shard))
        entry_keys = {
            (key["pk"], key["sk"]): place
            for place in dict.fromkeys(shards)
            for key in (keys.due_entry(*place, job.tenant, job.job_id),)
        }
        entries = self.tables.due.get_many([keys.Key(pk=pk, sk=sk) for pk, sk in entry_keys])
        places = [_Place(*entry_keys[item["pk"], item["sk"]], _schedule(item)) for item in entries]
        return [
            place for place in places if place.schedule is None or group_key(place.schedule) == place.group
        ]

    def _repairable(self, name: str, detail: str, job: Job, right: Job) -> Contradiction:
        subject = job_subject(job.tenant, job.job_id)
        repair, foresee = lambda: self._write(job, right), lambda: self.unplanned.foresee(right)
        return Contradiction(name, subject, detail, repair, foresee if right.state == ACTIVE else _nothing)

    def _write(self, job: Job, right: Job) -> None:
        """Plan what no tick planned, then write job and entry. What a tick announces in between is pending."""
        tx = Transaction(self.tables.due.client)
        right = self._placed(right)
        unchanged = Attribute("revision") == job.revision
        job_key = keys.job(job.tenant, job.job_id)
        if right == job:
            tx.check(self.tables.jobs, job_key, unchanged)
        else:
            tx.put(self.tables.jobs, {**job_key, **right.to_item()}, unchanged)
        if right.state == ACTIVE:
            index = DueIndex(self.tables.due)
            planned_until = self.unplanned.plan(right)
            index.put_entry(tx, right.due_entry(), right.group, right.shard)
            index.put_pending(tx, since(right, planned_until).due_entry(), OF_REPAIR)
        tx.commit()
        if right.group:
            recount(self.tables.due, Shard(right.group, right.shard))

    def _placed(self, job: Job) -> Job:
        """The job in the group of its schedule: in the shard where its entry is, or else in one that ticks find."""
        group = group_key(job.schedule) if job.state == ACTIVE else ""
        if not group:
            return structs.replace(job, group="", shard=0)
        shards = [place.shard for place in self._places(job) if place.group == group]
        if shards:
            return structs.replace(job, group=group, shard=job.shard if job.shard in shards else shards[0])
        directory = Directory(self.tables.due)
        if group == job.group and self.tables.due.get(keys.directory(group, job.shard)):
            return job
        pace = pace_number(job.tenant, job.schedule.pace)
        listing = directory.pick(group, random.Random(), pace=pace, consistent=True)
        if not listing.is_open:
            directory.open([listing])
        return structs.replace(job, group=group, shard=listing.shard.shard)


def is_as_written(job: Job, resolve: Resolve) -> bool:
    """Whether its times are as they were written, and its group is theirs. Raises InvalidInput. Pure."""
    group = group_key(job.schedule) if job.state == ACTIVE else ""
    return job.group == group and resolve(job, job.schedule) == job.schedule


def _nothing() -> str:
    return "no fire time is affected"


def _schedule(item: Item) -> Schedule | None:
    entry = read_entry(item, item["pk"])
    return entry.schedule if isinstance(entry, DueEntry) else None


def entry_problem(item: Item, job: Job) -> str:
    """What is wrong with a job's due entry; empty if nothing is. Pure."""
    entry = read_entry(item, item["pk"])
    if isinstance(entry, Unreadable):
        return f"its due entry is unreadable: {entry.reason}"[:300]
    if entry == job.due_entry():
        return ""
    return f"its due entry is of schedule revision {entry.schedule_revision}, and differs from the job's"
