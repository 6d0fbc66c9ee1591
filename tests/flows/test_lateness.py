"""When each call went out, and how late it was: of first calls, of repeated ones, of later attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.runs.states import DISPATCHED
from common.storage import outgoing
from executor.calling import CallDelay
from executor.targets import Kind
from minute8.api.views import run_view
from tests.worlds import Killed, World, at, job

MAX_LOST_CALLS = 20

DUE = at("2026-11-21T03:15:00Z")


def dies(world: World, times: int) -> None:
    def call(event: Mapping[str, Any]) -> Outcome:
        if len(world.target.calls) <= times:
            raise Killed
        return Outcome(ok=True)

    world.target.answer = call


def connects_for(world: World, seconds: float) -> None:
    """Each call goes out this long after it was begun."""
    kind = world.executor.kinds["lambda"]

    def call(*arguments: Any) -> Outcome:
        world.clock.sleep(seconds)
        outgoing.note_sent()
        return kind.call(*arguments)

    world.executor = replace(world.executor, kinds={"lambda": Kind(call)})


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_run_that_was_called_again_after_a_crash_shows_each_call(world: World, invocation: str) -> None:
    dies(world, 2)
    world.registry.create("alice", "a", job(at="2026-11-21T03:15:00Z", invocation=invocation))
    world.run_until("2026-11-21T04:15:00Z")
    (run,) = world.run_items("alice", "a")
    called_at = [when for when, _ in world.target.calls]
    shown = run_view(Run.from_item(run), world.clock.now())["attempts"]
    assert len(shown) == len(called_at) == 3
    assert [call["lateness_s"] for call in shown] == [pytest.approx(when - DUE) for when in called_at]
    assert run["lateness_s"] == pytest.approx(called_at[-1] - DUE)
    assert run["lateness_s"] > 10
    ends = "dispatched" if invocation == "Event" else "succeeded"
    assert [call["outcome"] for call in shown] == ["unknown", "unknown", ends]
    assert [call["attempt"] for call in shown] == [1, 1, 1]


def test_each_attempt_has_its_own_lateness(world: World) -> None:
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["attempt"] == 2, error_type="Boom")
    connects_for(world, 2)
    world.registry.create("alice", "a", job(at="2026-11-21T03:15:00Z", retry={"base_s": 60}))
    world.run_until("2026-11-21T03:30:00Z")
    (run,) = world.run_items("alice", "a")
    assert [attempt["lateness_s"] for attempt in run["attempts"]] == [pytest.approx(2, abs=0.1)] * 2
    assert run["lateness_s"] == pytest.approx(2, abs=0.1)
    assert run["started_at"] > run["attempts"][0]["started_at"] + 30
    assert run["duration_s"] == pytest.approx(0, abs=0.1)


def test_a_crash_of_a_later_attempt_leaves_the_runs_lateness(world: World) -> None:
    def call(event: Mapping[str, Any]) -> Outcome:
        if len(world.target.calls) == 2:
            raise Killed
        return Outcome(ok=len(world.target.calls) == 3, error_type="Boom")

    world.target.answer = call
    world.registry.create("alice", "a", job(at="2026-11-21T03:15:00Z", retry={"base_s": 60}))
    world.run_until("2026-11-21T04:30:00Z")
    (run,) = world.run_items("alice", "a")
    shown = run_view(Run.from_item(run), world.clock.now())["attempts"]
    assert [(call["attempt"], call["outcome"]) for call in shown] == [
        (1, "failed"),
        (2, "unknown"),
        (2, "succeeded"),
    ]
    assert run["lateness_s"] == 0
    assert shown[1]["lateness_s"] < 1 < 10 < shown[2]["lateness_s"]


def test_the_record_of_an_event_foresees_its_call(world: World) -> None:
    connects_for(world, 0.1)
    world.registry.create(
        "alice", "a", job(cron="*/10 * * * * *", invocation="Event", end_at="2026-11-21T03:30:00Z")
    )
    world.run_until("2026-11-21T03:31:00Z", ticks=True)
    late = [
        run["lateness_s"] for run in sorted(world.run_items("alice", "a"), key=lambda run: run["fire_at"])
    ]
    assert late[0] == 0
    assert late[-1] == pytest.approx(0.1, abs=0.01)
    measured = [report.lateness_s for report in world.reports]
    assert measured == [pytest.approx(0.1, abs=0.02)] * len(late)


def test_one_slow_call_says_little_of_the_next() -> None:
    delay = CallDelay()
    delay.learn(60)
    assert delay.s <= 0.02
    for _ in range(100):
        delay.learn(0)
    assert delay.s == pytest.approx(0, abs=0.001)


def test_a_hundred_calls_of_one_claim_do_not_overshoot() -> None:
    delay = CallDelay()
    for _ in range(100):
        delay.learn(0.2)
    assert delay.s == pytest.approx(0.2, abs=0.001)


def test_a_record_keeps_so_many_lost_calls(world: World) -> None:
    world.registry.create("alice", "a", job(at="2026-11-21T03:15:00Z"))
    execution = Execution.decode(world.sqs.bodies[0])
    for n in range(MAX_LOST_CALLS + 3):
        claim = Claim(execution, "m", DUE + 100 * n, DUE + 100 * n + 10)
        run = world.runs.get(execution)
        if run is None:
            assert world.runs.claim(claim, DISPATCHED) is None
        else:
            assert world.runs.take_over(claim, DISPATCHED, run) is None
    (run,) = world.run_items("alice", "a")
    assert (run["claims"], len(run["lost_calls"])) == (MAX_LOST_CALLS + 3, MAX_LOST_CALLS)
    assert run["lateness_s"] == 100 * (MAX_LOST_CALLS + 2)
