"""A batch of a hostile tenant's executions and a quiet tenant's, on a function's share of a processor.

    python -m tests.executor.hostile_neighbours SEED HOSTILE [--share]

Prints how late the quiet executions were called: one of the same second, one of a later second of the batch.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import sys
import time
from typing import Any

from common.clock import SystemClock
from common.deployment import Deployment
from common.errors import InvalidInput
from common.planning.execution import Execution
from common.registration.calendar_store import CalendarStore
from common.runs.outcome import Outcome
from executor.batch import execute_batch
from executor.pipeline import Executor, Message
from executor.targets import Kind
from scripts.embedded.strict.quota import Quota
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, job, make_world

MEMORY_MB = 512
DATES = [
    f"{year}-{month:02}-{day:02}"
    for year in range(2027, 2036)
    for month in range(1, 13)
    for day in range(1, 29)
]


def settle(world: World, rng: random.Random) -> None:
    """What the jobs of the hostile tenant name."""
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    for n in range(10):
        calendars.put("hostile", f"c{n}", {"dates": DATES[:2_500]}, int(world.clock.now()))
    for n in range(4):
        lines = "\n".join(f"{rng.getrandbits(196):049x}" for _ in range(64))
        world.secrets.put("hostile", f"s{n}", lines, world.clock.now())


def hostile_job(rng: random.Random) -> dict[str, Any]:
    """Each field somewhere up to its bound; all of them together may be too much."""
    is_patched = rng.random() < 0.5
    most = 32_000 if is_patched else 64_000
    values: Any = rng.choices(range(10), k=rng.choice([0, most // 2, most]))
    if rng.random() < 0.3:
        values = ["{{attempt}}" for _ in range(1_000)] + ["" for _ in range(most // 2 - 8_000)]
    payload: dict[str, Any] = {"v": values, "w": ""}
    if rng.random() < 0.6:
        payload["s"] = [f"secret://s{n}" for n in range(rng.randint(1, 4))]
    calendars = {"exclude": {"calendars": [f"c{n}" for n in range(rng.choice([0, 1, 10]))]}}
    schedules = [
        {"cron": f"{minute} * * * *", **calendars, "payload_patch": {"w": minute}} for minute in range(10)
    ]
    if not is_patched:
        return {**job(cron="* * * * *"), "payload": payload}
    return {**job(cron="* * * * *"), "schedule": {"schedules": schedules}, "payload": payload}


def create(world: World, job_id: str, rng: random.Random) -> None:
    """A hostile job that is not refused for the sum of what it uses."""
    while True:
        with contextlib.suppress(InvalidInput):
            world.registry.create("hostile", job_id, hostile_job(rng))
            return


def lateness(seed: int, hostile: int, *, share: bool) -> dict[str, float]:
    """Seconds by which the quiet executions were called after they were due."""
    rng = random.Random(seed)
    dynamodb: Any = MemoryDynamoDB()
    world = make_world(dynamodb, "2026-11-21T03:12:00Z")
    world.clock.move_to(time.time() - 600)
    settle(world, rng)
    for n in range(hostile):
        create(world, f"h{n}", rng)
    for name in ("same", "later"):
        world.registry.create("quiet", name, job(cron="* * * * *"))
    called: dict[str, float] = {}

    def call(target: Any, event: Any, timeout_s: float) -> Outcome:
        called.setdefault(event["minute8"]["job_id"], time.time())
        return Outcome(ok=False, permanent=True, error="a" * 2_000)

    old = world.deployment
    names = (
        "tables",
        "sqs",
        "queue",
        "events",
        "known_tenants",
        "rules",
        "webhook_secrets",
        "removals",
        "secret_key",
    )
    parts = {name: getattr(old, name) for name in names}
    deployment = Deployment(old.settings, clock=SystemClock(), **parts)
    wired = Executor.of(deployment, {"lambda": Kind(call)})
    warm = int(time.time()) - 3_605  # no execution that is due below
    execute_batch(wired, [Message("w", Execution("quiet", "same", warm, warm, 1).encode())])
    called.clear()
    time.sleep(-(time.time() - 0.4) % 1)  # both seconds are near enough to be held
    at = math.ceil(time.time())
    due = [("hostile", f"h{n}", at) for n in range(hostile)] + [
        ("quiet", "same", at),
        ("quiet", "later", at + 1),
    ]
    minute = at - at % 60
    messages = [
        Message(f"m{n}", Execution(tenant, name, minute, second, 1).encode())
        for n, (tenant, name, second) in enumerate(due)
    ]
    quota = Quota("neighbours", MEMORY_MB) if share else None
    if quota:
        quota.limit()
        quota.add(os.getpid())
    execute_batch(wired, messages)
    return {name: called[name] - second for tenant, name, second in due if tenant == "quiet"} | {
        "hostile": float(sum(name.startswith("h") for name in called))
    }


if __name__ == "__main__":
    print(json.dumps(lateness(int(sys.argv[1]), int(sys.argv[2]), share="--share" in sys.argv)))
