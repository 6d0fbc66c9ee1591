"""A refused message is delivered again within seconds. A run whose executor died is delivered soon after its lease."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from common.runs.outcome import Outcome
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.redelivery import Redelivery
from tests.worlds import World, at, job

AFTER_LEASE_S = 10

DUE = "2026-11-21T03:15:00Z"


def redelivery(world: World, slow_after_s: float = 0.5) -> Redelivery:
    return Redelivery(world.sqs, "queue", world.clock, slow_after_s)  # type: ignore[arg-type]


def due(world: World, **fields: Any) -> Message:
    world.registry.create("alice", "once", job(at=DUE, **fields))
    world.clock.move_to(at(DUE))
    message = world.sqs.receive()
    assert message
    return message


def test_a_message_that_dynamodb_throttled_comes_again_in_seconds_and_then_less_often(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turned_away(*_: object, **__: object) -> None:
        raise RuntimeError("throttled")

    monkeypatch.setattr(type(world.runs), "claim", turned_away)
    message, waits = due(world), []
    for _ in range(12):
        _, failed = execute_batch(world.executor, [message], redelivery(world))
        assert failed == [message.message_id]
        world.sqs.give_back(message)
        next_at = world.sqs.next_at()
        assert next_at
        waits.append(next_at - world.clock.now())
        world.clock.move_to(next_at)
        message = world.sqs.receive() or message
    assert waits[0] <= 2 and waits[1] <= 4
    assert 600 < waits[-1] <= 900, "all have come again a quarter of an hour after an outage"
    assert sum(waits) > 600, "an outage of ten minutes makes no dead letters"


def test_a_run_whose_executor_dies_is_taken_over_ten_seconds_after_its_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_hidden = threading.Event()

    def call(event: Mapping[str, Any]) -> Outcome:
        if len(world.target.calls) == 1:
            assert is_hidden.wait(60)
            raise KeyboardInterrupt  # an exception that ends the process records nothing
        return Outcome(ok=True)

    world.target.answer = call
    change = world.sqs.change_message_visibility_batch

    def changed(**request: Any) -> dict[str, Any]:
        answer = change(**request)
        is_hidden.set()
        return answer

    monkeypatch.setattr(world.sqs, "change_message_visibility_batch", changed)
    message = due(world, timeout_s=30)
    with pytest.raises(KeyboardInterrupt):
        execute_batch(world.executor, [message], redelivery(world, slow_after_s=0.05))
    world.sqs.give_back(message)
    lease_until = at(DUE) + 30 + 5
    assert world.sqs.next_at() == lease_until + AFTER_LEASE_S
    world.run_until("2026-11-21T03:17:00Z")
    assert world.statuses("alice", "once") == ["succeeded"]
    assert [called_at for called_at, _ in world.target.calls] == [at(DUE), lease_until + AFTER_LEASE_S]


def test_another_delivery_meanwhile_waits_for_the_end_of_the_lease(world: World) -> None:
    message = due(world, timeout_s=30)
    seen: list[float] = []

    def call(event: Mapping[str, Any]) -> Outcome:
        _, failed = execute_batch(world.executor, [message], redelivery(world))
        assert failed
        seen.append(world.sqs._hidden[message.receipt])
        return Outcome(ok=True)

    world.target.answer = call
    execute_batch(world.executor, [message])
    assert seen == [at(DUE) + 30 + 5 + 1]


def test_a_batch_that_ends_soon_asks_nothing_of_the_queue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(type(world.sqs), "change_message_visibility_batch")
    message = due(world)
    assert execute_batch(world.executor, [message], redelivery(world))[1] == []
    assert world.statuses("alice", "once") == ["succeeded"]


def test_a_queue_that_does_not_answer_changes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(world.runs), "claim", lambda *_: 1 / 0)

    def broken(**_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(world.sqs, "change_message_visibility_batch", broken)
    message = due(world)
    assert execute_batch(world.executor, [message], redelivery(world))[1] == [message.message_id]
