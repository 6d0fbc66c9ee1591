"""Manual commands that are interrupted, repeated or overtaken: nothing starts twice, nothing is stuck."""

from __future__ import annotations

import pytest

from common.errors import Conflict
from common.runs.outcome import Outcome
from executor.pipeline import Message
from tests.worlds import World, at, job

FAILS = Outcome(ok=False, permanent=True, error_type="Boom")
OK = Outcome(ok=True)
ONCE = "alice:job:20261121T031300Z"
START, END = at("2026-11-21T00:00:00Z"), at("2026-11-21T03:00:00Z")


def no_queue(monkeypatch: pytest.MonkeyPatch, world: World) -> pytest.MonkeyPatch:
    def refuses(**request: object) -> None:
        raise ConnectionError("no queue")

    monkeypatch.setattr(world.sqs, "send_message_batch", refuses)
    return monkeypatch


def test_run_now_asked_for_again_seconds_later_starts_once(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *"))
    first = world.manual.run_now("alice", "job", "abc")
    world.clock.sleep(7)
    assert world.manual.run_now("alice", "job", "abc") == first
    world.deliver()
    assert len(world.target.calls) == 1
    assert world.manual.run_now("alice", "job", "other") != first


def test_run_now_that_did_not_reach_the_queue_leaves_no_run_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *"))
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        no_queue(patched, world)
        world.manual.run_now("alice", "job", "abc")
    assert world.statuses("alice", "job") == []


def test_a_retry_that_did_not_reach_the_queue_can_be_requested_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z"))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:14:00Z")
    world.target.answer = lambda event: OK
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        no_queue(patched, world)
        world.manual.retry("alice", ONCE)
    assert world.statuses("alice", "job") == ["retrying"]
    world.manual.retry("alice", ONCE)
    world.manual.retry("alice", ONCE)
    world.deliver()
    assert (world.statuses("alice", "job"), len(world.target.calls)) == (["succeeded"], 2)


def test_an_old_failure_retried_by_hand_has_an_age_of_its_own(world: World) -> None:
    """A day later; its first try is throttled, and it is retried."""
    world.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z"))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-23T03:14:00Z")
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["attempt"] > 2, throttled=True, error_type="TooManyRequestsException"
    )
    world.manual.retry("alice", ONCE)
    world.run_until("2026-11-23T03:30:00Z")
    (run,) = world.run_items("alice", "job")
    assert (run["status"], run["attempt"]) == ("succeeded", 3)


def test_a_backfilled_run_is_tried_again_though_its_fire_time_is_long_past(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *", retry={"max_age_s": 3_600, "base_s": 5}))
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["attempt"] == 2, error_type="Boom")
    world.manual.backfills.start(
        "alice", "job", at("2026-11-01T00:00:00Z"), at("2026-11-04T00:00:00Z"), 1, "x"
    )
    world.run_until("2026-11-21T03:20:00Z")
    assert world.statuses("alice", "job") == ["succeeded"] * 3


def test_a_backfill_that_did_not_reach_the_queue_begins_when_requested_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.registry.create("alice", "job", job(cron="*/30 * * * *"))
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        no_queue(patched, world)
        world.manual.backfills.start("alice", "job", START, END, 2, "x")
    world.manual.backfills.start("alice", "job", START, END, 2, "x")
    with pytest.raises(Conflict):
        world.manual.backfills.start("alice", "job", START, END, 2, "x")
    world.run_until("2026-11-21T03:12:30Z")
    assert world.statuses("alice", "job") == ["succeeded"] * 6
    assert world.manual.backfills.progress("alice", "job", "x").sent == 6


def test_messages_delivered_twice_do_not_widen_a_backfill(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/10 * * * *", timeout_s=200))
    world.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    while message := world.sqs.receive():
        world.execute(message)
        sent = len(world.sqs.bodies)
        for copy in (message, Message(f"copy of {message.message_id}", message.body)):
            assert world.execute(copy).result == "duplicate"
        assert len(world.sqs.bodies) == sent, "an end that is told again moves nothing on"
    assert world.statuses("alice", "job") == ["succeeded"] * 18


def test_a_backfill_keeps_its_concurrency_past_skipped_runs(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/30 * * * *", start_deadline_s=60))
    world.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    world.clock.sleep(600)
    queue_lengths = []
    while message := world.sqs.receive():
        world.execute(message)
        queue_lengths.append(len(world.sqs))
    assert world.statuses("alice", "job") == ["skipped(misfire)"] * 2 + ["succeeded"] * 4
    assert max(queue_lengths) == 2


def test_a_backfill_ends_with_its_job_and_does_not_go_on_with_another_of_its_name(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/30 * * * *"))
    world.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    world.store.delete("alice", "job")
    world.deliver()
    assert world.statuses("alice", "job") == ["skipped(deleted)"] * 2
    assert (len(world.sqs), world.target.calls) == (0, [])


def test_a_backfills_runs_are_not_those_of_a_job_created_again(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/30 * * * *"))
    world.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    world.clock.sleep(2)
    world.store.delete("alice", "job")
    world.registry.create("alice", "job", job(cron="0 12 * * *"))
    world.run_until("2026-11-21T03:13:00Z")
    assert set(world.statuses("alice", "job")) == {"skipped(deleted)"}
    assert world.target.calls == []


def test_a_retry_that_comes_hours_after_its_age_is_not_made(world: World) -> None:
    """The queue stood still: the age is checked when an attempt starts, not when it was planned."""
    retry = {"base_s": 60, "max_age_s": 600}
    world.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z", retry=retry))
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    world.run_until("2026-11-21T03:13:10Z")
    world.clock.move_to(at("2026-11-21T06:00:00Z"))
    world.deliver()
    (run,) = world.run_items("alice", "job")
    assert (run["status"], run["error_type"], len(world.target.calls)) == ("failed", "misfire", 1)
    kind, detail = world.events[-1]
    assert (kind, detail["error_type"], "max_age_s" in detail["error"]) == ("Run Failed", "misfire", True)
