"""AWS's tables or pollers are away for minutes or hours: no execution is lost, no attempt used up, none a dead letter.

Everything else goes on: a poll receives, a call of the tables fails, the queue hides what failed. Afterwards each fire
time has one record within 15 minutes.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from executor.stages import Message
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

TEMPLATE = (Path(__file__).resolve().parents[2] / "serverless.yml").read_text()
BEGIN = at("2026-11-21T03:33:30Z")
RECOVERED_S = 900
JOBS = {
    "minutely": job(every=60, anchor="2026-11-21T00:00:00Z", catch_up="all"),
    "alone": job(every=60, anchor="2026-11-21T00:00:30Z", overlap="skip"),
    "keyed": job(every=120, anchor="2026-11-21T00:00:00Z", concurrency={"key": "k", "limit": 1}),
    "event": job(every=60, anchor="2026-11-21T00:00:10Z", invocation="Event"),
}


def max_receives() -> int:
    written = re.search(r"^    maxReceiveCount: (\d+)$", TEMPLATE, re.MULTILINE)
    assert written
    return int(written[1])


def away(name: str) -> None:
    raise EndpointConnectionError(endpoint_url="https://dynamodb.example")


def world_with_a_bound() -> tuple[World, list[str]]:
    """A stage with the jobs of two tenants, and the bodies that its queue has given up."""
    world = make_world(MemoryDynamoDB(), "2026-11-21T03:12:00Z")
    for tenant in ("acme", "bolt"):
        for name, definition in JOBS.items():
            world.registry.put(tenant, name, definition)
    dead: list[str] = []
    give_back, most = world.sqs.give_back, max_receives()

    def bounded(message: Message) -> None:
        if message.receives >= most:
            dead.append(message.body)
        else:
            give_back(message)

    world.sqs.give_back = bounded  # type: ignore[method-assign]
    whole_tick = world.tick

    def tick() -> None:
        try:
            whole_tick()
        except EndpointConnectionError:
            world.clock.sleep(1)

    world.tick = tick  # type: ignore[method-assign]
    return world, dead


@pytest.mark.parametrize("outage_s", [300, 3_600, 10_800])
def test_an_outage_of_the_tables_costs_no_execution_and_no_attempt(outage_s: int) -> None:
    world, dead = world_with_a_bound()
    world.run_until(text(BEGIN), ticks=True)
    world.dynamodb.before = away
    world.run_until(text(BEGIN + outage_s), ticks=True)
    world.dynamodb.before = lambda name: None
    world.run_until(text(BEGIN + outage_s + RECOVERED_S), ticks=True)
    assert dead == []
    assert_recorded(world, BEGIN + outage_s)


@pytest.mark.parametrize("outage_s", [300, 3_600, 10_800])
def test_an_outage_of_the_pollers_costs_no_execution_and_no_attempt(outage_s: int) -> None:
    world, dead = world_with_a_bound()
    world.run_until(text(BEGIN), ticks=True)
    deliver = world.deliver
    world.deliver = lambda: None  # type: ignore[method-assign]
    for tick_at in range(at("2026-11-21T03:38:00Z"), BEGIN + outage_s, 600):
        world.clock.move_to(tick_at)
        world.tick()
    world.clock.move_to(BEGIN + outage_s)
    world.deliver = deliver  # type: ignore[method-assign]
    world.run_until(text(BEGIN + outage_s + RECOVERED_S), ticks=True)
    assert dead == []
    assert_recorded(world, BEGIN + outage_s)


def assert_recorded(world: World, until: int) -> None:
    """Each fire time before is in exactly one record; no run has used an attempt in vain, or was called twice."""
    for tenant in ("acme", "bolt"):
        for name in JOBS:
            stored = world.store.get(tenant, name)
            step = stored.schedule.timing.interval_s  # type: ignore[union-attr]
            anchor = stored.schedule.timing.anchor_at  # type: ignore[union-attr]
            covered: Counter[int] = Counter()
            for run in world.run_items(tenant, name):
                assert run["status"] in ("succeeded", "dispatched", "skipped", "queued"), (name, run)
                assert run.get("attempt", 1) <= 1, (name, run)
                covered.update(range(run.get("skipped_from_at", run["fire_at"]), run["fire_at"] + 1, step))
            first = max(stored.effective_at, at("2026-11-21T03:12:01Z"))
            due = range(first + (anchor - first) % step, until, step)
            assert {fire_at: covered[fire_at] for fire_at in due if covered[fire_at] != 1} == {}, (
                tenant,
                name,
            )
    calls = Counter(event["execution_id"] for _, event in world.target.calls)
    assert [name for name, count in calls.items() if count > 1] == []


def text(instant: int) -> str:
    from common.timing.instants import rfc3339

    return rfc3339(instant)
