"""Random worlds: hostile tenants, their items in the tables, and dying ticks beside a quiet tenant.

`HOSTILE_WORLDS=5000 pytest tests/simulation/test_hostile_worlds.py` plays more of them than CI does.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from typing import Final

import pytest

from common.storage import keys
from common.timing.fires import fires
from tests.planning.test_shares import Died, Fleet, mark_at
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world, put_in_directory

WORLDS: Final = int(os.environ.get("HOSTILE_WORLDS", "100"))
# Of ten; the others are played before a release.
BATCHES: Final = [0, 1, *(pytest.param(batch, marks=pytest.mark.release) for batch in range(2, 10))]
BEGIN, END = "2026-11-21T03:12:00Z", "2026-11-21T03:49:00Z"
TICKS: Final = [at(f"2026-11-21T03:{minute}:00Z") for minute in (18, 28, 38, 48)]
QUIET: Final = ("* * * * *", "*/7 * * * *", "25 3 * * *", "*/30 * * * * *", "41 12 * * *", "59 * * * *")
Hostile = Callable[[World, random.Random], None]


def bad_entries(world: World, rng: random.Random) -> None:
    """Bad entries in the shard of a quiet job: of a later version, of a wrong type, no JSON."""
    victim = world.store.get("quiet", "j0")
    for n in range(rng.randint(1, 40)):
        entry = rng.choice(["[9]", "{", '["zoe","j",{"cron":"99 * * * *"},0,1,"latest"]', "null", 7])
        world.table("due").put({**keys.due_entry(victim.group, victim.shard, "zoe", f"j{n}"), "entry": entry})


def strange_groups(world: World, rng: random.Random) -> None:
    for n in range(rng.randint(1, 40)):
        sk = rng.choice([f"lunar|{n}#0", f"cron|Mars/{n}|* * * * *#0", f"no-number-{n}", f"every|x{n}|0#0"])
        put_in_directory(world.table("due"), sk, rng.choice([1, "many"]))


def missing_calendars(world: World, rng: random.Random) -> None:
    names = [f"c{n}" for n in range(rng.randint(1, 5))]
    for name in names:
        world.table("jobs").put({**keys.calendar("zoe", name), "dates": "2026-01-01"})
    for n in range(rng.randint(1, 12)):
        world.registry.create("zoe", f"gone{n}", job(cron="* * * * *", exclude={"calendars": names}))
    for name in names:
        world.table("jobs").delete(keys.calendar("zoe", name))


def distinct_intervals(world: World, rng: random.Random) -> None:
    for n in range(rng.randint(1, 40)):
        world.registry.create("eve", f"e{n}", job(every=601 + n, start_at="2031-01-01T00:00:00Z"))


def long_keys(world: World, rng: random.Random) -> None:
    for n in range(rng.randint(1, 20)):
        hours = ",".join(map(str, sorted(rng.sample(range(24), 12))))
        days = ",".join(map(str, sorted(rng.sample(range(1, 32), 15))))
        world.registry.create("eve", f"long{n}", job(cron=f"{n} {hours} {days} * *", invocation="Event"))


def each_second(world: World, rng: random.Random) -> None:
    world.registry.create("zoe", "seconds", job(every=rng.randint(5, 9), invocation="Event"))


HOSTILE: Final[tuple[Hostile, ...]] = (
    bad_entries,
    strange_groups,
    missing_calendars,
    distinct_intervals,
    long_keys,
    each_second,
)


def planned(fleet: Fleet, rng: random.Random) -> None:
    """The planners, in any order; a message whose planner died is delivered again."""
    while bodies := fleet.queue.bodies:
        body = bodies.pop(rng.randrange(len(bodies)))
        try:
            fleet.plan(body, lives=rng.randint(1, 4) if rng.random() < 0.2 else 0)
        except Died:
            bodies.append(body)


@pytest.mark.parametrize("batch", BATCHES)
def test_the_quiet_tenants_runs_are_all_there_and_on_time(batch: int) -> None:
    for seed in range(batch, WORLDS, 10):
        rng = random.Random(seed)
        world = make_world(MemoryDynamoDB(), BEGIN)
        for n, cron in enumerate(rng.sample(QUIET, 3)):
            world.registry.create(
                "quiet", f"j{n}", job(cron=cron, timezone=rng.choice(["UTC", "Asia/Tokyo"]))
            )
        for hostile in rng.sample(HOSTILE, rng.randint(1, len(HOSTILE))):
            hostile(world, rng)
        fleet = Fleet(world, share_entries=rng.choice([15, 60, 100_000]))
        for tick_at in TICKS:
            world.run_until(_text(tick_at))
            for _ in range(rng.randint(0, 2)):
                try:
                    fleet.tick(lives=rng.randint(1, 8))
                except Died:
                    continue
            fleet.tick()
            planned(fleet, rng)
            assert mark_at(world) >= tick_at + 600, f"seed {seed}: {_text(mark_at(world))}"
        world.run_until(END)
        for n in range(3):
            assert _called(world, f"j{n}") == _due(world, f"j{n}"), f"seed {seed}"


def _called(world: World, job_id: str) -> list[tuple[int, float]]:
    """(fire time, time of the call), each once."""
    calls = [
        call for call in world.target.calls if (call[1]["tenant"], call[1]["job_id"]) == ("quiet", job_id)
    ]
    return sorted((at(context["fire_at"]), called_at) for called_at, context in calls)


def _due(world: World, job_id: str) -> list[tuple[int, float]]:
    quiet_job = world.store.get("quiet", job_id)
    return [
        (fire_at, fire_at)
        for fire_at in fires(quiet_job.schedule, math.floor(quiet_job.effective_at), at(END) + 1)
    ]


def _text(instant: int) -> str:
    return f"2026-11-21T03:{(instant - at('2026-11-21T03:00:00Z')) // 60:02}:00Z"
