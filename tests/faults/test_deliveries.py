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


def registered(world: World, **fields: object) -> list[Message]:
    """The job's messages, taken out of the queue for the test to deliver."""
    world.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:20:00Z", **fields))  # type: ignore[arg-type]
    messages = [Message(f"message-{n}", body) for n, body in enumerate(world.sqs.bodies)]
    world.sqs._waiting.clear()
    return messages


def deliver(world: World, messages: list[Message]) -> None:
    for message in messages:
        reports, failed = execute_batch(world.executor, [message])
        world.reports += reports
        if failed:
            world.sqs.give_back(message)
    world.run_until("2026-11-21T07:00:00Z")


@pytest.mark.parametrize("seed", range(8))
def test_twice_and_in_any_order(world: World, seed: int) -> None:
    messages = registered(world) * 2
    copies = [Message(f"copy-{n}", message.body) for n, message in enumerate(messages)]
    messages += copies
    random.Random(seed).shuffle(messages)
    world.clock.move_to(at("2026-11-21T03:19:00Z"))
    deliver(world, messages)
    everything_explained(world, {KEY: FIRES})
    assert len(world.target.calls) == len(FIRES)


@pytest.mark.parametrize(("deadline", "called"), [(None, 4), (3_600, 0)])
def test_messages_three_hours_late_run_unless_a_deadline_forbids_it(
    world: World, deadline: int | None, called: int
) -> None:
    messages = registered(world, start_deadline_s=deadline)
    world.clock.move_to(at("2026-11-21T06:20:00Z"))
    deliver(world, messages[::-1])
    world.run_until("2026-11-21T08:00:00Z", ticks=True)  # ticks enqueue what waits for its turn
    everything_explained(world, {KEY: FIRES})
    assert len(world.target.calls) == called
    assert all(run["status"] == "succeeded" or run["reason"] == "misfire" for run in world.run_items(*KEY))


def test_a_clock_that_stepped_back_runs_nothing_early_and_nothing_twice(world: World) -> None:
    messages = registered(world)
    world.clock.move_to(at("2026-11-21T03:13:00Z"))
    deliver_first, rest = messages[:1], messages[1:]
    execute_batch(world.executor, deliver_first)
    world.clock.move_to(at("2026-11-21T02:00:00Z"))  # over an hour back; the messages become visible anyway
    deliver(world, deliver_first + rest)
    everything_explained(world, {KEY: FIRES})
    assert len(world.target.calls) == len(FIRES)


def test_a_tick_whose_clock_stepped_back_plans_nothing_twice(world: World) -> None:
    world.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:30:00Z"))
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    world.deliver()
    world.scheduler.tick()
    sent = len(world.sqs.bodies)
    world.clock.move_to(at("2026-11-21T02:58:00Z"))
    world.scheduler.tick()
    assert len(world.sqs.bodies) == sent
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    everything_explained(world, {KEY: FIRES + [at(f"2026-11-21T03:{m}:00Z") for m in (21, 23, 25, 27, 29)]})


def test_paused_and_resumed_within_one_second_fires_once(world: World) -> None:
    world.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:20:00Z"))
    world.clock.sleep(0.2)
    world.store.pause(*KEY)
    world.clock.sleep(0.2)
    world.store.resume(*KEY)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    everything_explained(world, {KEY: FIRES})
    assert len(world.target.calls) == len(FIRES)
    index_is_right(world)


def test_deleted_and_created_again_inside_a_window_each_times_run_once(world: World) -> None:
    fields = {"cron": "1-59/2 3 * * *", "end_at": "2026-11-21T03:20:00Z"}
    world.registry.create(*KEY, job(**fields))
    world.clock.sleep(30)
    world.store.delete(*KEY)
    world.registry.create(*KEY, job(**fields))
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert world.target.fire_times("odd") == [f"2026-11-21T03:{m}:00Z" for m in (13, 15, 17, 19)]
    assert world.statuses(*KEY) == ["succeeded"] * 4
    index_is_right(world)


def test_a_pause_and_a_resume_keep_the_rest_of_a_killed_registration(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(**request: object) -> None:
        raise ConnectionError("no queue")

    with monkeypatch.context() as patched:
        patched.setattr(world.sqs, "send_message_batch", refuses)
        world.registry.create(*KEY, job(cron="1-59/2 3 * * *", end_at="2026-11-21T03:20:00Z"))
    world.clock.move_to(at("2026-11-21T03:15:30Z"))
    world.store.pause(*KEY)
    world.clock.move_to(at("2026-11-21T03:16:30Z"))
    world.store.resume(*KEY)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    everything_explained(world, {KEY: FIRES})
    assert world.statuses(*KEY) == ["succeeded"] * 4
