"""An executor that stops before any of its calls for longer than its lease, and wakes within its successor's work.

So it is after SIGSTOP, or on a machine that slept. Its message was delivered again meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from common.jobs.job import Job
from common.runs.outcome import Outcome
from common.runs.states import DISPATCHED, ENDED
from tests.faults.interleaving import play
from tests.faults.stage import staged
from tests.faults.truth import everything_explained
from tests.faults.wire import ELSEWHERE, Touched, Wire
from tests.worlds import World, at, job

BEGIN, DUE, END = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z", "2026-11-21T05:00:00Z"
# Longer than any lease here.
PAUSE_S = 400
SLEEPER, SUCCESSOR = "sleeper", "successor"
KINDS: dict[str, dict[str, Any]] = {
    "awaited": {},
    "retried": {"retry": {"max_attempts": 3, "base_s": 10}},
    "event": {"invocation": "Event"},
    "at most once": {"on_crash": "fail"},
    "limited": {"overlap": "skip"},
}


@dataclass
class Pause:
    """The sleeper stops after so many steps. It wakes after so many of the successor, and goes on to its end."""

    world: World
    steps: int
    of_successor: int
    # Who has prepared a call, and who has called.
    prepared: list[str] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    has_stopped: bool = False
    stopped_before_call: bool = False
    stopped_with: dict[str, Any] | None = None
    woke_with: dict[str, Any] | None = None
    has_woken: bool = False
    record_left: dict[str, Any] | None = None

    def next(self, waiting: Sequence[str]) -> str:
        """Who continues."""
        if self.steps and SLEEPER in waiting:
            self.steps -= 1
            return SLEEPER
        if SLEEPER in waiting and not self.has_stopped:
            self.has_stopped, self.stopped_with = True, self.record()
            self.stopped_before_call = bool(self.stopped_with) and SLEEPER not in self.prepared
            self.world.clock.sleep(PAUSE_S)
        if self.of_successor and SUCCESSOR in waiting:
            self.of_successor -= 1
            return SUCCESSOR
        if SLEEPER not in waiting:
            self.record_left = self.record_left or self.record()
            return SUCCESSOR
        if not self.has_woken:
            self.has_woken, self.woke_with = True, self.record()
        return SLEEPER

    def ran(self, name: str, touched: Touched) -> None:
        """Nothing depends on what it touched."""

    def record(self) -> dict[str, Any] | None:
        return next(iter(self.world.run_items("alice", "once")), None)

    @property
    def lost_its_claim(self) -> bool:
        """Whether another had claimed or ended the run before the sleeper woke."""
        stopped, woke = self.stopped_with, self.woke_with
        is_own = stopped and woke and stopped["claim_token"] == woke["claim_token"]
        return woke is not None and (not is_own or woke["status"] in ENDED - {DISPATCHED})


def observe(world: World, pause: Pause, wire: Wire, is_retried: bool) -> None:
    """Preparing a call is a step, too. The sleeper's call fails, and every other one succeeds."""
    read = world.executor.calls.payload_of

    def payload_of(job: Job) -> str:
        wire.turn("payload", ELSEWHERE)
        pause.prepared.append(threading.current_thread().name)
        return read(job)

    def answer(event: Mapping[str, Any]) -> Outcome:
        pause.callers.append(name := threading.current_thread().name)
        return Outcome(ok=name != SLEEPER, permanent=not is_retried, error_type="Boom")

    calls = replace(world.executor.calls, payload_of=payload_of)
    world.executor, world.target.answer = replace(world.executor, calls=calls), answer


@pytest.mark.parametrize("kind", KINDS)
def test_an_executor_that_wakes_after_its_lease_calls_nothing_and_changes_no_record(kind: str) -> None:
    with staged(BEGIN) as stage:
        executor = stage.world.executor
        stage.world.registry.create("alice", "once", job(at=DUE, timeout_s=30, **KINDS[kind]))
        stage.world.clock.move_to(at(DUE))
        message = stage.world.sqs.receive()
        assert message
        stage.save()
        messages = {SLEEPER: message, SUCCESSOR: replace(message, receives=2, receipt="again")}
        played, steps, of_successor = [], 1, 0
        while True:
            world = stage.restore()
            world.executor = executor
            pause = Pause(world, steps, of_successor)
            observe(world, pause, stage.wire, kind == "retried")
            died = play(
                stage.wire, {name: partial(world.execute, each) for name, each in messages.items()}, pause
            )
            if not pause.has_stopped:
                break
            record_left = pause.record_left or pause.record()
            if died[SUCCESSOR]:  # the sleeper's receipt deletes nothing, and brings nothing back
                world.sqs.give_back(messages[SUCCESSOR])
            world.run_until(END)
            where = (
                f"{kind}: stopped before step {steps}, woke before step {of_successor + 1} of its successor"
            )
            check(pause, record_left, kind, where)
            played.append(pause)
            steps, of_successor = (steps + 1, 0) if pause.of_successor else (steps, of_successor + 1)
        assert any(pause.stopped_before_call and pause.lost_its_claim for pause in played)


def check(pause: Pause, record_left: dict[str, Any] | None, kind: str, where: str) -> None:
    """Its call may overlap its successor's if it stopped with the request in its hands. Nothing else may."""
    calls = pause.callers
    assert not (pause.stopped_before_call and SLEEPER in calls), where
    if pause.lost_its_claim:
        assert record_left == pause.woke_with, where
    had_prepared = bool(pause.stopped_with) and not pause.stopped_before_call
    everything_explained(
        pause.world, {("alice", "once"): [at(DUE)]}, twice=had_prepared and kind != "at most once"
    )
    (status,) = pause.world.statuses("alice", "once")
    if kind != "at most once" and {*calls} - {SLEEPER}:
        assert status in ("succeeded", "dispatched"), where
    items = pause.world.dynamodb.scan(TableName="test-runs", ConsistentRead=True)["Items"]
    assert not [item for item in items if "holders" in item], where
