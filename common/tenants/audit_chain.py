"""The chain over an owner's audit: seals, each with the hash of its predecessor.

An entry is written without a hash, so that writers neither wait for each other nor write more. Once it has settled, a
tick seals it: a seal lists the entries since the last seal with the hash of each.
`minute8/cli/audit_comparison.py` compares the seals with what is stored.
An owner is a tenant, or the platform (`keys.OPERATORS`).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from common.errors import Damaged, shown
from common.storage import keys
from common.storage.stored import Stored
from common.storage.table import Query, Table
from common.storage.wire import to_wire
from common.tenants.audit import RETENTION_S, Audit, time_id
from common.timing.instants import DAY_S

# An entry may be committed so long after the time in its id: longer than a function runs, or AWS accepts a wrong clock.
SETTLE_S: Final = 20 * 60
# 65 bytes each, in an item of at most 400 KB.
MAX_SEALED: Final = 1_000
# A seal outlives its entries, which DynamoDB deletes days after they have expired.
LIFETIME_S: Final = RETENTION_S + 30 * DAY_S
_HASH_CHARS: Final = 32

ALTERED: Final = "altered"
DELETED: Final = "deleted"
INSERTED: Final = "inserted"
REORDERED: Final = "reordered"
SEAL_ALTERED: Final = "seal altered"
SEAL_MISSING: Final = "seal missing"
SEAL_REPLACED: Final = "seal replaced"
NOT_SEALED: Final = "not sealed"


class Seal(Stored, frozen=True):
    """The entries with ids in [since, until), as (id, hash) by id; the first seal's `since` is empty.

    `chain` is a random id of the whole chain. `previous` is the predecessor's hash, `previous_at` its `sealed_at`.
    """

    derived: ClassVar = ("hash", "expires_at")

    owner: str
    chain: str
    number: int
    since: str
    until: str
    entries: tuple[tuple[str, str], ...]
    sealed_at: int
    previous: str = ""
    previous_at: int = 0

    @property
    def hash(self) -> str:
        """Of everything in the seal, and so of all seals before it."""
        return _digest(
            [
                *(self.owner, self.chain, self.number, self.since, self.until, self.sealed_at),
                *(self.previous, self.previous_at, self.entries),
            ]
        )

    @property
    def key(self) -> keys.Key:
        return keys.seal(self.owner, self.number)

    @property
    def expires_at(self) -> int:
        return self.sealed_at + LIFETIME_S

    @classmethod
    def unaltered(cls, owner: str, item: Mapping[str, Any]) -> Seal | None:
        """The owner's seal; None if the item was altered: its hash is not that of what it holds."""
        with suppress(Damaged):
            seal = cls.from_item(item)
            return seal if (seal.owner, seal.hash) == (owner, item.get("hash")) else None
        return None


@dataclass(frozen=True, slots=True)
class Tampering:
    """What differs from what was sealed: its name, the entry or seal, and details."""

    name: str
    of: str
    detail: str


def entry_id_of(item: Mapping[str, Any]) -> str:
    """The id of a stored entry."""
    return str(item["sk"]).removeprefix(keys.AUDIT_PREFIX)


def missing_entry(seal: Seal, stored_ids: Collection[str], since: str, now: float) -> str | None:
    """The first entry from `since` on that a seal has and that is not stored, and not because of its age. Pure."""
    sealed = (
        entry_id for entry_id, _ in seal.entries if entry_id >= since and not has_expired(entry_id, now)
    )
    return next((entry_id for entry_id in sealed if entry_id not in stored_ids), None)


def has_expired(entry_id: str, now: float) -> bool:
    """Whether DynamoDB may have deleted the entry because of its age."""
    return entry_at(entry_id) + RETENTION_S <= now


def entry_at(entry_id: str) -> int:
    """When the entry was made, in seconds; 0 if its id has no time."""
    digits = entry_id.partition("-")[0]
    return int(digits) // 1_000 if digits.isdecimal() else 0


def can_be_sealed(entry_id: str) -> bool:
    """Whether a seal can hold an entry of this id: a line of a seal is an id and a hash."""
    return entry_id.isprintable() and " " not in entry_id


def entry_hash(item: Mapping[str, Any]) -> str:
    """The hash of a stored entry, with all its attributes, but without its key: the seal lists that beside it."""
    return _digest(to_wire({name: value for name, value in item.items() if name not in ("pk", "sk")}))[
        :_HASH_CHARS
    ]


def next_seal(
    owner: str, last: Seal | None, entries: Sequence[tuple[str, str]], until: str, now: float, chain: str
) -> Seal | None:
    """The seal of settled entries since the last one, as (id, hash), the oldest first; None without entries.

    There may be one more than fits: the seal ends before it. `chain` is the id of a chain that begins.
    """
    if not entries:
        return None
    sealed = tuple(entries[:MAX_SEALED])
    return Seal(
        owner=owner,
        chain=last.chain if last else chain,
        number=last.number + 1 if last else 1,
        since=last.until if last else "",
        until=until if len(entries) == len(sealed) else entries[MAX_SEALED][0],
        entries=sealed,
        sealed_at=int(now),
        previous=last.hash if last else "",
        previous_at=last.sealed_at if last else 0,
    )


def _digest(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# The chore's name (scheduler/chores.py).
SEALING: Final = "sealing"


@dataclass(frozen=True, slots=True)
class SealRound:
    """The round of ticks over all owners: where the next step goes on, and whose last seal was altered.

    `ended_at` is 0 while it is under way.
    """

    began_at: int
    ended_at: int = 0
    after: str = ""
    tampered: tuple[str, ...] = ()

    @property
    def complete_at(self) -> int:
        """When it began, if it is complete: it has sealed what had settled by then. Else 0."""
        return self.began_at if self.ended_at else 0

    @classmethod
    def of(cls, position: Mapping[str, Any] | None) -> SealRound | None:
        """The round at a position of the chore; None if there is none that can be read. Pure."""
        match position:
            case {
                "began_at": int(began),
                "ended_at": int(ended),
                "after": str(after),
                "tampered": [*tampered],
            }:
                return cls(began, ended, after, tuple(map(str, tampered)))
        return None

    @classmethod
    def read(cls, due: Table) -> SealRound | None:
        """The last round; None before the first one."""
        return cls.of((due.get(keys.chore(SEALING)) or {}).get("at"))


@dataclass(frozen=True, slots=True)
class AuditSeals:
    """The seals of all owners, in the table of the audit, in partitions of their own."""

    audit: Audit

    @property
    def _table(self) -> Table:
        return self.audit.table

    def newest(self, owner: str) -> Seal | Tampering | None:
        """The last seal, or one of some seconds ago; a Tampering if it was altered."""
        query = Query(keys.seals(owner), newest_first=True, limit=1, consistent=False)
        try:
            for item in self._table.query(query):
                return Seal.unaltered(owner, item) or altered(item["sk"])
        except TypeError:  # an attribute that Minute8 never writes
            return Tampering(SEAL_ALTERED, "the last seal", "it is unreadable")
        return None

    def seal(self, owner: str, now: float, most: int) -> list[Seal] | Tampering:
        """Seal the settled entries since the last seal. Returns the new seals, at most so many of MAX_SEALED entries.

        A Tampering if the last seal was altered, or an entry is unreadable or has a forged id: nothing is added.
        """
        last = self.newest(owner)
        if isinstance(last, Tampering):
            return last
        new_seals: list[Seal] = []
        until = time_id(now - SETTLE_S)
        while len(new_seals) < most:
            since = last.until if last else ""
            try:  # an entry may be large: only its hash is kept
                stored = self.audit.stored(owner, since, until, MAX_SEALED + 1)
                entries = [(entry_id_of(item), entry_hash(item)) for item in stored]
            except TypeError:
                return unreadable(since)
            if forged := next((entry_id for entry_id, _ in entries if not can_be_sealed(entry_id)), None):
                return Tampering(INSERTED, shown(forged), "no change has such an id, and nothing is sealed")
            seal = next_seal(owner, last, entries, until, now, secrets.token_hex(8))
            if seal is None:
                break
            if self._table.create(seal.to_item()):  # another tick has just made it
                break
            new_seals.append(seal)
            last = seal
            if len(entries) <= MAX_SEALED:
                break
        return new_seals


def unreadable(since: str) -> Tampering:
    """Of an entry after this id."""
    return Tampering(
        ALTERED, f"an entry after {since or 'the beginning'}", "it is unreadable, and nothing is sealed"
    )


def altered(number: str) -> Tampering:
    """Of the seal with this sort key."""
    return Tampering(SEAL_ALTERED, f"seal {number.lstrip('0')}", "its hash is not that of what it holds")
