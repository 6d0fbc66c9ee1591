"""Each contradiction by its name: found, repaired if it has a repair, and what was due meanwhile has its record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.platform.deletion import Deletions
from common.platform.tenants import Tenants
from common.storage import keys
from common.tenants.rules_cache import changed_since
from common.timing.slots import places
from common.truth.contradiction import (
    AUDIT_LOST,
    DECISIONS,
    ENTRY_MISSING,
    ENTRY_STRAY,
    ENTRY_WRONG,
    ITEM_UNREADABLE,
    JOB_CORRUPT,
    JOB_LOST,
    JOB_ROLLED_BACK,
    SHARD_CORRUPT,
    SHARD_COUNT,
    SHARD_MISSING,
    SHARD_UNLISTED,
    TENANT_CORRUPT,
    TENANT_COUNTS,
    TENANT_DIFFERS,
    TENANT_MISSING,
    TENANT_ROLLED_BACK,
    TENANT_UNLISTED,
    TEXT_MISSING,
)
from tests.truth.damage import (
    change,
    entry_key,
    found_names,
    job_key,
    repair_all,
    shard_key,
    shard_name,
    small_world,
    truth_of,
)
from tests.worlds import World, at


def delete_entry(world: World) -> None:
    world.table("due").delete(entry_key(world, "often"))


def corrupt_entry(world: World) -> None:
    change(world, "due", entry_key(world, "often"), entry="[9]")


def roll_entry_back(world: World) -> None:
    key = entry_key(world, "often")
    before = world.table("due").get(key)
    assert before
    world.registry.put("acme", "often", {**EVERY_FOUR_MINUTES})
    change(world, "due", entry_key(world, "often"), entry=before["entry"])


EVERY_FOUR_MINUTES = {
    "schedule": {"every": "4m"},
    "target": {"kind": "lambda", "arn": "arn:aws:lambda:us-east-1:123456789012:function:target"},
}


def duplicate_entry(world: World) -> None:
    item = world.table("due").get(entry_key(world, "hourly"))
    assert item
    often = world.store.get("acme", "often")
    world.table("due").put({**item, **keys.due_entry(often.group, often.shard, "acme", "hourly")})


def delete_job(world: World) -> None:
    world.table("jobs").delete(job_key("often"))


def roll_job_back(world: World) -> None:
    before = world.table("jobs").get(job_key("daily"))
    assert before
    world.store.pause("acme", "daily")
    world.store.resume("acme", "daily")
    world.table("jobs").put(before)


def delete_text(world: World) -> None:
    payload = world.store.get("acme", "hourly").payload
    world.table("jobs").delete(keys.job_text("acme", "hourly", payload.sha256))


def unlist(world: World) -> None:
    stored = world.store.get("acme", "daily")
    place = places(stored.group)[0]
    world.table("due").delete(keys.listing(place, stored.group, stored.shard))


# What is done, what is found, and about what.
DAMAGES: list[tuple[str, Callable[[World], object], str, Callable[[World], str]]] = [
    ("an entry is deleted", delete_entry, ENTRY_MISSING, lambda _: "acme/often"),
    ("an entry is corrupt", corrupt_entry, ENTRY_WRONG, lambda _: "acme/often"),
    ("an entry is rolled back", roll_entry_back, ENTRY_WRONG, lambda _: "acme/often"),
    ("an entry is in two shards", duplicate_entry, ENTRY_STRAY, lambda _: "acme/hourly"),
    (
        "a directory item is deleted",
        lambda world: world.table("due").delete(shard_key(world, "often")),
        SHARD_MISSING,
        lambda world: shard_name(world, "often"),
    ),
    (
        "the directory item of a one-off job is deleted",
        lambda world: world.table("due").delete(shard_key(world, "once")),
        SHARD_MISSING,
        lambda world: shard_name(world, "once"),
    ),
    (
        "a directory item is corrupt",
        lambda world: change(world, "due", shard_key(world, "often"), jobs="many"),
        SHARD_CORRUPT,
        lambda world: shard_name(world, "often"),
    ),
    (
        "a count is wrong",
        lambda world: change(world, "due", shard_key(world, "often"), jobs=9),
        SHARD_COUNT,
        lambda world: shard_name(world, "often"),
    ),
    (
        "a count is none",
        lambda world: change(world, "due", shard_key(world, "often"), jobs=0),
        SHARD_MISSING,
        lambda world: shard_name(world, "often"),
    ),
    ("a listing is deleted", unlist, SHARD_UNLISTED, lambda world: shard_name(world, "daily")),
    (
        "a tenant's item is deleted",
        lambda world: world.table("tenants").delete(keys.tenant("acme")),
        TENANT_MISSING,
        lambda _: "acme",
    ),
    (
        "a tenant is not in the list",
        lambda world: world.table("tenants").delete(keys.tenant_listing("acme")),
        TENANT_UNLISTED,
        lambda _: "acme",
    ),
    (
        "a tenant's item is corrupt",
        lambda world: change(world, "tenants", keys.tenant("acme"), allowed_targets=7),
        TENANT_CORRUPT,
        lambda _: "acme",
    ),
    (
        "a tenant has a state that is none",
        lambda world: change(world, "tenants", keys.tenant("acme"), state="on"),
        TENANT_CORRUPT,
        lambda _: "acme",
    ),
    (
        "a tenant's item in the list is corrupt",
        lambda world: change(world, "tenants", keys.tenant_listing("acme"), quotas={"jobs": "many"}),
        TENANT_CORRUPT,
        lambda _: "acme",
    ),
    (
        "a tenant's counts are wrong",
        lambda world: change(world, "tenants", keys.tenant("acme"), jobs=77),
        TENANT_COUNTS,
        lambda _: "acme",
    ),
    *(
        (
            f"{name} of a tenant's {where} is changed by hand",
            lambda world, key=key, name=name, value=value: change(world, "tenants", key, **{name: value}),
            TENANT_DIFFERS,
            lambda _: "acme",
        )
        for where, key in (("item", keys.tenant("acme")), ("listing", keys.tenant_listing("acme")))
        for name, value in (
            ("state", "suspended"),
            ("state", "deleting"),
            ("state", "deleted"),
            ("allowed_targets", None),
            ("quotas", {"jobs": 1}),
        )
    ),
]
# Those that a person decides.
UNREPAIRED: list[tuple[str, Callable[[World], object], str, str]] = [
    (
        "a job is corrupt",
        lambda world: change(world, "jobs", job_key("often"), schedule="?"),
        JOB_CORRUPT,
        "often",
    ),
    ("a job's item is deleted", delete_job, JOB_LOST, "often"),
    ("a job is rolled back", roll_job_back, JOB_ROLLED_BACK, "daily"),
    ("a payload is deleted", delete_text, TEXT_MISSING, "hourly"),
]


def delete_audit(world: World, *actions: str, seals: bool = False) -> None:
    for item in world.dynamodb.scan(TableName="test-audit")["Items"]:
        is_seal = "action" not in item
        if seals if is_seal else not actions or item["action"]["S"] in actions:
            world.dynamodb.delete_item(TableName="test-audit", Key={"pk": item["pk"], "sk": item["sk"]})


def roll_tenant_back(world: World) -> None:
    """As a restored table of tenants."""
    for key in (keys.tenant("acme"), keys.tenant_listing("acme")):
        change(world, "tenants", key, revision=1, name="")


def differ_without_entry(world: World) -> None:
    change(world, "tenants", keys.tenant("acme"), state="suspended")
    delete_audit(world, "tenant.created")


# Of the tenant as a whole.
UNREPAIRED_TENANT: list[tuple[str, Callable[[World], object], str]] = [
    ("its audit is wiped", lambda world: delete_audit(world, seals=True), AUDIT_LOST),
    ("its audit is wiped under its seals", delete_audit, AUDIT_LOST),
    ("an entry is deleted under its seal", lambda world: delete_audit(world, "job.paused"), AUDIT_LOST),
    ("both items are rolled back", roll_tenant_back, TENANT_ROLLED_BACK),
    ("its items differ, and the audit does not say which is right", differ_without_entry, TENANT_DIFFERS),
]


@pytest.fixture
def world() -> World:
    return small_world()


def test_whole_tables_contradict_nothing(world: World) -> None:
    assert found_names(world) == set()
    world.tick()
    world.run_until("2026-11-21T06:30:00Z", ticks=True)
    assert found_names(world) == set()


@pytest.mark.parametrize(
    ("damage", "name", "about"), [row[1:] for row in DAMAGES], ids=[row[0] for row in DAMAGES]
)
def test_a_damage_is_found_and_repaired(
    world: World, damage: Callable[[World], object], name: str, about: Callable[[World], str]
) -> None:
    world.tick()
    world.run_until("2026-11-21T03:31:00Z", ticks=True)
    expected = about(world)
    damage(world)
    assert (name, about(world) if name != SHARD_MISSING else expected) in found_names(world)
    repair_all(world)
    repair_all(world)
    world.run_until("2026-11-21T04:31:00Z", ticks=True)
    assert found_names(world) == set()


@pytest.mark.parametrize(
    ("damage", "name", "job_id"), [row[1:] for row in UNREPAIRED], ids=[row[0] for row in UNREPAIRED]
)
def test_what_a_person_decides_is_found_and_named(
    world: World, damage: Callable[[World], object], name: str, job_id: str
) -> None:
    damage(world)
    assert (name, f"acme/{job_id}") in found_names(world)
    assert all(
        contradiction.repair is None and contradiction.remedy == DECISIONS[name].repair
        for _, of_subject in truth_of(world).all()
        for contradiction in of_subject
        if contradiction.name == name
    )


@pytest.mark.parametrize(
    ("damage", "name"), [row[1:] for row in UNREPAIRED_TENANT], ids=[row[0] for row in UNREPAIRED_TENANT]
)
def test_what_a_person_decides_of_a_tenant_is_listed_by_ticks(
    served: World, damage: Callable[[World], object], name: str
) -> None:
    Tenants(served.tables.tenants, served.clock).edit("acme", {"name": "Acme"}, served.clock.now())
    served.run_until("2026-11-21T06:10:00Z", ticks=True)  # sealed
    assert found_names(served) == set()
    damage(served)
    assert (name, "acme") in found_names(served)
    served.run_until("2026-11-21T06:49:00Z", ticks=True)  # the walk has been everywhere
    assert (name, "acme") in {(each.name, each.about.name) for each in truth_of(served).known.all()}
    assert all(item.repair is None for _, items in truth_of(served).all() for item in items)


@pytest.mark.parametrize("state", ["suspended", "deleting"])
def test_a_tenant_whose_item_was_changed_by_hand_runs_again_at_once_after_the_repair(state: str) -> None:
    world = small_world()
    world.run_until("2026-11-21T03:31:00Z", ticks=True)
    change(world, "tenants", keys.tenant("acme"), state=state)
    world.run_until("2026-11-21T05:01:00Z", ticks=True)  # executors have read it, and trust it for an hour
    assert changed_since(world.tables.tenants, world.clock.now()) == set()
    repair_all(world)
    assert changed_since(world.tables.tenants, world.clock.now()) == {"acme"}
    world.run_until("2026-11-21T05:06:00Z", ticks=True)
    newest = world.run_items("acme", "often")[-1]
    assert newest["fire_at"] > at("2026-11-21T05:01:00Z")
    assert newest["status"] == "succeeded"


def test_a_deletion_that_has_begun_is_not_undone() -> None:
    world = small_world()
    Deletions(world.tables.tenants, world.tables.jobs, world.tables.runs, world.index, world.clock).begin(
        "acme", world.clock.now()
    )
    change(world, "tenants", keys.tenant_listing("acme"), state="active")
    repair_all(world)
    assert (world.table("tenants").get(keys.tenant("acme")) or {})["state"] == "deleting"


def test_an_item_that_a_tick_set_aside_is_named_until_it_is_discarded() -> None:
    world = small_world()
    key = keys.pending("acme", "often", 7)
    world.table("due").put({**key, "entry": 7})
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    name = f"{key['pk']} {key['sk']}"
    assert found_names(world) == {(ITEM_UNREADABLE, name)}
    world.scheduler.planner.quarantine.put_back(name)
    assert world.table("due").get(key)
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert found_names(world) == {(ITEM_UNREADABLE, name)}
    world.scheduler.planner.quarantine.discard(name)
    assert found_names(world) == set()
