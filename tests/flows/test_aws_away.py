"""Tables, KMS, the target's service or the pollers are away for minutes or hours, and everything else goes on.

No execution is lost, no attempt used up, none a dead letter. 15 minutes after the end each fire time has one record;
what still has to run goes out at twice the rate at which its job is due.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from executor.pipeline import Message
from executor.targets.answers import refused_by_aws
from scripts.parameters import DEFAULTS
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

BEGIN = at("2026-11-21T03:33:30Z")
RECOVERED_S = 900
JOBS = {
    "minutely": job(every=60, anchor="2026-11-21T00:00:00Z", catch_up="all"),
    "alone": job(every=60, anchor="2026-11-21T00:00:30Z", overlap="skip"),
    "keyed": job(every=120, anchor="2026-11-21T00:00:00Z", concurrency={"key": "k", "limit": 1}),
    "event": job(every=60, anchor="2026-11-21T00:00:10Z", invocation="Event"),
    "secret": job(every=60, anchor="2026-11-21T00:00:20Z", payload="secret://token"),
}


def away(name: str) -> None:
    raise EndpointConnectionError(endpoint_url="https://dynamodb.example")


def world_with_a_bound() -> tuple[World, list[str]]:
    """A stage with the jobs of two tenants, and the bodies that its queue has given up."""
    world = make_world(MemoryDynamoDB(), "2026-11-21T03:12:00Z")
    for tenant in ("acme", "bolt"):
        world.secrets.put(tenant, "token", "the value", world.clock.now())
        for name, definition in JOBS.items():
            world.registry.put(tenant, name, definition)
    dead: list[str] = []
    give_back, most = world.sqs.give_back, DEFAULTS["maxReceiveCount"]

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


def tables(world: World) -> Callable[[], None]:
    world.dynamodb.before = away
    return partial(setattr, world.dynamodb, "before", lambda name: None)


def pollers(world: World) -> Callable[[], None]:
    receive, next_at = world.sqs.receive, world.sqs.next_at
    world.sqs.receive = world.sqs.next_at = lambda: None  # type: ignore[method-assign]

    def come_back() -> None:
        world.sqs.receive, world.sqs.next_at = receive, next_at  # type: ignore[method-assign]

    return come_back


def kms(world: World) -> Callable[[], None]:
    world.secret_key.kms.refuses = "KMSInternalException"
    return partial(setattr, world.secret_key.kms, "refuses", "")


def service(world: World) -> Callable[[], None]:
    answer = world.target.answer
    world.target.answer = lambda event: refused_by_aws(
        EndpointConnectionError(endpoint_url="https://lambda.example"), 1
    )
    return partial(setattr, world.target, "answer", answer)


def outages() -> Iterator[Any]:
    """Each dependency for five minutes, an hour and three; the long ones are played before a release."""
    for cut in (tables, pollers, kms, service):
        for outage_s in (300, 3_600, 10_800):
            marks = [pytest.mark.release] if outage_s > 300 else []
            yield pytest.param(cut, outage_s, marks=marks, id=f"{cut.__name__}-{outage_s}")


@pytest.mark.parametrize(("cut", "outage_s"), list(outages()))
def test_an_outage_costs_no_execution_and_no_attempt(
    cut: Callable[[World], Callable[[], None]], outage_s: int
) -> None:
    world, dead = world_with_a_bound()
    world.run_until(text(BEGIN), ticks=True)
    mend, end = cut(world), BEGIN + outage_s
    world.run_until(text(end), ticks=True)
    mend()
    world.run_until(text(end + RECOVERED_S), ticks=True)
    assert dead == []
    assert_recorded(world, end)
    world.run_until(text(end + outage_s + 3 * RECOVERED_S), ticks=True)
    assert_over(world, end)
    assert_paced(world, end)


def assert_recorded(world: World, until: int) -> None:
    """Each fire time before is in exactly one record; no run has used an attempt in vain, or was called twice."""
    for tenant in ("acme", "bolt"):
        for name in JOBS:
            stored = world.store.get(tenant, name)
            step = stored.schedule.timing.interval_s  # type: ignore[union-attr]
            anchor = stored.schedule.timing.anchor_at  # type: ignore[union-attr]
            covered: Counter[int] = Counter()
            for run in world.run_items(tenant, name):
                assert run["status"] in ("succeeded", "dispatched", "skipped", "queued", "retrying"), (
                    name,
                    run,
                )
                assert run.get("attempt", 1) - run.get("throttles", 0) <= 1, (name, run)
                covered.update(range(run.get("skipped_from_at", run["fire_at"]), run["fire_at"] + 1, step))
            first = max(stored.effective_at, at("2026-11-21T03:12:01Z"))
            due = range(first + (anchor - first) % step, until, step)
            assert {fire_at: covered[fire_at] for fire_at in due if covered[fire_at] != 1} == {}, (
                tenant,
                name,
            )


def assert_over(world: World, end: int) -> None:
    """What was due before has come to its end, and was called at most once after the outage."""
    for tenant in ("acme", "bolt"):
        for name in JOBS:
            open_runs = [
                run
                for run in world.run_items(tenant, name)
                if run["fire_at"] < end and run["status"] not in ("succeeded", "dispatched", "skipped")
            ]
            assert open_runs == []
    calls = Counter(event["execution_id"] for called_at, event in world.target.calls if called_at >= end)
    assert [execution_id for execution_id, count in calls.items() if count > 1] == []


def assert_paced(world: World, end: int) -> None:
    """In any ten minutes a job is called as often as it is due, and as often again, or once a minute."""
    for tenant in ("acme", "bolt"):
        for name in JOBS:
            due = 600 // world.store.get(tenant, name).schedule.timing.interval_s  # type: ignore[union-attr]
            called_at = sorted(
                called_at
                for called_at, event in world.target.calls
                if (event["tenant"], event["job_id"]) == (tenant, name) and called_at >= end
            )
            most = max(bisect_left(called_at, at + 600) - n for n, at in enumerate(called_at))
            assert most <= due + max(due, 10) + 1, (tenant, name, most)


def text(instant: int) -> str:
    from common.timing.instants import rfc3339

    return rfc3339(instant)
