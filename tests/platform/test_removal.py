"""The tick's part of a removal: some items at each tick, without delaying the planning."""

from __future__ import annotations

from typing import Any

import pytest

from common.platform.deletion import Deletion, Deletions
from scheduler import handler
from scheduler.removal import MAX_REMOVAL_S, remove_tenants
from tests.platform.leftovers import TOMBSTONE, deletions_of, furnish, left_of, tenants_of
from tests.scheduler_handler import serve
from tests.worlds import World, at, job


def test_ticks_remove_the_tenant(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(world)
    serve(world, monkeypatch)
    for time in ("03:18:00", "03:28:00"):
        if time == "03:28:00":
            deletions_of(world).begin("alice", world.clock.now())
        world.run_until(f"2026-11-21T{time}Z")
        assert handler.handle({}, None)["end"] == at(f"2026-11-21T{time[:3]}{int(time[3:5]) + 12}:00Z")
    assert left_of(world, "alice") == TOMBSTONE
    assert deletions_of(world).progress("alice").removed["jobs"] == 3


def test_a_removal_without_work_costs_one_request(world: World) -> None:
    requests: list[str] = []
    world.dynamodb.before = requests.append
    removed = remove_tenants(deletions_of(world), world.clock, world.clock.now())
    assert (requests, removed.tenants, removed.items) == (["query"], 0, 0)


class Slow(Deletions):
    """Each slice takes ten seconds and removes one item of many; one tenant's always fails."""

    def move_on(self, tenant_id: str, now: float, most: int = 0) -> Deletion:
        if tenant_id == "broken":
            raise RuntimeError("whatever")
        self.tenants.client.slept(10)  # type: ignore[attr-defined]
        key: Any = {"pk": "DELETIONS#", "sk": tenant_id}
        item = self.tenants.get(key) or {}
        self.tenants.put(item | {"removed_runs": item.get("removed_runs", 0) + 1})
        return self.progress(tenant_id)


def test_removal_ends_in_time_takes_turns_and_survives_errors(world: World) -> None:
    for tenant in ("alice", "bob", "broken"):
        tenants_of(world).create(tenant, "", world.clock.now())
        deletions_of(world).begin(tenant, world.clock.now())
    world.dynamodb.slept = world.clock.sleep
    slow = Slow(world.table("tenants"), world.table("jobs"), world.table("runs"), world.index)
    began_at = world.clock.now()
    removed = remove_tenants(slow, world.clock, began_at)
    assert MAX_REMOVAL_S <= world.clock.now() - began_at < MAX_REMOVAL_S + 10
    assert [slow.progress(tenant).removed["runs"] for tenant in ("alice", "bob")] == [9, 9]
    assert (removed.tenants, removed.items, removed.finished) == (3, 18, 0)
    assert removed.problems == [{"tenant": "broken", "error": "RuntimeError('whatever')"}]


def test_an_unreadable_table_is_only_reported(world: World) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.dynamodb.delete_table(TableName="test-tenants")
    (problem,) = remove_tenants(deletions_of(world), world.clock, world.clock.now()).problems
    assert "ResourceNotFoundException" in problem["error"]


def test_after_a_long_tick_there_is_no_time_for_it(world: World) -> None:
    furnish(world)
    deletions_of(world).begin("alice", world.clock.now())
    world.clock.sleep(MAX_REMOVAL_S)
    assert remove_tenants(deletions_of(world), world.clock, world.clock.now() - MAX_REMOVAL_S).items == 0
    assert remove_tenants(deletions_of(world), world.clock, world.clock.now()).finished == 1
