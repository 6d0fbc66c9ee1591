"""What the preparation of one call takes that has all 85 points, on a function's share of a processor.

    python -m tests.executor.hostile_preparation NAME [--share]

Prints the processor time of the tenant's turn and the time from the batch's begin to the call, in seconds; of each the
least of five batches, since other work on the machine only adds to it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from typing import Any

from common.planning.execution import Execution
from common.runs.outcome import Outcome
from executor.batch import execute_batch
from executor.pipeline import Message
from scripts.embedded.strict.quota import Quota
from tests.executor.hostile_neighbours import MEMORY_MB, settle
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

DUE = at("2026-11-21T03:15:00Z")
KIB = 1_024


def at_the_bound(kib: int, calendars: int, secrets: int, placeholders: int) -> dict[str, Any]:
    """A job with a payload of values, patched if it has `kib`, that names so many of each."""
    payload: dict[str, Any] = {"w": 0, "p": ["{{attempt}}"] * placeholders}
    payload["s"] = [f"secret://s{n}" for n in range(secrets)]
    room = kib * KIB - len(json.dumps(payload, separators=(",", ":")))
    payload["v"] = [[] for _ in range(max(0, room // 3 - 8))]
    schedule: dict[str, Any] = {"cron": "* * * * *"}
    if calendars:
        schedule["exclude"] = {"calendars": [f"c{n}" for n in range(calendars)]}
    if not kib:
        return {**job(cron="* * * * *"), "schedule": schedule, "payload": payload}
    schedules = [schedule | {"payload_patch": {"w": minute}} for minute in (1, 2)]
    return {**job(cron="* * * * *"), "schedule": {"schedules": schedules}, "payload": payload}


# (KiB of a patched payload, calendars, secrets, placeholders): each has 85 points or the most below that it can have.
JOBS = {
    "secrets": at_the_bound(0, 1, 4, 33),
    "calendars and a payload": at_the_bound(45, 10, 0, 0),
    "a payload and a secret": at_the_bound(64, 0, 1, 33),
    "placeholders and a payload": at_the_bound(54, 0, 0, 1_000),
    "some of each": at_the_bound(15, 2, 3, 66),
}


def measured(name: str, *, share: bool) -> dict[str, float]:
    """Processor seconds of the turn, and seconds until the call."""
    dynamodb: Any = MemoryDynamoDB()
    world: World = make_world(dynamodb, "2026-11-21T03:12:00Z")
    settle(world, random.Random(1))
    for n in range(4):  # each character has forms of its own: JSON's, a URL's, Python's
        lines = "\n".join(f"{n}{line:02}" + '"\\é/<' * 7 for line in range(64))
        world.secrets.put("hostile", f"s{n}", lines, world.clock.now())
    called_at: list[float] = []

    def answer(event: Any) -> Outcome:
        called_at.append(time.perf_counter())
        return Outcome(ok=True)

    world.target.answer = answer
    world.registry.create("hostile", "j", JOBS[name])
    quota = Quota("preparation", MEMORY_MB) if share else None
    if quota:
        quota.limit()
        quota.add(os.getpid())
    cpu_s, wall_s = [], []
    for n in range(6):  # the first one learns types, and is not counted
        due = DUE + 60 * n
        world.clock.move_to(due)
        began = time.perf_counter()
        execute_batch(world.executor, [Message(f"m{n}", Execution("hostile", "j", due, due, 1).encode())])
        cpu_s.append(world.executor.calls.turns.turn("hostile").used_s)
        wall_s.append(called_at[-1] - began)
    assert len(called_at) == 6
    return {"cpu_s": min(cpu_s[1:]), "until_called_s": min(wall_s[1:])}


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], share="--share" in sys.argv)))
