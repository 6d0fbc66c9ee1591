"""The stored seals over the audit (`audit_chain.py`): adding the next one, and comparing all with what is stored."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Final

from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.wire import Expression
from common.tenants.audit import Audit, time_id
from common.tenants.audit_chain import (
    ALTERED,
    INSERTED,
    MAX_SEALED,
    NOT_SEALED,
    SEAL_ALTERED,
    SETTLE_S,
    Seal,
    Tampering,
    compare,
    compare_link,
    entry_at,
    entry_hash,
    entry_id_of,
    has_expired,
    next_seal,
    sealed_late,
)
from common.timing.instants import rfc3339

_IS_NEW: Final = Expression("attribute_not_exists(pk)", {})
# Sorts after every entry's id.
_END: Final = "~"


@dataclass(slots=True)
class ChainState:
    """What `verify` found: how many entries and seals were compared, and what differs, the first ones first."""

    owner: str
    entries: int = 0
    seals: int = 0
    # Entries that are older than the chain, and those that no seal has yet.
    older: int = 0
    unsealed: int = 0
    sealed_until: str = ""
    chain: str = ""
    # The hashes of the stored seals by number.
    hashes: dict[int, str] = field(default_factory=dict)
    tamperings: list[Tampering] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SealRound:
    """The round of ticks over all owners: where the next tick goes on, and whose last seal was altered.

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

    def put(self, due: Table) -> None:
        """Store it in place of the last one."""
        due.put({**keys.SEALED, **asdict(self)})

    @classmethod
    def read(cls, due: Table) -> SealRound | None:
        """The last round; None before the first one."""
        item = due.get(keys.SEALED)
        if item is None:
            return None
        return cls(item["began_at"], item["ended_at"], item["after"], tuple(item["tampered"]))


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
                return Seal.from_item(owner, item) or _altered(item["sk"])
        except TypeError:  # an attribute that Minute8 never writes
            return Tampering(SEAL_ALTERED, "the last seal", "it is unreadable")
        return None

    def seal(self, owner: str, now: float, most: int) -> list[Seal] | Tampering:
        """Seal the settled entries since the last seal. Returns the new seals, at most so many of MAX_SEALED entries.

        A Tampering if the last seal was altered, or an entry is unreadable: nothing is added.
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
                return _unreadable(since)
            seal = next_seal(owner, last, entries, until, now, secrets.token_hex(8))
            if seal is None:
                break
            try:
                self._table.put(seal.to_item(), _IS_NEW)
            except ConditionFailed:  # another tick has just made it
                break
            new_seals.append(seal)
            last = seal
            if len(entries) <= MAX_SEALED:
                break
        return new_seals

    def verify(self, owner: str, now: float, round_at: float = 0) -> ChainState:
        """Compare all seals of an owner with each other, and with the stored entries.

        `round_at`: when the last complete round of ticks began. It has sealed what had settled by then.
        """
        state = ChainState(owner)
        before: Seal | None = None
        try:
            for seal in self._seals(owner, state):
                state.seals += 1
                state.entries += len(seal.entries)
                state.older += sealed_late(seal)
                state.hashes[seal.number] = seal.hash
                state.tamperings += self._compare(seal, before, now)
                before = seal
        except TypeError:
            number = before.number if before else 0
            state.tamperings.append(
                Tampering(SEAL_ALTERED, f"a seal after seal {number}", "it is unreadable")
            )
        state.chain, state.sealed_until = (before.chain, before.until) if before else ("", "")
        try:
            passed_at = round_at if before is None or before.sealed_at < round_at else 0
            self._look_at_unsealed(state, passed_at, now)
        except TypeError:
            state.tamperings.append(_unreadable(state.sealed_until))
        return state

    def _seals(self, owner: str, state: ChainState) -> Iterator[Seal]:
        for item in self._table.query(Query(keys.seals(owner))):
            if seal := Seal.from_item(owner, item):
                yield seal
            else:
                state.tamperings.append(_altered(item["sk"]))

    def _look_at_unsealed(self, state: ChainState, round_at: float, now: float) -> None:
        for item in self.audit.stored(state.owner, state.sealed_until, _END):
            made_at = entry_at(entry_id := entry_id_of(item))
            if not 0 < made_at < now + SETTLE_S:
                state.tamperings.append(Tampering(INSERTED, entry_id, "no change is made at that time"))
            elif not state.unsealed and made_at + SETTLE_S < round_at:
                detail = f"the round of {rfc3339(round_at)} has not sealed it, or its seal is gone"
                state.tamperings.append(Tampering(NOT_SEALED, entry_id, detail))
            state.unsealed += 1

    def _compare(self, seal: Seal, before: Seal | None, now: float) -> Iterator[Tampering]:
        if broken := compare_link(seal, before, now):
            yield broken
        try:
            if before is None:
                yield from self._before(seal, now)
            yield from compare(seal, self.audit.stored(seal.owner, seal.since, seal.until), now)
        except TypeError:
            yield Tampering(
                ALTERED, seal.entries[0][0], f"it or another one of seal {seal.number} is unreadable"
            )

    def _before(self, first: Seal, now: float) -> Iterator[Tampering]:
        """Entries before the oldest seal: of expired seals, so they have expired as well."""
        for item in self.audit.stored(first.owner, "", first.since):
            if not has_expired(entry_id := entry_id_of(item), now):
                yield Tampering(INSERTED, entry_id, f"no seal before seal {first.number} is left")


def _unreadable(since: str) -> Tampering:
    return Tampering(
        ALTERED, f"an entry after {since or 'the beginning'}", "it is unreadable, and nothing is sealed"
    )


def _altered(number: str) -> Tampering:
    return Tampering(SEAL_ALTERED, f"seal {number.lstrip('0')}", "its hash is not that of what it holds")
