"""Waits longer than SQS's delay: the tick of their window enqueues them, so no message is sent again and again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from common.planning.execution import Execution
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.table import Query
from tests.worlds import World, at, job

HOURS = {"max_attempts": 2, "base_s": 7_200, "cap_s": 7_200}


@pytest.fixture
def strict(world: World) -> World:
    """Lambda refuses loops, as it does where a function does not allow them."""
    world.sqs.refuses_loops = True
    return world


def fail_once(world: World) -> None:
    """The first run's first attempt fails."""
    answers = iter([Outcome(ok=False, error_type="Boom")])
    world.target.answer = lambda event: next(answers, Outcome(ok=True))


def postponed(world: World) -> list[str]:
    return [item["sk"] for pk in keys.partitions("POSTPONED") for item in world.table("due").query(Query(pk))]


def test_a_retry_in_hours_waits_in_the_table_and_not_in_the_queue(strict: World) -> None:
    fail_once(strict)
    strict.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry=HOURS))
    strict.run_until("2026-11-21T03:16:00Z")
    (run,) = strict.run_items("alice", "once")
    assert run["status"] == "retrying"
    assert len(strict.sqs) == 0
    assert len(postponed(strict)) == 1
    strict.run_until("2026-11-21T05:40:00Z", ticks=True)
    assert strict.statuses("alice", "once") == ["succeeded"]
    assert [called_at for called_at, _ in strict.target.calls][1] == pytest.approx(
        run["next_attempt_at"], abs=1
    )
    assert postponed(strict) == []
    assert (len(strict.sqs.bodies), strict.sqs.refused) == (2, [])


def test_a_retry_that_waits_in_the_table_outlasts_15_days_without_a_tick(world: World) -> None:
    fail_once(world)
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry=HOURS))
    world.run_until("2026-11-21T03:16:00Z")
    (sort_key,) = postponed(world)
    visible_at = int(sort_key.partition("#")[0])
    world.clock.move_to(visible_at + 15 * 86_400 - 1)
    assert postponed(world) == [sort_key]
    world.clock.move_to(visible_at + 15 * 86_400)
    assert postponed(world) == []


def test_a_retry_beyond_the_longest_delay_but_inside_a_planned_window_needs_no_tick(world: World) -> None:
    """A tick has announced the window, so it may have read the table before the retry was stored."""
    fail_once(world)
    retry_in_17_min = {"max_attempts": 2, "base_s": 1_000, "cap_s": 1_000}
    world.registry.create("alice", "once", job(at="2026-11-21T03:20:30Z", retry=retry_in_17_min))
    world.run_until("2026-11-21T03:20:10Z", ticks=True)
    now = world.clock.now()
    ahead = world.index.begin_planning(world.index.ensure_progress(now), at("2026-11-21T03:40:00Z"), now)
    assert ahead.planning_until == at("2026-11-21T03:40:00Z")
    world.run_until("2026-11-21T04:00:00Z")
    assert world.statuses("alice", "once") == ["succeeded"]


def test_a_run_that_waits_for_a_retrying_one_does_not_go_in_circles(strict: World) -> None:
    """The lock is held until the retry in some hours, much longer than a message can be delayed."""
    fail_once(strict)
    strict.registry.create(
        "alice", "report", job(every=600, anchor="2026-11-21T03:20:00Z", overlap="queue_one", retry=HOURS)
    )
    strict.run_until("2026-11-21T05:40:00Z", ticks=True)
    first, second, *_ = strict.run_items("alice", "report")
    assert (first["status"], second["status"]) == ("succeeded", "succeeded")
    assert strict.sqs.refused == []


def test_a_postponed_execution_that_cannot_be_read_stops_nobody(world: World) -> None:
    fail_once(world)
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry=HOURS))
    world.run_until("2026-11-21T03:16:00Z")
    key = keys.postponed(at("2026-11-21T03:25:00Z"), "alice:odd:20261121T032500Z#2")
    world.table("due").put({**key, "body": "from a later version"})
    world.run_until("2026-11-21T05:40:00Z", ticks=True)
    assert world.statuses("alice", "once") == ["succeeded"]
    assert world.statuses("alice", "odd") == ["skipped(invalid)"]
    assert world.scheduler.tick().bad_entries == 0
    readable = Execution("alice", "odd", at("2026-11-21T03:25:00Z"), at("2026-11-21T03:25:00Z"), 1)
    world.table("due").put({**key, "body": readable.encode()})
    world.run_until("2026-11-21T05:49:00Z", ticks=True)
    assert postponed(world) == []  # what a later version can read is enqueued


def test_a_flood_of_postponed_executions_holds_up_no_window(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All wait for the same second, as retries of one tenant may. Each page takes ten seconds."""
    monkeypatch.setattr("common.planning.postponed._PAGE_SIZE", 1)
    world.registry.create("bob", "quiet", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:18:00Z")
    flood = [
        Execution("alice", f"j{n}", at("2026-11-21T02:00:00Z"), at("2026-11-21T03:20:00Z"), 1, attempt=2)
        for n in range(20)
    ]
    for execution in flood:
        key = keys.postponed(execution.visible_at, f"{execution.execution_id}#2")
        world.table("due").put({**key, "body": execution.encode()})
    send, sent_at = world.sqs.send_message_batch, list[float]()

    def slow(QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        if '"alice"' in Entries[0]["MessageBody"]:
            world.clock.sleep(10)
        else:
            sent_at.append(world.clock.now())
        return send(QueueUrl, Entries)

    monkeypatch.setattr(world.sqs, "send_message_batch", slow)
    began_at = world.clock.now()
    world.scheduler.tick()
    assert sent_at == [began_at + 20]
    assert world.clock.now() == began_at + 150
    assert world.index.ensure_progress(world.clock.now()).planned_until == at("2026-11-21T03:30:00Z")
    assert len(postponed(world)) == 5
    world.run_until("2026-11-21T03:28:00Z")
    world.scheduler.tick()
    assert postponed(world) == []
    assert {execution.job_id for execution in flood} == {
        json.loads(body)["job"] for body in world.sqs.bodies
    } - {"quiet"}


@pytest.mark.parametrize(
    ("jitter_s", "until"), [(3_600, "2026-11-21T04:30:00Z"), (86_400, "2026-11-22T03:19:00Z")]
)
def test_jitter_beyond_what_a_message_can_wait_costs_one_message(
    world: World, jitter_s: int, until: str
) -> None:
    """The tick stores the execution, and the tick of its window sends it; up to a day, EventBridge's longest window."""
    world.registry.create("alice", "far", job(cron="20 3 * * *", jitter_s=jitter_s))
    world.run_until("2026-11-21T03:18:00Z")
    world.scheduler.tick()
    assert (world.sqs.bodies, len(postponed(world))) == ([], 1)
    world.run_until(until, ticks=True)
    assert len(world.sqs.bodies) == 1
    [(called_at, context)] = world.target.calls
    assert called_at == at(context["due_at"]) > at("2026-11-21T03:35:00Z")
    assert context["fire_at"] == "2026-11-21T03:20:00Z"


def test_many_far_executions_are_stored_and_all_run(world: World) -> None:
    for n in range(60):
        world.registry.create("alice", f"j{n}", job(cron="20 3 * * *", jitter_s=3_600))
    world.run_until("2026-11-21T03:18:00Z")
    world.scheduler.tick()
    near = len(world.sqs.bodies)
    assert near + len(postponed(world)) == 60
    world.run_until("2026-11-21T04:30:00Z", ticks=True)
    assert len(world.sqs.bodies) == len({context["job_id"] for _, context in world.target.calls}) == 60


def test_an_execution_of_an_announced_window_is_sent_as_well(world: World) -> None:
    """A tick whose clock is ahead has announced the window, and may have read it before this is stored."""
    execution = Execution("alice", "job", int(world.clock.now()), int(world.clock.now()) + 1_000, 1)
    progress = world.index.ensure_progress(world.clock.now())
    assert list(world.scheduler.planner.postponed.postpone_distant([execution, execution])) == []
    world.index.begin_planning(progress, progress.planned_until + 600, world.clock.now())
    assert list(world.scheduler.planner.postponed.postpone_distant([execution])) == [execution]
    assert len(postponed(world)) == 1
