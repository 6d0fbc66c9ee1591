"""A world with registered jobs, and the damages that a person or a restored table does to its items."""

from __future__ import annotations

from typing import Any

from common.platform.tenants import Tenants
from common.storage import keys
from common.truth.truth import Truth
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import ARN, World, job, make_world

TENANTS = ("acme", "bolt")
JOBS = ("often", "hourly", "daily", "second", "once", "paused", "gone")


def small_world() -> World:
    """Two tenants with seven jobs each: of several groups, a one-off, a paused and a deleted one."""
    world = make_world(MemoryDynamoDB(), "2026-11-21T03:12:00Z", pauses_move_the_clock=True)
    for tenant in TENANTS:
        Tenants(world.tables.tenants, world.clock).create(
            tenant, "", world.clock.now(), {"allowed_targets": [f"{ARN}*"]}
        )
        world.registry.put(tenant, "often", job(every="5m", catch_up="all"))
        world.registry.put(tenant, "hourly", job(cron="30 * * * *", payload="x" * 3_000))
        world.registry.put(tenant, "daily", job(cron="0 4 * * *", timezone="Europe/Berlin"))
        world.registry.put(tenant, "second", job(every="5m", catch_up="none"))
        world.registry.put(tenant, "once", job(at="2026-11-21T05:15:00Z"))
        world.registry.put(tenant, "paused", job(every="5m"))
        world.registry.put(tenant, "gone", job(every="5m"))
        world.clock.sleep(1)  # the audit sorts by milliseconds
        world.store.pause(tenant, "paused")
        world.store.delete(tenant, "gone")
    return world


def truth_of(world: World) -> Truth:
    return Truth(world.tables, world.queue, world.clock)


def found_names(world: World) -> set[tuple[str, str]]:
    """The names of all contradictions, and what they are about."""
    return {
        (contradiction.name, contradiction.subject.name)
        for _, of_subject in truth_of(world).all()
        for contradiction in of_subject
    }


def repair_all(world: World) -> None:
    """Make each repair, until nothing is left that has one."""
    for _ in range(10):
        repairs = [
            contradiction
            for _, of_subject in truth_of(world).all()
            for contradiction in of_subject
            if contradiction.repair
        ]
        if not repairs:
            return
        for contradiction in repairs:
            assert contradiction.repair
            contradiction.repair()
    raise AssertionError(f"not repaired: {found_names(world)}")


def send_again(world: World) -> None:
    """Make each repair, twice; what it sends has still to be delivered."""
    for contradiction in [
        contradiction for _, of_subject in truth_of(world).all() for contradiction in of_subject
    ]:
        assert contradiction.repair
        contradiction.repair()
        contradiction.repair()


def job_key(job_id: str) -> keys.Key:
    return keys.job("acme", job_id)


def entry_key(world: World, job_id: str) -> keys.Key:
    stored = world.store.get("acme", job_id)
    return keys.due_entry(stored.group, stored.shard, "acme", job_id)


def shard_key(world: World, job_id: str) -> keys.Key:
    stored = world.store.get("acme", job_id)
    return keys.directory(stored.group, stored.shard)


def change(world: World, table: str, key: keys.Key, **attributes: Any) -> None:
    """Write attributes of an item by hand; None removes one."""
    item = world.table(table).get(key) or {**key}
    item |= attributes
    world.table(table).put({name: value for name, value in item.items() if value is not None})


def shard_name(world: World, job_id: str) -> str:
    return shard_key(world, job_id)["sk"]
