"""`minute8 restored`: what a restore of some tables calls again, only records, or loses is said before it is done."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from common.planning.execution import split_run_name
from common.platform.run_again import RunAgain
from common.projection import state
from common.storage import keys
from common.tenants.audit import AWS
from common.timing.instants import rfc3339
from minute8.cli.restored_tables import Effect, Restorable, Restored
from scheduler import handler
from tests.scheduler_handler import serve
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

NOW = at("2026-11-21T06:25:00Z")
# The tick of 6:18 reads the records of windows that ended ten minutes before.
READ_UNTIL = at("2026-11-21T06:00:00Z")
LOST_AT = at("2026-11-21T05:50:00Z")
JOBS = {
    "minutely": job(cron="* * * * *"),
    "all": job(cron="*/5 * * * *", catch_up="all"),
    "event": job(cron="*/2 * * * *", invocation="Event"),
}


def world_restored(
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    back_s: int,
    meanwhile: Callable[[World], None] = lambda world: None,
) -> World:
    """A stage at NOW, of which some tables are as they were `back_s` before."""
    db = MemoryDynamoDB()
    world = make_world(db, rfc3339(NOW - back_s - 2_400))
    serve(world, monkeypatch)
    world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment]
    for name, definition in JOBS.items():
        world.registry.create("alice", name, definition)
    world.run_until(rfc3339(NOW - back_s), ticks=True)
    backup = copy.deepcopy(db.tables)
    meanwhile(world)
    world.run_until(rfc3339(NOW), ticks=True)
    for name in names:
        db.tables[f"test-{name}"] = copy.deepcopy(backup[f"test-{name}"])
    return world


def restored(world: World, *names: str, back_s: int, logged: set[str] | None = None) -> Restored:
    return Restored(
        world.tables,
        world.queue,
        world.clock,
        [Restorable(name) for name in names],
        NOW - back_s,
        logged or set(),
    )


def counts(effects: list[Effect]) -> Counter[tuple[str, str]]:
    return Counter({(each.table, each.fate): 0 for each in effects}) + Counter(
        {(each.table, each.fate): each.total for each in effects if each.total}
    )


def send_all(world: World) -> None:
    """As `minute8 unrecorded run --all --yes`."""
    again = RunAgain(world.unrecorded, world.queue, world.table("tenants"), world.clock)
    ids = [each.execution.execution_id for each in world.unrecorded.all()]
    for first in range(0, len(ids), 100):
        again.run(ids[first : first + 100], dry_run=False)


def fire_time(execution_id: str) -> int:
    return split_run_name(execution_id.split(":", 2)[2])[0]  # type: ignore[index]


def followed_until(world: World) -> int:
    """Up to where ticks say that they have followed the runs."""
    return int((world.table("runs").get(keys.FOLLOWED) or {})["until"])


def called_twice(world: World) -> set[str]:
    calls = Counter(event["execution_id"] for _, event in world.target.calls)
    return {execution_id for execution_id, count in calls.items() if count > 1}


def assert_one_record_each(world: World, since: int) -> None:
    for name, step in (("minutely", 60), ("all", 300), ("event", 120)):
        fire_times = [run["fire_at"] for run in world.run_items("alice", name) if run["fire_at"] >= since]
        expected = range(since + -since % step, int(world.clock.now()), step)
        assert Counter(fire_time for fire_time in fire_times if fire_time < NOW) == Counter(
            fire_time for fire_time in expected if fire_time < NOW
        )


@pytest.mark.parametrize("is_said_first", [True, False], ids=["before a tick", "after ticks"])
@pytest.mark.parametrize("back_s", [300, 2_400, 10_800])
def test_runs_restored_alone_call_nothing_again_that_the_projection_had_read(
    monkeypatch: pytest.MonkeyPatch, back_s: int, is_said_first: bool
) -> None:
    """Of what is due since the last window that ticks have read nothing knows whether it was called."""
    world = world_restored(monkeypatch, ("runs",), back_s)
    if not is_said_first:
        world.run_until(rfc3339(NOW + 1_500), ticks=True)
    state = restored(world, "runs", back_s=back_s)
    effects, calls = list(state.effects()), len(world.target.calls)
    known = {each.execution.execution_id for each in state.without_record if each.known_by}
    unknown = {each.execution.execution_id for each in state.without_record} - known
    assert (len(known), len(unknown)) == (
        counts(effects)["runs", "only recorded"],
        counts(effects)["runs", "called again"],
    )
    assert bool(known) == (NOW - back_s < READ_UNTIL)
    assert min(map(fire_time, unknown)) >= READ_UNTIL
    assert state.record(AWS) == len(known)
    assert len(world.target.calls) == calls, "it sends nothing"
    world.run_until(rfc3339(NOW + 3_000), ticks=True)
    send_all(world)
    world.run_until(rfc3339(NOW + 4_200), ticks=True)
    assert called_twice(world) <= unknown
    assert not list(world.unrecorded.all())
    assert_one_record_each(world, NOW - back_s)
    recorded = [run for run in world.run_items("alice", "minutely") if "was lost" in run.get("detail", "")]
    assert {run["status"] for run in recorded} <= {"dispatched"}


def test_without_the_command_ticks_know_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_restored(monkeypatch, ("runs",), 2_400)
    world.run_until(rfc3339(NOW + 3_000), ticks=True)
    known = {each.execution.execution_id for each in world.unrecorded.all() if each.known_by}
    send_all(world)
    world.run_until(rfc3339(NOW + 4_200), ticks=True)
    assert len(known) == 23, "from 5:46 to 5:59"
    assert not called_twice(world) & known
    assert_one_record_each(world, NOW - 2_400)


def test_a_restored_log_is_followed_in_parts_that_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of the log has 17 executions. What ticks then know is what one look at the whole log tells."""
    world = world_restored(monkeypatch, ("runs",), 10_800)
    at_once = {
        each.execution.execution_id
        for each in restored(world, "runs", back_s=10_800).without_record
        if each.known_by
    }
    kept: list[int] = []

    def spied(*args: Any) -> set[str]:
        had_records = state.had_records(*args)
        kept.extend((len(args[-1]), len(had_records)))
        return had_records

    monkeypatch.setattr("scheduler.projector.had_records", spied)
    monkeypatch.setattr("scheduler.followed.MAX_HELD", 120)
    followed = [followed_until(world)]
    for tick in range(1, 9):
        world.run_until(rfc3339(NOW + 600 * tick), ticks=True)
        followed.append(followed_until(world))
    steps = [until - before for before, until in pairwise(followed)]
    assert steps[0] == 2_400, "four windows, the fourth of which passes the bound"
    assert steps[-1] == 600, "nothing is behind any more"
    assert 60 <= max(kept) <= 76
    known = {each.execution.execution_id for each in world.unrecorded.all() if each.known_by}
    assert known == at_once
    send_all(world)
    world.run_until(rfc3339(NOW + 6_600), ticks=True)
    assert not called_twice(world) & known
    assert_one_record_each(world, NOW - 10_800)


def test_what_was_lost_before_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The projection read no record of it, so the restore changes nothing for it."""

    def lose(world: World) -> None:
        world.run_until(rfc3339(NOW - 2_190), ticks=True)
        world.sqs._waiting = [
            message for message in world.sqs._waiting if f'"fire_at":{LOST_AT}' not in message[-1]
        ]

    world = world_restored(monkeypatch, ("runs",), 2_400, lose)
    state = restored(world, "runs", back_s=2_400)
    lost_ids = {
        each.execution.execution_id
        for each in state.without_record
        if "T055000Z" in each.execution.execution_id
    }
    assert lost_ids
    assert {each.known_by for each in state.without_record if each.execution.execution_id in lost_ids} == {""}


def test_the_audit_and_the_log_know_of_calls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled, failed = "alice:minutely:20261121T062200Z", "alice:minutely:20261121T062100Z"

    def meanwhile(world: World) -> None:
        world.run_until(rfc3339(NOW - 400), ticks=True)
        world.manual.cancel("alice", cancelled, "not needed")

    world = world_restored(monkeypatch, ("runs",), 2_400, meanwhile)
    state = restored(world, "runs", back_s=2_400, logged={failed})
    known_by = {each.execution.execution_id: each.known_by for each in state.without_record}
    assert (known_by[cancelled], known_by[failed]) == ("audit", "log")
    (minutely,) = (
        each
        for effect in state.effects()
        if effect.fate == "only recorded"
        for each in effect.jobs
        if each.job_id == "minutely"
    )
    assert (minutely.known_by["audit"], minutely.known_by["log"]) == (1, 1)


@pytest.mark.parametrize("back_s", [300, 2_400, 10_800])
@pytest.mark.parametrize("names", [("jobs", "due"), ("jobs",), ("due",), ("jobs", "due", "runs")])
def test_what_is_said_of_jobs_and_due_is_what_the_next_tick_calls(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], back_s: int
) -> None:
    world = world_restored(monkeypatch, names, back_s)
    effects = [effect for effect in restored(world, *names, back_s=back_s).effects() if effect.jobs]
    foreseen = {
        of_job.job_id: of_job.executions
        for effect in effects
        if effect.table == "due"
        for of_job in effect.jobs
    }
    before = set(world.target.execution_ids)
    calls = len(world.target.calls)
    world.tick()
    world.run_until(rfc3339(NOW + 10_800), ticks=True)  # the caught-up ones go out one a minute
    again = Counter(
        event["job_id"]
        for _, event in world.target.calls[calls:]
        if event["execution_id"] in before or at(event["fire_at"]) <= NOW
    )
    assert foreseen == {name: count for name, count in again.items() if count}


def test_changes_since_are_named_as_the_audit_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(world: World) -> None:
        world.registry.create("alice", "created", job(cron="0 0 1 1 *"))
        world.store.pause("alice", "all")
        world.store.delete("alice", "event")

    names = ("jobs", "due", "tenants", "audit")
    world = world_restored(monkeypatch, ("jobs", "due", "tenants"), 2_400, meanwhile)
    effects = {effect.words: effect for effect in restored(world, *names, back_s=2_400).effects()}
    for words, count in (
        (
            "jobs are as they were: put them again as the audit has them: alice/all, alice/created, alice/event",
            3,
        ),
        ("jobs that were deleted run again: alice/event", 1),
        ("jobs that were paused run again: alice/all", 1),
    ):
        assert effects[words].total == count
    assert {effect.table for effect in effects.values()} >= {"jobs", "due", "audit"}


def test_with_the_table_as_it_was_nothing_is_called_again_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_restored(monkeypatch, (), 2_400)
    tables = world.dynamodb.tables
    tables["test-former"] = copy.deepcopy(tables["test-runs"])
    for name in JOBS:
        for run in world.run_items("alice", name):
            if run["fire_at"] >= READ_UNTIL:
                world.table("runs").delete(keys.key_of(run))
    before = {run["sk"]: run["status"] for run in world.run_items("alice", "minutely")}
    state = replace(restored(world, "runs", back_s=2_400), former=world.table("former"))
    assert counts(list(state.effects()))["runs", "called again"] == 0
    assert state.record(AWS) > 35
    world.run_until(rfc3339(NOW + 3_000), ticks=True)
    send_all(world)
    assert not called_twice(world)
    assert_one_record_each(world, NOW - 2_400)
    after = {run["sk"]: run["status"] for run in world.run_items("alice", "minutely")}
    assert {after[name] for name in after if name not in before} == {"succeeded"}


def test_with_the_executor_off_for_two_ticks_each_call_is_known_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As docs/restore.md says: what is unknown then is in the queue, and was not called."""
    world = world_restored(monkeypatch, (), 2_400)
    monkeypatch.setattr(world, "deliver", lambda: None)
    for _ in range(3):
        world.clock.sleep(600)
        world.tick()
    for name in JOBS:
        for run in world.run_items("alice", name):
            world.table("runs").delete(keys.key_of(run))
    state = restored(world, "runs", back_s=2_400)
    called = set(world.target.execution_ids)
    known = {each.execution.execution_id for each in state.without_record if each.known_by}
    unknown = {each.execution.execution_id for each in state.without_record if not each.known_by}
    assert not unknown & called
    assert len(known) > 60
