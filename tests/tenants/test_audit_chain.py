"""The chain over the audit: any single change of what is sealed is found, and an untouched history has no finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query
from common.storage.transactions import Transaction
from common.storage.wire import Item
from common.tenants import audit_chain
from common.tenants.audit import Audit, time_id
from common.tenants.audit_chain import (
    ALTERED,
    DELETED,
    INSERTED,
    NOT_SEALED,
    REORDERED,
    SEAL_ALTERED,
    SEAL_MISSING,
    SEAL_REPLACED,
    AuditSeals,
    Seal,
    entry_hash,
    entry_id_of,
)
from minute8.cli.audit_comparison import ChainState, verified
from minute8.cli.commands.audit_verify import Anchor, compare_anchors
from scheduler.sealing import anchor
from tests.worlds import World, open_world

LIFETIME_S = 37_152_000
RETENTION_S = 34_560_000
SETTLE_S = 1_200

HOUR_S = 3_600


@dataclass
class History:
    """alice's audit in a world, and what was exported of its seals."""

    world: World

    def __post_init__(self) -> None:
        self.audit = Audit(self.world.table("tenants"))
        self.seals = AuditSeals(self.audit)
        self.exported: list[Anchor] = []

    def write(self, subject: str = "report") -> None:
        tx = Transaction(self.world.dynamodb)
        now = self.world.clock.now()
        self.audit.add(tx, "alice", "key", "job.changed", subject, now, before={"n": 1}, after={"n": 2.5})
        tx.commit()

    def seal(self, most: int = 10) -> list[Seal]:
        seals = self.seals.seal("alice", self.world.clock.now(), most)
        assert isinstance(seals, list)
        if seals:
            self.exported.append(Anchor(**anchor(seals[-1])))
        return seals

    def live(self, hours: list[int]) -> None:
        """So many changes in each hour, with a seal after each; the last hour's are too young to be sealed."""
        for changes in hours:
            for number in range(changes):
                self.world.clock.sleep(1)
                self.write(f"job{number % 3}")
            self.world.clock.sleep(HOUR_S)
            self.seal()
        self.write("young")

    def verify(self) -> ChainState:
        now = self.world.clock.now()
        state = verified(self.audit, "alice", now)
        state.tamperings += compare_anchors(state, self.exported, None, now)
        return state

    def names(self) -> list[tuple[str, str]]:
        return [(tampering.name, tampering.of) for tampering in self.verify().tamperings]

    def sealed_entries(self) -> list[Item]:
        return list(self.audit.stored("alice", "", time_id(self.world.clock.now() - SETTLE_S)))

    def stored_seals(self) -> list[Item]:
        return list(self.audit.table.query(Query(keys.seals("alice"))))

    def put(self, item: Item) -> None:
        self.audit.table.put(item)

    def drop(self, item: Item) -> None:
        self.audit.table.delete(keys.key_of(item))


@pytest.fixture
def history(world: World) -> History:
    lived = History(world)
    lived.live([2, 0, 3])
    return lived


HOURS = st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any)


@given(hours=HOURS, sealed_at_once=st.integers(1, 4))
def test_an_untouched_history_has_no_finding(hours: list[int], sealed_at_once: int) -> None:
    with open_world() as world, pytest.MonkeyPatch.context() as patch:
        _seal_at_once(patch, sealed_at_once)
        history = History(world)
        history.live(hours)
        state = history.verify()
        assert (state.tamperings, state.entries, state.unsealed) == ([], sum(hours), 1)


CHANGES = st.sampled_from(["alter", "delete", "insert", "swap", "expire", "retime"])


@given(hours=HOURS, change=CHANGES, place=st.integers(0, 30), other=st.integers(0, 30))
def test_any_single_change_of_an_entry_is_found(
    hours: list[int], change: str, place: int, other: int
) -> None:
    with open_world() as world:
        history = History(world)
        history.live(hours)
        entries = history.sealed_entries()
        item, second = entries[place % len(entries)], entries[other % len(entries)]
        if change == "swap" and item is second:
            return
        name, entry_id = _change(history, change, item, second)
        assert history.names()[0] == (name, entry_id)


def _change(history: History, change: str, item: Item, second: Item) -> tuple[str, str]:
    """Make a change of an entry. Returns what has to be found first."""
    entry_id = entry_id_of(item)
    match change:
        case "alter":
            history.put({**item, "by": "somebody else"})
            return ALTERED, entry_id
        case "expire":  # DynamoDB would delete it
            history.put({**item, "expires_at": 1})
            return ALTERED, entry_id
        case "delete":
            history.drop(item)
            return DELETED, entry_id
        case "insert":
            forged = {**item, "sk": f"{item['sk']}0"}
            history.put(forged)
            return INSERTED, entry_id_of(forged)
        case "retime":
            history.drop(item)
            history.put({**item, "sk": f"{item['sk']}0"})
            return DELETED, entry_id
    history.put({**item, **keys.key_of(second)})
    history.put({**second, **keys.key_of(item)})
    first = min(entry_id, entry_id_of(second))
    is_in_one_seal = any(
        {entry_id, entry_id_of(second)} <= set(dict(seal["entries"])) for seal in history.stored_seals()
    )
    return (REORDERED if is_in_one_seal else ALTERED), first


@given(hours=HOURS, field=st.sampled_from(["entries", "hash", "previous", "until", "chain", "sealed_at"]))
def test_any_change_of_a_seal_is_found(hours: list[int], field: str) -> None:
    with open_world() as world:
        history = History(world)
        history.live(hours)
        for item in history.stored_seals():
            value = item[field] + 1 if field == "sealed_at" else f"{item[field]} "
            history.put({**item, field: value})
            assert (SEAL_ALTERED, f"seal {int(item['sk'])}") in history.names()
            history.put(item)
        assert history.names() == []


def test_a_seal_that_is_gone_is_found(history: History) -> None:
    first, last = history.stored_seals()
    history.drop(last)
    assert history.names()[0] == (SEAL_MISSING, "seal 2")
    history.put(last)
    history.drop(first)
    assert history.names()[0] == (SEAL_MISSING, "seal 1")


def test_a_chain_that_was_written_again_differs_from_what_was_exported(history: History) -> None:
    """By somebody who may write the table: all seals fit each other and the entries."""
    entry = history.sealed_entries()[0]
    for item in history.stored_seals():
        history.drop(item)
    history.put({**entry, "by": "somebody else"})
    exported = list(history.exported)
    history.seal()
    history.exported = exported
    assert verified(history.audit, "alice", history.world.clock.now()).tamperings == []
    assert history.names() == [(SEAL_REPLACED, "seal 1"), (SEAL_REPLACED, "seal 2")]


def test_an_altered_link_is_found_by_what_follows(history: History) -> None:
    """A seal that was replaced by another one with a right hash of its own."""
    first = Seal.unaltered("alice", history.stored_seals()[0])
    assert first
    forged = Seal(**{**_fields(first), "entries": first.entries[1:]})
    history.drop(history.sealed_entries()[0])
    history.put(forged.to_item())
    history.exported.clear()
    assert history.names() == [(SEAL_REPLACED, "seal 1")]


def test_what_has_expired_is_not_missed(history: History) -> None:
    """DynamoDB deletes in any order, and days later: an entry, all of them, then seals."""
    entries, seals = history.sealed_entries(), history.stored_seals()
    history.world.clock.sleep(RETENTION_S - 5 * HOUR_S)
    history.drop(entries[0])
    assert history.names() == [(DELETED, entry_id_of(entries[0]))]
    history.world.clock.sleep(6 * HOUR_S)
    assert history.names() == []
    for item in entries:
        history.put(item)
        history.drop(item)
    assert history.names() == []
    history.drop(seals[0])
    assert (SEAL_MISSING, "seal 1") in history.names()
    history.world.clock.sleep(LIFETIME_S - RETENTION_S)
    assert history.names() == []


def test_an_entry_before_the_oldest_seal_is_found_unless_it_has_expired(history: History) -> None:
    entries, seals = history.sealed_entries(), history.stored_seals()
    history.world.clock.sleep(LIFETIME_S)
    history.drop(seals[0])
    assert history.names() == []
    forged = {**entries[0], "sk": f"AUDIT#{time_id(history.world.clock.now() - 10 * HOUR_S)}-0"}
    second = Seal.unaltered("alice", seals[1])
    assert second
    late = Seal(**{**_fields(second), "since": entry_id_of(forged) + "~", "until": second.until + "~"})
    later = {"expires_at": history.world.clock.now() + HOUR_S}
    history.put(late.to_item() | later)
    history.put(forged | later)
    assert (INSERTED, entry_id_of(forged)) in history.names()


def test_old_entries_are_sealed_and_counted_as_before_the_chain(world: World) -> None:
    history = History(world)
    history.write()
    world.clock.sleep(3 * 24 * HOUR_S)
    history.live([2])
    state = history.verify()
    assert (state.tamperings, state.entries, state.older) == ([], 3, 1)


def test_a_chain_whose_seals_are_all_gone_is_named_once_a_round_is_over(history: History) -> None:
    for item in history.stored_seals():
        history.drop(item)
    first = entry_id_of(history.sealed_entries()[0])
    now = history.world.clock.now()
    assert verified(history.audit, "alice", now).tamperings == []
    [tampering] = verified(history.audit, "alice", now, round_at=now).tamperings
    assert (tampering.name, tampering.of) == (NOT_SEALED, first)


def test_what_has_not_settled_is_not_sealed(world: World) -> None:
    history = History(world)
    history.write()
    world.clock.sleep(SETTLE_S)
    assert history.seal() == []
    world.clock.sleep(1)
    [seal] = history.seal()
    assert (seal.number, len(seal.entries), history.seal()) == (1, 1, [])


def test_changes_of_one_instant_can_be_parted_by_seals(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request for many jobs has one time for all of them."""
    _seal_at_once(monkeypatch, 3)
    history = History(world)
    for _ in range(8):
        history.write()
    world.clock.sleep(HOUR_S)
    assert [len(seal.entries) for seal in history.seal()] == [3, 3, 2]
    assert history.names() == []


def test_two_ticks_at_once_make_one_seal(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.world.clock.sleep(HOUR_S)
    newest = history.seals.newest("alice")
    monkeypatch.setattr(AuditSeals, "newest", lambda self, owner: newest)
    assert len(history.seal()) == 1
    assert history.seal() == []
    assert history.names() == []


def test_no_seal_follows_one_that_was_altered(history: History) -> None:
    last = history.stored_seals()[-1]
    history.put({**last, "entries": ""})
    history.world.clock.sleep(HOUR_S)
    tampering = history.seals.seal("alice", history.world.clock.now(), 10)
    assert getattr(tampering, "of", "") == "seal 2"


def test_an_entry_that_nobody_can_read_is_named_by_its_seal(history: History) -> None:
    entry = history.sealed_entries()[0]
    wire: Any = {"pk": {"S": entry["pk"]}, "sk": {"S": entry["sk"]}, "by": {"B": b"x"}}
    history.world.dynamodb.put_item(TableName=history.audit.table.name, Item=wire)
    assert history.names()[0] == (ALTERED, entry_id_of(entry))


@pytest.mark.parametrize("name", ["9999999999999-00000000", "zz"])
def test_an_entry_of_no_time_is_found_though_no_seal_comes_to_it(history: History, name: str) -> None:
    entry = history.sealed_entries()[0]
    history.put({**entry, **keys.audit("alice", name)})
    assert history.names() == [(INSERTED, name)]


@pytest.mark.parametrize("forged", ["a b", "a\nb", "a\u2028b", "a 0123456789abcdef0123456789abcdef\nb"])
def test_an_entry_whose_id_a_seal_cannot_hold_spoils_no_seal(history: History, forged: str) -> None:
    """Who may write entries, but no seals, would make ticks write a seal that is never what it holds."""
    clock, entry = history.world.clock, history.sealed_entries()[0]
    key = keys.audit("alice", f"{time_id(clock.now())}-{forged}")
    history.put({**entry, **key})
    [(name, named)] = history.names()
    assert (name, "a" in named, named.isprintable()) == (INSERTED, True, True)
    clock.sleep(2 * SETTLE_S)
    stopped = history.seals.seal("alice", clock.now(), 1)
    assert isinstance(stopped, audit_chain.Tampering)
    assert (stopped.name, stopped.of) == (INSERTED, named)
    history.drop(key)
    history.write()
    clock.sleep(2 * SETTLE_S)
    assert history.seal()
    assert history.names() == []


def test_a_forged_seal_of_nothing_does_not_end_the_comparison(history: History) -> None:
    last = Seal.unaltered("alice", history.stored_seals()[-1])
    assert last
    clock = history.world.clock
    key = keys.audit("alice", f"{time_id(clock.now())}-0")
    wire: Any = {"pk": {"S": key["pk"]}, "sk": {"S": key["sk"]}, "by": {"B": b"x"}}
    history.world.dynamodb.put_item(TableName=history.audit.table.name, Item=wire)
    until = time_id(clock.now() + 1)
    forged = Seal("alice", last.chain, last.number + 1, last.until, until, (), 0, last.hash, last.sealed_at)
    history.put(forged.to_item())
    assert (ALTERED, f"seal {forged.number}") in history.names()


@pytest.mark.parametrize("is_seal", [False, True])
def test_an_item_that_stops_the_seals_is_found(history: History, is_seal: bool) -> None:
    """Nobody can read it: without this, whatever comes later would stay without seals, and nobody would know."""
    clock = history.world.clock
    key = keys.seal("alice", 3) if is_seal else keys.audit("alice", f"{time_id(clock.now())}-0")
    wire: Any = {"pk": {"S": key["pk"]}, "sk": {"S": key["sk"]}, "by": {"B": b"x"}}
    history.world.dynamodb.put_item(TableName=history.audit.table.name, Item=wire)
    clock.sleep(HOUR_S)
    tampering = history.seals.seal("alice", clock.now(), 10)
    problem = "its hash is not that of what it holds" if is_seal else "unreadable"
    assert problem in getattr(tampering, "detail", "")
    assert any(problem in tampering.detail for tampering in history.verify().tamperings)


def test_no_entry_replaces_another(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.tenants.audit.secrets.token_hex", lambda size: "0" * 2 * size)
    history.write("first")
    with pytest.raises(ConditionFailed):
        history.write("second")


def test_a_deleted_tenants_exported_seals_are_no_finding(history: History) -> None:
    """Its name can be taken again a month later."""
    [first, second] = history.exported
    state, deleted_at = ChainState("alice"), float(second.sealed_at)
    now = history.world.clock.now()
    assert compare_anchors(state, [first, second], deleted_at, now) == []
    assert len(compare_anchors(state, [first, second], deleted_at - 1, now)) == 1
    assert len(compare_anchors(state, [first, second], None, now)) == 2


def test_the_hash_of_an_entry_stays_what_it_is() -> None:
    """A later version has to find the same: seals are kept for over a year."""
    item = {
        **keys.audit("alice", "1795230720000-00c0ffee"),
        "at": 1_795_230_720.125,
        "by": "929d1989a15d59c8",
        "action": "job.changed",
        "subject": "report",
        "before": '{"n":1}',
        "after": '{"n":"é"}',
        "expires_at": 1_829_790_720,
        "request": {"operation": "UpdateSchedule", "source_address": "192.0.2.1"},
    }
    seal = Seal("alice", "c0ffee", 1, "", "1795230721000", (("1795230720000-00c0ffee", "ab"),), 1_795_234_320)
    assert entry_hash(item) == "86b2b26dbb218949636b21a3ac99615e"
    assert seal.hash[:32] == "26a2e211cc7d0c5615a118c801d8a05b"
    assert Seal.unaltered("alice", seal.to_item()) == seal


def _fields(seal: Seal) -> dict[str, Any]:
    return {name: getattr(seal, name) for name in Seal.__slots__}


def _seal_at_once(patch: pytest.MonkeyPatch, most: int) -> None:
    patch.setattr(audit_chain, "MAX_SEALED", most)
