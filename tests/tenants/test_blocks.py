"""Targets that the platform blocks: in one command for all tenants, undone in one."""

from __future__ import annotations

from typing import Any

import pytest

from common.config import Config
from common.deployment import Deployment
from common.errors import Conflict, InvalidInput, NotFound
from common.storage import keys
from common.storage.table import Table
from common.tenants.audit import Audit
from common.tenants.blocks import Blocks
from common.tenants.rules_cache import KnownTenants
from executor.pipeline import Executor
from tests.stand_ins import StoredOnDemand
from tests.worlds import ARN, World, job

MAX_BLOCKS = 100
TRUSTED_FOR_S = 15

NOW = 1_795_230_720.0


def blocks_of(world: World) -> Blocks:
    return Blocks(world.table("tenants"), world.clock)


@pytest.fixture
def guarded(world: World) -> World:
    """A world whose executor reads the stored rules and blocks."""
    known = StoredOnDemand(world.table("tenants"))
    deployment = Deployment(Config.from_env({}), **world.deployment.parts | {"rules": known})
    world.executor = Executor.of(deployment, world.executor.kinds)
    return world


@pytest.mark.parametrize(
    ("pattern", "called"),
    [
        ("*", []),
        (ARN, []),
        ("arn:aws:lambda:*:*:function:tar*", []),
        ("arn:aws:lambda:*:*:function:other", ["alice", "bob"]),
        ("hooks.example.com", ["alice", "bob"]),
    ],
)
def test_a_held_target_is_called_for_no_tenant_until_it_is_released(
    guarded: World, pattern: str, called: list[str]
) -> None:
    world = guarded
    for tenant in ("alice", "bob"):
        world.registry.put(tenant, "job", job(cron="* * * * *"))
    blocks_of(world).block(pattern, "outage", world.clock.now())
    world.run_until("2026-11-21T03:13:30Z")
    assert sorted(context["tenant"] for _, context in world.target.calls) == called
    if not called:
        (run,) = world.run_items("alice", "job")
        assert (run["status"], run["reason"]) == ("skipped", "blocked")
        assert run["detail"] == f"the platform blocks {ARN}: outage"
    blocks_of(world).release(pattern, world.clock.now())
    world.run_until("2026-11-21T03:14:30Z")
    assert [context["fire_at"] for _, context in world.target.calls].count("2026-11-21T03:14:00Z") == 2


def test_a_hold_covers_a_target_whatever_role_it_is_called_with(guarded: World) -> None:
    definition = job(cron="* * * * *")
    definition["target"]["role_arn"] = "arn:aws:iam::210987654321:role/caller"
    guarded.registry.put("alice", "job", definition)
    blocks_of(guarded).block(ARN, "", guarded.clock.now())
    guarded.run_until("2026-11-21T03:13:30Z")
    assert guarded.statuses("alice", "job") == ["skipped(blocked)"]


def test_holds_are_bounded_audited_and_named_once(world: World) -> None:
    blocks = blocks_of(world)
    blocks.block("*", "first", NOW, by="operator:one")
    assert [block.note for block in blocks.block("*", "second", NOW + 1)] == ["second"]
    for number in range(MAX_BLOCKS - 1):
        blocks.block(f"host-{number}.example.com", "", NOW + 2)
    with pytest.raises(Conflict, match="release one first"):
        blocks.block("one-more.example.com", "", NOW + 3)
    blocks.block("*", "at the bound an old one can change", NOW + 3)
    with pytest.raises(NotFound):
        blocks.release("nothing.example.com", NOW + 4)
    blocks.release("*", NOW + 4)
    assert len(blocks.all()) == MAX_BLOCKS - 1
    entries = list(Audit(world.table("tenants")).newest(keys.OPERATORS, 1_000))
    assert (entries[0].action, entries[-1].action, entries[-1].by) == (
        "target.released",
        "target.blocked",
        "operator:one",
    )


@pytest.mark.parametrize("pattern", ["", "two words", "arn:aws", 5, None, "x" * 600])
def test_a_hold_is_a_pattern(world: World, pattern: Any) -> None:
    with pytest.raises(InvalidInput, match="an ARN with"):
        blocks_of(world).block(pattern, "", NOW)


def test_a_process_knows_a_hold_within_seconds_and_keeps_it_when_it_cannot_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownTenants(world.table("tenants"))
    assert known.blocks(NOW) == []
    blocks_of(world).block("*", "", NOW)
    assert known.blocks(NOW + TRUSTED_FOR_S - 1) == []
    assert [block.pattern for block in known.blocks(NOW + TRUSTED_FOR_S)] == ["*"]

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no way to DynamoDB")

    monkeypatch.setattr(Table, "get", broken)
    assert [block.pattern for block in known.blocks(NOW + 2 * TRUSTED_FOR_S)] == ["*"]
    with pytest.raises(OSError, match="no way"):
        KnownTenants(world.table("tenants")).blocks(NOW)
