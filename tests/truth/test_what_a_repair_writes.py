"""Each repair against DECISIONS: it writes what follows, and never what decides; what has none says why."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from common.registration.definition import as_written
from common.storage import keys
from common.truth import contradiction as names
from common.truth.contradiction import DECISIONS, Contradiction, Subject
from common.truth.truth import Truth
from minute8.cli.doctor.item_checks import ItemChecks
from tests.truth.damage import change, small_world
from tests.truth.test_names import DAMAGES
from tests.truth.test_what_decides import edit_group, edit_schedule
from tests.worlds import World, at, job

# The tables and kinds of item that a repair may write. Beside them it sends, and notes that it does.
FOLLOWS: dict[str, set[str]] = {
    names.JOB_TIMES: {"jobs JOB#"},
    names.JOB_MISPLACED: {"jobs JOB#", "due GROUP#", "due DIRECTORY#", "due LISTED#"},
    names.ENTRY_MISSING: {"due GROUP#", "due DIRECTORY#", "due LISTED#"},
    names.ENTRY_WRONG: {"due GROUP#"},
    names.ENTRY_STRAY: {"due GROUP#", "due DIRECTORY#"},
    names.SHARD_MISSING: {"due DIRECTORY#", "due ONE_OFF#", "due LISTED#"},
    names.SHARD_CORRUPT: {"due DIRECTORY#", "due LISTED#"},
    names.SHARD_UNLISTED: {"due DIRECTORY#", "due LISTED#"},
    names.SHARD_COUNT: {"due DIRECTORY#"},
    names.TENANT_CORRUPT: {"tenants TENANT", "tenants TENANTS#"},
    names.TENANT_MISSING: {"tenants TENANT", "tenants TENANTS#", "tenants TENANT_CHANGES#"},
    names.TENANT_UNLISTED: {"tenants TENANTS#"},
    names.TENANT_DIFFERS: {"tenants TENANT", "tenants TENANTS#", "tenants TENANT_CHANGES#"},
    names.TENANT_COUNTS: {"tenants TENANT"},
    names.RUN_STUCK: set(),
    names.PROJECTION_CORRUPT: {"runs projection"},
}
# Why the others have none: who decides has what no item has.
WITHOUT: dict[str, str] = {
    names.JOB_CORRUPT: "the tenant",
    names.TEXT_MISSING: "the tenant",
    names.JOB_LOST: "the audit",  # it keeps no payload
    names.JOB_ROLLED_BACK: "the audit",
    names.TENANT_ROLLED_BACK: "the audit",
    names.ITEM_LOST: "the audit",
    names.AUDIT_LOST: "a person",
    names.RUN_CORRUPT: "a person",
    names.ITEM_UNREADABLE: "a person",
    names.ITEM_CORRUPT: "a person",
    names.KEY_DIFFERS: "a person",
}
_OF_PROJECTION = re.compile(r"##(windows|chunks|days)$|^PROJECTION")
_SENT = re.compile("PENDING|LOG#|LOOKS|PROGRESS|POSTPONED")


def wipe_tenant(world: World) -> None:
    for key in (keys.tenant("acme"), keys.tenant_listing("acme")):
        world.table("tenants").delete(key)


def stick_a_run(world: World) -> None:
    run = world.run_items("acme", "often")[0]
    under_way = {name: value for name, value in run.items() if name not in ("finished_at", "attempts")}
    world.table("runs").put({**under_way, "status": "running", "lease_until": run["fire_at"] + 60})
    truth(world).refresh([Subject("run", f"acme:often:{run['sk']}")])


def damage_a_window(world: World) -> None:
    world.project()
    window = keys.projected_window("acme", at("2026-11-21T03:20:00Z"))
    change(world, "runs", window, runs=7)


REPAIRED: list[tuple[str, Callable[[World], object], str]] = [
    *((title, damage, name) for title, damage, name, _ in DAMAGES),
    ("a job's group is edited", lambda world: edit_group(world, ""), names.JOB_MISPLACED),
    ("a job's resolved schedule is edited", edit_schedule, names.JOB_TIMES),
    ("a tenant is wiped", wipe_tenant, names.TENANT_MISSING),
    ("a run is stuck", stick_a_run, names.RUN_STUCK),
    ("a window of the projection is damaged", damage_a_window, names.PROJECTION_CORRUPT),
]


def truth(world: World) -> Truth:
    return Truth(world.tables, world.queue, world.clock, as_written, ItemChecks(world.tables, world.clock))


def kind(table: str, item: dict[str, Any]) -> str:
    """A word for what an item is."""
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    if table == "runs":
        return "runs projection" if _OF_PROJECTION.search(pk) else "runs run"
    of_tenant = "#" not in pk and pk in ("acme", "bolt")
    word = re.match(r"[A-Z_]+#?", sk if of_tenant else pk)
    return f"{table} {word[0] if word else pk}"


def stored(world: World) -> dict[tuple[str, str], dict[str, Any]]:
    items = {}
    for table in ("jobs", "due", "tenants", "runs", "audit"):
        for item in world.dynamodb.scan(TableName=f"test-{table}")["Items"]:
            items[kind(table, item), f"{item['pk']['S']} {item['sk']['S']}"] = copy.deepcopy(item)
    return items


def specs(world: World) -> list[Any]:
    """What clients wrote: no repair of a job's times or place changes it."""
    return [item.get("spec") for (word, _), item in sorted(stored(world).items()) if word == "jobs JOB#"]


def written_by(world: World, repair: Contradiction) -> set[str]:
    before = stored(world)
    assert repair.repair
    repair.repair()
    after = stored(world)
    return {place[0] for place in {**before, **after} if before.get(place) != after.get(place)}


@pytest.mark.parametrize(("damage", "name"), [row[1:] for row in REPAIRED], ids=[row[0] for row in REPAIRED])
def test_a_repair_writes_what_follows_and_never_what_decides(
    damage: Callable[[World], object], name: str
) -> None:
    world = small_world()
    world.registry.put("acme", "second2", job(every="7m"))
    world.run_until("2026-11-21T03:33:00Z", ticks=True)
    damage(world)
    contradictions = [item for _, of in truth(world).all() for item in of if item.name == name]
    assert contradictions
    asked_for = specs(world)
    for each in contradictions:
        written = {word for word in written_by(world, each) if not _SENT.search(word)}
        assert written <= FOLLOWS[name], each
    assert specs(world) == asked_for


def test_each_decision_has_a_repair_or_says_who_has_what_is_missing() -> None:
    assert {name for *_, name in REPAIRED} == set(FOLLOWS)
    assert {**FOLLOWS, **WITHOUT}.keys() == DECISIONS.keys()
    assert {name: DECISIONS[name].decides for name in WITHOUT} == WITHOUT
