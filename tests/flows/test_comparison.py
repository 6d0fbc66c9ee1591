"""Executions that were enqueued and have no record: found, told apart from late ones, sampled, and run again."""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from common.errors import ItemTooLarge
from common.planning import log
from common.planning.execution import Execution
from common.planning.packs import lines
from common.planning.quarantine import Quarantine
from common.platform.deletion import Deletions
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item, item_to_wire
from scheduler import comparison
from tests.worlds import World, at, job

Drop = Callable[[Execution], bool]


@contextmanager
def dropping(world: World, drop: Drop) -> Iterator[list[str]]:
    """The queue loses the messages of which `drop` says so; yields the ids of their executions."""
    send, lost_ids = world.sqs.send_message_batch, []

    def losing(QueueUrl: str, Entries: list[dict[str, str]]) -> object:
        kept = []
        for entry in Entries:
            executions = [Execution.decode(line) for line in lines(entry["MessageBody"])]
            if executions and drop(executions[0]):  # not a wake
                lost_ids.extend(execution.execution_id for execution in executions)
            else:
                kept.append(entry)
        send(QueueUrl, kept)
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    world.sqs.send_message_batch = losing  # type: ignore[method-assign, assignment]
    yield lost_ids
    world.sqs.send_message_batch = send  # type: ignore[method-assign]


def compare(world: World) -> Counter[str]:
    return world.project().counts


def after(world: World) -> int:
    """How many are listed after a round."""
    compare(world)
    return len(listed(world))


def listed(world: World) -> set[str]:
    return {entry.execution.execution_id for entry in world.unrecorded.all()}


def minutely(world: World, count: int = 1) -> None:
    for n in range(count):
        world.registry.create("alice", f"j{n}", job(cron="* * * * *", invocation="Event"))


def test_a_lost_message_is_listed_ten_minutes_after_its_window(world: World) -> None:
    minutely(world)
    with dropping(world, lambda execution: execution.fire_at == at("2026-11-21T03:24:00Z")) as lost_ids:
        world.run_until("2026-11-21T03:39:59Z", ticks=True)
        assert (after(world), listed(world)) == (0, set())
        world.run_until("2026-11-21T03:40:10Z")  # nothing is in the queue
        assert after(world) == 1
    assert listed(world) == set(lost_ids) == {"alice:j0:20261121T032400Z"}


def test_a_loss_is_known_in_the_next_tick(world: World) -> None:
    minutely(world, 3)
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.sqs._waiting.clear()
    world.run_until("2026-11-21T03:28:00Z")
    compared = compare(world)
    assert (compared["sampled"], len(listed(world))) == (30, 21)  # from 3:17 up to 3:26, lost from 3:20 on
    world.unrecorded.send([run.execution for run in world.unrecorded.all()], world.queue, 0)
    world.deliver()
    compare(world)
    assert all(
        "T032700Z" in name for name in listed(world)
    )  # half a minute later these are due for long, too


@pytest.mark.parametrize(("waiting", "lost_count"), [(21, 0), (6, 0), (5, 21), (0, 21)])
def test_few_that_wait_hide_few(world: World, waiting: int, lost_count: int) -> None:
    """21 executions of seven seconds fit into seven messages; SQS's count may be wrong by a quarter."""
    minutely(world, 3)
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.clock.move_to(at("2026-11-21T03:28:00Z"))
    world.sqs._waiting = [message for message in world.sqs._waiting if message[0] < world.clock.now() - 60][
        :waiting
    ]
    assert after(world) == lost_count


def test_of_many_a_sample_is_counted_and_what_is_lost_of_it_is_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_SAMPLED_A_TICK", 7)
    minutely(world, 5)
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    world.sqs._waiting.clear()
    world.clock.move_to(at("2026-11-21T03:28:00Z"))
    compared = compare(world)
    assert compared["sampled"] == 6  # of 50
    assert 4 <= len(listed(world)) <= 6


def test_what_the_queue_counts_late_is_not_lost(world: World) -> None:
    """Counts lag: what seems lost is looked for again after half a minute."""
    minutely(world)
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    late = world.sqs._waiting
    world.sqs._waiting = []
    world.clock.move_to(at("2026-11-21T03:28:00Z"))
    sleep = world.clock.sleep

    def meanwhile(seconds: float) -> None:
        sleep(seconds)
        if seconds:
            world.sqs._waiting = late

    world.clock.sleep = meanwhile  # type: ignore[method-assign]
    assert after(world) == 0


def test_executions_that_a_registration_enqueued_are_looked_for_too(world: World) -> None:
    world.scheduler.tick()
    with dropping(world, lambda execution: True) as lost_ids:
        minutely(world)
    world.clock.move_to(at("2026-11-21T04:00:00Z"))
    compare(world)
    assert listed(world) == set(lost_ids)
    assert lost_ids


def test_an_execution_with_spread_is_looked_for_in_the_window_of_its_due_time(world: World) -> None:
    world.registry.create("alice", "spread-4", job(cron="20 3 * * *", jitter_s=3_600))
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    (run,) = world.run_items("alice", "spread-4")
    assert run["due_at"] > at("2026-11-21T03:40:00Z")  # the seed is the job
    assert after(world) == 0


def test_while_the_executor_is_down_executions_are_late_and_not_lost(world: World) -> None:
    minutely(world)
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    world.scheduler.tick()
    world.clock.move_to(at("2026-11-21T03:45:00Z"))
    assert (compare(world)["late"], listed(world)) == (17, set())
    world.deliver()
    assert (compare(world)["late"], listed(world)) == (0, set())


def test_more_missing_than_the_queue_holds_are_lost_at_once(world: World) -> None:
    minutely(world, 3)
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    with dropping(world, lambda execution: execution.fire_at > at("2026-11-21T03:20:00Z")) as lost_ids:
        world.scheduler.tick()
    world.clock.move_to(at("2026-11-21T03:41:00Z"))
    world.sqs._waiting = world.sqs._waiting[:2]  # up to twenty executions
    assert (compare(world)["late"], listed(world) >= set(lost_ids)) == (0, True)


def test_an_execution_that_waits_for_over_an_hour_is_listed_until_it_runs(world: World) -> None:
    minutely(world)
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    world.scheduler.tick()
    world.clock.move_to(at("2026-11-21T04:25:00Z"))
    compared = compare(world)
    assert (compared["late"], len(listed(world))) == (4, 13)  # 3:26 to 3:29 are late by less
    assert all("T032[6-9]" not in execution_id for execution_id in listed(world))
    world.deliver()
    assert (after(world), listed(world)) == (0, set())


@pytest.mark.parametrize("change", ["delete", "pause", "put"])
def test_a_job_that_changed_after_planning_is_no_alarm(world: World, change: str) -> None:
    minutely(world)
    world.run_until("2026-11-21T03:21:30Z", ticks=True)
    {
        "delete": lambda: world.store.delete("alice", "j0"),
        "pause": lambda: world.store.pause("alice", "j0"),
        "put": lambda: world.registry.put("alice", "j0", job(cron="30 7 * * *")),
    }[change]()
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert (compare(world)["late"], listed(world)) == (0, set())


def test_a_tenant_that_is_deleted_is_no_alarm(world: World) -> None:
    minutely(world)
    world.run_until("2026-11-21T03:25:00Z", ticks=True)
    deletions = Deletions(world.table("tenants"), world.table("jobs"), world.table("runs"), world.index)
    deletions.begin("alice", world.clock.now())
    world.run_until("2026-11-21T03:29:00Z")
    while deletions.progress("alice").finished_at is None:
        world.clock.sleep(61)
        deletions.move_on("alice", world.clock.now())
    world.clock.move_to(at("2026-11-21T05:00:00Z"))
    assert world.run_items("alice", "j0") == []
    assert (compare(world)["planned"] > 0, listed(world)) == (True, set())


def test_two_ticks_at_once_and_a_lost_tick_are_no_alarm(world: World) -> None:
    minutely(world, 5)
    for minute in ("03:18", "03:18", "03:48", "03:58", "04:08"):
        world.run_until(f"2026-11-21T{minute}:00Z")
        world.scheduler.tick()
    world.run_until("2026-11-21T04:30:00Z")
    compared = compare(world)
    assert (compared["read"] >= compared["planned"] > 0, listed(world)) == (True, set())


def test_a_full_list_waits_until_there_is_room(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "MAX_LISTED", 5)
    minutely(world)
    with dropping(world, lambda execution: True) as lost_ids:
        world.run_until("2026-11-21T03:45:00Z", ticks=True)
    assert after(world) == 5
    for _ in range(12):
        world.clock.sleep(600)
        listed_now = [entry.execution for entry in world.unrecorded.all()]
        world.unrecorded.send(listed_now, world.queue, world.clock.now())
        world.deliver()
        compare(world)
    world.run_until("2026-11-21T07:00:00Z", ticks=True)  # the late ones go out one a minute
    due = [execution_id for execution_id in lost_ids if execution_id < "alice:j0:20261121T033"]
    assert (listed(world), set(due) - set(world.target.execution_ids)) == (set(), set())


def test_a_late_message_of_an_execution_that_was_sent_again_calls_nothing(world: World) -> None:
    minutely(world)
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    world.scheduler.tick()
    world.clock.move_to(at("2026-11-21T04:45:00Z"))
    compare(world)
    again = [entry.execution for entry in world.unrecorded.all()]
    world.unrecorded.send(again, world.queue, world.clock.now())
    assert {entry.sent_at for entry in world.unrecorded.all()} == {at("2026-11-21T04:45:00Z")}
    world.deliver()
    assert len(world.target.calls) == len(set(world.target.execution_ids)) == 17
    assert after(world) == 0


def test_chunks_are_cut_and_named_by_their_content(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MAX_CHUNK_EXECUTIONS", 30)
    minutely(world, 4)
    world.run_until("2026-11-21T03:18:00Z")
    world.scheduler.tick()
    start, end = at("2026-11-21T03:20:00Z"), at("2026-11-21T03:30:00Z")
    before = sorted(chunk.data for chunk in world.index.log.planned(start, end))
    assert sum(len(chunk.bodies()) for chunk in world.index.log.planned(start, end)) == 40
    world.table("due").put({**keys.PROGRESS, "planned_until": start, "planning_until": start})
    world.scheduler.tick()
    assert sorted(chunk.data for chunk in world.index.log.planned(start, end)) == before
    bodies = [body for chunk in world.index.log.planned(start, end) for body in chunk.bodies()]
    assert len({Execution.decode(body).execution_id for body in bodies}) == len(bodies) == 40


def test_a_chunk_of_long_ids_fits_into_an_item() -> None:
    """6,000 jobs with random ids of 128 characters, all due in one window."""
    rng, now, items = random.Random(24), at("2026-11-21T03:18:00Z"), []
    ids = ["".join(rng.choices(string.ascii_letters + string.digits, k=128)) for _ in range(6_000)]
    fire_at = at("2026-11-21T03:20:00Z")

    class Stored:
        def put(self, item: Item) -> None:
            items.append(item_to_wire(item))  # raises ItemTooLarge

    writer = log.LogWriter(cast("Table", Stored()), now)
    for _ in writer.recording(Execution("alice", job_id, fire_at, fire_at, 1) for job_id in ids):
        pass
    assert writer.write() == []
    chunks = [log.Chunk(fire_at, int(item["count"]["N"]), item["data"]["S"]) for item in items]
    logged = [Execution.decode(body).job_id for chunk in chunks for body in chunk.bodies()]
    assert logged == ids


def test_a_log_that_cannot_be_written_is_reported_and_planning_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutely(world, 2)
    world.run_until("2026-11-21T03:18:00Z")

    def too_large(chunk: log.Chunk) -> None:
        raise ItemTooLarge(677_000)

    monkeypatch.setattr(log.Chunk, "to_item", too_large)
    summary = world.scheduler.tick()
    assert (summary.planned, summary.unlogged) == (20, 20)
    progress = world.index.progress()
    assert progress is not None and progress.planned_until == progress.planning_until == at(
        "2026-11-21T03:30:00Z"
    )
    record = next(Quarantine(world.table("due")).bad_entries())
    assert "20 executions were enqueued and are not in the log" in record.reason
    world.scheduler.tick()
    world.run_until("2026-11-21T03:30:00Z")
    assert len(world.target.calls) == len(set(world.target.execution_ids))


@pytest.mark.parametrize("seed", range(6))
def test_exactly_what_the_queue_loses_is_listed(world: World, seed: int) -> None:
    """Random jobs, changes and ticks; an execution's messages are lost with a chance of one in ten, or of none.

    Registration and tick may both send one, so all of them are lost_ids or none, whichever thread sends first.
    """
    rng, share = random.Random(seed), (0.0, 0.1)[seed % 2]

    def drop(execution: Execution) -> bool:
        return execution.attempt == 1 and random.Random(f"{seed} {execution.execution_id}").random() < share

    crons = ("* * * * *", "*/7 * * * *", "*/20 * * * * *", "H H * * *", "25 3 * * *")
    with dropping(world, drop) as lost_ids:
        for step in range(120):
            name = f"j{rng.randrange(12)}"
            change = rng.choice(("put", "put", "pause", "resume", "delete", "none", "none"))
            existing = {job.job_id for job in world.store.list_jobs("alice")}
            if change == "put":
                fields = {"jitter_s": 900} if rng.random() < 0.2 else {}
                world.registry.put("alice", name, job(cron=rng.choice(crons), invocation="Event", **fields))
            elif change != "none" and name in existing:
                {"pause": world.store.pause, "resume": world.store.resume, "delete": world.store.delete}[
                    change
                ]("alice", name)
            world.run_until(_text(world.clock.now() + rng.uniform(5, 90)), ticks=rng.random() < 0.8)
            if step % 20 == 0:
                world.scheduler.tick()
                compare(world)
    end = world.clock.now()
    for tick in range(12):  # what is still in the queue, and kept for later ticks, runs
        world.run_until(_text(end + (tick + 1) * 600), ticks=True)
        compare(world)
    # An execution that an edit had planned once more has a second message, and runs by that.
    runs = [run for n in range(12) for run in world.run_items("alice", f"j{n}")]
    ran = {f"alice:{run['job_id']}:{run['sk']}" for run in runs}
    assert listed(world) == set(lost_ids) - ran
    assert bool(listed(world)) == bool(share)


def _text(instant: float) -> str:
    seconds = int(instant) - at("2026-11-21T00:00:00Z")
    return f"2026-11-21T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"
