"""An executor that dies in a crowd of events: few of them are called twice, and each of them once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from common.planning.execution import Execution
from common.planning.packs import Pack
from common.runs.outcome import Outcome
from executor import threads
from executor.batch import deliveries_of, execute_batch
from executor.pipeline import Message
from tests.faults.stage import Stage, send_in_steps, staged
from tests.faults.test_packs import OneThread
from tests.faults.wire import Fault
from tests.worlds import World, at, job

CLAIMS_AT_ONCE = 10
CROWD_HIDDEN_S = 25
FEW_UNDER_WAY = 2
FINISHED_AT_ONCE = 2
MAX_IN_A_PACK = 10

DUE = at("2026-11-21T03:15:00Z")
PACKS = 10
TENANTS = tuple(f"tenant-{n}" for n in range(20))
# Of the last request of claims, under way before it, and of a finished pack that is not yet deleted.
MAX_REPEATED = CLAIMS_AT_ONCE + FEW_UNDER_WAY + (FINISHED_AT_ONCE - 1) * MAX_IN_A_PACK
NAMES = [(TENANTS[n % len(TENANTS)], f"job-{n}") for n in range(PACKS * MAX_IN_A_PACK)]


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is made in its order, in the batch's thread, and the machine has the time to wait for answers."""
    monkeypatch.setattr(threads, "call_threads", OneThread)
    monkeypatch.setattr(threads, "event_threads", OneThread)
    monkeypatch.setattr(threads, "MAX_PAUSE_S", 60)


def crowd(world: World, **fields: Any) -> None:
    """Ten packs of ten events, due now."""
    for tenant, name in NAMES:
        world.registry.create(tenant, name, job(at="2026-11-21T03:15:00Z", invocation="Event", **fields))
    executions = sorted(map(Execution.decode, world.sqs.bodies), key=lambda e: int(e.job_id.split("-")[1]))
    world.sqs._waiting.clear()
    world.queue.send_packs(
        [
            Pack(tuple(executions[first : first + MAX_IN_A_PACK]))
            for first in range(0, len(NAMES), MAX_IN_A_PACK)
        ]
    )
    world.clock.move_to(DUE)


def all_at_once(world: World) -> list[str]:
    """Deliver all visible messages in one batch. Returns the ids of those that come again."""
    messages: list[Message] = []
    while message := world.sqs.receive():
        messages.append(message)
    for message in messages:  # they come again if the process dies
        world.sqs.give_back(message)
    _, failed = execute_batch(world.executor, messages, world.redelivery)
    deleted = {message.message_id for message in messages}.difference(failed)
    world.sqs._waiting = [entry for entry in world.sqs._waiting if entry[2] not in deleted]
    return failed


def after_its_death(world: World) -> None:
    """What the executor deleted before its death does not come again. The leases of the rest are over."""
    deleted = {receipt.removeprefix("receipt of ") for receipt in world.sqs.deleted}
    world.sqs._waiting = [entry for entry in world.sqs._waiting if entry[2] not in deleted]
    world.clock.sleep(400)


def called(world: World) -> Counter[tuple[str, str]]:
    return Counter((context["tenant"], context["job_id"]) for _, context in world.target.calls)


def killed_after(stage: Stage, calls: int) -> None:
    """Kill the executor behind this call of the target, and deliver what it left when the leases are over."""
    stage.wire.arm(calls, Fault.KILLED_AFTER, only="target")
    assert stage.attempt(all_at_once) is not None
    after_its_death(stage.world)
    assert all_at_once(stage.world) == []


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("calls", range(1, len(NAMES) + 1, 9))
def test_of_a_dead_executors_events_few_are_called_twice_and_each_once(calls: int) -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        crowd(stage.world)
        send_in_steps(stage)
        killed_after(stage, calls)
        counts = called(stage.world)
        assert len(counts) == len(NAMES)
        assert max(counts.values()) <= 2
        assert sum(counts.values()) - len(NAMES) <= MAX_REPEATED
        statuses = {stage.world.statuses(*name)[0] for name in NAMES}
        assert statuses == {"dispatched"}


@pytest.mark.usefixtures("one_thread")
def test_what_two_dead_executors_handed_over_is_known_to_the_third() -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        crowd(stage.world)
        send_in_steps(stage)
        for nth in range(2):
            stage.wire.arm(25, Fault.KILLED_AFTER, only="target")
            assert stage.attempt(all_at_once) is not None, nth
            after_its_death(stage.world)
        assert all_at_once(stage.world) == []
        counts = called(stage.world)
        assert len(counts) == len(NAMES)
        assert sum(counts.values()) - len(NAMES) <= 2 * MAX_REPEATED


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("calls", "attempts"),
    [(1, [1, 1, 2]), (30, [1, 2])],
    ids=["killed before its record", "killed after its record"],
)
def test_an_event_that_was_refused_is_not_taken_for_handed_over(calls: int, attempts: list[int]) -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.world
        crowd(world, retry={"max_attempts": 2, "base_s": 10})
        send_in_steps(stage)
        world.target.answer = lambda event: Outcome(
            ok=event["minute8"]["attempt"] > 1 or event["minute8"]["job_id"] != "job-0", error_type="Boom"
        )
        killed_after(stage, calls)
        world.run_until("2026-11-21T03:30:00Z")
        attempts_of_job_0 = [
            context["attempt"] for _, context in world.target.calls if context["job_id"] == "job-0"
        ]
        assert attempts_of_job_0 == attempts
        assert world.statuses(*NAMES[0]) == ["dispatched"]


def test_a_copy_of_a_pack_calls_again_only_what_no_later_claim_notes() -> None:
    """SQS delivers all packs a second time. Of each pack, the last ones have no later claim that could note them."""
    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.world
        crowd(world)
        send_in_steps(stage)
        messages: list[Message] = []
        while message := world.sqs.receive():
            messages.append(message)
        assert execute_batch(world.executor, messages, world.redelivery)[1] == []
        world.clock.move_to(DUE + 60)
        copies = [Message(m.message_id, m.body, m.receipt, 2) for m in messages]
        execute_batch(world.executor, copies, world.redelivery)
        counts = called(world)
        assert len(counts) == len(NAMES)
        assert 0 < sum(counts.values()) - len(NAMES) <= 0.6 * len(NAMES)


@pytest.mark.usefixtures("one_thread")
def test_finished_packs_are_deleted_while_the_batch_goes_on_in_few_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.world
        crowd(world)
        send_in_steps(stage)
        delete, requests = world.sqs.delete_message_batch, []
        monkeypatch.setattr(
            world.sqs,
            "delete_message_batch",
            lambda **request: (requests.append(request), delete(**request))[1],
        )
        assert all_at_once(world) == []
        assert 0 < len(requests) <= PACKS / FINISHED_AT_ONCE
        assert len(world.sqs.deleted) == len(set(world.sqs.deleted)) < PACKS, "Lambda deletes the last ones"


def test_a_crowd_is_hidden_at_its_beginning_and_comes_again_when_the_leases_of_events_are_over() -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.world
        crowd(world)
        all_at_once(world)
        assert list(world.sqs._hidden.values()) == [DUE + CROWD_HIDDEN_S] * PACKS


def test_a_record_of_another_message_says_nothing() -> None:
    """A pack's execution was claimed by another message, whose bits mean other executions."""
    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.world
        crowd(world)
        send_in_steps(stage)
        world.runs._table.put(
            {
                **_key(world, NAMES[0]),
                "status": "dispatched",
                "attempt": 1,
                "claimed_by": "another",
                "handed_over": 0b1111111111,
                "lease_until": DUE + 15,
                "due_at": DUE,
            }
        )
        messages = [message] if (message := world.sqs.receive()) else []
        copies = [Message(m.message_id, m.body, m.receipt, 2) for m in messages]
        execute_batch(world.executor, copies, world.redelivery)
        assert len(called(world)) == MAX_IN_A_PACK - 1


def _key(world: World, name: tuple[str, str]) -> dict[str, str]:
    from common.storage import keys

    return keys.run(*name, Execution(*name, DUE, DUE, 1).run_name)


def test_bits_are_positions_in_the_message() -> None:
    """What a claim noted of a pack is not called, when the pack comes again."""
    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.world
        crowd(world)
        send_in_steps(stage)
        message = world.sqs.receive()
        assert message
        names = [(execution.tenant, execution.job_id) for execution in executions_of(message)]
        execute_batch(world.executor, [message], world.redelivery)
        for name in names:
            record = world.runs._table.get(_key(world, name))
            world.runs._table.put({**record, "handed_over": 0b1000000101, "claimed_by": message.message_id})
        world.target.calls.clear()
        world.clock.move_to(DUE + 60)
        execute_batch(world.executor, [replace(message, receives=2)], world.redelivery)
        assert set(names) - set(called(world)) == {names[0], names[2], names[9]}


def executions_of(message: Message) -> list[Execution]:
    return [delivery.execution for delivery in deliveries_of([message], DUE) if delivery.execution]
