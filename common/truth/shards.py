"""One shard of a group: do its directory item, its listings, its entries and their jobs agree?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.jobs.job import ACTIVE, Job, exists
from common.planning.directory import (
    MAX_LOOKS,
    Directory,
    Listing,
    Shard,
    entry_names,
    expiry,
    read_listing,
    recount,
)
from common.planning.due_index import DueIndex
from common.storage import keys
from common.storage.expressions import ABSENT, Attribute, change
from common.storage.table import Tables
from common.storage.transactions import Transaction
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE, Item
from common.timing.instants import DAY_S
from common.timing.slots import places
from common.truth.contradiction import (
    ENTRY_STRAY,
    JOB_LOST,
    SHARD_CORRUPT,
    SHARD_COUNT,
    SHARD_MISSING,
    SHARD_UNLISTED,
    Contradiction,
    job_subject,
    shard_subject,
)
from common.truth.jobs import JobChecks, Resolve, as_stored, read_job
from common.truth.unplanned import Unplanned


@dataclass(frozen=True, slots=True)
class ShardChecks:
    """Compares one shard with what belongs to it."""

    tables: Tables
    unplanned: Unplanned
    resolve: Resolve = as_stored

    @property
    def directory(self) -> Directory:
        return Directory(self.tables.due)

    def look(self, group: str, shard: int) -> list[Contradiction]:
        """What contradicts the shard. Nothing if it changes at each look: the next one finds it."""
        if not is_group(group):
            return []
        key = keys.directory(group, shard)
        for _ in range(MAX_LOOKS):
            before, names = self.tables.due.get(key), entry_names(self.tables.due, group, shard)
            contradictions = list(self._compared(Shard(group, shard), before, len(names)))
            contradictions += self._strays(group, shard, names)
            if not contradictions or self.tables.due.get(key) == before:
                return contradictions
        return []

    def _compared(self, shard: Shard, item: Item | None, entries: int) -> Iterator[Contradiction]:
        subject = shard_subject(shard.group, shard.shard)
        if item is None:
            if entries:
                detail = f"{entries} jobs are in it, and the directory does not have it"
                yield Contradiction(SHARD_MISSING, subject, detail, lambda: self._list(shard, ()))
            return
        listing = read_listing(item)
        if isinstance(listing, Unreadable):
            yield Contradiction(SHARD_CORRUPT, subject, listing.reason, lambda: self._rewrite(shard))
            return
        if listing.shard.jobs != entries:
            detail = f"the directory counts {listing.shard.jobs} jobs in it, and it has {entries}"
            if listing.shard.jobs <= 0:  # ticks leave it out
                yield Contradiction(SHARD_MISSING, subject, detail, lambda: self._list(shard, listing.places))
            else:
                yield Contradiction(SHARD_COUNT, subject, detail, lambda: recount(self.tables.due, shard))
        if entries and (problem := self._unlisted(listing)):
            yield Contradiction(SHARD_UNLISTED, subject, problem, lambda: self._list(shard, listing.places))

    def _unlisted(self, listing: Listing) -> str:
        group, shard, _ = listing.shard
        if expiry(group) is not None:
            return ""
        needed = [keys.listing(place, group, shard) for place in listing.places]
        stored = {item["pk"] for item in self.tables.due.get_many(needed, attributes=("pk", "sk"))}
        if missing := [key["pk"] for key in needed if key["pk"] not in stored]:
            return f"ticks look for it in {missing[0]} and {len(missing) - 1} other places, where it is not listed"
        progress = DueIndex(self.tables.due).progress()
        # After an update ticks list the directory anew, for a day.
        is_settled = (
            progress
            and progress.trusts_listings
            and progress.filed_since + DAY_S < self.unplanned.clock.now()
        )
        if is_settled and not listing.is_right:
            return f"it is listed in {' '.join(listing.places) or 'no place'}, where ticks do not look for it"
        return ""

    def _strays(self, group: str, shard: int, names: Sequence[tuple[str, str]]) -> Iterator[Contradiction]:
        """The entries whose jobs are elsewhere, or nowhere."""
        stored = self.tables.jobs.get_many([keys.job(*name) for name in names])
        items = {(item["pk"], item["sk"]): item for item in stored}
        for tenant, job_id in names:
            key = keys.job(tenant, job_id)
            job = job_of(items.get((key["pk"], key["sk"])))
            if is_in(job, group, shard):
                continue
            if of_job := JobChecks(self.tables, self.unplanned, self.resolve).look(tenant, job_id):
                yield from of_job  # where its entry has to be is known only then
                continue
            entry = self.tables.due.get(keys.due_entry(group, shard, tenant, job_id))
            if entry and job_of(self.tables.jobs.get(key)) == job:
                yield self._stray(group, shard, (tenant, job_id), job)

    def _stray(self, group: str, shard: int, name: tuple[str, str], job: Job | None) -> Contradiction:
        subject = job_subject(*name)
        if job is None and self.tables.jobs.get(keys.former_job(*name)) is None:
            detail = f"its due entry is in shard {shard} of {group}, and neither the job nor its deletion is stored"
            return Contradiction(JOB_LOST, subject, detail)
        where = f"{job.state} and in {job.group or 'no group'}, {job.shard}" if job else "deleted"
        detail = f"it is {where}, and has an entry in shard {shard} of {group}"
        return Contradiction(
            ENTRY_STRAY, subject, detail, lambda: self._delete_entry(group, shard, name, job)
        )

    # Repairs

    def _delete_entry(self, group: str, shard: int, name: tuple[str, str], job: Job | None) -> None:
        tx = Transaction(self.tables.due.client)
        as_read = Attribute("revision") == job.revision if job else ABSENT
        tx.check(self.tables.jobs, keys.job(*name), as_read)
        tx.delete(self.tables.due, keys.due_entry(group, shard, *name))
        tx.commit()
        recount(self.tables.due, Shard(group, shard))

    def _list(self, shard: Shard, listed: tuple[str, ...]) -> None:
        """Plan what no tick planned of its jobs, then let ticks find the shard."""
        names = entry_names(self.tables.due, shard.group, shard.shard)
        jobs = [
            job
            for item in self.tables.jobs.get_many([keys.job(*name) for name in names])
            if (job := job_of(item))
        ]
        jobs = [job for job in jobs if is_in(job, shard.group, shard.shard)]
        planned_until = min((self.unplanned.plan(job) for job in jobs), default=0)
        self.unplanned.pend(jobs, planned_until)
        if expires_at := expiry(shard.group):
            listed_again = change({"expires_at": expires_at}, add={"jobs": 0})
            self.tables.due.update(keys.directory(shard.group, shard.shard), listed_again)
        else:
            self.directory.open([Listing(shard, listed)])
        recount(self.tables.due, shard)
        # A tick may have planned the pending ones in between, and not have found the shard.
        self.unplanned.pend(jobs, planned_until)

    def _rewrite(self, shard: Shard) -> None:
        self.tables.due.put({**keys.directory(shard.group, shard.shard), "jobs": 0})
        self._list(shard, ())


def is_group(text: str) -> bool:
    """Whether this version reads the group. Ticks set others aside, and the alarm `quarantine` rings."""
    try:
        places(text)
    except DAMAGE:
        return False
    return True


def job_of(item: Item | None) -> Job | None:
    """The job, if there is one. Of one that cannot be read, `JobChecks` tells."""
    job = read_job(item) if item else None
    return job if isinstance(job, Job) and exists(job) else None


def is_in(job: Job | None, group: str, shard: int) -> bool:
    return job is not None and job.state == ACTIVE and (job.group, job.shard) == (group, shard)
