"""Overlap: allow, skip, queue_one. In simulated time a call takes as long as its answer moves the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.runs.outcome import Outcome
from executor.pipeline import Message
from tests.worlds import Killed, World, at, job

FAILS = Outcome(ok=False, error_type="Boom", error="it went wrong")


def overlapping(world: World, overlap: str, deliveries: int = 1) -> None:
    """A job every minute whose first run still runs at the next `deliveries` fire times."""
    world.registry.create("alice", "job", job(cron="* * * * *", overlap=overlap, timeout_s=200))

    def first_takes_long(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["fire_at"] == "2026-11-21T03:13:00Z":
            for n in range(1, deliveries + 1):
                world.clock.move_to(at("2026-11-21T03:13:00Z") + 60 * n)
                world.deliver()
            world.clock.sleep(10)
        return Outcome(ok=True)

    world.target.answer = first_takes_long
    world.run_until("2026-11-21T03:13:00Z")


def test_allow_runs_both(world: World) -> None:
    overlapping(world, "allow")
    assert world.target.fire_times("job") == ["2026-11-21T03:13:00Z", "2026-11-21T03:14:00Z"]


def test_skip_skips_and_says_which_run_is_going(world: World) -> None:
    overlapping(world, "skip")
    assert world.statuses("alice", "job") == ["succeeded", "skipped(overlap)"]
    assert "20261121T031300Z is still going" in world.run_items("alice", "job")[1]["detail"]
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job")[-1] == "succeeded"


def test_queue_one_runs_the_next_as_soon_as_the_first_has_ended(world: World) -> None:
    overlapping(world, "queue_one")
    assert world.statuses("alice", "job") == ["succeeded", "succeeded"]
    (_, second) = world.run_items("alice", "job")
    # It was due at 3:14:00, and started when the first ended, at 3:14:10.
    assert (second["waited_s"], second["lateness_s"]) == (10, 0)


def test_queue_one_skips_those_after_the_one_that_waits(world: World) -> None:
    overlapping(world, "queue_one", deliveries=3)
    world.deliver()
    assert world.statuses("alice", "job") == [
        "succeeded",
        "succeeded",
        "skipped(overlap)",
        "skipped(overlap)",
    ]


@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
def test_the_lock_of_a_killed_executor_ends_with_its_lease(world: World, overlap: str) -> None:
    def die(event: Mapping[str, Any]) -> Outcome:
        raise Killed

    world.registry.create("alice", "job", job(cron="* * * * *", overlap=overlap, timeout_s=30))
    world.target.answer = die
    world.run_until("2026-11-21T03:13:00Z")
    world.target.answer = lambda event: Outcome(ok=True)
    world.run_until("2026-11-21T03:19:59Z")
    assert world.statuses("alice", "job") == ["succeeded"] * 7  # 3:13 by redelivery, the others on time


def test_a_run_that_waits_for_a_retry_is_still_going(world: World) -> None:
    retry = {"max_attempts": 2, "base_s": 120}
    world.registry.create("alice", "job", job(cron="* * * * *", overlap="skip", retry=retry))
    world.target.answer = lambda event: (
        FAILS
        if event["minute8"]["attempt"] == 1 and event["minute8"]["fire_at"][14:16] == "13"
        else Outcome(ok=True)
    )
    world.run_until("2026-11-21T03:19:30Z")
    statuses = world.statuses("alice", "job")
    assert statuses[:2] == ["succeeded", "skipped(overlap)"]
    assert statuses[-1] == "succeeded"
    assert len(world.run_items("alice", "job")[0]["attempts"]) == 2


def test_a_duplicate_does_not_leave_the_lock_taken(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", overlap="skip", timeout_s=200))
    body = world.sqs.bodies[0]
    world.run_until("2026-11-21T03:13:30Z")
    assert world.execute(Message("duplicate", body)).result == "duplicate"
    world.run_until("2026-11-21T03:14:30Z")
    assert world.statuses("alice", "job") == ["succeeded", "succeeded"]


@pytest.mark.parametrize(
    ("policy", "becomes"),
    [
        ({}, "succeeded"),
        ({"start_deadline_s": 120}, "skipped(misfire)"),
        ({"retry": {"max_age_s": 120}}, "skipped(paused)"),
    ],
)
def test_paused_while_one_waits_the_waiting_one_waits_for_the_end_of_the_pause(
    world: World, policy: dict[str, Any], becomes: str
) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", overlap="queue_one", timeout_s=200, **policy))

    def paused_meanwhile(event: Mapping[str, Any]) -> Outcome:
        world.clock.sleep(60)
        world.deliver()
        assert world.statuses("alice", "job") == ["running", "queued"]
        world.store.pause("alice", "job", "enough")
        return Outcome(ok=True)

    world.target.answer = paused_meanwhile
    world.run_until("2026-11-21T03:15:50Z")
    assert world.statuses("alice", "job") == ["succeeded", "queued", "skipped(paused)"]
    assert "enough" in world.run_items("alice", "job")[1]["detail"]
    world.target.answer = lambda event: Outcome(ok=True)
    world.run_until("2026-11-21T03:18:30Z")
    world.store.resume("alice", "job")
    world.run_until("2026-11-21T03:22:30Z")
    assert world.statuses("alice", "job")[:3] == ["succeeded", becomes, "skipped(paused)"]
    assert world.statuses("alice", "job")[-1] == "succeeded"
