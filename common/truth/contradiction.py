"""What the tables can say against each other: the names of contradictions, what each means, and how it is repaired.

The list of what ticks have found, and what is still there, is in the due table. What somebody has damaged of the list
itself is left out: the walk finds again what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.timing.instants import DAY_S

JOB_CORRUPT: Final = "job-corrupt"
JOB_LOST: Final = "job-lost"
JOB_ROLLED_BACK: Final = "job-rolled-back"
JOB_TIMES: Final = "job-times"
JOB_MISPLACED: Final = "job-misplaced"
TEXT_MISSING: Final = "text-missing"
ENTRY_MISSING: Final = "entry-missing"
ENTRY_WRONG: Final = "entry-wrong"
ENTRY_STRAY: Final = "entry-stray"
SHARD_MISSING: Final = "shard-missing"
SHARD_CORRUPT: Final = "shard-corrupt"
SHARD_UNLISTED: Final = "shard-unlisted"
SHARD_COUNT: Final = "shard-count"
TENANT_CORRUPT: Final = "tenant-corrupt"
TENANT_MISSING: Final = "tenant-missing"
TENANT_UNLISTED: Final = "tenant-unlisted"
TENANT_DIFFERS: Final = "tenant-differs"
TENANT_ROLLED_BACK: Final = "tenant-rolled-back"
TENANT_COUNTS: Final = "tenant-counts"
AUDIT_LOST: Final = "audit-lost"
RUN_STUCK: Final = "run-stuck"
RUN_CORRUPT: Final = "run-corrupt"
ITEM_UNREADABLE: Final = "item-unreadable"
ITEM_CORRUPT: Final = "item-corrupt"
ITEM_LOST: Final = "item-lost"
KEY_DIFFERS: Final = "key-differs"
PROJECTION_CORRUPT: Final = "projection-corrupt"


class Decision(NamedTuple):
    """Of two facts that contradict each other: which one decides, which one follows it, and what the repair does."""

    decides: str
    follows: str
    repair: str


# docs/runbook/contradictions.md says what decides.
DECISIONS: Final[dict[str, Decision]] = {
    JOB_CORRUPT: Decision(
        "the tenant", "the job", "put the job again, or delete it: only its tenant knows what it was"
    ),
    JOB_LOST: Decision(
        "the audit", "the job", "put the job again, or restore the table; the audit has its definition"
    ),
    JOB_ROLLED_BACK: Decision(
        "the audit", "the job", "put the job again; the audit has the newer definition"
    ),
    JOB_TIMES: Decision(
        "the written schedule, if the due entry or the group agrees with it; else the tenant",
        "the resolved schedule, and from when it is in force",
        "write the job's times as its schedule and its due entry say; if they differ, put the job again",
    ),
    JOB_MISPLACED: Decision(
        "the schedule, then the due entry that is there",
        "the job's group and shard",
        "write the job's place as its schedule and its due entry say",
    ),
    TEXT_MISSING: Decision("the tenant", "the large text", "put the job with its payload again"),
    ENTRY_MISSING: Decision(
        "the job",
        "its due entry",
        "write the due entry, enqueue what was not planned, record what was missed",
    ),
    ENTRY_WRONG: Decision(
        "the job",
        "its due entry",
        "write the due entry anew, enqueue what was not planned, record what was missed",
    ),
    ENTRY_STRAY: Decision("the job", "its due entry", "delete the due entry"),
    SHARD_MISSING: Decision("the due entries", "the directory", "list the shard anew, and plan its jobs"),
    SHARD_CORRUPT: Decision(
        "the due entries", "the directory", "write the directory's item anew, and plan its jobs"
    ),
    SHARD_UNLISTED: Decision("the directory", "the index by time", "list the shard anew, and plan its jobs"),
    SHARD_COUNT: Decision("the due entries", "the directory's count", "count its entries anew"),
    TENANT_CORRUPT: Decision(
        "the item that can be read",
        "the other one",
        "write the item that cannot be read anew from the other one, and count its jobs",
    ),
    TENANT_MISSING: Decision(
        "the list of tenants; without it the tenant's audit",
        "the tenant's item",
        "write the tenant's item anew from the list of tenants, or both from the audit, and count its jobs",
    ),
    TENANT_UNLISTED: Decision(
        "the tenant's item", "the list of tenants", "write the list's item anew from the tenant's"
    ),
    TENANT_DIFFERS: Decision(
        "the newest audit entry of the field; without one a person",
        "the tenant's item and the list of tenants",
        "write what differs as the audit says; without an entry, change the tenant: both items are written",
    ),
    TENANT_ROLLED_BACK: Decision(
        "the audit", "the tenant", "change the tenant again; the audit has what was changed"
    ),
    TENANT_COUNTS: Decision("the jobs", "the tenant's counts", "count the tenant's jobs anew"),
    AUDIT_LOST: Decision(
        "a person",
        "the audit",
        "find out who may write the audit's table; nothing brings an entry back but a restored copy of it",
    ),
    RUN_STUCK: Decision("the run's record", "the queue", "send its next attempt again"),
    RUN_CORRUPT: Decision("a person", "the run's record", "restore the table, or delete the run's item"),
    ITEM_UNREADABLE: Decision(
        "a person",
        "the item",
        "write the item as it was and discard this one, or put it back: minute8 check --put-back",
    ),
    ITEM_CORRUPT: Decision(
        "a person", "the item", "delete it and store what it was again, or restore the table"
    ),
    ITEM_LOST: Decision(
        "the audit",
        "the item",
        "store it again; instead of a key make a new one; or restore the table: the audit keeps no such value",
    ),
    PROJECTION_CORRUPT: Decision(
        "the runs' records", "the runs by time", "make what is kept of them anew from the runs"
    ),
    KEY_DIFFERS: Decision("a person", "the key", "make a new key, and revoke this one"),
}


class Subject(NamedTuple):
    """What contradicts something else: a `job` tenant/job, `shard` group#number, or another by its key.

    An `item` is in the due table; what is `stored` is named with its table.
    """

    kind: Literal["job", "shard", "tenant", "run", "item", "stored"]
    name: str


def job_subject(tenant: str, job_id: str) -> Subject:
    return Subject("job", f"{tenant}/{job_id}")


def shard_subject(group: str, shard: int) -> Subject:
    return Subject("shard", f"{group}#{shard}")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One contradiction. `repair` can be made twice; None: a person has to decide.

    A repair that `sends` waits until nothing loses messages. `foresee` says which fire times it affects.
    """

    name: str
    subject: Subject
    detail: str
    repair: Callable[[], Any] | None = None
    foresee: Callable[[], str] = field(default=lambda: "no fire time is affected", compare=False)

    @property
    def sends(self) -> bool:
        return self.name in (
            ENTRY_MISSING,
            ENTRY_WRONG,
            JOB_TIMES,
            JOB_MISPLACED,
            SHARD_MISSING,
            SHARD_CORRUPT,
            SHARD_UNLISTED,
            RUN_STUCK,
        )

    @property
    def remedy(self) -> str:
        """What its repair does, or what to do."""
        return DECISIONS[self.name].repair


# Enough to act; ticks find the others when these are repaired.
MAX_LISTED: Final = 500
_RETENTION_S: Final = 30 * DAY_S
_ABOUT_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Listed:
    """A contradiction as it is listed: its name, what it is about, and when a tick found it.

    `looked_at` is what was examined when it was found.
    """

    name: str
    about: Subject
    detail: str
    found_at: int
    looked_at: Subject


class FoundContradictions:
    """The list."""

    def __init__(self, due: Table) -> None:
        self._due = due

    def all(self) -> list[Listed]:
        """The whole list."""
        return list(_read(self._due.query(Query(keys.CONTRADICTIONS, limit=MAX_LISTED))))

    def put(
        self,
        looked_at: Subject,
        contradictions: Sequence[Contradiction],
        before: Sequence[Listed],
        now: float,
    ) -> None:
        """List what looking at this subject has found; `before` is the list. What is not found any more leaves it."""
        old = {
            _sort_key(listed.name, listed.about): listed for listed in before if listed.looked_at == looked_at
        }
        new = {_sort_key(each.name, each.subject): each for each in contradictions}
        self._due.delete_many([_key(sort_key) for sort_key in old if sort_key not in new])
        added = [each for sort_key, each in new.items() if sort_key not in old]
        changed = [
            _item(each, looked_at, old[sort_key].found_at)
            for sort_key, each in new.items()
            if sort_key in old and old[sort_key].detail != _detail(each)
        ]
        room = max(0, MAX_LISTED - len(before))
        self._due.put_many([*changed, *(_item(each, looked_at, now) for each in added[:room])])

    def suspect(self, contradictions: Iterable[Contradiction], now: float) -> None:
        """List these until the next look at them, which is soon. What is listed keeps when it was found."""
        listed = {_sort_key(each.name, each.about) for each in self.all()}
        items = {
            sort_key: _item(each, each.subject, now)
            for each in contradictions
            if (sort_key := _sort_key(each.name, each.subject)) not in listed
        }
        self._due.put_many(list(items.values()))


def _sort_key(name: str, about: Subject) -> str:
    return f"{name}#{about.kind}#{about.name}"


def _key(sort_key: str) -> keys.Key:
    return {"pk": keys.CONTRADICTIONS, "sk": sort_key}


def _item(contradiction: Contradiction, looked_at: Subject, now: float) -> Item:
    return {
        **_key(_sort_key(contradiction.name, contradiction.subject)),
        "name": contradiction.name,
        "about": list(contradiction.subject),
        "looked_at": list(looked_at),
        "detail": _detail(contradiction),
        "found_at": int(now),
        "expires_at": int(now) + _RETENTION_S,
    }


def _detail(contradiction: Contradiction) -> str:
    return contradiction.detail[:_ABOUT_CHARS]


def _read(items: Iterable[Item]) -> Iterator[Listed]:
    for item in items:
        with suppress(*DAMAGE):
            about, looked_at = Subject(*item["about"]), Subject(*item["looked_at"])
            listed = Listed(item["name"], about, item["detail"], item["found_at"], looked_at)
            if not all(isinstance(text, str) for text in (listed.name, listed.detail, *about, *looked_at)):
                raise TypeError(f"not a contradiction: {item['sk']}")
            yield listed
