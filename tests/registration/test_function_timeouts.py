"""The own timeout of a job's Lambda function: read where it is permitted, stored, shown, and waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.registration.function_timeouts import FunctionTimeouts
from common.registration.registry import Registry
from common.runs.outcome import Outcome
from tests.worlds import ARN, World, job

NO_ANSWER = Outcome(ok=False, error_type="TimedOut", error="no answer within 3 s", unanswered=True)


class Lambda:
    """Answers GetFunctionConfiguration, or refuses it."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, 0

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:
        assert FunctionName == ARN
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"Timeout": self.answer}


def registry(world: World, functions: Lambda) -> Registry:
    timeouts = FunctionTimeouts(lambda: functions, world.clock)
    return replace(world.registry, limits=replace(world.registry.limits, function_timeout_s=timeouts.of))


def test_a_function_of_12_s_is_waited_for_and_not_for_15_minutes(world: World) -> None:
    world.target.answer = lambda event: NO_ANSWER
    definition = job(at="2026-11-21T03:15:00Z", overlap="skip", timeout_s=3, retry={"base_s": 1})
    registry(world, Lambda(12)).create("alice", "job", definition)
    assert world.store.get("alice", "job").function_timeout_s == 12
    world.run_until("2026-11-21T03:20:00Z")
    first, second, third = (called_at for called_at, _ in world.target.calls)
    assert 12 <= second - first <= 40
    assert 12 <= third - second <= 40


@pytest.mark.parametrize("refusal", [PermissionError("no"), "soon", None, 0])
def test_what_cannot_be_read_is_not_known(world: World, refusal: Any) -> None:
    functions = Lambda(refusal)
    stored = registry(world, functions).create("alice", "job", job(every="1h", overlap="skip"))
    assert (stored.function_timeout_s, stored.work_s >= 900, functions.asked) == (0, True, 1)
    assert "function_timeout_s" not in stored.to_item()


@pytest.mark.parametrize(
    "fields",
    [{}, {"overlap": "skip", "invocation": "Event", "completion": "callback"}],
)
def test_nobody_asks_where_nobody_waits(world: World, fields: dict[str, Any]) -> None:
    functions = Lambda(12)
    registry(world, functions).create("alice", "job", job(every="1h", **fields))
    assert functions.asked == 0


def test_an_answer_is_known_for_ten_minutes(world: World) -> None:
    functions = Lambda(12)
    registered = registry(world, functions)
    for n in range(3):
        registered.create("alice", f"job-{n}", job(every="1h", overlap="skip"))
    assert functions.asked == 1
    world.clock.sleep(601)
    registered.create("alice", "later", job(every="1h", overlap="skip"))
    assert functions.asked == 2
