"""A refused message is delivered again within seconds. A run whose executor died is delivered soon after its lease."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from common.runs.records import Outcome
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.redelivery import AFTER_LEASE_S, Redelivery
from tests.worlds import World, at, job

DUE = "2026-11-21T03:15:00Z"


def redelivery(w: World, takes_long_s: float = 0.5) -> Redelivery:
    return Redelivery(w.sqs, "queue", w.clock, takes_long_s)  # type: ignore[arg-type]


def due(w: World, **fields: Any) -> Message:
    w.registry.create("alice", "once", job(at=DUE, **fields))
    w.clock.move_to(at(DUE))
    message = w.sqs.receive()
    assert message
    return message


def test_what_dynamodb_turned_away_comes_again_in_seconds_and_then_less_often(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turned_away(*_: object, **__: object) -> None:
        raise RuntimeError("throttled")

    monkeypatch.setattr(type(w.runs), "claim", turned_away)
    message, waits = due(w), []
    for _ in range(12):
        _, failed = execute_batch(w.executor, [message], redelivery(w))
        assert failed == [message.message_id]
        w.sqs.give_back(message)
        next_at = w.sqs.next_at()
        assert next_at
        waits.append(next_at - w.clock.now())
        w.clock.move_to(next_at)
        message = w.sqs.receive() or message
    assert waits[0] <= 2 and waits[1] <= 4
    assert 150 < waits[-1] <= 300
    assert sum(waits) > 600, "an outage of ten minutes makes no dead letters"


def test_a_run_whose_executor_dies_is_taken_over_ten_seconds_after_its_lease(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = threading.Event()

    def call(event: Mapping[str, Any]) -> Outcome:
        if len(w.target.calls) == 1:
            assert told.wait(60)
            raise KeyboardInterrupt  # an exception that ends the process records nothing
        return Outcome(ok=True)

    w.target.answer = call
    change = w.sqs.change_message_visibility_batch

    def changed(**request: Any) -> dict[str, Any]:
        answer = change(**request)
        told.set()
        return answer

    monkeypatch.setattr(w.sqs, "change_message_visibility_batch", changed)
    message = due(w, timeout_s=30)
    with pytest.raises(KeyboardInterrupt):
        execute_batch(w.executor, [message], redelivery(w, takes_long_s=0.05))
    w.sqs.give_back(message)
    lease_until = at(DUE) + 30 + 5
    assert w.sqs.next_at() == lease_until + AFTER_LEASE_S
    w.run_until("2026-11-21T03:17:00Z")
    assert w.statuses("alice", "once") == ["succeeded"]
    assert [called_at for called_at, _ in w.target.calls] == [at(DUE), lease_until + AFTER_LEASE_S]


def test_another_delivery_meanwhile_waits_for_the_end_of_the_lease(w: World) -> None:
    message = due(w, timeout_s=30)
    seen: list[float] = []

    def call(event: Mapping[str, Any]) -> Outcome:
        _, failed = execute_batch(w.executor, [message], redelivery(w))
        assert failed
        seen.append(w.sqs._hidden[message.receipt])
        return Outcome(ok=True)

    w.target.answer = call
    execute_batch(w.executor, [message])
    assert seen == [at(DUE) + 30 + 5 + 1]


def test_a_batch_that_ends_soon_asks_nothing_of_the_queue(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(type(w.sqs), "change_message_visibility_batch")
    message = due(w)
    assert execute_batch(w.executor, [message], redelivery(w))[1] == []
    assert w.statuses("alice", "once") == ["succeeded"]


def test_a_queue_that_does_not_answer_changes_nothing(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(w.runs), "claim", lambda *_: 1 / 0)

    def broken(**_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(w.sqs, "change_message_visibility_batch", broken)
    message = due(w)
    assert execute_batch(w.executor, [message], redelivery(w))[1] == [message.message_id]
