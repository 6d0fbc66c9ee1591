"""The tick's part of a removal: some items at each tick, without delaying the planning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pytest

from common.planning.chores import Chore, ChoreRunner, Done, Position
from common.platform.deletion import Deletion, Deletions
from scheduler import handler
from scheduler.removal import removal_of_groups, removal_of_tenants
from tests.platform.leftovers import TOMBSTONE, deletions_of, furnish, left_of, tenants_of
from tests.scheduler_handler import serve
from tests.worlds import World, at, job

STEP = 28


def remove(world: World, deletions: Deletions, seconds: float = 200) -> Done:
    """A round of the removal of tenants."""
    return world.round("tenants", removal_of_tenants(deletions, world.clock).steps, seconds)


def test_ticks_remove_the_tenant(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(world)
    serve(world, monkeypatch)
    for time in ("03:18:00", "03:28:00"):
        if time == "03:28:00":
            deletions_of(world).begin("alice", world.clock.now())
        world.run_until(f"2026-11-21T{time}Z")
        assert handler.handle({}, None)["end"] == at(f"2026-11-21T{time[:3]}{int(time[3:5]) + 12}:00Z")
    # What ticks found contradictory before the removal leaves their list within the hour.
    world.clock.sleep(2_400)
    handler.handle({}, None)
    assert left_of(world, "alice") == TOMBSTONE
    assert deletions_of(world).progress("alice").removed["jobs"] == 3


def test_a_removal_without_work_costs_one_request(world: World) -> None:
    requests: list[str] = []
    world.dynamodb.before = requests.append
    done = Done("tenants", world.clock, world.clock.now() + 200)
    assert list(removal_of_tenants(deletions_of(world), world.clock).steps(None, done)) == []
    assert (requests, done.counts) == (["query"], {})


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
    done = remove(world, slow, 180)
    assert 180 <= world.clock.now() - began_at < 190
    assert [slow.progress(tenant).removed["runs"] for tenant in ("alice", "bob")] == [9, 9]
    assert (done.counts["items"], done.counts["finished"]) == (18, 0)
    assert done.problems == ["broken: RuntimeError('whatever')"]


class SlowGroups:
    """Groups of one tenant; each step takes twenty seconds, since it reads many deleted jobs. They never end."""

    def __init__(self, world: World, groups: int) -> None:
        self.world, self.names, self.steps = world, [f"g{n}" for n in range(groups)], Counter[str]()

    def under_way(self) -> Iterator[tuple[str, str]]:
        return (("hostile", name) for name in self.names)

    def move_on(self, tenant: str, name: str, now: float) -> int:
        self.world.clock.sleep(20)
        self.steps[name] += 1
        return STEP


class SlowJobs:
    """Ended jobs without end, of which a page takes ten seconds."""

    def __init__(self, world: World) -> None:
        self.world, self.used_s = world, 0.0

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        while True:
            self.world.clock.sleep(10)
            self.used_s += 10
            yield {}


def test_jobs_groups_and_tenants_have_a_share_of_the_time_each(world: World) -> None:
    """A group's removal used all 180 s of a tick: another tenant's removal made no progress."""
    began_at = world.clock.now()
    tenants_of(world).create("quiet", "", began_at)
    deletions_of(world).begin("quiet", began_at)
    world.dynamodb.slept = world.clock.sleep
    tenants = Slow(world.table("tenants"), world.table("jobs"), world.table("runs"), world.index)
    jobs, groups = SlowJobs(world), SlowGroups(world, 3)
    removals = (jobs.steps, removal_of_groups(cast("Any", groups), world.clock).steps)
    removals += (removal_of_tenants(tenants, world.clock).steps,)
    runner = ChoreRunner(world.table("due"), world.clock, "removal")
    runner.run([Chore(f"removal {nth}", steps) for nth, steps in enumerate(removals)], began_at + 180)
    used_s = (jobs.used_s, 20 * groups.steps.total(), 10 * tenants.progress("quiet").removed["runs"])
    assert min(used_s) >= 40
    assert world.clock.now() - began_at <= 200


def test_each_tick_begins_with_another_group(world: World) -> None:
    """Each step of a group takes so long that a tick has time for few of them."""
    groups = SlowGroups(world, 12)
    for _ in range(12):
        began_at = world.clock.now()
        world.round("groups", removal_of_groups(cast("Any", groups), world.clock).steps, 60)
        world.clock.move_to(began_at + 600)
    assert set(groups.steps) == set(groups.names)


def test_an_unreadable_table_is_only_reported(world: World) -> None:
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.dynamodb.delete_table(TableName="test-tenants")
    (error,) = remove(world, deletions_of(world)).errors
    assert "ResourceNotFoundException" in error


def test_a_long_tick_leaves_no_time_for_removals(world: World) -> None:
    furnish(world)
    deletions_of(world).begin("alice", world.clock.now())
    world.clock.sleep(180)
    assert remove(world, deletions_of(world), 0).counts == {}
    assert remove(world, deletions_of(world)).counts["finished"] == 1


def test_ticks_write_down_the_runs_of_tenants_that_stay(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(world)
    serve(world, monkeypatch)
    for time in ("03:18:00", "03:28:00", "03:38:00", "03:48:00", "03:58:00"):
        world.run_until(f"2026-11-21T{time}Z")
        handler.handle({}, None)
    window = world.projector.windows.window("alice", at("2026-11-21T03:30:00Z"))
    assert window and window.totals.runs == 10
