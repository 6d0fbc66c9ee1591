"""Any damage that `check --fix` repairs: the same world with and without the repair.

It loses no run, can be made twice, and a check after it finds only what a person decides.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from common.registration.definition import as_written
from common.truth.truth import Truth
from minute8.cli.doctor.truth import repair_outcome, repaired
from tests.planning.test_wrong_types import WRONG, Wire
from tests.truth.damage import small_world
from tests.worlds import World, at, job

DAMAGED_AT, REPAIRED_AT, UNTIL = "2026-11-21T03:33:00Z", "2026-11-21T03:40:00Z", "2026-11-21T04:20:00Z"
TABLES = ("jobs", "due", "tenants")
SAMPLE, RELEASE = 8, 1_000
# Table, item, and what becomes of it; None: it is deleted.
Damage = tuple[str, Wire, Wire | None]


def world_of() -> World:
    world = small_world()
    world.registry.put("acme", "second2", job(every="7m"))
    world.run_until(DAMAGED_AT, ticks=True)
    return world


def damages(world: World) -> Iterator[Damage]:
    """Each attribute of an item of each kind of acme's becomes each wrong type; each item is deleted."""
    kinds: dict[tuple[str, str], tuple[str, Wire]] = {}
    for table in TABLES:
        for item in world.dynamodb.scan(TableName=f"test-{table}")["Items"]:
            name = f"{item['pk']['S']} {item['sk']['S']}"
            if "bolt" not in name and "CHORES" not in name:
                kinds.setdefault((table, re.sub(r"\d{2,}", "0", name)), (table, item))
    for table, item in kinds.values():
        yield table, item, None
        for name in sorted({*item} - {"pk", "sk"}):
            for value in WRONG.values():
                changed = {**item, name: value}
                yield table, item, {key: each for key, each in changed.items() if each is not None}


def played(damage: Damage, *, repairs: bool) -> set[tuple[str, int]]:
    """What ran, after a repair if somebody makes one."""
    world = world_of()
    table, item, changed = damage
    world.dynamodb._set(f"test-{table}", item, changed)
    world.run_until(REPAIRED_AT, ticks=True)
    if repairs:
        repair(world)
    world.run_until(UNTIL, ticks=True)
    return ran(world)


def repair(world: World) -> None:
    """`check --fix`, twice."""
    _, remaining = repaired(truth(world), list(truth(world).all()), repair_outcome)
    assert [contradiction for contradiction in remaining if contradiction.repair] == [], (
        "what has a repair is left"
    )
    again, _ = repaired(truth(world), list(truth(world).all()), repair_outcome)
    assert [outcome for _, outcome in again if outcome == "repaired"] == [], "a second repair finds work"


def truth(world: World) -> Truth:
    return Truth(world.tables, world.queue, world.clock, as_written)


def ran(world: World) -> set[tuple[str, int]]:
    """Each run that was not skipped."""
    runs = [item for item in world.dynamodb.scan(TableName="test-runs")["Items"] if "trigger" in item]
    return {
        (f"{run['tenant']['S']}/{run['job_id']['S']}", int(run["fire_at"]["N"]))
        for run in runs
        if run["status"]["S"] != "skipped" and int(run["fire_at"]["N"]) < at(UNTIL)
    }


def play(count: int, seed: int) -> None:
    every = list(damages(world_of()))
    wrong = []
    intact = ran_intact()
    for damage in random.Random(seed).sample(every, min(count, len(every))):
        try:
            missed = (played(damage, repairs=False) & intact) - played(damage, repairs=True)
        except Exception as error:  # noqa: BLE001  all are shown
            wrong.append(f"{named(damage)}: {error!r}"[:400])
            continue
        if missed:
            wrong.append(f"{named(damage)}: {len(missed)} lost: {sorted(missed)[:3]}")
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong)


def ran_intact() -> set[tuple[str, int]]:
    world = world_of()
    world.run_until(UNTIL, ticks=True)
    return ran(world)


def named(damage: Damage) -> str:
    table, item, changed = damage
    differences = {
        name: value for name, value in (changed or {}).items() if item.get(name) != value
    } or "deleted"
    return f"{table} {item['pk']['S']} {item['sk']['S']} {differences}"


def test_a_repair_of_a_sample_of_damages_loses_nothing() -> None:
    play(SAMPLE, seed=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("effective_at", "7"),
        ("effective_at", "1e37"),
        ("effective_at", str(at("2026-11-21T03:50:00Z"))),
        ("schedule_revision", "7"),
        ("schedule_revision", "1e37"),
    ],
)
def test_impossible_times_of_a_job_are_as_its_due_entry_says(name: str, value: str) -> None:
    damage = next(
        (table, item, {**item, name: {"N": value}})
        for table, item, _ in damages(world_of())
        if item["sk"]["S"] == "JOB#often"
    )
    assert played(damage, repairs=True) == ran_intact()


@pytest.mark.release
@pytest.mark.parametrize("seed", range(10))
def test_a_repair_of_a_thousand_damages_loses_nothing(seed: int) -> None:
    play(RELEASE // 10, seed=100 + seed)
