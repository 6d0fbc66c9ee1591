"""The truth checker: what the tables say is compared with each other. For ticks, `minute8 check` and the doctor.

A tick walks a part, and the next one goes on: first the tenants with their jobs, then the shards with their entries.
Each suspicion is then examined by its own check. The walk's reads may be stale and cost half: a suspicion that is none
costs some reads more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Final, Protocol

from common import telemetry
from common.clock import Clock
from common.errors import Busy, InvalidInput
from common.jobs.job import Job
from common.jobs.stored_text import hash_fits
from common.planning.chores import Done, Position
from common.planning.directory import Listing, read_listing
from common.planning.execution import split_execution_id
from common.planning.quarantine import Quarantine
from common.planning.queue import ExecutionsQueue
from common.runs.records import Runs
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE, Item
from common.tenants.audit import Audit
from common.timing.instants import rfc3339
from common.truth.contradiction import (
    ITEM_UNREADABLE,
    RUN_CORRUPT,
    RUN_STUCK,
    SHARD_CORRUPT,
    Contradiction,
    FoundContradictions,
    Subject,
    job_subject,
    shard_subject,
)
from common.truth.jobs import (
    ONE_OFF_CHECKED_S,
    JobChecks,
    Resolve,
    as_stored,
    entry_problem,
    is_as_written,
    needs_entry,
    read_job,
)
from common.truth.shards import ShardChecks, is_group, is_in, job_of
from common.truth.tenants import (
    ChangeLog,
    TenantChecks,
    audit_problems,
    counts_of,
    is_over,
    is_readable,
    jobs_of,
    twins_differ,
)
from common.truth.unplanned import Unplanned

_PAGE: Final = 100
# What reading a partition counts for, also if it is empty: a small stage's ticks walk through it by turns.
_PARTITION_EXAMINED: Final = 100
_FAR_AT: Final = 9_999_999_999
PARTITIONS: Final = (*keys.partitions("DIRECTORY"), *keys.partitions("ONE_OFF"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk goes on: in the tenant or partition `of`, after the sort key. Empty: at the first tenant."""

    of: str = ""
    after: str = ""

    @classmethod
    def stored(cls, position: Mapping[str, Any] | None) -> Place:
        """A position that was stored; the first one if it cannot be read. Pure."""
        match position:
            case {"of": str(of), "after": str(after)}:
                return cls(of, after)
        return cls()

    def beyond(self) -> Place:
        """The next partition, or the first one after the tenants: what is here cannot be walked over. Pure."""
        nth = PARTITIONS.index(self.of) + 1 if self.of in PARTITIONS else 0
        return Place(PARTITIONS[nth]) if nth < len(PARTITIONS) else Place()


@dataclass(slots=True)
class Walk:
    """A walk from `position` until it has examined `most` jobs, entries and shards, or all of them.

    `suspects` is what has to be examined. `texts`: also whether large texts are stored, a read unit for each 4 KB.
    """

    tables: Tables
    now: float
    position: Place = Place()
    most: float = math.inf
    texts: bool = False
    resolve: Resolve = as_stored
    examined: int = 0
    suspects: dict[Subject, None] = field(default_factory=dict)
    # Shards that the directory has, or whose absence was noted.
    _shards: set[tuple[str, int]] = field(default_factory=set)
    tenants: set[str] = field(default_factory=set)

    def go(self) -> Place:
        """Walk. Returns where the next walk goes on."""
        start = self.position
        if start.of not in PARTITIONS:
            if at := self._walk_tenants(start):
                return at
            start = Place()
        first = PARTITIONS.index(start.of) if start.of else 0
        for partition in PARTITIONS[first:]:
            if at := self._walk_partition(partition, start.after if partition == start.of else ""):
                return at
        return Place()

    @property
    def _is_over(self) -> bool:
        return self.examined >= self.most

    def _suspect(self, subject: Subject) -> None:
        self.suspects.setdefault(subject)

    # Tenants and their jobs

    def _walk_tenants(self, start: Place) -> Place | None:
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
                return Place(tenant)
        return None

    def _walk_jobs(self, tenant: str, after: str, item: Item | None = None) -> Place | None:
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
                return Place(tenant, page[-1]["sk"])
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

    def _walk_partition(self, partition: str, after: str) -> Place | None:
        if self._is_over:
            return Place(partition, after)
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
                return Place(partition, item["sk"])
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


@dataclass(frozen=True, slots=True)
class RunChecks:
    """Compares the record of a run with the clock."""

    unplanned: Unplanned

    def look(self, execution_id: str) -> list[Contradiction]:
        """What contradicts the run. Nothing if it has no record: that is what the comparison with the log finds."""
        if (names := split_execution_id(execution_id)) is None:
            return []
        subject, now = Subject("run", execution_id), self.unplanned.clock.now()
        runs = Runs(self.unplanned.tables.runs)
        try:
            run = runs.named(*names)
            if run is None or not run.is_stuck(now):
                return []
            execution = run.going_on(now)
        except DAMAGE as error:
            return [Contradiction(RUN_CORRUPT, subject, f"unreadable: {error!r}"[:300])]
        since = run.stuck_since
        is_possible = since <= now
        should = "should have gone on" if is_possible else "waits for an instant that can be none,"
        detail = f"it is {run.status}, and {should} at {rfc3339(int(since))}"

        def send() -> None:
            if not is_possible:
                runs.end_lease(run, self.unplanned.clock.now())
            runs.note([execution], self.unplanned.clock.now())
            self.unplanned.queue.send([execution])

        return [Contradiction(RUN_STUCK, subject, detail, send)]


# What a tick examines: jobs, due entries and shards. A unit each, and less with several in an item's 4 KB.
EXAMINED_A_TICK: Final = 500
# What it looks at again, or because it is suspicious: each costs some reads.
_LOOKED_AT_A_TICK: Final = 100
_HOUR_S: Final = 3_600
_TICK_S: Final = 600


class StoredChecks(Protocol):
    """Looks at the items that nothing else reads (minute8/cli/doctor/item_checks.py)."""

    def suspects(self, tenants: Iterable[str]) -> Iterable[Subject]:
        """What has to be looked at, of these tenants and of the platform."""

    def look(self, name: str) -> list[Contradiction]:
        """What contradicts a `stored` subject."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Compares a stage's tables. Only repairs write, beside the list of what ticks have found."""

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock
    # Reads what clients wrote; ticks cannot.
    resolve: Resolve = as_stored
    # Of a person's look; ticks read no items but those that they need.
    stored: StoredChecks | None = None

    @property
    def known(self) -> FoundContradictions:
        return FoundContradictions(self.tables.due)

    def look(self, subject: Subject) -> list[Contradiction]:
        """What contradicts this subject now. Raises Busy, and what a read raises."""
        unplanned = Unplanned(self.tables, self.queue, self.clock)
        match subject.kind:
            case "job":
                tenant, _, job_id = subject.name.partition("/")
                return JobChecks(self.tables, unplanned, self.resolve).look(tenant, job_id)
            case "shard":
                return self._look_at_shard(subject, ShardChecks(self.tables, unplanned, self.resolve))
            case "tenant":
                return TenantChecks(self.tables, self.clock).look(subject.name)
            case "run":
                return RunChecks(unplanned).look(subject.name)
            case "item":
                record = Quarantine(self.tables.due).unreadable(subject.name)
                return [Contradiction(ITEM_UNREADABLE, subject, record.reason)] if record else []
            case "stored":
                return self.stored.look(subject.name) if self.stored else []

    def _look_at_shard(self, subject: Subject, checks: ShardChecks) -> list[Contradiction]:
        try:
            group, shard = keys.group_and_shard(subject.name)
        except ValueError as error:
            return [Contradiction(SHARD_CORRUPT, subject, f"it has no number: {error}")]
        return checks.look(group, shard)

    def all(self, most: float = math.inf) -> Iterator[tuple[Subject, list[Contradiction]]]:
        """Read through everything, or the first `most` jobs, entries and shards, and the list of ticks.

        Yields each subject that something contradicts, with all that does.
        """
        walk = Walk(self.tables, self.clock.now(), most=most, texts=most == math.inf, resolve=self.resolve)
        walk.go()
        listed = [listed.looked_at for listed in self.known.all()]
        listed += [Subject("item", record.name) for record in Quarantine(self.tables.due).unreadable_items()]
        known: set[tuple[str, Subject]] = set()  # a shard's look may tell of its jobs
        stored = self.stored.suspects(sorted(walk.tenants)) if self.stored else ()
        for subject in dict.fromkeys([*walk.suspects, *listed, *stored]):
            contradictions = [item for item in self.look(subject) if (item.name, item.subject) not in known]
            known |= {(item.name, item.subject) for item in contradictions}
            if contradictions:
                yield subject, contradictions

    def refresh(self, subjects: Iterable[Subject]) -> None:
        """Look at these again, and correct the list."""
        now, before = self.clock.now(), self.known.all()
        for subject in subjects:
            self.known.put(subject, self.look(subject), before, now)

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A chore of one step a tick: walk on, look at what is suspicious or listed, correct the list.

        It shares no position, and nothing that is projected, with the comparison of planned and recorded executions.
        """
        now, before, position = self.clock.now(), self.known.all(), Place.stored(at)
        walk = Walk(self.tables, now, position, EXAMINED_A_TICK)
        after = done.step(f"walk after {position.of}", walk.go) or position.beyond()
        newest_first = sorted(before, key=lambda listed: -listed.found_at)
        again = [listed.looked_at for listed in newest_first if self._is_looked_at(listed.looked_at, now)]

        def look(subject: Subject) -> None:
            if done.is_time_up:
                raise Busy("no time to look at it")
            self.known.put(subject, self.look(subject), before, now)

        subjects = list(dict.fromkeys([*walk.suspects, *again]))[:_LOOKED_AT_A_TICK]
        done.each(subjects, look, lambda subject: subject.name)
        listed = self.known.all() if subjects else before
        if listed:  # a metric costs money in each hour in which it has a value
            done.metrics[telemetry.CONTRADICTIONS] = len(listed)
            done.counts.update(each.name for each in listed)
            done.errors += [f"{each.name} {each.about.name}: {each.detail}" for each in listed]
        yield asdict(after)

    def _is_looked_at(self, subject: Subject, now: float) -> bool:
        """Whether to look at what is listed. A tenant costs much: its turn is once an hour, and when it is gone."""
        is_cheap = subject.kind != "tenant" or TenantChecks(self.tables, self.clock).is_gone(subject.name)
        return is_cheap or now % _HOUR_S < _TICK_S
