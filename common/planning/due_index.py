"""The due index: finds the jobs that fire in a window, at a cost that grows with what is due.

A *directory* lists each group of schedules once, with the number of its entries; a group's entries lie in *shards*, and
are read only when the group is due. Nothing is written per fire: the index changes only when a job does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from common.planning.bad_entry import BadEntry as BadEntry
from common.planning.plan import DueEntry
from common.storage import keys
from common.storage.tables import (
    ConditionFailed,
    Expression,
    Item,
    Table,
    Transaction,
    TransactionConflict,
)
from common.timing.groups import entry_weight
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, planning_end, window_start
from common.timing.zones import TZDATA_VERSION

# A shard takes this many entries before a group opens another: one page of a query, far below what a partition can read
# or write in the seconds that a tick takes. Of jobs that fire more than once a minute it takes fewer.
SHARD_ENTRIES = 2_000
# Entries of one-off jobs are of no use once their window is planned, and TTL is free. They outlive a long outage.
_ONE_OFF_KEPT_S = 400 * DAY_S
# Where somebody else has dropped it, nothing is left to compare.
_IS_EMPTY = Expression("attribute_not_exists(pk) OR #jobs <= :zero", {":zero": 0})


class Shard(NamedTuple):
    """One shard of one group, with the number of its entries."""

    group: str
    shard: int
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """Everything before `planned_until` is enqueued; planning may have begun for anything before `planning_until`.

    If the two differ, the window between them is open: a tick announced it at `decided_at`, and has not finished it.
    """

    planned_until: int
    planning_until: int
    decided_at: float
    # Up to where windows were divided into shares.
    divided_until: int = 0
    # The time zones that the window was announced with: what every function of a deployment plans by.
    tzdata: str = ""
    # Which of the divisions counts that several ticks may have recorded of the window.
    division: int = 0
    # How many ticks took the window up after the one that announced it.
    tries: int = 0

    @property
    def is_open(self) -> bool:
        return self.planned_until < self.planning_until

    @property
    def is_divided(self) -> bool:
        """Planners have the open window's shares; common/planning/shares.py."""
        return self.is_open and self.divided_until == self.planning_until


@dataclass(frozen=True, slots=True)
class BadShard:
    """An unreadable directory item: its sort key, and the reason."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A registration whose executions inside the window under planning may not have been handed over."""

    key: keys.Key
    entry: DueEntry


class DueIndex:
    """Reads and writes of the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    # The mark

    def mark(self) -> Mark | None:
        item = self._table.get(keys.MARK)
        return _mark(item) if item else None

    def ensure_mark(self, now: float) -> Mark:
        """The mark; a new deployment's begins at what a tick could plan now, and registrations plan up to there."""
        if mark := self.mark():
            return mark
        end = planning_end(now)
        with suppress(ConditionFailed):
            self._table.put(
                {**keys.MARK, "planned_until": end, "planning_until": end, "tzdata": TZDATA_VERSION},
                Expression("attribute_not_exists(pk)", {}),
            )
        mark = self.mark()
        assert mark is not None
        return mark

    def begin_planning(self, mark: Mark, end: int, now: float) -> Mark:
        """Announce that a tick plans from `mark` to `end`, before it reads the first entry. Returns the stored mark.

        If a registration commits too late for the tick to see it, the registration sees the announcement and enqueues
        its own executions. Both reads are strongly consistent, so the later one sees the other's write.

        A window is announced once, with the instant that separates late from missed fire times. Every process that
        finishes it plans the same, however late. So an open window, or one announced by another tick meanwhile, comes
        first.
        """
        if mark.is_open:
            return mark
        change = Expression(
            "SET #planning_until = :end, #decided_at = :now, #tzdata = :tzdata, #tries = :none",
            {":end": end, ":now": now, ":tzdata": TZDATA_VERSION, ":none": 0},
        )
        unmoved = Expression(
            "#planned_until = :start AND #planning_until = :start", {":start": mark.planned_until}
        )
        try:
            announced = self._table.update(keys.MARK, change, unmoved)
        except ConditionFailed as moved:
            assert moved.existing
            announced = moved.existing
        return _mark(announced)

    def take_up(self, mark: Mark) -> Mark:
        """Count that another tick begins the open window, in case the window kills it. Returns the stored mark."""
        unmoved = Expression(
            "#planned_until = :start AND #planning_until = :end",
            {":start": mark.planned_until, ":end": mark.planning_until},
        )
        try:
            return _mark(self._table.update(keys.MARK, Expression("ADD #tries :one", {":one": 1}), unmoved))
        except ConditionFailed as moved:
            assert moved.existing
            return _mark(moved.existing)

    def finish_planning(self, end: int) -> Mark:
        """Everything before `end` is durably enqueued. Returns the stored mark."""
        words = Expression("SET #planned_until = :end", {":end": end})
        try:
            moved = self._table.update(keys.MARK, words, Expression("#planned_until < :end", {":end": end}))
        except ConditionFailed as further:  # another tick was faster; the mark never moves back
            assert further.existing
            moved = further.existing
        return _mark(moved)

    # Reading what is due

    def recurring_shards(self) -> Iterator[Shard | BadShard]:
        """The whole directory except one-off jobs."""
        for partition in keys.directory_partitions():
            yield from self.directory(partition)

    def one_off_shards(self, start: int, end: int) -> Iterator[Shard | BadShard]:
        """The shards of one-off jobs in the windows that touch [start, end)."""
        windows = keys.one_off_range(window_start(start), end - 1)
        for partition in keys.one_off_partitions():
            yield from self.directory(partition, windows)

    def directory(
        self, partition: str, between: tuple[str, str] | None = None, after: str = ""
    ) -> Iterator[Shard | BadShard]:
        """A partition of the directory, after the sort key `after`."""
        begin: keys.Key | None = {"pk": partition, "sk": after} if after else None
        for item in self._table.query(partition, sk_between=between, after=begin, attributes=("sk", "jobs")):
            try:
                group, shard = keys.group_and_shard(item["sk"])
                yield Shard(group, shard, int(item["jobs"]))
            except (KeyError, ValueError, TypeError) as error:
                yield BadShard(item["sk"], f"unreadable directory item: {error!r}")

    def entries(self, shard: Shard, after: str = "") -> Iterator[DueEntry | BadEntry]:
        """The entries of a shard, starting after the `place` of one of them."""
        partition = keys.shard_partition(shard.group, shard.shard)
        start: keys.Key | None = {"pk": partition, "sk": after} if after else None
        for item in self._table.query(partition, attributes=("sk", "entry"), after=start):
            yield _readable(item)

    # Writing, as part of a job's transaction

    def pick_shard(self, group: str, rng: random.Random, conflicts: int = 0) -> int:
        """A shard of `group` with room; a new one when all are full, or when writers keep colliding."""
        partition = keys.directory_partition(group)
        shards = [
            shard
            for item in self._table.query(partition, sk_prefix=f"{group}#", consistent=False)
            for shard in [Shard(*keys.group_and_shard(item["sk"]), item["jobs"])]
            if shard.group == group
        ]
        weight = entry_weight(group, WINDOW_S)
        open_shards = [shard.shard for shard in shards if shard.jobs * weight < SHARD_ENTRIES]
        new_shard = max((shard.shard for shard in shards), default=-1) + 1
        if conflicts > 1 or not open_shards:
            open_shards.append(new_shard)
        return rng.choice(open_shards)

    def put_entry(self, tx: Transaction, entry: DueEntry, group: str, shard: int) -> None:
        key = keys.due_entry(group, shard, entry.tenant, entry.job_id)
        tx.put(self._table, {**key, "entry": entry.encode(), "expires_at": _expires_at(group)})

    def delete_entry(self, tx: Transaction, group: str, shard: int, tenant: str, job_id: str) -> None:
        tx.delete(self._table, keys.due_entry(group, shard, tenant, job_id))

    def count(self, tx: Transaction, group: str, shard: int, change: int) -> None:
        """Change a shard's number of entries; its directory item is created with the first entry."""
        words, values = "ADD #jobs :change", {":change": change}
        if expires_at := _expires_at(group):
            words, values = f"{words} SET #expires_at = :expires_at", values | {":expires_at": expires_at}
        tx.update(self._table, keys.directory(group, shard), Expression(words, values))

    def drop_empty(self, shard: Shard) -> bool:
        """Take an empty shard out of the directory; safe against a registration that fills it at the same moment."""
        try:
            self._table.delete(keys.directory(shard.group, shard.shard), _IS_EMPTY)
        except ConditionFailed:
            return False
        return True

    def drop_all_empty(self, shards: Sequence[Shard]) -> None:
        """The same for up to 100 at once, in one request: one tenant can leave a thousand behind in a second."""
        if len(shards) == 1:
            self.drop_empty(shards[0])
            return
        tx = Transaction(self._table.client)
        for shard in shards:
            tx.delete(self._table, keys.directory(shard.group, shard.shard), _IS_EMPTY)
        try:
            tx.commit()
        except ConditionFailed:  # one of them has just been filled
            for shard in shards:
                self.drop_empty(shard)
        except TransactionConflict:
            pass  # a writer holds one, or DynamoDB throttles: they are as empty for the next tick

    # Registrations whose executions may not be enqueued yet

    def put_pending(self, tx: Transaction, entry: DueEntry, revision: int) -> Pending:
        key = keys.pending(entry.tenant, entry.job_id, revision)
        tx.put(self._table, {**key, "entry": entry.encode()})
        return Pending(key, entry)

    def pending(self) -> Iterator[Pending | BadEntry]:
        for partition in keys.pending_partitions():
            for item in self._table.query(partition):
                entry = _readable(item)
                if isinstance(entry, BadEntry):
                    yield BadEntry.staying(item, entry.tenant, entry.job_id, entry.problem)
                else:
                    yield Pending(keys.key_of(item), entry)

    def drop_pending(self, tenant: str, job_id: str) -> None:
        """The pending entries of a job that is removed with its tenant."""
        any_revision = keys.pending(tenant, job_id, 0)
        prefix = any_revision["sk"].removesuffix("0")
        for item in self._table.query(any_revision["pk"], sk_prefix=prefix):
            self._table.delete(keys.key_of(item))

    def confirm(self, *pending: Pending) -> None:
        """Their executions are enqueued. Each registration has its own entry, so no other's changes."""
        if len(pending) == 1:
            self._table.delete(pending[0].key)
        else:  # entries that are left because of throttling do no harm: the next tick confirms them
            self._table.delete_many([one.key for one in pending])


def _mark(item: Item) -> Mark:
    # The mark of an old version has no instant: its open window was decided when it began.
    decided_at = float(item.get("decided_at") or item["planned_until"])
    return Mark(
        item["planned_until"],
        item["planning_until"],
        decided_at,
        item.get("divided_until", 0),
        item.get("tzdata", ""),
        item.get("division", 0),
        item.get("tries", 0),
    )


def _readable(item: Item) -> DueEntry | BadEntry:
    try:
        return DueEntry.decode(item["entry"])
    except Exception as error:  # noqa: BLE001  whatever is wrong with it, the others are to be planned
        return BadEntry(*keys.tenant_and_job(item["sk"]), f"unreadable due entry: {error!r}"[:500])


def place(entry: DueEntry | BadEntry) -> str:
    """An entry's place in its shard, from which `DueIndex.entries` can continue."""
    return keys.due_entry("", 0, entry.tenant, entry.job_id)["sk"]


def _expires_at(group: str) -> int | None:
    if not group.startswith("at|"):
        return None
    return int(group.removeprefix("at|")) + WINDOW_S + _ONE_OFF_KEPT_S
