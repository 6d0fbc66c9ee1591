"""The tick's part of a removal: some items at each tick, without delaying the planning."""

from __future__ import annotations

from typing import Any

import pytest

from common.platform.deletion import Deletion, Deletions
from scheduler import handler
from scheduler.removal import WORKS_FOR_S, remove_tenants
from tests.platform.leftovers import TOMBSTONE, deletions_of, furnish, left_of, tenants_of
from tests.scheduler_handler import serve
from tests.worlds import World, at, job


def test_the_ticks_do_it(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(w)
    serve(w, monkeypatch)
    for time in ("03:18:00", "03:28:00"):
        if time == "03:28:00":
            deletions_of(w).begin("alice", w.clock.now())
        w.run_until(f"2026-11-21T{time}Z")
        assert handler.handle({}, None)["end"] == at(f"2026-11-21T{time[:3]}{int(time[3:5]) + 12}:00Z")
    assert left_of(w, "alice") == TOMBSTONE
    assert deletions_of(w).progress("alice").removed["jobs"] == 3


def test_without_anything_to_remove_it_costs_one_request(w: World) -> None:
    requests: list[str] = []
    w.dynamodb.before = requests.append
    removed = remove_tenants(deletions_of(w), w.clock, w.clock.now())
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


def test_it_ends_in_time_takes_turns_and_survives_what_goes_wrong(w: World) -> None:
    for tenant in ("alice", "bob", "broken"):
        tenants_of(w).create(tenant, "", w.clock.now())
        deletions_of(w).begin(tenant, w.clock.now())
    w.dynamodb.slept = w.clock.sleep
    slow = Slow(w.table("tenants"), w.table("jobs"), w.table("runs"), w.index)
    began_at = w.clock.now()
    removed = remove_tenants(slow, w.clock, began_at)
    assert WORKS_FOR_S <= w.clock.now() - began_at < WORKS_FOR_S + 10
    assert [slow.progress(tenant).removed["runs"] for tenant in ("alice", "bob")] == [9, 9]
    assert (removed.tenants, removed.items, removed.finished) == (3, 18, 0)
    assert removed.problems == [{"tenant": "broken", "error": "RuntimeError('whatever')"}]


def test_an_unreadable_table_is_only_reported(w: World) -> None:
    w.registry.create("alice", "minutely", job(cron="* * * * *"))
    w.dynamodb.delete_table(TableName="test-tenants")
    (problem,) = remove_tenants(deletions_of(w), w.clock, w.clock.now()).problems
    assert "ResourceNotFoundException" in problem["error"]


def test_after_a_long_tick_there_is_no_time_for_it(w: World) -> None:
    furnish(w)
    deletions_of(w).begin("alice", w.clock.now())
    w.clock.sleep(WORKS_FOR_S)
    assert remove_tenants(deletions_of(w), w.clock, w.clock.now() - WORKS_FOR_S).items == 0
    assert remove_tenants(deletions_of(w), w.clock, w.clock.now()).finished == 1
