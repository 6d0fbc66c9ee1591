"""A job's times, its place and its due entry contradict each other: which of them decides, and what a repair may do.

Whatever somebody has edited: no run that would have happened without a repair is lost by it, it can be made twice, and
a check after it finds nothing, or what a person has to decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from common.registration.definition import as_written
from common.storage.keys import key_of
from common.timing.groups import group_key
from common.truth.contradiction import DECISIONS, JOB_MISPLACED, JOB_TIMES
from common.truth.truth import Truth
from minute8.cli.doctor.truth import repair_outcome, repaired
from tests.truth.damage import change, entry_key, job_key, small_world
from tests.worlds import World, at, job

ROOT = Path(__file__).resolve().parents[2]
LAST_AT = at("2026-11-21T04:20:00Z")


def truth(world: World) -> Truth:
    return Truth(world.tables, world.queue, world.clock, as_written)


def edit_group(world: World, group: str) -> None:
    change(world, "jobs", job_key("often"), group=group)


def edit_schedule(world: World) -> None:
    other = world.store.get("acme", "second2").schedule
    change(world, "jobs", job_key("often"), schedule=to_builtins(other))


def edit_written(world: World) -> None:
    spec = (world.table("jobs").get(job_key("often")) or {})["spec"]
    change(world, "jobs", job_key("often"), spec=spec.replace('"5m"', '"9m"'))


def edit_entry(world: World) -> None:
    key = entry_key(world, "often")
    item = world.table("due").get(key)
    assert item
    change(world, "due", key, entry=item["entry"].replace("300", "420", 1))


EDITS: dict[str, Callable[[World], object]] = {
    "group": lambda world: edit_group(world, group_key(world.store.get("acme", "second2").schedule)),
    "no group": lambda world: edit_group(world, ""),
    "unknown group": lambda world: edit_group(world, "moon|full"),
    "shard": lambda world: change(world, "jobs", job_key("often"), shard=9),
    "schedule": edit_schedule,
    "written": edit_written,
    "entry": edit_entry,
    "entry deleted": lambda world: world.table("due").delete(entry_key(world, "often")),
    "state": lambda world: change(world, "jobs", job_key("often"), state="paused"),
}


def world_with(edits: tuple[str, ...], *, repairs: bool) -> tuple[World, set[tuple[str, int]], list[str]]:
    """The world after edits at 3:33 and, perhaps, a repair at 3:40: what was planned, and what is still found."""
    world = small_world()
    world.registry.put("acme", "second2", job(every="7m"))
    world.run_until("2026-11-21T03:33:00Z", ticks=True)
    for name in edits:
        EDITS[name](world)
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    names_left: list[str] = []
    if repairs:
        _, remaining = repaired(truth(world), list(truth(world).all()), repair_outcome)
        again, still = repaired(truth(world), list(truth(world).all()), repair_outcome)
        names_left = [item.name for item in still]
        assert [item.name for item in remaining] == names_left
        assert [result for _, result in again if result == "repaired"] == [], "a second repair finds work"
        assert all(item.repair is None for item in still), still
    world.run_until("2026-11-21T04:20:00Z", ticks=True)
    return world, ran(world), names_left


def ran(world: World) -> set[tuple[str, int]]:
    """Tenant's job and fire time of each run that was not skipped."""
    items = world.dynamodb.scan(TableName="test-runs")["Items"]
    runs = [item for item in items if "trigger" in item and item["status"]["S"] not in ("skipped",)]
    return {
        (f"{item['tenant']['S']}/{item['job_id']['S']}", int(item["fire_at"]["N"]))
        for item in runs
        if int(item["fire_at"]["N"]) < LAST_AT
    }


def pairs() -> Iterator[tuple[str, ...]]:
    yield from ((name,) for name in EDITS)
    for first, second in product(EDITS, EDITS):
        if first < second and "state" not in (first, second):
            yield first, second


@pytest.mark.parametrize("edits", list(pairs()), ids=" and ".join)
def test_a_repair_loses_no_run_that_would_have_run_without_it(edits: tuple[str, ...]) -> None:
    _, without, _ = world_with(edits, repairs=False)
    _, with_repair, _ = world_with(edits, repairs=True)
    assert (without & intact()) - with_repair == set()


@cache
def intact() -> frozenset[tuple[str, int]]:
    """What runs where nobody has edited anything."""
    return frozenset(world_with((), repairs=False)[1])


@pytest.mark.parametrize("edit", ["group", "no group", "unknown group", "shard"])
def test_the_schedule_decides_over_group_and_shard(edit: str) -> None:
    world, runs, names_left = world_with((edit,), repairs=True)
    assert names_left == []
    assert runs == intact()
    often = world.store.get("acme", "often")
    assert often.group == group_key(often.schedule)


def test_the_written_schedule_and_the_entry_decide_over_the_resolved_one() -> None:
    before = small_world().store.get("acme", "often").schedule
    world, _, names_left = world_with(("schedule",), repairs=True)
    assert names_left == []
    assert world.store.get("acme", "often").schedule == before


def test_what_was_written_does_not_decide_against_all_others() -> None:
    world, _, names_left = world_with(("written",), repairs=True)
    assert names_left == [JOB_TIMES]
    assert world.store.get("acme", "often").spec.schedule == {"every": "9m"}


def test_a_check_says_which_fire_times_a_repair_affects() -> None:
    world = small_world()
    world.run_until("2026-11-21T03:33:00Z", ticks=True)
    edit_group(world, "every|420|60")
    (misplaced,) = [item for _, of in truth(world).all() for item in of if item.name == JOB_MISPLACED]
    assert misplaced.foresee() == "no fire time is affected"
    edit_group(world, "every|300|0" if world.store.get("acme", "often").group == "" else "")
    world.table("due").delete(entry_key_of_often(world))
    world.run_until("2026-11-21T04:33:00Z", ticks=True)
    (misplaced,) = [item for _, of in truth(world).all() for item in of if item.subject.name == "acme/often"]
    assert re.fullmatch(
        r"enqueues \d+ runs \(2026-11-21T03:\S+ to 2026-11-21T04:\S+\)( and records .*)?", misplaced.foresee()
    )


def entry_key_of_often(world: World) -> Any:
    (item,) = [
        item
        for item in world.dynamodb.scan(TableName="test-due")["Items"]
        if item["pk"]["S"].startswith("GROUP#") and item["sk"]["S"] == "acme#often"
    ]
    return {name: value["S"] for name, value in key_of(item).items()}


def test_the_runbook_says_what_the_code_decides() -> None:
    page = (ROOT / "docs" / "runbook" / "contradictions.md").read_text()
    decides = {
        name: fact
        for names, fact in re.findall(r"^\| (`[a-z`, -]+`) \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)
        for name in re.findall(r"`([a-z-]+)`", names)
    }
    assert decides == {name: row.decides for name, row in DECISIONS.items()}
