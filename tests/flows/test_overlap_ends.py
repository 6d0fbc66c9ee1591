"""Overlap with crashes, takeovers, cancels and pauses: no lock is stuck, nothing runs twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.errors import InvalidInput
from common.runs.records import Outcome
from executor.pipeline import Message
from tests.worlds import Killed, World, at, job

FAILS = Outcome(ok=False, error_type="Boom")
OK = Outcome(ok=True)


def dies(event: Mapping[str, Any]) -> Outcome:
    raise Killed


def minutely(w: World, overlap: str, **fields: Any) -> None:
    w.registry.create("alice", "job", job(cron="* * * * *", overlap=overlap, **fields))


def fire(w: World) -> str:
    """The executor of 3:13 dies in its call; the next ones succeed."""
    w.target.answer = dies
    w.run_until("2026-11-21T03:13:00Z")
    w.target.answer = lambda event: OK
    return "alice:job:20261121T031300Z:1"


@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
def test_a_dead_run_that_another_has_overtaken_ends_its_attempt_and_tries_again(
    w: World, overlap: str
) -> None:
    minutely(w, overlap, timeout_s=30, retry={"base_s": 10})
    fire(w)
    under_way = []

    def busy_when_it_comes_back(event: Mapping[str, Any]) -> Outcome:
        under_way.append(event["minute8"]["fire_at"])
        if event["minute8"]["fire_at"] == "2026-11-21T03:18:00Z":
            w.clock.move_to(at("2026-11-21T03:18:31Z"))  # the dead one's message is visible at 3:18:30
            w.deliver()
        return OK

    w.target.answer = busy_when_it_comes_back
    w.run_until("2026-11-21T03:25:30Z")
    first = w.run_items("alice", "job")[0]
    assert (first["status"], first["attempt"]) == ("succeeded", 2)
    assert first["attempts"][0]["error_type"] == "ExecutorDied"
    assert len(under_way) == len(set(under_way))
    assert set(w.statuses("alice", "job")) == {"succeeded"}


def test_a_cancelled_retry_lets_the_next_run_start(w: World) -> None:
    minutely(w, "skip", retry={"base_s": 900, "cap_s": 900})
    w.target.answer = lambda event: FAILS
    w.run_until("2026-11-21T03:13:30Z")
    w.target.answer = lambda event: OK
    w.manual.cancel("alice", "alice:job:20261121T031300Z:1", "")
    w.run_until("2026-11-21T03:14:30Z")
    assert w.statuses("alice", "job") == ["failed", "succeeded"]


def waiting_behind(w: World, meanwhile: Any) -> None:
    """3:13 runs until 3:15:30. The run of 3:14 queues; `meanwhile` happens at 3:14:30; at 3:15 another is due."""
    minutely(w, "queue_one", timeout_s=200)

    def slow(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["fire_at"] == "2026-11-21T03:13:00Z":
            w.clock.move_to(at("2026-11-21T03:14:00Z"))
            w.deliver()
            assert w.statuses("alice", "job") == ["running", "queued"]
            w.clock.move_to(at("2026-11-21T03:14:30Z"))
            meanwhile()
            w.clock.move_to(at("2026-11-21T03:15:00Z"))
            w.deliver()
            w.clock.move_to(at("2026-11-21T03:15:30Z"))
        return OK

    w.target.answer = slow
    w.run_until("2026-11-21T03:16:30Z")


def test_the_place_of_a_cancelled_run_is_free(w: World) -> None:
    waiting_behind(w, lambda: w.manual.cancel("alice", "alice:job:20261121T031400Z:1", ""))
    assert w.statuses("alice", "job") == ["succeeded", "skipped(cancelled)", "succeeded", "succeeded"]


def test_the_place_of_a_run_that_a_pause_skipped_is_free_after_the_resume(w: World) -> None:
    def pause() -> None:
        w.store.pause("alice", "job")

    waiting_behind(w, pause)
    w.store.resume("alice", "job")
    w.run_until("2026-11-21T03:17:30Z")
    assert w.statuses("alice", "job")[-1] == "succeeded"
    assert w.statuses("alice", "job")[:2] == ["succeeded", "skipped(paused)"]


def test_deleted_while_one_waits_both_end_explained(w: World) -> None:
    waiting_behind(w, lambda: w.store.delete("alice", "job"))
    assert w.statuses("alice", "job")[:3] == ["succeeded", "skipped(deleted)", "skipped(deleted)"]


def test_a_queued_run_comes_also_where_the_one_before_it_died(w: World) -> None:
    """Its message is delivered again when the dead executor's lease has ended."""
    minutely(w, "queue_one", timeout_s=90)
    fire(w)
    w.run_until("2026-11-21T03:14:00Z")
    assert w.statuses("alice", "job") == ["running", "queued"]
    w.run_until("2026-11-21T03:14:50Z")
    assert w.statuses("alice", "job") == ["running", "succeeded"]


def test_a_run_retried_by_hand_waits_its_turn(w: World) -> None:
    minutely(w, "skip", timeout_s=200, retry={"max_attempts": 1})
    w.target.answer = lambda event: FAILS
    w.run_until("2026-11-21T03:13:30Z")

    def retried_meanwhile(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["fire_at"] == "2026-11-21T03:14:00Z":
            w.manual.retry("alice", "alice:job:20261121T031300Z:1")
            w.clock.sleep(5)
            w.deliver()
            assert w.statuses("alice", "job") == ["retrying", "running"]
        return OK

    w.target.answer = retried_meanwhile
    w.run_until("2026-11-21T03:14:30Z")
    assert w.statuses("alice", "job") == ["succeeded", "succeeded"]


def test_throttled_it_keeps_its_lock(w: World) -> None:
    minutely(w, "skip", retry={"base_s": 100})
    w.target.answer = lambda event: Outcome(ok=False, throttled=True, error_type="TooManyRequestsException")
    w.run_until("2026-11-21T03:13:01Z")
    w.target.answer = lambda event: OK
    w.run_until("2026-11-21T03:16:30Z")
    assert w.statuses("alice", "job")[:2] == ["succeeded", "skipped(overlap)"]
    assert w.statuses("alice", "job")[-1] == "succeeded"


def test_a_backfills_runs_wait_for_each_other_instead_of_being_skipped(w: World) -> None:
    w.registry.create("alice", "job", job(cron="0 * * * *", overlap="skip", timeout_s=20))
    running: list[str] = []

    def alone(event: Mapping[str, Any]) -> Outcome:
        running.append(event["minute8"]["execution_id"])
        assert len(running) == 1, running
        w.clock.sleep(3)
        w.deliver()
        running.clear()
        return OK

    w.target.answer = alone
    start, end = at("2026-11-20T12:00:00Z"), at("2026-11-20T18:00:00Z")
    w.manual.backfills.start("alice", "job", start, end, concurrency=3, backfill_id="x")
    w.run_until("2026-11-21T03:50:00Z")
    assert w.statuses("alice", "job") == ["succeeded"] * 6


def test_a_duplicate_of_a_run_that_has_ended_leaves_the_lock_to_the_one_that_is_going(w: World) -> None:
    minutely(w, "skip", timeout_s=200)
    body = w.sqs.bodies[0]

    def duplicate(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["fire_at"] == "2026-11-21T03:14:00Z":
            assert w.executor.execute(Message("copy", body)).result == "duplicate"
            w.clock.move_to(at("2026-11-21T03:15:00Z"))
            w.deliver()
        return OK

    w.target.answer = duplicate
    w.run_until("2026-11-21T03:15:30Z")
    assert w.statuses("alice", "job") == ["succeeded", "succeeded", "skipped(overlap)"]


@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
def test_a_target_that_is_not_awaited_cannot_say_when_it_ends(w: World, overlap: str) -> None:
    with pytest.raises(InvalidInput, match="needs to know when a run ends") as refused:
        w.registry.create("alice", "job", job(cron="* * * * *", overlap=overlap, invocation="Event"))
    assert refused.value.field == "overlap"
