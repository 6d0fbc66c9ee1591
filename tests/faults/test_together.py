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
    w = stage.w
    for tenant, job_id in KEYS:
        w.registry.create(tenant, job_id, job(at=DUE, invocation=invocation))
    w.clock.move_to(at(DUE))
    stage.save()


def deliver_all(w: World) -> None:
    """Its process may die: then all messages come again."""
    messages = [message for _ in KEYS if (message := w.sqs.receive())]
    assert len(messages) == len(KEYS)
    again = {message.message_id for message in messages}
    try:
        again = set(execute_batch(w.executor, messages)[1])
    finally:
        for message in messages:
            if message.message_id in again:
                w.sqs.give_back(message)


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event", "Event in steps"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", Fault)
def test_a_batch_meets_a_fault_in_what_it_asks_for_all(
    invocation: str, call: tuple[str, int], fault: Fault
) -> None:
    name, nth = call
    with staged(BEGIN) as stage:
        before(stage, invocation.split()[0])
        w = stage.restore()
        if "steps" in invocation:
            send_in_steps(stage)
        w.executor = replace(w.executor, tenants=KnownTenants(w.table("tenants")))
        stage.wire.arm(nth, fault, only=name)
        died = stage.attempt(deliver_all)
        assert stage.wire.hit == name
        assert (died is None) == (fault not in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER))
        assert len(w.target.calls) == (0 if died else len(KEYS))
        w.run_until(END)
        everything_explained(w, {key: [at(DUE)] for key in KEYS})
        index_is_right(w)
        ends = "succeeded" if invocation == "RequestResponse" else "dispatched"
        assert [w.statuses(*key) for key in KEYS] == [[ends]] * len(KEYS)
