"""What a queue may do to messages: deliver them twice, in any order, late, and to machines whose clocks differ."""

from __future__ import annotations

import random

import pytest

from executor.batch import execute_batch
from executor.pipeline import Message
from tests.faults.truth import everything_explained, index_is_right
from tests.worlds import World, at, job

FIRES = [at(f"2026-11-21T03:{minute}:00Z") for minute in (13, 15, 17, 19)]
KEY = ("alice", "odd")


def registered(w: World, **fields: object) -> list[Message]:
    """The job's messages, taken out of the queue for the test to deliver."""
    w.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:20:00Z", **fields))  # type: ignore[arg-type]
    messages = [Message(f"message-{n}", body) for n, body in enumerate(w.sqs.bodies)]
    w.sqs._waiting.clear()
    return messages


def deliver(w: World, messages: list[Message]) -> None:
    for message in messages:
        reports, failed = execute_batch(w.executor, [message])
        w.reports += reports
        if failed:
            w.sqs.give_back(message)
    w.run_until("2026-11-21T07:00:00Z")


@pytest.mark.parametrize("seed", range(8))
def test_twice_and_in_any_order(w: World, seed: int) -> None:
    messages = registered(w) * 2
    copies = [Message(f"copy-{n}", message.body) for n, message in enumerate(messages)]
    messages += copies
    random.Random(seed).shuffle(messages)
    w.clock.move_to(at("2026-11-21T03:19:00Z"))
    deliver(w, messages)
    everything_explained(w, {KEY: FIRES})
    assert len(w.target.calls) == len(FIRES)


@pytest.mark.parametrize(("deadline", "called"), [(None, 4), (3_600, 0)])
def test_three_hours_late_they_run_unless_a_deadline_forbids_it(
    w: World, deadline: int | None, called: int
) -> None:
    messages = registered(w, start_deadline_s=deadline)
    w.clock.move_to(at("2026-11-21T06:20:00Z"))
    deliver(w, messages[::-1])
    everything_explained(w, {KEY: FIRES})
    assert len(w.target.calls) == called
    assert all(run["status"] == "succeeded" or run["reason"] == "misfire" for run in w.run_items(*KEY))


def test_a_clock_that_stepped_back_runs_nothing_early_and_nothing_twice(w: World) -> None:
    messages = registered(w)
    w.clock.move_to(at("2026-11-21T03:13:00Z"))
    deliver_first, rest = messages[:1], messages[1:]
    execute_batch(w.executor, deliver_first)
    w.clock.move_to(at("2026-11-21T02:00:00Z"))  # over an hour back; the messages become visible anyway
    deliver(w, deliver_first + rest)
    everything_explained(w, {KEY: FIRES})
    assert len(w.target.calls) == len(FIRES)


def test_a_tick_whose_clock_stepped_back_plans_nothing_twice(w: World) -> None:
    w.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:30:00Z"))
    w.clock.move_to(at("2026-11-21T03:18:00Z"))
    w.deliver()
    w.scheduler.tick()
    sent = len(w.sqs.bodies)
    w.clock.move_to(at("2026-11-21T02:58:00Z"))
    w.scheduler.tick()
    assert len(w.sqs.bodies) == sent
    w.run_until("2026-11-21T04:00:00Z", ticks=True)
    everything_explained(w, {KEY: FIRES + [at(f"2026-11-21T03:{m}:00Z") for m in (21, 23, 25, 27, 29)]})


def test_paused_and_resumed_within_one_second_fires_once(w: World) -> None:
    w.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:20:00Z"))
    w.clock.sleep(0.2)
    w.store.pause(*KEY)
    w.clock.sleep(0.2)
    w.store.resume(*KEY)
    w.run_until("2026-11-21T04:00:00Z", ticks=True)
    everything_explained(w, {KEY: FIRES})
    assert len(w.target.calls) == len(FIRES)
    index_is_right(w)


def test_deleted_and_created_again_inside_a_window_each_times_run_once(w: World) -> None:
    fields = {"cron": "1-59/2 3 * * *", "end_at": "2026-11-21T03:20:00Z"}
    w.registry.create(*KEY, job(**fields))
    w.clock.sleep(30)
    w.store.delete(*KEY)
    w.registry.create(*KEY, job(**fields))
    w.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert w.target.fire_times("odd") == [f"2026-11-21T03:{m}:00Z" for m in (13, 15, 17, 19)]
    assert sorted(w.statuses(*KEY)) == ["skipped(rescheduled)"] * 4 + ["succeeded"] * 4
    index_is_right(w)


def test_what_a_killed_registration_left_is_not_lost_to_a_pause_and_a_resume(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(**request: object) -> None:
        raise ConnectionError("no queue")

    with monkeypatch.context() as patched:
        patched.setattr(w.sqs, "send_message_batch", refuses)
        w.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:20:00Z"))
    w.clock.move_to(at("2026-11-21T03:15:30Z"))
    w.store.pause(*KEY)
    w.clock.move_to(at("2026-11-21T03:16:30Z"))
    w.store.resume(*KEY)
    w.run_until("2026-11-21T04:00:00Z", ticks=True)
    everything_explained(w, {KEY: FIRES})
    assert w.statuses(*KEY) == ["skipped(paused)"] * 2 + ["succeeded"] * 2
