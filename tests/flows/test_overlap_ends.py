"""Overlap with crashes, takeovers, cancels and pauses: no lock is stuck, nothing runs twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.errors import InvalidInput
from common.planning.execution import Execution
from common.runs.outcome import Outcome
from executor.pipeline import Message
from tests.worlds import Killed, World, at, job

FAILS = Outcome(ok=False, error_type="Boom")
OK = Outcome(ok=True)


def dies(event: Mapping[str, Any]) -> Outcome:
    raise Killed


def minutely(world: World, overlap: str, **fields: Any) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", overlap=overlap, **fields))


def fire(world: World) -> str:
    """The executor of 3:13 dies in its call; the next ones succeed."""
    world.target.answer = dies
    world.run_until("2026-11-21T03:13:00Z")
    world.target.answer = lambda event: OK
    return "alice:job:20261121T031300Z"


@pytest.mark.parametrize(
    ("on_crash", "status", "attempts"), [("retry", "succeeded", 2), ("fail", "failed", 1)]
)
@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
def test_a_dead_run_whose_lock_another_run_has_ends_its_attempt_and_tries_again_if_its_job_permits(
    world: World, overlap: str, on_crash: str, status: str, attempts: int
) -> None:
    minutely(world, overlap, timeout_s=30, retry={"base_s": 10}, on_crash=on_crash)
    fire(world)
    under_way = []

    def busy_when_it_comes_back(event: Mapping[str, Any]) -> Outcome:
        under_way.append(event["minute8"]["fire_at"])
        if event["minute8"]["fire_at"] == "2026-11-21T03:18:00Z":
            world.clock.move_to(at("2026-11-21T03:18:31Z"))  # the dead one's message is visible at 3:18:30
            world.deliver()
        return OK

    world.target.answer = busy_when_it_comes_back
    world.run_until("2026-11-21T03:25:30Z")
    first = world.run_items("alice", "job")[0]
    assert (first["status"], first["attempt"]) == (status, attempts)
    assert first["attempts"][0]["error_type"] == "ExecutorDied"
    assert len(under_way) == len(set(under_way))
    assert set(world.statuses("alice", "job")) == {"succeeded", status}


def test_a_cancelled_retry_lets_the_next_run_start(world: World) -> None:
    minutely(world, "skip", retry={"base_s": 900, "cap_s": 900})
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:13:30Z")
    world.target.answer = lambda event: OK
    world.manual.cancel("alice", "alice:job:20261121T031300Z", "")
    world.run_until("2026-11-21T03:14:30Z")
    assert world.statuses("alice", "job") == ["failed", "succeeded"]


def waiting_behind(world: World, meanwhile: Any) -> None:
    """3:13 runs until 3:15:30. The run of 3:14 queues; `meanwhile` happens at 3:14:30; at 3:15 another is due."""
    minutely(world, "queue_one", timeout_s=200)

    def slow(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["fire_at"] == "2026-11-21T03:13:00Z":
            world.clock.move_to(at("2026-11-21T03:14:00Z"))
            world.deliver()
            assert world.statuses("alice", "job") == ["running", "queued"]
            world.clock.move_to(at("2026-11-21T03:14:30Z"))
            meanwhile()
            world.clock.move_to(at("2026-11-21T03:15:00Z"))
            world.deliver()
            world.clock.move_to(at("2026-11-21T03:15:30Z"))
        return OK

    world.target.answer = slow
    world.run_until("2026-11-21T03:16:30Z")


def test_the_place_of_a_cancelled_run_is_free(world: World) -> None:
    waiting_behind(world, lambda: world.manual.cancel("alice", "alice:job:20261121T031400Z", ""))
    assert world.statuses("alice", "job") == ["succeeded", "skipped(cancelled)", "succeeded", "succeeded"]


def test_a_run_that_waited_when_a_pause_began_blocks_none_and_runs_after_the_resume(world: World) -> None:
    def pause() -> None:
        world.store.pause("alice", "job")

    waiting_behind(world, pause)
    world.store.resume("alice", "job")
    world.run_until("2026-11-21T03:17:00Z")
    assert world.statuses("alice", "job")[-1] == "succeeded"
    world.run_until("2026-11-21T03:19:30Z")
    assert world.statuses("alice", "job")[:4] == ["succeeded"] * 2 + ["skipped(paused)"] * 2
    assert set(world.statuses("alice", "job")[4:]) == {"succeeded"}


def test_deleted_while_one_waits_both_end_explained(world: World) -> None:
    waiting_behind(world, lambda: world.store.delete("alice", "job"))
    assert world.statuses("alice", "job")[:3] == ["failed", "skipped(deleted)", "skipped(deleted)"]
    assert world.run_items("alice", "job")[0]["attempts"][0]["error_type"] == "deleted"


def test_a_queued_run_comes_also_where_the_one_before_it_died(world: World) -> None:
    """The run of 3:15 finds that the lease is over, and wakes it."""
    minutely(world, "queue_one", timeout_s=90)
    fire(world)
    world.run_until("2026-11-21T03:14:00Z")
    assert world.statuses("alice", "job") == ["running", "queued"]
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job")[:2] == ["running", "succeeded"]


def test_a_run_retried_by_hand_waits_its_turn(world: World) -> None:
    minutely(world, "skip", timeout_s=200, retry={"max_attempts": 1})
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:13:30Z")

    def retried_meanwhile(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["fire_at"] == "2026-11-21T03:14:00Z":
            world.manual.retry("alice", "alice:job:20261121T031300Z")
            world.clock.sleep(5)
            world.deliver()
            assert world.statuses("alice", "job") == ["retrying", "running"]
        return OK

    world.target.answer = retried_meanwhile
    world.run_until("2026-11-21T03:14:30Z")
    assert world.statuses("alice", "job") == ["succeeded", "succeeded"]


def test_throttled_it_keeps_its_lock(world: World) -> None:
    minutely(world, "skip", retry={"base_s": 100})
    world.target.answer = lambda event: Outcome(
        ok=False, throttled=True, error_type="TooManyRequestsException"
    )
    world.run_until("2026-11-21T03:13:01Z")
    world.target.answer = lambda event: OK
    world.run_until("2026-11-21T03:16:30Z")
    assert world.statuses("alice", "job")[:2] == ["succeeded", "skipped(overlap)"]
    assert world.statuses("alice", "job")[-1] == "succeeded"


def test_a_backfills_runs_wait_for_each_other_instead_of_being_skipped(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 * * * *", overlap="skip", timeout_s=20))
    running: list[str] = []

    def alone(event: Mapping[str, Any]) -> Outcome:
        running.append(event["minute8"]["execution_id"])
        assert len(running) == 1, running
        world.clock.sleep(3)
        world.deliver()
        running.clear()
        return OK

    world.target.answer = alone
    start, end = at("2026-11-20T12:00:00Z"), at("2026-11-20T18:00:00Z")
    world.manual.backfills.start("alice", "job", start, end, concurrency=3, backfill_id="x")
    world.run_until("2026-11-21T03:50:00Z")
    assert world.statuses("alice", "job") == ["succeeded"] * 6


def test_a_duplicate_of_an_ended_run_leaves_the_lock_to_the_current_run(world: World) -> None:
    minutely(world, "skip", timeout_s=200)
    body = world.sqs.bodies[0]

    def duplicate(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["fire_at"] == "2026-11-21T03:14:00Z":
            assert world.execute(Message("copy", body)).result == "duplicate"
            world.clock.move_to(at("2026-11-21T03:15:00Z"))
            world.deliver()
        return OK

    world.target.answer = duplicate
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job") == ["succeeded", "succeeded", "skipped(overlap)"]


@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
def test_a_target_that_is_not_awaited_cannot_say_when_it_ends(world: World, overlap: str) -> None:
    with pytest.raises(InvalidInput, match="needs to know when a run ends") as refused:
        world.registry.create("alice", "job", job(cron="* * * * *", overlap=overlap, invocation="Event"))
    assert refused.value.field == "overlap"


def test_copies_of_a_message_do_not_multiply_from_run_to_run(world: World) -> None:
    """The end of each run wakes the next one in line; the copies of its message that come after it wake nobody."""
    world.registry.create("alice", "job", job(cron="0 0 1 1 *", overlap="skip"))
    now = int(world.clock.now())
    runs = [
        Execution("alice", "job", now - n, now, 1, trigger="backfill", trigger_id=f"b{n}") for n in range(8)
    ]

    def busy_at_first(event: Mapping[str, Any]) -> Outcome:
        if len(world.target.calls) == 1:
            world.queue.send(runs[1:])
            world.deliver()
            assert world.statuses("alice", "job").count("queued") == 7
            world.queue.send([runs[0]] * 4)
        return OK

    world.target.answer = busy_at_first
    world.queue.send(runs[:1])
    world.run_until("2026-11-21T04:12:00Z")
    assert len(world.target.calls) == len(runs)
    assert set(world.statuses("alice", "job")) == {"succeeded"}
    assert len(world.reports) < 5 * len(runs)
