"""Reads through the tables for what may contradict each other. Each suspicion is then examined by its own check.

First the tenants with their jobs, then the shards with their entries. A tick walks a part, and the next one goes on.
The reads here may be stale and cost half: a suspicion that is none costs some reads more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from common.errors import InvalidInput
from common.jobs.job import Job
from common.jobs.stored_text import hash_fits
from common.planning.directory import Listing, read_listing
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.storage.unreadable import Unreadable
from common.storage.wire import Item
from common.tenants.audit import Audit
from common.truth.contradiction import Subject, job_subject, shard_subject
from common.truth.jobs import (
    ONE_OFF_CHECKED_S,
    Resolve,
    as_stored,
    entry_problem,
    is_as_written,
    needs_entry,
    read_job,
)
from common.truth.shards import is_group, is_in, job_of
from common.truth.tenants import (
    ChangeLog,
    audit_problems,
    counts_of,
    is_over,
    is_readable,
    jobs_of,
    twins_differ,
)

_PAGE: Final = 100
# What reading a partition counts for, also if it is empty: a small stage's ticks walk through it by turns.
_PARTITION_EXAMINED: Final = 100
_FAR_AT: Final = 9_999_999_999
PARTITIONS: Final = (*keys.partitions("DIRECTORY"), *keys.partitions("ONE_OFF"))


@dataclass(frozen=True, slots=True)
class Position:
    """Where a walk goes on: in the tenant or partition `of`, after the sort key. Empty: at the first tenant."""

    of: str = ""
    after: str = ""

    @classmethod
    def stored(cls, position: Mapping[str, Any] | None) -> Position:
        """A position that was stored; the first one if it cannot be read. Pure."""
        match position:
            case {"of": str(of), "after": str(after)}:
                return cls(of, after)
        return cls()

    def beyond(self) -> Position:
        """The next partition, or the first one after the tenants: what is here cannot be walked over. Pure."""
        nth = PARTITIONS.index(self.of) + 1 if self.of in PARTITIONS else 0
        return Position(PARTITIONS[nth]) if nth < len(PARTITIONS) else Position()


@dataclass(slots=True)
class Walk:
    """A walk from `position` until it has examined `most` jobs, entries and shards, or all of them.

    `suspects` is what has to be examined. `texts`: also whether large texts are stored, a read unit for each 4 KB.
    """

    tables: Tables
    now: float
    position: Position = Position()
    most: float = math.inf
    texts: bool = False
    resolve: Resolve = as_stored
    examined: int = 0
    suspects: dict[Subject, None] = field(default_factory=dict)
    # Shards that the directory has, or whose absence was noted.
    _shards: set[tuple[str, int]] = field(default_factory=set)
    tenants: set[str] = field(default_factory=set)

    def go(self) -> Position:
        """Walk. Returns where the next walk goes on."""
        start = self.position
        if start.of not in PARTITIONS:
            if at := self._walk_tenants(start):
                return at
            start = Position()
        first = PARTITIONS.index(start.of) if start.of else 0
        for partition in PARTITIONS[first:]:
            if at := self._walk_partition(partition, start.after if partition == start.of else ""):
                return at
        return Position()

    @property
    def _is_over(self) -> bool:
        return self.examined >= self.most

    def _suspect(self, subject: Subject) -> None:
        self.suspects.setdefault(subject)

    # Tenants and their jobs

    def _walk_tenants(self, start: Position) -> Position | None:
        # Of this tenant only a part was read.
        if start.after and (at := self._walk_jobs(start.of, start.after)):
            return at
        after = keys.tenant_listing(start.of) if start.of else None
        for listing in self.tables.tenants.query(Query(keys.TENANTS, after=after, consistent=False)):
            tenant = listing["sk"]
            self.tenants.add(tenant)
            item = self.tables.tenants.get(keys.tenant(tenant))
            if not is_as_listed(item, listing):
                self._suspect(Subject("tenant", tenant))
            if not is_over(listing) and (at := self._walk_jobs(tenant, "", item)):
                return at
            if self._is_over:
                return Position(tenant)
        return None

    def _walk_jobs(self, tenant: str, after: str, item: Item | None = None) -> Position | None:
        """All jobs of a tenant, or those after a sort key. Returns where to go on, if it did not come to the end."""
        log = None if after else ChangeLog.read(Audit(self.tables.tenants), tenant, self.now)
        after_key: keys.Key | None = {"pk": tenant, "sk": after} if after else None
        items = self.tables.jobs.query(
            Query(tenant, sk_prefix=keys.JOB_PREFIX, after=after_key, consistent=False)
        )
        jobs: dict[str, Job | None] = {}
        while page := list(islice(items, _PAGE)):
            self.examined += len(page)
            self._look_at_jobs(page)
            jobs |= jobs_of(page)
            if self._is_over and len(page) == _PAGE:
                return Position(tenant, page[-1]["sk"])
        if log:
            self.examined += 1
            counts = counts_of(jobs.values())
            is_counted = item is not None and all(
                item.get(name, 0) == count for name, count in counts.items()
            )
            if not is_counted or any(True for _ in audit_problems(tenant, log, item, jobs, self.now)):
                self._suspect(Subject("tenant", tenant))
        return None

    def _look_at_jobs(self, items: Sequence[Item]) -> None:
        jobs: list[Job] = []
        for item in items:
            job = read_job(item)
            if isinstance(job, Job):
                jobs.append(job)
            if isinstance(job, str) or not self._is_as_written(job):
                self._suspect(job_subject(item["pk"], item["sk"].removeprefix(keys.JOB_PREFIX)))
        self._look_for_entries([job for job in jobs if needs_entry(job, self.now)])
        if self.texts:
            self._look_for_texts(jobs)

    def _is_as_written(self, job: Job) -> bool:
        with suppress(InvalidInput):  # a later version wrote it
            return is_as_written(job, self.resolve)
        return True

    def _look_for_entries(self, jobs: Sequence[Job]) -> None:
        places = [keys.due_entry(job.group, job.shard, job.tenant, job.job_id) for job in jobs]
        entries = {(item["pk"], item["sk"]): item for item in self._read(self.tables.due, places)}
        for job, key in zip(jobs, places, strict=True):
            entry = entries.get((key["pk"], key["sk"]))
            if entry is None or entry_problem(entry, job):
                self._suspect(job_subject(job.tenant, job.job_id))
        shards = {(job.group, job.shard) for job in jobs} - self._shards
        self._shards |= shards
        known = {
            item["sk"] for item in self._read(self.tables.due, [keys.directory(*shard) for shard in shards])
        }
        for group, shard in shards:
            if keys.directory(group, shard)["sk"] not in known:
                self._suspect(shard_subject(group, shard))

    def _look_for_texts(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            needed = [
                keys.job_text(job.tenant, job.job_id, text.sha256) for text in job.texts if text.reference
            ]
            if sum(map(hash_fits, self._read(self.tables.jobs, needed))) < len(needed):
                self._suspect(job_subject(job.tenant, job.job_id))

    # Shards and their entries

    def _walk_partition(self, partition: str, after: str) -> Position | None:
        if self._is_over:
            return Position(partition, after)
        self.examined += _PARTITION_EXAMINED
        recent = None
        if partition.startswith("ONE_OFF"):
            recent = keys.one_off_range(int(self.now) - ONE_OFF_CHECKED_S, _FAR_AT)
        after_key: keys.Key | None = {"pk": partition, "sk": after} if after else None
        for item in self.tables.due.query(
            Query(partition, sk_between=recent, after=after_key, consistent=False)
        ):
            self._look_at_shard(item)
            if self._is_over:
                return Position(partition, item["sk"])
        return None

    def _look_at_shard(self, item: Item) -> None:
        self.examined += 1
        listing = read_listing(item)
        if isinstance(listing, Unreadable):
            self._suspect(Subject("shard", listing.key["sk"]))
            return
        if not is_group(listing.shard.group):
            return
        group, shard, jobs = listing.shard
        entries = self.tables.due.query(
            Query(keys.shard_partition(group, shard), attributes=("sk",), consistent=False)
        )
        names = [keys.tenant_and_job(entry["sk"]) for entry in entries]
        self.examined += len(names)
        stored = self._read(self.tables.jobs, [keys.job(*name) for name in names])
        fitting = sum(is_in(job_of(job), group, shard) for job in stored)
        if len(names) != jobs or fitting != jobs or not self._is_listed(listing):
            self._suspect(shard_subject(group, shard))
        self._look_for_tenants({tenant for tenant, _ in names} - self.tenants)

    def _is_listed(self, listing: Listing) -> bool:
        group, shard, _ = listing.shard
        places = [keys.listing(place, group, shard) for place in listing.places]
        self.examined += len(places)
        return listing.is_right and len(self._read(self.tables.due, places)) == len(places)

    def _look_for_tenants(self, tenants: set[str]) -> None:
        """Those that the list of tenants does not have."""
        self.tenants |= tenants
        listed = {
            item["sk"]
            for item in self._read(self.tables.tenants, [keys.tenant_listing(tenant) for tenant in tenants])
        }
        for tenant in tenants - listed:
            self._suspect(Subject("tenant", tenant))

    def _read(self, table: Table, item_keys: Sequence[keys.Key]) -> list[Item]:
        return list(table.get_many(item_keys, consistent=False))


def is_as_listed(item: Item | None, listing: Item) -> bool:
    """Whether a tenant's item and that of the list of tenants can be read, and say the same. Pure."""
    return item is not None and is_readable(item) and is_readable(listing) and not twins_differ(item, listing)
