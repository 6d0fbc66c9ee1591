"""Manual commands that are interrupted, repeated or overtaken: nothing starts twice, nothing is stuck."""

from __future__ import annotations

import pytest

from common.errors import Conflict
from common.runs.records import Outcome
from executor.pipeline import Message
from tests.worlds import World, at, job

FAILS = Outcome(ok=False, permanent=True, error_type="Boom")
OK = Outcome(ok=True)
ONCE = "alice:job:20261121T031300Z:1"
START, END = at("2026-11-21T00:00:00Z"), at("2026-11-21T03:00:00Z")


def no_queue(monkeypatch: pytest.MonkeyPatch, w: World) -> pytest.MonkeyPatch:
    def refuses(**request: object) -> None:
        raise ConnectionError("no queue")

    monkeypatch.setattr(w.sqs, "send_message_batch", refuses)
    return monkeypatch


def test_run_now_asked_for_again_seconds_later_starts_once(w: World) -> None:
    w.registry.create("alice", "job", job(cron="0 12 * * *"))
    first = w.manual.run_now("alice", "job", "abc")
    w.clock.sleep(7)
    assert w.manual.run_now("alice", "job", "abc") == first
    w.deliver()
    assert len(w.target.calls) == 1
    assert w.manual.run_now("alice", "job", "other") != first


def test_run_now_that_did_not_reach_the_queue_leaves_no_run_behind(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.registry.create("alice", "job", job(cron="0 12 * * *"))
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        no_queue(patched, w)
        w.manual.run_now("alice", "job", "abc")
    assert w.statuses("alice", "job") == []


def test_a_retry_that_did_not_reach_the_queue_can_be_asked_for_again(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z"))
    w.target.answer = lambda event: FAILS
    w.run_until("2026-11-21T03:14:00Z")
    w.target.answer = lambda event: OK
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        no_queue(patched, w)
        w.manual.retry("alice", ONCE)
    assert w.statuses("alice", "job") == ["retrying"]
    w.manual.retry("alice", ONCE)
    w.manual.retry("alice", ONCE)
    w.deliver()
    assert (w.statuses("alice", "job"), len(w.target.calls)) == (["succeeded"], 2)


def test_an_old_failure_retried_by_hand_has_an_age_of_its_own(w: World) -> None:
    """A day later; its first try is throttled, and it is retried."""
    w.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z"))
    w.target.answer = lambda event: FAILS
    w.run_until("2026-11-23T03:14:00Z")
    w.target.answer = lambda event: Outcome(
        ok=event["minute8"]["attempt"] > 2, throttled=True, error_type="TooManyRequestsException"
    )
    w.manual.retry("alice", ONCE)
    w.run_until("2026-11-23T03:30:00Z")
    (run,) = w.run_items("alice", "job")
    assert (run["status"], run["attempt"]) == ("succeeded", 3)


def test_a_backfilled_run_is_tried_again_though_its_fire_time_is_long_past(w: World) -> None:
    w.registry.create("alice", "job", job(cron="0 12 * * *", retry={"max_age_s": 3_600, "base_s": 5}))
    w.target.answer = lambda event: Outcome(ok=event["minute8"]["attempt"] == 2, error_type="Boom")
    w.manual.backfills.start("alice", "job", at("2026-11-01T00:00:00Z"), at("2026-11-04T00:00:00Z"), 1, "x")
    w.run_until("2026-11-21T03:20:00Z")
    assert w.statuses("alice", "job") == ["succeeded"] * 3


def test_a_backfill_that_did_not_reach_the_queue_begins_when_asked_for_again(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.registry.create("alice", "job", job(cron="*/30 * * * *"))
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        no_queue(patched, w)
        w.manual.backfills.start("alice", "job", START, END, 2, "x")
    w.manual.backfills.start("alice", "job", START, END, 2, "x")
    with pytest.raises(Conflict):
        w.manual.backfills.start("alice", "job", START, END, 2, "x")
    w.run_until("2026-11-21T03:12:30Z")
    assert w.statuses("alice", "job") == ["succeeded"] * 6
    assert w.manual.backfills.progress("alice", "job", "x").sent == 6


def test_messages_delivered_twice_do_not_widen_a_backfill(w: World) -> None:
    w.registry.create("alice", "job", job(cron="*/10 * * * *", timeout_s=200))
    w.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    while message := w.sqs.receive():
        w.executor.execute(message)
        sent = len(w.sqs.bodies)
        for copy in (message, Message(f"copy of {message.message_id}", message.body)):
            assert w.executor.execute(copy).result == "duplicate"
        assert len(w.sqs.bodies) == sent, "an end that is told again moves nothing on"
    assert w.statuses("alice", "job") == ["succeeded"] * 18


def test_a_backfill_goes_on_past_runs_that_are_skipped_as_many_at_a_time_as_before(w: World) -> None:
    w.registry.create("alice", "job", job(cron="*/30 * * * *", start_deadline_s=60))
    w.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    w.clock.sleep(600)
    left = []
    while message := w.sqs.receive():
        w.executor.execute(message)
        left.append(len(w.sqs))
    assert w.statuses("alice", "job") == ["skipped(misfire)"] * 2 + ["succeeded"] * 4
    assert max(left) == 2


def test_a_backfill_ends_with_its_job_and_does_not_go_on_with_another_of_its_name(w: World) -> None:
    w.registry.create("alice", "job", job(cron="*/30 * * * *"))
    w.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    w.store.delete("alice", "job")
    w.deliver()
    assert w.statuses("alice", "job") == ["skipped(deleted)"] * 2
    assert (len(w.sqs), w.target.calls) == (0, [])


def test_a_backfills_runs_are_not_those_of_a_job_created_again(w: World) -> None:
    w.registry.create("alice", "job", job(cron="*/30 * * * *"))
    w.manual.backfills.start("alice", "job", START, END, concurrency=2, backfill_id="x")
    w.clock.sleep(2)
    w.store.delete("alice", "job")
    w.registry.create("alice", "job", job(cron="0 12 * * *"))
    w.run_until("2026-11-21T03:13:00Z")
    assert set(w.statuses("alice", "job")) == {"skipped(deleted)"}
    assert w.target.calls == []


def test_a_retry_that_comes_hours_after_its_age_is_not_made(w: World) -> None:
    """The queue stood still: the age is checked when an attempt starts, not when it was planned."""
    retry = {"base_s": 60, "max_age_s": 600}
    w.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z", retry=retry))
    w.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    w.run_until("2026-11-21T03:13:10Z")
    w.clock.move_to(at("2026-11-21T06:00:00Z"))
    w.deliver()
    (run,) = w.run_items("alice", "job")
    assert (run["status"], run["error_type"], len(w.target.calls)) == ("failed", "misfire", 1)
    kind, detail = w.events[-1]
    assert (kind, detail["error_type"], "max_age_s" in detail["error"]) == ("Run Failed", "misfire", True)
