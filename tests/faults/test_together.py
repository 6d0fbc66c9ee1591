"""Faults in the requests that a batch makes for all of its executions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.tenants.rules_cache import KnownTenants
from executor.batch import execute_batch
from tests.faults.stage import Stage, send_in_steps, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, DUE, END = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z", "2026-11-21T03:40:00Z"
KEYS = [("alice", "a"), ("alice", "b"), ("bob", "c")]
# The jobs; the tenants' rules; the claims.
CALLS = [("batch_get_item", 1), ("batch_get_item", 2), ("batch_execute_statement", 1)]


def before(stage: Stage, invocation: str) -> None:
    world = stage.world
    for tenant, job_id in KEYS:
        world.registry.create(tenant, job_id, job(at=DUE, invocation=invocation))
    world.clock.move_to(at(DUE))
    stage.save()


def deliver_all(world: World) -> None:
    """Its process may die: then all messages come again."""
    messages = [message for _ in KEYS if (message := world.sqs.receive())]
    assert len(messages) == len(KEYS)
    again = {message.message_id for message in messages}
    try:
        again = set(execute_batch(world.executor, messages)[1])
    finally:
        for message in messages:
            if message.message_id in again:
                world.sqs.give_back(message)


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event", "Event in steps"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", Fault)
def test_a_batch_meets_a_fault_in_a_joint_request(
    invocation: str, call: tuple[str, int], fault: Fault
) -> None:
    name, nth = call
    with staged(BEGIN) as stage:
        before(stage, invocation.split()[0])
        world = stage.restore()
        if "steps" in invocation:
            send_in_steps(stage)
        world.executor = replace(world.executor, tenants=KnownTenants(world.table("tenants")))
        stage.wire.arm(nth, fault, only=name)
        died = stage.attempt(deliver_all)
        assert stage.wire.hit == name
        assert (died is None) == (fault not in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER))
        assert len(world.target.calls) == (0 if died else len(KEYS))
        world.run_until(END)
        everything_explained(world, {key: [at(DUE)] for key in KEYS})
        index_is_right(world)
        ends = "succeeded" if invocation == "RequestResponse" else "dispatched"
        assert [world.statuses(*key) for key in KEYS] == [[ends]] * len(KEYS)
