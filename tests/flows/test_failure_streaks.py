"""The failures in a row have an item of their own: what a failure and a success cost, and what they count."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from typing import Any

import pytest

from common.jobs.failures import FailureCounts
from common.jobs.job import Job
from common.jobs.not_running import NotRunning
from common.runs.outcome import Outcome
from common.storage import keys
from tests.faults.stage import Stage, staged
from tests.faults.wire import Fault
from tests.worlds import World, job

FAILS = Outcome(ok=False, permanent=True, error_type="Boom", error="it went wrong")
WORKS = Outcome(ok=True)
JOB_KEY = keys.job("alice", "job")


def register(world: World) -> Job:
    world.registry.create("alice", "job", job(cron="* * * * *", payload="x" * 50_000))
    return world.store.get("alice", "job")


def counted(world: World) -> int:
    return world.store.get("alice", "job").failures_in_row


def run_name(number: int) -> str:
    return f"20261121T{number:06d}Z#1"


def writes_of_jobs(world: World) -> Counter[str]:
    """The items of the jobs table that are written from now on, by their sort keys."""
    written: Counter[str] = Counter()
    set_item = world.dynamodb._set

    def noted(table: str, key: Any, item: Any) -> None:
        if table == "test-jobs":
            written[key["sk"]["S"]] += 1
        set_item(table, key, item)

    world.dynamodb._set = noted  # type: ignore[method-assign]
    return written


def test_of_many_failures_only_the_first_writes_the_job(world: World) -> None:
    register(world)
    world.target.answer = lambda event: FAILS
    written = writes_of_jobs(world)
    world.run_until("2026-11-21T03:17:30Z")
    assert counted(world) == 5
    assert written == {"JOB#job": 1, "STREAK#job": 5}


def test_a_success_without_a_streak_reads_and_writes_no_count(world: World) -> None:
    job_before = register(world)
    world.scheduler.tick()
    written = writes_of_jobs(world)
    world.run_until("2026-11-21T03:15:30Z")
    assert written == {}
    assert world.table("jobs").get(keys.failure_streak("alice", "job")) is None
    assert world.store.get("alice", "job") == job_before


@pytest.mark.parametrize("damage", ["many", [1], None, "absent"])
def test_a_count_that_nobody_can_read_is_one_and_a_success_ends_it(world: World, damage: object) -> None:
    register(world)
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:15:30Z")
    key = keys.failure_streak("alice", "job")
    item = (world.table("jobs").get(key) or {}) | {"failures": damage}
    world.table("jobs").put({name: value for name, value in item.items() if value != "absent"})
    assert counted(world) == 1
    world.target.answer = lambda event: WORKS
    world.run_until("2026-11-21T03:16:30Z")
    assert counted(world) == 0
    assert "is_failing" not in (world.table("jobs").get(JOB_KEY) or {})


@pytest.mark.parametrize("seed", range(20))
def test_the_count_is_the_recount_of_any_failures_successes_and_changes(world: World, seed: int) -> None:
    rng = random.Random(seed)
    register(world)
    expected = 0
    for number in range(60):
        loaded = world.store.get("alice", "job")
        match rng.choice(["fails", "fails", "fails", "works", "changes"]):
            case "fails":
                expected += 1
                for _ in range(rng.choice([1, 1, 2])):  # a message can come twice
                    assert world.store.failures.add(loaded, run_name(number)) == expected
            case "works":
                if loaded.is_failing:
                    assert world.store.failures.end(loaded, run_name(number)) == expected
                expected = 0
            case "changes":
                world.store.pause("alice", "job", f"note {number}")
                expected = 0
        assert counted(world) == expected
        item = world.table("jobs").get(JOB_KEY) or {}
        assert item.get("is_failing", False) is (expected > 0)


def test_concurrent_failures_are_all_counted(world: World) -> None:
    loaded = register(world)
    counts = [FailureCounts(world.table("jobs"), world.clock) for _ in range(8)]
    threads = [
        threading.Thread(target=count.add, args=(loaded, run_name(number)))
        for number, count in enumerate(counts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(world) == 8


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("failed_before", [0, 1, 2])
@pytest.mark.parametrize("action", ["add", "end"])
def test_a_fault_at_each_call_loses_and_doubles_nothing(
    fault: Fault, failed_before: int, action: str
) -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        prepare(stage, failed_before)

        def act(world: World) -> None:
            loaded = world.store.get("alice", "job")
            if action == "add":
                world.store.failures.add(loaded, run_name(9))
            elif loaded.is_failing:
                world.store.failures.end(loaded, run_name(9))

        def check(world: World, died: BaseException | None) -> None:
            act(world)  # the message comes again
            expected = failed_before + 1 if action == "add" else 0
            assert counted(world) == expected
            item = world.table("jobs").get(JOB_KEY) or {}
            assert item.get("is_failing", False) is (expected > 0), json.dumps(sorted(item))

        assert stage.each_call(act, fault, check) >= 1


def prepare(stage: Stage, failed_before: int) -> None:
    register(stage.world)
    for number in range(failed_before):
        stage.world.store.failures.add(stage.world.store.get("alice", "job"), run_name(number))
    stage.save()


def test_a_streak_that_has_expired_and_is_not_removed_yet_begins_anew(world: World) -> None:
    registered = register(world)
    counts, year_s = world.store.failures, 366 * 86_400
    assert counts.add(registered, run_name(1)) == 1
    assert counts.end(world.store.get("alice", "job"), run_name(2)) == 1
    world.clock.move_to(world.clock.now() + 2 * year_s)
    assert counts.add(world.store.get("alice", "job"), run_name(3)) == 1
    world.clock.move_to(world.clock.now() + 2 * year_s)
    noted = NotRunning("overlap", world.clock.now(), "3 runs in a row")
    assert world.store.not_running.begin("alice", "job", noted)
