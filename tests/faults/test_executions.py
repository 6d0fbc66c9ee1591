"""Every fault at every AWS call of an execution and at its call of the target. It ends once, in a final state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from common.registration.calendar_store import CalendarStore
from common.runs.outcome import Outcome
from tests.faults.stage import Stage, deliver_one, killed_after, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, DUE, END = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z", "2026-11-21T05:00:00Z"
KEY = ("alice", "once")
RETRY = {"max_attempts": 4, "base_s": 10}


def create(world: World, **fields: Any) -> None:
    world.registry.create(*KEY, job(at=DUE, retry=RETRY, timeout_s=30, **fields))


def fails_once(event: Mapping[str, Any]) -> Outcome:
    return Outcome(ok=event["minute8"]["attempt"] > 1, error_type="Boom")


def sync(stage: Stage) -> None:
    create(stage.world)
    stage.world.clock.move_to(at(DUE))


def failing(stage: Stage) -> None:
    stage.world.target.answer = fails_once
    sync(stage)


def second_attempt(stage: Stage) -> None:
    failing(stage)
    deliver_one(stage.world)
    next_at = stage.world.sqs.next_at()
    assert next_at
    stage.world.clock.move_to(next_at)


def event(stage: Stage) -> None:
    create(stage.world, invocation="Event")
    stage.world.clock.move_to(at(DUE))


def failing_event(stage: Stage) -> None:
    stage.world.target.answer = fails_once
    event(stage)


def skip(stage: Stage) -> None:
    sync(stage)
    stage.world.store.delete(*KEY)


def taken_over(stage: Stage) -> None:
    """Its first executor was killed after its claim; the message is visible again."""
    sync(stage)
    killed_after(stage, "update_item", deliver_and_die)
    next_at = stage.world.sqs.next_at()
    assert next_at
    stage.world.clock.move_to(next_at)


def deliver_and_die(world: World) -> None:
    message = world.sqs.receive()
    assert message
    world.sqs.give_back(message)
    world.execute(message)


def given_up(stage: Stage) -> None:
    """Deleted while it waited for its second attempt."""
    second_attempt(stage)
    stage.world.store.delete(*KEY)


def several_schedules(stage: Stage) -> None:
    """A calendar says which of two fired: only its patch makes the target succeed."""
    CalendarStore(stage.world.table("jobs"), stage.world.store.audited).put(
        "alice", "feasts", {"dates": [DUE[:10]]}, stage.world.clock.now()
    )
    stage.world.target.answer = lambda event: Outcome(ok=event["payload"] == '{"kind":"feast"}')
    workday = {"at": DUE, "exclude": {"calendars": ["feasts"]}}
    feast = {"at": DUE, "include_calendars": ["feasts"], "payload_patch": {"kind": "feast"}}
    definition = job(schedules=[workday, feast], retry=RETRY, timeout_s=30)
    stage.world.registry.create(*KEY, definition)
    stage.world.clock.move_to(at(DUE))


def moved(stage: Stage) -> None:
    """Its date is excluded, so it fires on the next one. Its executor reads the calendar, too."""
    CalendarStore(stage.world.table("jobs"), stage.world.store.audited).put(
        "alice", "feasts", {"dates": ["2026-11-20"]}, stage.world.clock.now()
    )
    moves = {"exclude": {"calendars": ["feasts"]}, "on_excluded": "next"}
    stage.world.registry.create(*KEY, job(cron="15 3 20 11 *", **moves, retry=RETRY, timeout_s=30))
    stage.world.clock.move_to(at(DUE))


@dataclass(frozen=True)
class Flow:
    """One path through the executor: its preparation, its calls, and the run's final state."""

    before: Callable[[Stage], None]
    calls: list[str]
    ends: str


CLAIM, TAKE_OVER, FINISH, SEND = "update_item", "update_item", "update_item", "send_message_batch"
FLOWS = {
    "sync": Flow(sync, ["get_item", CLAIM, "target", FINISH], "succeeded"),
    "failing": Flow(failing, ["get_item", CLAIM, "target", FINISH, SEND], "succeeded"),
    "second attempt": Flow(second_attempt, ["get_item", CLAIM, "target", FINISH], "succeeded"),
    "event": Flow(event, ["get_item", CLAIM, "target"], "dispatched"),
    "failing event": Flow(failing_event, ["get_item", CLAIM, "target", FINISH, SEND], "dispatched"),
    # Both decisions need the calendar, which a batch reads once: whether a schedule still fires, and which.
    "several schedules": Flow(
        several_schedules, ["get_item", "get_item", CLAIM, "target", FINISH], "succeeded"
    ),
    "moved": Flow(moved, ["get_item", "get_item", CLAIM, "target", FINISH], "succeeded"),
    # The second read finds the deleted job.
    "skip": Flow(skip, ["get_item", "get_item", "put_item"], "skipped(deleted)"),
    "taken over": Flow(taken_over, ["get_item", CLAIM, TAKE_OVER, "target", FINISH], "succeeded"),
    "given up": Flow(given_up, ["get_item", "get_item", "get_item", "update_item"], "failed"),
}


def may_be_called_twice(stage: Stage, fault: Fault) -> bool:
    """The one gap that no order of steps can close: the process dies between the call and its record."""
    nth = len(stage.wire.calls)
    if fault is Fault.KILLED_AFTER:
        return stage.wire.hit == "target"
    return fault is Fault.KILLED_BEFORE and stage.wire.calls[nth - 2 : nth - 1] == ["target"]


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("name", FLOWS)
def test_an_execution_meets_a_fault_at_each_of_its_calls(name: str, fault: Fault) -> None:
    flow = FLOWS[name]

    def carries_on(world: World, died: BaseException | None) -> None:
        world.run_until(END)
        everything_explained(world, {KEY: [at(DUE)]}, twice=may_be_called_twice(stage, fault))
        index_is_right(world)
        assert world.statuses(*KEY) == [flow.ends]

    with staged(BEGIN) as stage:
        flow.before(stage)
        stage.save()
        assert stage.each_call(deliver_one, fault, carries_on) == len(flow.calls)
        assert stage.wire.calls == flow.calls


@pytest.mark.parametrize("name", ["sync", "failing", "second attempt", "event", "failing event"])
def test_an_answer_lost_and_asked_for_again_delays_nothing(name: str) -> None:
    """botocore repeats a request whose answer is lost; the second one finds what the first has written."""
    flow = FLOWS[name]

    def carries_on(world: World, died: BaseException | None) -> None:
        seen = world.clock.now()
        world.run_until(END)
        assert seen - at(DUE) < 60
        assert max(called_at for called_at, _ in world.target.calls) - at(DUE) < 60

    with staged(BEGIN) as stage:
        flow.before(stage)
        stage.save()
        stage.each_call(deliver_one, Fault.REPEATED, carries_on)
