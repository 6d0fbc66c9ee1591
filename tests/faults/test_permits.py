"""A limit across jobs is exact: every fault at every call, kills, and every order of two executors' calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from common.planning.execution import Execution
from common.runs.holders import Full, Holders, Limit, Permit, State
from common.runs.outcome import Outcome
from common.storage import keys
from executor.permits import Permits
from scheduler.lines import Lines
from tests.faults.interleaving import play, some_orders
from tests.faults.stage import Stage, deliver_one, staged
from tests.faults.wire import Fault
from tests.worlds import World, at, job

MAX_PLACES = 50

BEGIN, DUE, END = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z", "2026-11-21T04:30:00Z"
JOBS = ("a", "b", "c")
LIMIT = 1


class Inside:
    """How many calls of the target go at a time."""

    def __init__(self, stage: Stage) -> None:
        self.now = self.most = 0
        self._stage = stage
        stage.world.target.answer = self._call

    def _call(self, event: Mapping[str, Any]) -> Outcome:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            # A request, before which other processes may go on.
            self._stage.world.table("jobs").get({"pk": "x", "sk": "x"})
            fails = event["minute8"]["job_id"] == "b" and event["minute8"]["attempt"] == 1
            return Outcome(ok=not fails, error_type="Boom")
        finally:
            self.now -= 1


def create(world: World, **fields: Any) -> None:
    for name in JOBS:
        concurrency = {"key": "crm", "limit": LIMIT}
        definition = job(at=DUE, concurrency=concurrency, timeout_s=30, retry={"base_s": 10}, **fields)
        world.registry.create("alice", name, definition)
    world.clock.move_to(at(DUE))


def all_have_ended(world: World) -> None:
    for name in JOBS:
        assert world.statuses("alice", name) == ["succeeded"], name
    assert len(world.sqs) == 0
    item = world.table("runs").get(keys.key_permits("alice", "crm"))
    assert State.of(item, world.clock.now()).holders == {}


def go_on(world: World) -> None:
    world.run_until(END, ticks=True)


def first(world: World) -> None:
    deliver_one(world)


def second(world: World) -> None:
    """The first of the jobs goes; another one finds no place."""
    deliver_one(world)
    deliver_one(world)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("step", [first, second])
@pytest.mark.parametrize("overlap", ["allow", "queue_one"])
def test_every_fault_at_every_call(step: Callable[[World], None], fault: Fault, overlap: str) -> None:
    with staged(BEGIN) as stage:
        create(stage.world, overlap=overlap)
        inside = Inside(stage)
        stage.save()

        def ends(world: World, died: BaseException | None) -> None:
            inside.now = 0
            go_on(world)
            all_have_ended(world)
            assert inside.most == LIMIT

        assert stage.each_call(step, fault, ends) >= 6


def test_executors_at_once_in_many_orders() -> None:
    """Three executors with one job each; and some are killed on their way."""
    with staged(BEGIN) as stage:
        create(stage.world)
        inside = Inside(stage)
        messages = [message for _ in JOBS if (message := stage.world.sqs.receive())]
        stage.save()
        kills: list[dict[str, tuple[str, int]]] = [{}, *({"0": ("", nth)} for nth in range(1, 12))]
        for deaths in kills:
            for choose in some_orders(8):
                world = stage.restore()
                inside.now = inside.most = 0
                stage.wire.kill_in(deaths)
                steps = {str(n): partial(world.execute, message) for n, message in enumerate(messages)}
                died = play(stage.wire, steps, choose)
                stage.wire.kill_in({})
                assert inside.most <= LIMIT
                for n, message in enumerate(messages):
                    if died[str(n)]:
                        world.sqs.give_back(message)
                inside.now = 0
                go_on(world)
                all_have_ended(world)
                assert inside.most == LIMIT


def test_the_slot_of_a_run_that_never_comes_back_is_free_after_its_lease() -> None:
    """Its executor is killed, and its message lost: a chore finds that, and the others begin."""
    with staged(BEGIN) as stage:
        world = stage.world
        create(world)
        message = world.sqs.receive()
        assert message
        stage.wire.arm(1, Fault.KILLED_AFTER, only="put_item")
        assert stage.attempt(lambda world: world.execute(message))
        assert stage.wire.hit
        (lost_job,) = set(JOBS) - set(jobs_with_runs(world))
        world.run_until("2026-11-21T03:16:30Z")
        assert [world.statuses("alice", name) for name in JOBS if name != lost_job] == [["queued"]] * 2
        world.run_until("2026-11-21T03:17:00Z")
        world.round("lines", Lines(world.tables, world.queue, world.clock).steps)
        go_on(world)
        assert [world.statuses("alice", name) for name in JOBS if name != lost_job] == [["succeeded"]] * 2


def jobs_with_runs(world: World) -> list[str]:
    """Those whose messages are still in the queue, or that have a run."""
    return [name for name in JOBS if any(f'"{name}"' in waiting[3] for waiting in world.sqs._waiting)]


def test_a_copy_of_a_message_does_not_give_back_what_it_did_not_take() -> None:
    with staged(BEGIN) as stage:
        holders, limit = (
            Holders(stage.world.table("runs"), stage.world.queue, stage.world.clock),
            Limit(keys.key_permits("alice", "crm"), LIMIT, 1, MAX_PLACES, at(DUE) + 600),
        )
        permits = Permits(holders)
        execution, other = (Execution("alice", name, at(DUE), at(DUE), 1) for name in "ab")
        permit, copy = (holders.take(limit, execution, at(DUE) + 30) for _ in range(2))
        assert isinstance(permit, Permit)
        assert isinstance(copy, Permit)
        assert (permit.is_new, copy.is_new) == (True, False)
        permits.give_back([copy])
        assert isinstance(holders.take(limit, other, at(DUE) + 30), Full)
        permits.give_back([permit])
        assert isinstance(holders.take(limit, other, at(DUE) + 30), Permit)
