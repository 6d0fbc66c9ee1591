"""Poison messages: each goes back to the queue alone, ends in the dead letters, and delays no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from common.planning.execution import Execution, UnreadableMessage
from executor.batch import execute_batch
from executor.pipeline import Message
from tests.worlds import World, at, job

GOOD: dict[str, Any] = {
    "v": 1,
    "tenant": "alice",
    "job": "once",
    "fire_at": at("2026-11-21T03:15:00Z"),
    "due_at": at("2026-11-21T03:15:00Z"),
    "rev": 1,
}
WRONG: dict[str, list[Any]] = {
    "v": [0, 2, "1", True, 1.0, None],
    "tenant": ["", 5, None, ["alice"], "alice#once", "al ice", "\ud800", "a" * 129],
    "job": ["", {}, "JOB#x", "a/b"],
    "fire_at": ["3", 1.5, True, None, float("nan")],
    "due_at": [[], "soon", 1e300],
    "rev": ["1", None, 1.5],
    "attempt": ["2", 2.5, None],
}
GARBAGE = [
    *("", " ", "null", "[]", "{}", "[1]", '"text"', "{", "\x00", "NaN", "<xml/>", '{"v":99}'),
    "[" * 5_000,
    "9" * 6_000,
    " " * 200_000,
    json.dumps(GOOD | {"pad": "x" * 250_000}),
]
POISON = GARBAGE + [json.dumps(GOOD | {field: value}) for field, values in WRONG.items() for value in values]
POISON += [json.dumps({name: GOOD[name] for name in GOOD if name != missing}) for missing in GOOD]


@pytest.mark.parametrize("body", POISON, ids=lambda body: str(body)[:60])
def test_poison_is_refused_before_anything_is_asked_or_written(body: str) -> None:
    with pytest.raises(UnreadableMessage):
        Execution.decode(body)


def test_poison_goes_back_alone_and_the_good_message_between_runs(world: World) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.clock.move_to(at("2026-11-21T03:15:00Z"))
    messages = [Message(f"poison-{n}", body) for n, body in enumerate(POISON)]
    messages.insert(len(messages) // 2, Message("good", json.dumps(GOOD)))
    reports, failed = execute_batch(world.executor, messages)
    assert [report.result for report in reports] == ["succeeded"]
    assert failed == [message.message_id for message in messages if message.message_id != "good"]
    assert world.clock.now() == at("2026-11-21T03:15:00Z")
    assert len(world.dynamodb.scan(TableName="test-runs")["Items"]) == 1


FOREIGN: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
    lambda good: good | {"tenant": "mallory"},
    lambda good: good | {"job": "no-such-job"},
]


@pytest.mark.parametrize("forge", FOREIGN)
def test_a_message_of_no_job_or_of_another_tenants_calls_nothing(
    world: World, forge: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.clock.move_to(at("2026-11-21T03:15:00Z"))
    reports, failed = execute_batch(world.executor, [Message("forged", json.dumps(forge(GOOD)))])
    assert ([report.result for report in reports], failed) == (["skipped"], [])
    assert world.target.calls == []
    world.deliver()
    assert world.statuses("alice", "once")[0:1] == ["succeeded"]
