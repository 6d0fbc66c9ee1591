"""Random worlds in which a hostile tenant's partitions are throttled, beside a quiet tenant whose runs are on time.

`THROTTLED_WORLDS=5000 pytest tests/simulation/test_throttled_worlds.py` plays more of them than CI does.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from common.planning.execution import Execution
from common.platform.tenants import Tenants
from common.projection.state import PROJECTION
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.table import Query
from common.tenants.rules_cache import KnownTenants
from executor import threads
from executor.batch import execute_batch
from executor.pipeline import Message
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.simulation.partitions import READ_UNITS, Partition, PartitionedDynamoDB, Throughput
from tests.worlds import ARN, World, at, job, make_world

WORLDS: Final = int(os.environ.get("THROTTLED_WORLDS", "100"))
# Of ten; the others are played before a release.
BATCHES: Final = [0, 1, *(pytest.param(batch, marks=pytest.mark.release) for batch in range(2, 10))]
BEGIN, TICK, END = "2026-11-21T03:16:00Z", "2026-11-21T03:18:00Z", "2026-11-21T03:29:30Z"
LATER: Final = "2026-11-21T04:29:30Z"
# All of the hostile jobs are due then, and quiet ones.
CROWDED: Final = "2026-11-21T03:21:00Z"
_REQUEST_S: Final = 0.005
_MAX_LATENESS_S: Final = 0.1
_LARGE: Final = 120_000


class Throttling:
    """Requests take time on the world's clock. `hot` partitions are throttled by what others ask of them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.hot: set[Partition] = set()
        self.is_throttling = False
        self.throughput = Throughput()
        self.world = make_world(
            PartitionedDynamoDB(MemoryDynamoDB(), self), BEGIN, pauses_move_the_clock=True
        )
        rules = KnownTenants(self.world.table("tenants"))
        self.world.executor = replace(self.world.executor, tenants=rules)

    def begin(self) -> None:
        """A request takes some milliseconds."""
        if self.is_throttling:
            self.world.clock.sleep(_REQUEST_S)

    def admits(self, partition: Partition, units: float, is_write: bool) -> bool:
        """Whether the partition has units left."""
        if not self.is_throttling:
            return True
        if partition in self.hot and self.rng.random() < 0.9:
            return False
        return self.throughput.admits(partition, units, is_write, self.world.clock.now())

    def pause(self, nth: int) -> None:
        """As botocore waits."""
        self.world.clock.sleep(self.rng.random() * 2**nth)


class ForkedTime:
    """Threads in simulated time: each runs at once, from the moment of its start, and nobody waits for its end."""

    def __init__(self, world: World) -> None:
        self._clock = world.clock

    def submit(self, work: Callable[[], None]) -> None:
        started_at = self._clock.now()
        try:
            work()
        finally:
            self._clock.move_to(started_at)


def deliver(stage: Throttling) -> None:
    """Deliver the visible messages in batches, all from the same moment: each has an executor."""
    world, now = stage.world, stage.world.clock.now()
    while batch := _received(world, stage.rng.randint(1, 10)):
        stage.is_throttling = True
        reports, failed = execute_batch(world.executor, batch, world.redelivery)
        stage.is_throttling = False
        world.reports += reports
        for message in batch:
            if message.message_id in failed:
                world.sqs.give_back(message)
        world.clock.move_to(now)


def _received(world: World, count: int) -> list[Message]:
    received = (world.sqs.receive() for _ in range(count))
    return [message for message in received if message]


def large(stage: Throttling) -> None:
    """Jobs whose reads alone take more than the partition has."""
    count = stage.rng.choice([9, 2 * READ_UNITS * 4096 // _LARGE])
    for n in range(count):
        stage.world.registry.create("hostile", f"large-{n}", job(at=CROWDED, payload="x" * _LARGE))


def hot_jobs(stage: Throttling) -> None:
    """Jobs of a tenant whose partition of the jobs table is throttled."""
    small_jobs(stage, "hot-jobs")
    stage.hot.add(Partition("jobs", "hot-jobs"))


def hot_tenant(stage: Throttling) -> None:
    """Jobs of a tenant whose rules cannot be read."""
    small_jobs(stage, "hot-tenant")
    stage.hot.add(Partition("tenants", keys.tenant("hot-tenant")["pk"]))


def hot_runs(stage: Throttling) -> None:
    """Jobs whose claims and locks are throttled."""
    for job_id in small_jobs(stage, "hot-runs"):
        stage.hot.add(Partition("runs", keys.runs_of_job("hot-runs", job_id)))
        stage.hot.add(Partition("runs", keys.overlap_permit("hot-runs", job_id)["pk"]))


def hot_retries(stage: Throttling) -> None:
    """Jobs whose targets throttle, and the items with the times of whose retries are throttled, too."""
    for job_id in small_jobs(stage, "hot-retries"):
        stage.hot.add(Partition("runs", keys.throttled("hot-retries", job_id)["pk"]))


def failing(stage: Throttling) -> None:
    """Large jobs that fail at each attempt."""
    for n in range(stage.rng.randint(1, 20)):
        fields: dict[str, Any] = {"payload": "x" * _LARGE, "retry": {"max_attempts": 2, "base_s": 5}}
        stage.world.registry.create("hostile", f"failing-{n}", job(cron="* * * * *", **fields))


def deleted(stage: Throttling) -> None:
    """Jobs that are gone before they are due."""
    for job_id in small_jobs(stage, "gone"):
        stage.world.store.delete("gone", job_id)


def small_jobs(stage: Throttling, tenant: str) -> list[str]:
    """Register some small jobs of the tenant, due at the crowded second."""
    names = [f"job-{n}" for n in range(stage.rng.choice([1, 9, 99]))]
    for name in names:
        fields = {"overlap": stage.rng.choice(["allow", "allow", "skip"])}
        stage.world.registry.create(tenant, name, job(at=CROWDED, **fields))
    return names


HOSTILE: Final = (large, hot_jobs, hot_tenant, hot_runs, hot_retries, failing, deleted)


def answer(event: Mapping[str, Any]) -> Outcome:
    names = event["minute8"]
    if names["tenant"] == "hot-retries":
        return Outcome(ok=False, throttled=True, error_type="TooManyRequestsException", error="slow down")
    return Outcome(ok=not names["job_id"].startswith("failing"), error_type="Failed")


@pytest.mark.parametrize("batch", BATCHES)
def test_the_quiet_tenants_runs_are_all_there_once_and_on_time(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(batch, WORLDS, 10):
        stage = Throttling(random.Random(seed))
        world, rng = stage.world, stage.rng
        forked = ForkedTime(world)
        monkeypatch.setattr(threads, "call_threads", lambda forked=forked: forked)
        monkeypatch.setattr(threads, "event_threads", lambda forked=forked: forked)
        world.deliver = lambda stage=stage: deliver(stage)  # type: ignore[method-assign,misc]
        world.target.answer = answer
        for n in range(rng.randint(1, 3)):
            fields = rng.choice([{}, {"invocation": "Event"}, {"overlap": "skip"}])
            world.registry.create("quiet", f"job-{n}", job(cron="* * * * *", **fields))
        hostile = rng.sample(HOSTILE, rng.randint(1, 4))
        for play in hostile:
            play(stage)
        world.run_until(TICK)
        world.tick()
        world.run_until(END)
        _check(world, seed)
        if hot_retries in hostile:
            stage.hot.clear()
            world.target.answer = lambda event: Outcome(ok=True)
            world.run_until(LATER, ticks=True)
            _check_retries(world, seed)


def _check(world: World, seed: int) -> None:
    due = list(range(at("2026-11-21T03:17:00Z"), at(END), 60))
    for stored in world.store.list_jobs("quiet", limit=10):
        calls = [
            (at(context["fire_at"]), called_at - at(context["fire_at"]))
            for called_at, context in world.target.calls
            if (context["tenant"], context["job_id"]) == ("quiet", stored.job_id)
        ]
        late = {fire_at: lateness_s for fire_at, lateness_s in calls if lateness_s >= _MAX_LATENESS_S}
        assert (sorted(fire_at for fire_at, _ in calls), late) == (due, {}), f"seed {seed}"
        assert set(world.statuses("quiet", stored.job_id)) <= {"succeeded", "dispatched"}, f"seed {seed}"


def _check_retries(world: World, seed: int) -> None:
    """What was throttled has ended, once each."""
    for stored in world.store.list_jobs("hot-retries", limit=100):
        assert world.statuses("hot-retries", stored.job_id) == ["succeeded"], f"seed {seed}"


def waits_for_hours(world: World, tenant: str, count: int) -> list[str]:
    """Register jobs whose runs fail once, and wait two hours for their next attempts."""
    retry: dict[str, Any] = {"max_attempts": 2, "base_s": 7_200, "cap_s": 7_200, "factor": 1}
    for n in range(count):
        world.registry.create(tenant, f"waits-{n}", job(at=CROWDED, retry=retry))
    return [f"waits-{n}" for n in range(count)]


@pytest.mark.parametrize("batch", BATCHES)
def test_open_runs_go_on_beside_those_whose_reads_are_throttled(batch: int) -> None:
    """The table `due` is wiped, so the messages of all runs that wait are lost but for their records."""
    for seed in range(batch, WORLDS, 10):
        stage = Throttling(random.Random(seed))
        world, rng = stage.world, stage.rng
        for tenant in ("a-hostile", "quiet"):
            Tenants(world.tables.tenants, world.clock).create(
                tenant, "", world.clock.now(), {"allowed_targets": [f"{ARN}*"]}
            )
        world.target.answer = lambda event: Outcome(ok=False, error_type="Later")
        hostile = waits_for_hours(world, "a-hostile", rng.choice([1, 9, 40]))
        waits_for_hours(world, "quiet", rng.randint(1, 3))
        world.run_until(TICK)
        world.tick()
        world.run_until(rng.choice([END, "2026-11-21T03:48:30Z"]), ticks=True)
        if rng.random() < 0.5:
            world.project()
        for item in world.dynamodb.scan(TableName="test-due")["Items"]:
            world.dynamodb._set("test-due", item, None)
        partitions = [Partition("runs", keys.runs_of_job("a-hostile", job_id)) for job_id in hostile]
        partitions += [Partition("jobs", "a-hostile"), Partition("runs", keys.projected_windows("a-hostile"))]
        stage.hot |= set(rng.sample(partitions, rng.randint(1, len(partitions))))
        stage.is_throttling = True
        done = world.round(PROJECTION, world.projector.steps)
        stage.is_throttling = False
        waiting = Counter(
            Execution.decode(item["body"]).tenant
            for partition in keys.partitions("POSTPONED")
            for item in world.table("due").query(Query(partition))
        )
        assert waiting["quiet"] == sum(1 for _ in world.store.list_jobs("quiet", limit=10)), f"seed {seed}"
        is_named = any(problem.startswith("a-hostile") for problem in done.problems)
        assert is_named or waiting["a-hostile"] == len(hostile), f"seed {seed}"
