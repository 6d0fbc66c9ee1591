"""Items that the other checks do not read: whether each is there, can be read, and is of whom its key says.

What is kept of runs by time is made anew from the runs' records: ticks name what they meet damaged there and leave it
as it is, since what they know of a window are its changes alone. What else is derived from other items, and written
anew by itself, is not looked at: pages, positions, counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, NamedTuple

from msgspec import convert

from common.clock import Clock
from common.jobs.backfill import Backfill
from common.jobs.calendars import Calendar
from common.jobs.former_jobs import former_job
from common.jobs.muted_groups import MutedGroup
from common.notices.subscription import Subscription
from common.platform.api_keys import ApiKey
from common.platform.deletion import Deletion
from common.projection.days import day_start
from common.projection.rebuild import Rebuild
from common.projection.tenants import ProjectedTenants, rows_of
from common.projection.windows import ProjectedRuns, ProjectedWindow
from common.runs.holders import damaged_names
from common.storage import keys
from common.storage.stored import read
from common.storage.table import Query, Tables
from common.storage.wire import DAMAGE, Item
from common.tenants.audit import Audit, Entry
from common.tenants.rules_cache import blocks_of
from common.tenants.secrets import Secret
from common.timing.instants import DAY_S
from common.truth.contradiction import (
    ITEM_CORRUPT,
    ITEM_LOST,
    KEY_DIFFERS,
    PROJECTION_CORRUPT,
    Contradiction,
    Subject,
)
from common.truth.tenants import TenantChecks

# Of older windows the days' totals are read, and a list of runs passes over what is damaged.
_LOOKED_AT_S: Final = 2 * DAY_S
_START_DIGITS: Final = 10


class Kind(NamedTuple):
    """Items of a partition of a table whose sort keys begin with `prefix`.

    `named` reads an item, and returns the key that its content gives it. It raises what a damaged item raises.
    """

    table: str
    partition: Callable[[str], str]
    prefix: str
    named: Callable[[Item], keys.Key]


def _calendar(item: Item) -> keys.Key:
    calendar = read(item, Calendar)
    return keys.calendar(calendar.tenant, calendar.name)


def _muted(item: Item) -> keys.Key:
    group = MutedGroup.from_item(item)
    return keys.muted_group(group.tenant, group.job_id, group.fingerprint)


def _backfill(item: Item) -> keys.Key:
    backfill = Backfill.from_item(item)
    return keys.backfill(backfill.tenant, backfill.job_id, backfill.backfill_id)


def _run_by_hand(item: Item) -> keys.Key:
    convert((item["fire_at"], item.get("payload", ""), item.get("secrets", [])), tuple[int, str, list[str]])
    return keys.key_of(item)


def _former(item: Item) -> keys.Key:
    job = former_job(item)
    return keys.former_job(job.tenant, job.job_id) if job else keys.key_of(item)


def _subscription(item: Item) -> keys.Key:
    return Subscription.from_item(item).key


def _secret(item: Item) -> keys.Key:
    convert(item["value"], str)
    return keys.secret(item["pk"], read(item, Secret).name)


def _webhook(item: Item) -> keys.Key:
    convert(item["secret"], str)
    return keys.webhook_secret(item["pk"])


def _api_key(item: Item) -> keys.Key:
    key = read(item, ApiKey)
    return keys.api_key_reference(key.tenant or keys.OPERATORS, key.key_id)


def _deletion(item: Item) -> keys.Key:
    return keys.deletion(read(item, Deletion).tenant_id)


def _blocks(item: Item) -> keys.Key:
    blocks_of(item)
    return keys.BLOCKS


_OWN: Final[Callable[[str], str]] = str
# Of a tenant, or of the platform's own keys.
OF_TENANTS: Final = (
    Kind("jobs", _OWN, keys.CALENDAR_PREFIX, _calendar),
    Kind("jobs", _OWN, keys.MUTED_PREFIX, _muted),
    Kind("jobs", _OWN, keys.BACKFILL_PREFIX, _backfill),
    Kind("jobs", _OWN, keys.ASKED_PREFIX, _run_by_hand),
    Kind("jobs", _OWN, keys.FORMER_PREFIX, _former),
    Kind("jobs", keys.notices, keys.SUBSCRIPTION_PREFIX, _subscription),
    Kind("tenants", _OWN, keys.SECRET_PREFIX, _secret),
    Kind("tenants", _OWN, keys.webhook_secret("")["sk"], _webhook),
    Kind("tenants", _OWN, keys.KEY_REFERENCE_PREFIX, _api_key),
)
OF_PLATFORM: Final = (
    Kind("tenants", lambda _: keys.DELETIONS, "", _deletion),
    Kind("tenants", lambda _: keys.BLOCKS["pk"], "", _blocks),
)


# What the audit names: the table and the key of each kind of subject.
AUDITED: Final[Mapping[str, tuple[str, Callable[[str, str], keys.Key]]]] = {
    "key": ("tenants", keys.api_key_reference),
    "secret": ("tenants", keys.secret),
    "calendar": ("jobs", keys.calendar),
    "subscription": ("jobs", keys.subscription),
}
# Of each owner's audit, the newest ones.
_ENTRIES_READ: Final = 1_000


@dataclass(frozen=True, slots=True)
class ItemChecks:
    """Reads the items of tenants, and those of the platform."""

    tables: Tables
    clock: Clock

    def suspects(self, tenants: Iterable[str]) -> Iterator[Subject]:
        """The items of these tenants and of the platform that something contradicts."""
        places = [*((kind, "") for kind in OF_PLATFORM), *product(OF_TENANTS, (*tenants, keys.OPERATORS))]
        for kind, tenant in places:
            query = Query(kind.partition(tenant), sk_prefix=kind.prefix, consistent=False)
            for item in self.tables.named(kind.table).query(query):
                if any(True for _ in self._compared(kind, item)):
                    yield _subject(kind.table, item)
        for line in self.tables.runs.query(Query(keys.LINES, consistent=False)):
            pk, _, sk = line["sk"].rpartition("|")
            permits = self.tables.runs.get(keys.Key(pk=pk, sk=sk))
            if permits and damaged_names(permits):
                yield _subject("runs", permits)
        for owner in (*tenants, keys.OPERATORS):
            yield from (contradiction.subject for contradiction in self._lost_items(owner))
        yield from ProjectionChecks(self.tables, self.clock).suspects(tenants)

    def look(self, name: str) -> list[Contradiction]:
        """What contradicts an item, by its table, partition and sort key."""
        table, pk, sk = name.split(" ", 2)
        item = self.tables.named(table).get(keys.Key(pk=pk, sk=sk))
        tenant = pk.partition("#")[0] if pk != keys.OPERATORS else pk
        if item is None:
            return [
                contradiction
                for contradiction in self._lost_items(tenant)
                if contradiction.subject.name == name
            ]
        if table == "runs":
            checks = ProjectionChecks(self.tables, self.clock)
            if checks.has(item):
                return checks.look(item)
            names = damaged_names(item)
            return [_corrupt(table, item, f"who goes or waits: {', '.join(names)}")] if names else []
        kinds = [
            kind
            for kind in (*OF_TENANTS, *OF_PLATFORM)
            if (kind.table, kind.partition(tenant)) == (table, pk) and sk.startswith(kind.prefix)
        ]
        return [contradiction for kind in kinds for contradiction in self._compared(kind, item)]

    def _compared(self, kind: Kind, item: Item) -> Iterator[Contradiction]:
        if problem := _problem(kind, item):
            yield _corrupt(kind.table, item, problem)
        elif kind.named is _api_key and (problem := self._key_problem(item)):
            yield Contradiction(KEY_DIFFERS, _subject(kind.table, item), problem)

    def _lost_items(self, owner: str) -> Iterator[Contradiction]:
        """What the audit has stored and not deleted, and is gone."""
        if owner != keys.OPERATORS and TenantChecks(self.tables, self.clock).is_gone(owner):
            return
        newest: dict[tuple[str, str], Entry] = {}
        for entry in Audit(self.tables.tenants).newest(owner, _ENTRIES_READ):
            newest.setdefault((entry.action.partition(".")[0], entry.subject), entry)
        for (kind, name), entry in newest.items():
            if kind not in AUDITED or _is_over(entry, self.clock.now()):
                continue
            table, key_named = AUDITED[kind]
            key = key_named(owner, name)
            if self.tables.named(table).get(key) is None:
                detail = f"the {kind} {name!r} is gone, and the audit knows no end of it"
                yield Contradiction(ITEM_LOST, _subject(table, {**key}), detail)

    def _key_problem(self, reference: Item) -> str:
        """Why a key that is listed is not the one that requests meet; empty if it is."""
        key = self.tables.tenants.get(keys.api_key(reference["key_hash"]))
        if key is None:
            return "requests with it are refused: what they meet is gone"
        names = sorted({*key, *reference} - {"pk", "sk"})
        different = [name for name in names if key.get(name) != reference.get(name)]
        return f"requests meet another {', '.join(different)}" if different else ""


def _is_over(entry: Entry, now: float) -> bool:
    """Whether what an entry is about may be gone. Pure."""
    ends_at = entry.after.get("expires_at")
    is_expired = isinstance(ends_at, int) and ends_at <= now
    return is_expired or entry.action.partition(".")[2] in ("deleted", "revoked")


def _problem(kind: Kind, item: Item) -> str:
    """Why an item cannot be read, or whose it is instead; empty if nothing is wrong. Pure."""
    try:
        named = kind.named(item)
    except DAMAGE as error:
        return repr(error)
    own = keys.key_of(item)
    return "" if named == own else f"it says that it is {named['pk']} {named['sk']}"


def _corrupt(table: str, item: Item, problem: str) -> Contradiction:
    return Contradiction(ITEM_CORRUPT, _subject(table, item), f"it cannot be read: {problem}"[:300])


def _subject(table: str, item: Item) -> Subject:
    return Subject("stored", f"{table} {item['pk']} {item['sk']}")


@dataclass(frozen=True, slots=True)
class ProjectionChecks:
    """Reads the windows of the last two days, and the totals of tenants."""

    tables: Tables
    clock: Clock

    def suspects(self, tenants: Iterable[str]) -> Iterator[Subject]:
        """The damaged items."""
        since = f"{day_start(int(self.clock.now())) - _LOOKED_AT_S:0{_START_DIGITS}d}"
        for partition in (keys.PROJECTION, *map(keys.projected_windows, tenants)):
            query = Query(partition, sk_between=(since, keys.LAST), consistent=False)
            yield from (
                _subject("runs", item) for item in self.tables.runs.query(query) if self._is_damaged(item)
            )

    def has(self, item: Item) -> bool:
        """Whether an item of the runs table is one of these."""
        return item["pk"] in (keys.PROJECTION, keys.projected_windows(_tenant(item["pk"])))

    def look(self, item: Item) -> list[Contradiction]:
        """What contradicts such an item."""
        if not self._is_damaged(item):
            return []
        key, remake = keys.key_of(item), self._remake_window
        if item["pk"] == keys.PROJECTION:
            remake = self._remake_totals
        detail = "it cannot be read: lists and counts lack its runs"
        return [Contradiction(PROJECTION_CORRUPT, _subject("runs", item), detail, partial(remake, key))]

    def _is_damaged(self, item: Item) -> bool:
        if item["pk"] == keys.PROJECTION:
            return rows_of(item) is None or not item["sk"].removeprefix("H").replace("#", "").isdecimal()
        runs, window = ProjectedRuns(self.tables.runs), ProjectedWindow.shown(item)
        return not runs.is_whole(_tenant(item["pk"]), window)

    def _remake_window(self, key: keys.Key) -> None:
        """Make the day of the window anew; what is no window goes."""
        tables, tenant, start = self.tables, _tenant(key["pk"]), key["sk"]
        runs = ProjectedRuns(tables.runs)
        if not start.isdecimal():
            tables.runs.delete(key)
            return
        rebuild = Rebuild(tables.jobs, tables.runs, tables.due)
        rebuild.day(tenant, day_start(int(start)), self.clock.now())
        if window := runs.window(tenant, int(start)):
            ProjectedTenants(tables.runs).set(keys.log_bucket(tenant), {(tenant, int(start)): window})

    def _remake_totals(self, key: keys.Key) -> None:
        start, _, bucket = key["sk"].partition("#")
        windows = {}
        if start.isdecimal() and bucket.isdecimal():
            runs = ProjectedRuns(self.tables.runs)
            for listed in self.tables.tenants.query(Query(keys.TENANTS, attributes=("sk",))):
                tenant = listed["sk"]
                if keys.log_bucket(tenant) == int(bucket) and (window := runs.window(tenant, int(start))):
                    windows[tenant] = window
        ProjectedTenants(self.tables.runs).remake(key, windows)


def _tenant(pk: str) -> str:
    return pk.partition("#")[0]
