"""Rounds of sealing the audit: once an hour, in parts, for every tenant, whatever happens to a part or a tenant."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from common.planning.chores import Done
from common.platform.deletion import Deletions
from common.platform.tenants import Tenants
from common.storage import keys
from common.storage.table import Query
from common.storage.transactions import Transaction
from common.tenants.audit import Audit
from common.tenants.audit_chain import SEALING, AuditSeals, Seal, SealRound
from minute8.cli.audit_comparison import verified
from minute8.cli.commands.audit_verify import Anchor, compare_anchors
from scheduler import sealing
from scheduler.sealing import Sealer
from tests.flows.test_export import MemoryBucket
from tests.scheduler_handler import go_on
from tests.worlds import Killed, World

HOUR_S = 3_600
TENANTS = ("alice", "bob", "carol")


@dataclass
class Rounds:
    """A world with tenants whose rounds write to a bucket."""

    world: World
    bucket: MemoryBucket = field(default_factory=MemoryBucket)

    def __post_init__(self) -> None:
        self.audit = Audit(self.world.table("tenants"))
        for tenant in TENANTS:
            Tenants(self.world.table("tenants")).create(tenant, "", self.world.clock.now())
        self.write(keys.OPERATORS)

    def write(self, owner: str) -> None:
        tx = Transaction(self.world.dynamodb)
        self.audit.add(tx, owner, "key", "job.changed", "report", self.world.clock.now(), after={"n": 1})
        tx.commit()

    def go(self, seconds: float = 200) -> Done:
        sealer = Sealer(self.world.tables, self.world.clock, self.bucket, "minute8-test/audit")
        return go_on(self.world, sealer.steps, SEALING, seconds)

    def verified(self) -> dict[str, tuple[int, int]]:
        """The numbers of sealed entries and seals of each owner; nothing differs, nor from what was exported."""
        now = self.world.clock.now()
        counts, last = {}, SealRound.read(self.world.table("due"))
        assert last
        for owner in (keys.OPERATORS, *TENANTS):
            state = verified(self.audit, owner, now, last.complete_at)
            anchors = [anchor for anchor in self.exported() if anchor.owner == owner]
            assert [*state.tamperings, *compare_anchors(state, anchors, None, now)] == []
            counts[owner] = (state.entries, state.seals)
        return counts

    def exported(self) -> list[Anchor]:
        lines = [line for data in self.bucket.objects.values() for line in gzip.decompress(data).splitlines()]
        return [Anchor(**json.loads(line)) for line in lines]


@pytest.fixture
def rounds(world: World) -> Rounds:
    with_tenants = Rounds(world)
    world.clock.sleep(HOUR_S)
    return with_tenants


def test_a_round_seals_every_tenant_and_the_platform_once_an_hour(rounds: Rounds) -> None:
    assert rounds.go().counts == {"seals": 4, "entries": 4}
    rounds.write("alice")
    for _ in range(5):
        rounds.world.clock.sleep(600)
        assert rounds.go().counts == {}
    rounds.world.clock.sleep(600)
    assert (rounds.go().counts["seals"], len(rounds.bucket.objects)) == (1, 2)
    assert rounds.verified() == {keys.OPERATORS: (1, 1), "alice": (2, 2), "bob": (1, 1), "carol": (1, 1)}
    assert sorted(anchor.owner for anchor in rounds.exported()) == [keys.OPERATORS, "alice", *TENANTS]


def test_a_round_goes_on_where_the_last_tick_had_no_more_time(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_TENANTS_AT_ONCE", 2)
    export = Sealer._export

    def slowly(*args: Any) -> None:
        rounds.world.clock.sleep(60)
        export(*args)

    monkeypatch.setattr(Sealer, "_export", slowly)
    parts = [rounds.go(seconds=30) for _ in range(4)]
    assert [(part.counts["seals"], part.is_cut) for part in parts] == [
        (2, True),
        (2, True),
        (0, False),
        (0, False),
    ]
    assert rounds.verified()[keys.OPERATORS] == rounds.verified()["carol"] == (1, 1)


@pytest.mark.parametrize("request_number", range(20))
def test_a_round_may_die_at_every_request(rounds: Rounds, request_number: int) -> None:
    """What the bucket has is what is stored; the next tick finishes the round."""
    remaining = [request_number]

    def maybe_die(*_: Any) -> None:
        remaining[0] -= 1
        if remaining[0] == -1:
            raise Killed

    rounds.world.dynamodb.before = rounds.bucket.before = maybe_die
    with suppress(Killed):
        rounds.go()
    rounds.world.dynamodb.before = rounds.bucket.before = lambda *_: None
    rounds.world.clock.sleep(600)
    done = rounds.go()
    assert done.problems + done.errors == []
    assert set(rounds.verified().values()) == {(1, 1)}
    assert {anchor.owner for anchor in rounds.exported()} == {keys.OPERATORS, *TENANTS}


def test_without_the_bucket_a_part_is_repeated_until_it_is_exported(rounds: Rounds) -> None:
    def refuse() -> None:
        raise OSError("no such bucket")

    rounds.bucket.before = refuse
    done = rounds.go()
    assert "no such bucket" in done.errors[0]
    rounds.bucket.before = lambda: None
    rounds.world.clock.sleep(600)
    assert rounds.go().counts == {}
    assert len(rounds.exported()) == 4
    assert set(rounds.verified().values()) == {(1, 1)}


def test_a_seal_that_was_altered_holds_nobody_else_back(rounds: Rounds) -> None:
    rounds.go()
    [item] = rounds.audit.table.query(Query(keys.seals("alice")))
    rounds.audit.table.put({**item, "entries": ""})
    for tenant in TENANTS:
        rounds.write(tenant)
    rounds.world.clock.sleep(HOUR_S)
    done = rounds.go()
    assert done.counts["seals"] == 2
    assert done.errors == ["altered: alice: seal 1: its hash is not that of what it holds"]


def test_a_deleted_tenant_leaves_no_seal_and_a_later_one_begins_anew(rounds: Rounds) -> None:
    rounds.go()
    clock, table = rounds.world.clock, rounds.world.table
    deletions = Deletions(table("tenants"), table("jobs"), table("runs"), rounds.world.index, clock)
    deletions.begin("alice", clock.now())
    clock.sleep(60)
    while deletions.move_on("alice", clock.now()).finished_at is None:
        pass
    assert list(rounds.audit.table.query(Query(keys.seals("alice")))) == []
    clock.sleep(HOUR_S)
    assert rounds.go().counts["seals"] == 1  # the platform's entry of the deletion
    # The tombstone goes after a month.
    table("tenants").delete(keys.tenant("alice"))
    Tenants(table("tenants")).create("alice", "", clock.now())
    clock.sleep(HOUR_S)
    rounds.go()
    newest = AuditSeals(rounds.audit).newest("alice")
    assert isinstance(newest, Seal) and newest.number == 1


def test_a_round_without_changes_costs_two_queries_a_tenant(rounds: Rounds) -> None:
    rounds.go()
    rounds.world.clock.sleep(HOUR_S)
    requests: list[str] = []
    rounds.world.dynamodb.before = requests.append
    go_on(rounds.world, Sealer(rounds.world.tables, rounds.world.clock).steps, SEALING)
    assert Counter(requests) == {"put_item": 2 + 3, "query": 1 + 1 + 2 * 4}
