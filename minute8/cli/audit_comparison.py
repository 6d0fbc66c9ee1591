"""An audit compared with its seals (common/tenants/audit_chain.py): what was altered, deleted, inserted, reordered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from common.errors import shown
from common.storage import keys
from common.storage.table import Query
from common.storage.wire import Item
from common.tenants.audit import Audit
from common.tenants.audit_chain import (
    ALTERED,
    DELETED,
    INSERTED,
    LIFETIME_S,
    NOT_SEALED,
    REORDERED,
    SEAL_ALTERED,
    SEAL_MISSING,
    SEAL_REPLACED,
    SETTLE_S,
    Seal,
    Tampering,
    altered,
    can_be_sealed,
    entry_at,
    entry_hash,
    entry_id_of,
    has_expired,
    unreadable,
)
from common.timing.instants import DAY_S, rfc3339

# Sorts after every entry's id.
_END: Final = "~"
# An entry that was sealed later than this is older than the chain.
_SEALED_WITHIN_S: Final = DAY_S


@dataclass(slots=True)
class ChainState:
    """A comparison: how many entries and seals were compared, and what differs, the first ones first."""

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


def verified(audit: Audit, owner: str, now: float, round_at: float = 0) -> ChainState:
    """Compare all seals of an owner with each other, and with the stored entries.

    `round_at`: when the last complete round of ticks began. It has sealed what had settled by then.
    """
    state = ChainState(owner)
    before: Seal | None = None
    try:
        for seal in _seals(audit, owner, state):
            state.seals += 1
            state.entries += len(seal.entries)
            state.older += sealed_late(seal)
            state.hashes[seal.number] = seal.hash
            state.tamperings += _compare(audit, seal, before, now)
            before = seal
    except TypeError:
        number = before.number if before else 0
        state.tamperings.append(Tampering(SEAL_ALTERED, f"a seal after seal {number}", "it is unreadable"))
    state.chain, state.sealed_until = (before.chain, before.until) if before else ("", "")
    try:
        passed_at = round_at if before is None or before.sealed_at < round_at else 0
        _look_at_unsealed(audit, state, passed_at, now)
    except TypeError:
        state.tamperings.append(unreadable(state.sealed_until))
    return state


def _seals(audit: Audit, owner: str, state: ChainState) -> Iterator[Seal]:
    for item in audit.table.query(Query(keys.seals(owner))):
        if seal := Seal.unaltered(owner, item):
            yield seal
        else:
            state.tamperings.append(altered(item["sk"]))


def _look_at_unsealed(audit: Audit, state: ChainState, round_at: float, now: float) -> None:
    for item in audit.stored(state.owner, state.sealed_until, _END):
        entry_hash(item)  # raises TypeError: nothing is sealed after it
        made_at = entry_at(entry_id := entry_id_of(item))
        if not 0 < made_at < now + SETTLE_S:
            state.tamperings.append(Tampering(INSERTED, entry_id, "no change is made at that time"))
        elif not can_be_sealed(entry_id):
            state.tamperings.append(Tampering(INSERTED, shown(entry_id), "no change has such an id"))
        elif not state.unsealed and made_at + SETTLE_S < round_at:
            detail = f"the round of {rfc3339(round_at)} has not sealed it, or its seal is gone"
            state.tamperings.append(Tampering(NOT_SEALED, entry_id, detail))
        state.unsealed += 1


def _compare(audit: Audit, seal: Seal, before: Seal | None, now: float) -> Iterator[Tampering]:
    if broken := compare_link(seal, before, now):
        yield broken
    try:
        if before is None:
            yield from _before(audit, seal, now)
        yield from compare(seal, audit.stored(seal.owner, seal.since, seal.until), now)
    except TypeError:
        first = seal.entries[0][0] if seal.entries else f"seal {seal.number}"
        yield Tampering(ALTERED, first, f"this entry or another entry of seal {seal.number} is unreadable")


def _before(audit: Audit, first: Seal, now: float) -> Iterator[Tampering]:
    """Entries before the oldest seal: of expired seals, so they have expired as well."""
    for item in audit.stored(first.owner, "", first.since):
        if not has_expired(entry_id := entry_id_of(item), now):
            yield Tampering(INSERTED, entry_id, f"no seal before seal {first.number} is left")


def compare_link(seal: Seal, before: Seal | None, now: float) -> Tampering | None:
    """Whether a seal follows its predecessor; None: it does, or the predecessor has expired."""
    name = f"seal {seal.number}"
    if before is None:
        if seal.number == 1:
            is_first = seal.since == seal.previous == ""
            return (
                None if is_first else Tampering(SEAL_ALTERED, name, "it is the first and has a predecessor")
            )
        if seal.previous_at + LIFETIME_S > now:
            return Tampering(SEAL_MISSING, f"seal {seal.number - 1}", f"{name} follows it")
        return None
    if seal.number != before.number + 1:
        return Tampering(SEAL_MISSING, f"seal {before.number + 1}", f"{name} follows {before.number}")
    if (seal.chain, seal.previous, seal.since) != (before.chain, before.hash, before.until):
        return Tampering(SEAL_REPLACED, f"seal {before.number}", f"{name} follows another one")
    return None


def compare(seal: Seal, items: Iterable[Item], now: float) -> list[Tampering]:
    """What differs between a seal and the stored entries of its range, by id."""
    stored = {entry_id_of(item): entry_hash(item) for item in items}
    sealed = dict(seal.entries)
    ids_of = {digest: entry_id for entry_id, digest in seal.entries}
    differences = []
    for entry_id in sorted(stored.keys() | sealed.keys()):
        actual, expected = stored.get(entry_id), sealed.get(entry_id)
        if expected is None:
            differences.append(Tampering(INSERTED, entry_id, f"seal {seal.number} does not have it"))
        elif actual is None:
            if not has_expired(entry_id, now):
                differences.append(Tampering(DELETED, entry_id, f"seal {seal.number} has it"))
        elif actual != expected:
            other = ids_of.get(actual)
            name, detail = (REORDERED, f"it holds what {other} held") if other else (ALTERED, "")
            differences.append(Tampering(name, entry_id, detail or f"seal {seal.number} has another hash"))
    return differences


def sealed_late(seal: Seal) -> int:
    """How many entries are older than the chain: nobody knows whether they were changed before they were sealed."""
    return sum(entry_at(entry_id) + _SEALED_WITHIN_S < seal.sealed_at for entry_id, _ in seal.entries)
