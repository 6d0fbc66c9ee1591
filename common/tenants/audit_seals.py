"""The stored seals over the audit (`audit_chain.py`), and adding the next one.

`minute8/cli/audit_comparison.py` compares them with what is stored.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.errors import shown
from common.storage import keys
from common.storage.table import Query, Table
from common.tenants.audit import Audit, time_id
from common.tenants.audit_chain import (
    ALTERED,
    INSERTED,
    MAX_SEALED,
    SEAL_ALTERED,
    SETTLE_S,
    Seal,
    Tampering,
    can_be_sealed,
    entry_hash,
    entry_id_of,
    next_seal,
)

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
