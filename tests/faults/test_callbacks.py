"""Every fault at every call of a run whose target calls back: its call, what the target tells, its end, its time-out.

The queue delivers again what a dead executor had, and a target that got no answer tells the same again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from common.errors import Conflict, Unauthenticated
from common.runs.outcome import Outcome
from tests.faults.interleaving import every_order, play
from tests.faults.stage import Stage, deliver_one, staged
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, DUE = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z"
KEY = ("alice", "job")
OK, BOOM = Outcome(ok=True), Outcome(ok=False, error_type="Boom")
WAIT_S = 600


def create(stage: Stage) -> None:
    """Its target accepts the work. The next run waits for it."""
    retry = {"max_attempts": 2, "base_s": 10}
    timing = {"cron": "15-16 3 * * *", "end_at": "2026-11-21T04:00:00Z"}
    fields = {"completion": "callback", "callback_timeout_s": WAIT_S, "retry": retry, "timeout_s": 30}
    stage.world.registry.create(*KEY, job(**timing, **fields, overlap="queue_one"))
    stage.world.clock.move_to(at(DUE))


def accepted(stage: Stage) -> None:
    create(stage)
    deliver_one(stage.world)
    stage.world.clock.move_to(at(DUE) + 100)
    stage.world.deliver()
    assert stage.world.statuses(*KEY) == ["running", "queued"]


def after_its_end(stage: Stage, outcome: Outcome = OK) -> None:
    accepted(stage)
    tell(stage.world, outcome)


def told_failure(stage: Stage) -> None:
    after_its_end(stage, BOOM)


def over(stage: Stage) -> None:
    """The message that ends its time has come."""
    accepted(stage)
    stage.world.clock.move_to(at(DUE) + WAIT_S + 2)


def to_stop(stage: Stage) -> None:
    accepted(stage)
    stage.world.manual.cancel("alice", "alice:job:20261121T031500Z", "")


def last_call(world: World, fire_time: str = DUE) -> dict[str, Any]:
    return [context for _, context in world.target.calls if context["fire_at"] == fire_time][-1]


def record(world: World, context: dict[str, Any]) -> dict[str, Any]:
    return world.callbacks.proven(context["execution_id"], context["callback"]["token"])


def tell(world: World, outcome: Outcome = OK) -> None:
    world.callbacks.ends(record(world, last_call(world)), outcome, world.clock.now())


def go_on(world: World) -> None:
    world.callbacks.goes_on(record(world, last_call(world)), {"percent": 5}, world.clock.now())


def cancel(world: World) -> None:
    world.manual.cancel("alice", "alice:job:20261121T031500Z", "")


def every_run_calls_back(world: World) -> None:
    """All targets succeed, the earliest first, until nothing is left."""
    for _ in range(8):
        world.tick()
        moment = world.sqs.next_at()
        for run in world.run_items(*KEY):
            if run["status"] == "running" and "accepted_attempt" in run:
                context = last_call(world, f"2026-11-21T03:{15 + (run['fire_at'] - at(DUE)) // 60}:00Z")
                with suppress(Conflict, Unauthenticated):
                    world.callbacks.ends(record(world, context), OK, world.clock.now())
        if moment is None and not any(run["status"] == "running" for run in world.run_items(*KEY)):
            return
        world.clock.move_to(max(world.clock.now() + 1, moment or 0))
        world.deliver()


@dataclass(frozen=True)
class Flow:
    """A step in which the fault happens: its preparation, and how the two runs may end."""

    before: Callable[[Stage], None]
    step: Callable[[World], object]
    ends: tuple[str, ...]
    may_repeat: bool = False
    by_client: bool = False


FLOWS = {
    "call": Flow(create, deliver_one, ("succeeded",), may_repeat=True),
    "told": Flow(accepted, tell, ("succeeded",), by_client=True),
    "goes on": Flow(accepted, go_on, ("succeeded",), by_client=True),
    "end": Flow(after_its_end, deliver_one, ("succeeded",)),
    "retry": Flow(told_failure, deliver_one, ("succeeded",)),
    "over": Flow(over, deliver_one, ("succeeded",)),
    "cancel": Flow(accepted, cancel, ("succeeded", "failed"), by_client=True),
    "stop": Flow(to_stop, go_on, ("failed",), by_client=True),
}


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("name", FLOWS)
def test_each_run_ends_once_whatever_fails(name: str, fault: Fault) -> None:
    flow = FLOWS[name]

    def goes_on(world: World, died: BaseException | None) -> None:
        if flow.by_client and died:
            world.clock.sleep(1)
            with suppress(Conflict):
                flow.step(world)
        if name == "stop":
            world.deliver()
        every_run_calls_back(world)
        first, second = world.run_items(*KEY)
        assert first["status"] in flow.ends, first
        assert second["status"] == "succeeded", second
        assert len(world.sqs) == 0, world.sqs._waiting
        calls = [(context["fire_at"], context["attempt"]) for _, context in world.target.calls]
        assert len(calls) - len(set(calls)) <= int(flow.may_repeat), calls
        assert all(kind != "Run Failed" for kind, _ in world.events)

    with staged(BEGIN) as stage:
        flow.before(stage)
        stage.save()
        assert stage.each_call(flow.step, fault, goes_on, name) >= 1


@pytest.mark.parametrize("other", ["tell", "go_on"])
def test_a_time_out_and_a_sign_of_life_at_once(other: str) -> None:
    """In every order of their calls: the sign counts, or it is refused and the attempt has timed out."""
    with staged(BEGIN) as stage:
        accepted(stage)
        run = stage.world.run_items(*KEY)[0]
        # The executor's clock is ahead of the API's.
        stage.world.clock.move_to(run["lease_until"] + 2)
        message = stage.world.sqs.receive()
        assert message
        stage.save()
        signed = {"tell": tell_early, "go_on": go_on_early}[other]
        results = set()
        for choose in every_order():
            world = stage.restore()
            died = play(
                stage.wire,
                {"executor": lambda: stage.world.execute(message), "api": lambda: signed(stage.world)},
                choose,
                lambda call: call.startswith(("update_item", "get_item", "send")),
            )
            assert died["executor"] is None, died
            status = world.run_items(*KEY)[0]["status"]
            results.add((status, died["api"] is None))
            assert status in ("running", "succeeded") or died["api"] is not None or other == "go_on"
            if other == "go_on" and died["api"] is None and status == "running":
                assert len(world.sqs) > 0  # its message comes again
        assert len(results) > 1


def tell_early(world: World) -> None:
    world.callbacks.ends(record(world, last_call(world)), OK, at(DUE) + WAIT_S - 1)


def go_on_early(world: World) -> None:
    answer = world.callbacks.goes_on(record(world, last_call(world)), {}, at(DUE) + WAIT_S - 1)
    if answer.stop:
        raise Conflict("too late")


def test_a_target_that_is_quicker_than_its_executor_is_called_once() -> None:
    """It has told its end, and then the executor is killed before the answer of the call is recorded."""
    with staged(BEGIN) as stage:
        create(stage)
        world, take = stage.world, stage.world.target.answer

        def quick(event: Any) -> Outcome:
            world.callbacks.ends(record(world, event["minute8"]), OK, world.clock.now())
            return take(event)

        world.target.answer = quick
        stage.wire.arm(1, Fault.KILLED_AFTER, only="target")
        stage.attempt(deliver_one)
        assert stage.wire.hit
        world.clock.move_to(at(DUE) + 700)
        world.deliver()
        every_run_calls_back(world)
        assert world.statuses(*KEY) == ["succeeded", "succeeded"]
        assert [context["attempt"] for _, context in world.target.calls if context["fire_at"] == DUE] == [1]
