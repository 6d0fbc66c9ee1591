"""The directory of the due index: each shard of each group of schedules once, with the number of its entries.

A tick reads only the shards that can be due. So each recurring shard is also listed in the places where ticks look for
it (common/timing/slots.py). Its own item names these places. A shard and its listings are written in one transaction,
before the first job that needs it, and not for each job.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from common.errors import Busy
from common.limits import ONE_OFF_KEPT_S
from common.planning.pace import nth_shard, shard_number
from common.storage import keys
from common.storage.conflicts import TransactionConflict
from common.storage.expressions import ABSENT, Attribute, change
from common.storage.table import Query, Table
from common.storage.transactions import MAX_WRITES, Transaction
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE, Item
from common.timing.groups import entry_weight
from common.timing.slots import EVERYWHERE, places, places_of
from common.timing.windows import WINDOW_S, window_start
from common.timing.zones import TZDATA_VERSION

# The version of the rule that decides where groups are listed. If planned_until names another version, ticks read the
# whole directory and list it anew.
FILING: Final = f"1/{TZDATA_VERSION}"
# A shard takes this many entries before its group opens another shard. This is one page of a query, far below what a
# partition can read or write in the seconds of a tick. Of jobs that fire more than once a minute it takes fewer.
SHARD_ENTRIES = 2_000
# Registrations of a busy group may change a shard at each look.
MAX_LOOKS: Final = 5
# If another process has dropped the item, nothing is left to compare.
_IS_EMPTY = ABSENT | (Attribute("jobs") <= 0)
_IS_LISTED = Attribute("filed").exists


class Shard(NamedTuple):
    """One shard of one group, with the number of its entries."""

    group: str
    shard: int
    jobs: int = 0


class Listing(NamedTuple):
    """A recurring shard and the places in which it is listed."""

    shard: Shard
    places: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether entries may be added; one-off shards need no listing."""
        return bool(self.places) or expiry(self.shard.group) is not None

    @property
    def is_right(self) -> bool:
        """Whether ticks of this version look for the shard in these places."""
        return self.places == _right_places(self.shard.group)


class Directory:
    """Reads and writes of the directory, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    # Reading

    def all(self) -> Iterator[Listing | Unreadable]:
        """Everything except one-off jobs."""
        for partition in keys.partitions("DIRECTORY"):
            for item in self._table.query(Query(partition, attributes=("sk", "jobs", "filed"))):
                yield read_listing(item, partition)

    def listed(self, start: int, end: int) -> Iterator[Listing | Unreadable]:
        """The shards that are listed in the places of [start, end), each once; without the numbers of entries."""
        is_one_slot = end - start <= WINDOW_S and start % WINDOW_S == 0
        seen: set[str] = set()
        for place in places_of(start, end):
            for item in self._table.query(Query(keys.listings(place), attributes=("sk",))):
                if not is_one_slot:
                    if item["sk"] in seen:
                        continue
                    seen.add(item["sk"])
                yield read_listing({"sk": item["sk"], "jobs": 0, "filed": place}, keys.listings(place))

    def counted(self, listings: Sequence[Listing]) -> Iterator[Listing | Unreadable]:
        """The same listings with the numbers of entries, 0 where the directory has no such shard."""
        directory_keys = [keys.directory(listing.shard.group, listing.shard.shard) for listing in listings]
        items = {item["sk"]: item for item in self._table.get_many(directory_keys)}
        for listing, key in zip(listings, directory_keys, strict=True):
            yield read_listing(items[key["sk"]]) if key["sk"] in items else listing

    def one_off_shards(self, start: int, end: int) -> Iterator[Shard | Unreadable]:
        """The shards of one-off jobs in the windows that touch [start, end)."""
        windows = keys.one_off_range(window_start(start), end - 1)
        for partition in keys.partitions("ONE_OFF"):
            yield from self.shards(partition, windows)

    def shards(
        self, partition: str, between: tuple[str, str] | None = None, after: str = ""
    ) -> Iterator[Shard | Unreadable]:
        """A partition of the directory, after the sort key `after`."""
        begin: keys.Key | None = {"pk": partition, "sk": after} if after else None
        for item in self._table.query(
            Query(partition, sk_between=between, after=begin, attributes=("sk", "jobs"))
        ):
            listing = read_listing(item, partition)
            yield listing.shard if isinstance(listing, Listing) else listing

    # Writing

    def pick(
        self, group: str, rng: random.Random, conflicts: int = 0, *, pace: int = 0, consistent: bool = False
    ) -> Listing:
        """A shard of `group` with room; a new one when all are full, or when writers keep colliding.

        `pace` is the number of the jobs' pace (common/planning/pace.py). Before its first entry, a shard that is
        not listed has to be opened. The shards of other paces are not read: a tenant may have thousands of them.
        """
        partition = keys.directory_partition(group)
        between = keys.shards_of_pace(group, pace)
        items = self._table.query(Query(partition, sk_between=between, consistent=consistent))
        listings = [
            listing
            for listing in map(read_listing, items)
            if isinstance(listing, Listing) and listing.shard.group == group
        ]
        weight = entry_weight(group, WINDOW_S)
        with_room = [listing for listing in listings if listing.shard.jobs * weight < SHARD_ENTRIES]
        if conflicts > 1 or not with_room:
            last = max((nth_shard(listing.shard.shard) for listing in listings), default=-1)
            with_room.append(Listing(Shard(group, shard_number(pace, last + 1))))
        return rng.choice(with_room)

    def open(self, listings: Sequence[Listing]) -> None:
        """List these shards where ticks look for them, and nowhere else. Raises TransactionConflict."""

        def add(tx: Transaction, listing: Listing) -> None:
            group, shard, _ = listing.shard
            right_places = _right_places(group)
            listed = change({"filed": " ".join(right_places)}, add={"jobs": 0})
            tx.update(self._table, keys.directory(group, shard), listed)
            for place in right_places:
                tx.put(self._table, {**keys.listing(place, group, shard)})
            for place in set(listing.places) - set(right_places):
                tx.delete(self._table, keys.listing(place, group, shard))

        for tx, _ in self._transactions(listings, add):
            tx.commit()

    def count(self, tx: Transaction, group: str, shard: int, difference: int) -> None:
        """Change a shard's number of entries, as part of a job's transaction; a recurring one gains only if it is open.

        The directory item of one-off jobs is created with the first entry.
        """
        expires_at = expiry(group)
        counted = change({"expires_at": expires_at} if expires_at else {}, add={"jobs": difference})
        condition = _IS_LISTED if difference > 0 and not expires_at else None
        tx.update(self._table, keys.directory(group, shard), counted, condition)

    def has_entries(self, shard: Shard) -> bool:
        """Whether a shard has an entry, whatever the directory counts."""
        query = Query(keys.shard_partition(shard.group, shard.shard), limit=1, attributes=("sk",))
        return any(True for _ in self._table.query(query))

    def drop_empty(self, listings: Sequence[Listing]) -> None:
        """Remove the shards that have no entries; safe against a registration that fills one at the same moment."""
        for tx, dropped in self._transactions(listings, self._drop):
            # If a writer holds one, or DynamoDB throttles, the next tick finds them empty again.
            with suppress(TransactionConflict):
                if tx.try_commit() and len(dropped) > 1:  # one of the shards has just been filled
                    for listing in dropped:
                        self.drop_empty([listing])

    def drop_if_without_entries(self, listings: Sequence[Listing]) -> None:
        """The same for shards that the directory counts as empty: it may count wrongly if somebody has edited it."""
        self.drop_empty([listing for listing in listings if not self.has_entries(listing.shard)])

    def drop_if_empty(self, names: Sequence[tuple[str, int]]) -> None:
        """Remove those of these recurring shards that became empty."""
        listings = [Listing(Shard(*name)) for name in names if not expiry(name[0])]
        counted = list(self.counted(listings)) if listings else []
        self.drop_if_without_entries(
            [
                listing
                for listing in counted
                if isinstance(listing, Listing) and listing.places and listing.shard.jobs <= 0
            ]
        )

    def _drop(self, tx: Transaction, listing: Listing) -> None:
        group, shard, _ = listing.shard
        tx.delete(self._table, keys.directory(group, shard), _IS_EMPTY)
        for place in listing.places:
            tx.delete(self._table, keys.listing(place, group, shard))

    def _transactions(
        self, listings: Sequence[Listing], add: Callable[[Transaction, Listing], None]
    ) -> Iterator[tuple[Transaction, list[Listing]]]:
        """As few transactions as hold the writes of all listings."""
        tx, written = Transaction(self._table.client), list[Listing]()
        for listing in listings:
            alone = Transaction(self._table.client)
            add(alone, listing)
            if len(tx) + len(alone) > MAX_WRITES:
                yield tx, written
                tx, written = Transaction(self._table.client), []
            tx.extend(alone)
            written.append(listing)
        if written:
            yield tx, written


def expiry(group: str) -> int | None:
    """When TTL removes what is stored of a one-off group; None for a recurring one."""
    if not group.startswith("at|"):
        return None
    return int(group.removeprefix("at|")) + WINDOW_S + ONE_OFF_KEPT_S


def _right_places(group: str) -> tuple[str, ...]:
    try:
        return places(group)
    except DAMAGE:  # ticks set it aside wherever they look, until a version can read it
        return EVERYWHERE


def read_listing(item: Item, partition: str = "") -> Listing | Unreadable:
    """The shard of a directory item, which may come without its partition."""
    try:
        group, shard = keys.group_and_shard(item["sk"])
        return Listing(Shard(group, shard, int(item["jobs"])), tuple(item.get("filed", "").split()))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        key: keys.Key = {"pk": item.get("pk", partition), "sk": item["sk"]}
        return Unreadable("due", key, f"unreadable directory item: {error!r}"[:500])


def entry_names(due: Table, group: str, shard: int) -> list[tuple[str, str]]:
    """Tenant and job id of each entry."""
    items = due.query(Query(keys.shard_partition(group, shard), attributes=("sk",)))
    return [keys.tenant_and_job(item["sk"]) for item in items]


def recount(due: Table, shard: Shard) -> None:
    """Let the directory count the entries that there are, if it has the shard.

    Raises Busy if registrations change them each time.
    """
    key = keys.directory(shard.group, shard.shard)
    for _ in range(MAX_LOOKS):
        before = (due.get(key) or {}).get("jobs")
        if before is None:
            return
        entries = len(entry_names(due, shard.group, shard.shard))
        if due.update_if(key, change({"jobs": entries}), Attribute("jobs") == before):
            return
    raise Busy(f"the shard {key['sk']} is being written; try again later")
