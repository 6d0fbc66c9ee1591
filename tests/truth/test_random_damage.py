"""Random worlds whose items are deleted, corrupted, rolled back, duplicated: found, repaired, nothing lost."""

from __future__ import annotations

import random
from typing import Any

import pytest

from common.storage import keys
from common.storage.keys import key_of
from common.storage.wire import Item, from_wire
from common.timing.fires import fires
from tests.faults.truth import everything_explained, index_is_right
from tests.scheduler_handler import go_on
from tests.truth.damage import TENANTS, found_names, repair_all, small_world, truth_of
from tests.worlds import World, at

# The others are played before a release.
SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.release) for seed in range(20, 60))]
# The last tick plans up to the end.
FROM, LAST_TICK, UNTIL = (at(f"2026-11-21T{time}:00Z") for time in ("03:12", "05:58", "06:10"))
# Of these items any may be damaged. A job's own item is only rolled back or deleted, and then put back.
DAMAGED = {"due": ("GROUP#", "DIRECTORY#", "ONE_OFF#", "LISTED#", "PROGRESS"), "tenants": ()}


def items(world: World, table: str) -> list[Item]:
    scanned = world.dynamodb.scan(TableName=f"test-{table}")["Items"]
    return sorted(map(from_wire, scanned), key=lambda item: (item["pk"], item["sk"]))


def damageable(world: World) -> list[tuple[str, Item]]:
    due = [("due", item) for item in items(world, "due") if item["pk"].startswith(DAMAGED["due"])]
    tenants = [
        ("tenants", item)
        for item in items(world, "tenants")
        if item["sk"] == "TENANT" or item["pk"] == keys.TENANTS
    ]
    return due + tenants


def delete(world: World, table: str, item: Item, rng: random.Random, earlier: dict[Any, Item]) -> None:
    world.table(table).delete(key_of(item))


def corrupt(world: World, table: str, item: Item, rng: random.Random, earlier: dict[Any, Item]) -> None:
    """A counted or coded attribute has another value."""
    name = rng.choice(
        [name for name in ("entry", "jobs", "executions_per_day", "filed") if name in item] or [""]
    )
    if name:
        other = {"entry": "[9]", "filed": "w7", "jobs": rng.choice((-3, 0, 5))}.get(name, 99)
        world.table(table).put({**item, name: other})


def roll_back(world: World, table: str, item: Item, rng: random.Random, earlier: dict[Any, Item]) -> None:
    """The item is as it was at the beginning."""
    if before := earlier.get((table, item["pk"], item["sk"])):
        world.table(table).put(before)


def duplicate(world: World, table: str, item: Item, rng: random.Random, earlier: dict[Any, Item]) -> None:
    """A due entry is in a second shard, too."""
    if item["pk"].startswith("GROUP#"):
        shards = sorted({pk for _, pk, _ in earlier if pk.startswith("GROUP#")})
        world.table(table).put({**item, "pk": rng.choice(shards)})


def all_items(world: World) -> dict[Any, Item]:
    return {
        (table, item["pk"], item["sk"]): item for table in ("due", "tenants") for item in items(world, table)
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damage_is_found_and_repaired_and_nothing_is_lost_without_a_record(seed: int) -> None:
    rng, world = random.Random(seed), small_world()
    earlier, expected = all_items(world), due_times(world)
    damage_at = FROM + rng.randrange(60, 5_400)
    world.run_until(text(damage_at), ticks=True)
    before = all_items(world)
    for _ in range(rng.choice((1, 1, 2, 4))):
        table, item = rng.choice(damageable(world))
        rng.choice((delete, delete, corrupt, roll_back, duplicate))(world, table, item, rng, earlier)
    repaired_at = damage_at + rng.choice((30, 400, 1_300, 4_000))
    if all_items(world) != before and not restored_by_ticks(world, before):
        assert found_names(world), "damaged, and nothing is found"
    world.run_until(text(repaired_at), ticks=True)
    repair_all(world)
    world.run_until(text(LAST_TICK + 60), ticks=True)
    world.run_until(text(UNTIL + 120))
    assert found_names(world) == set()
    index_is_right(world)
    forget_reports(world)
    everything_explained(world, expected)


def forget_reports(world: World) -> None:
    """A tick that cannot read an entry leaves a skipped run, `invalid`. Its fire times run all the same."""
    for item in items(world, "runs"):
        if item.get("reason") == "invalid" and item["schedule_revision"] == 0:
            world.table("runs").delete(key_of(item))


def restored_by_ticks(world: World, before: dict[Any, Item]) -> bool:
    """Only what the next tick or nobody needs has changed: planned_until, a place of a group listed elsewhere."""
    after = all_items(world)
    changed = {pk for _, pk, _ in {key for key in {**before, **after} if before.get(key) != after.get(key)}}
    return changed <= {"PROGRESS"}


def due_times(world: World) -> dict[tuple[str, str], list[int]]:
    """All fire times of the jobs up to the end."""
    jobs = [job for tenant in TENANTS for job in world.store.list_jobs(tenant) if job.state == "active"]
    return {(job.tenant, job.job_id): list(fires(job.schedule, job.effective_at, UNTIL)) for job in jobs}


def text(instant: float) -> str:
    from common.timing.instants import rfc3339

    return rfc3339(int(instant))


def test_a_slice_finds_within_a_tick_what_a_small_stage_has() -> None:
    world = small_world()
    world.table("tenants").delete(keys.tenant_listing("bolt"))
    world.table("due").delete(keys.directory("every|300|0", 0))
    done = go_on(world, truth_of(world).steps)
    assert done.counts == {"tenant-unlisted": 1, "shard-missing": 1}
    assert not done.problems
