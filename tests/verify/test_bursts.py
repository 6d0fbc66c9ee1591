"""The crowded seconds of a verification: a tick plans them, so they travel in packs; and what the log says of them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from common.planning.due_index import PlanningProgress
from common.timing.windows import planning_end
from scripts.verify import bursts
from scripts.verify.bursts import Burst

CROWDS = [(40, "Event"), (5_000, "RequestResponse")]


class Stage:
    """A stage that notes what is done in order. Its window is planned until `planned_until`."""

    name = "minute8-trial"

    def __init__(self, planned_until: int) -> None:
        self.done: list[str] = []
        self._progress = PlanningProgress(
            planned_until=planned_until, planning_until=planned_until, decided_at=0.0
        )
        self.fails = False

    def client(self, _service: str) -> Any:
        return SimpleNamespace(
            disable_rule=lambda Name: self.done.append(f"off {Name}"),
            enable_rule=lambda Name: self.done.append(f"on {Name}"),
        )

    def progress(self) -> PlanningProgress:
        return self._progress

    def tick(self) -> None:
        self.done.append("tick")
        if self.fails:
            raise RuntimeError("the scheduler failed")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose window is planned for four minutes; jobs are registered at once."""
    stage = Stage(int(time.time()) + 240)

    def register(_engine: Any, name: str, times: Sequence[int], **_: Any) -> list[int]:
        stage.done.append(name)
        return list(times)

    monkeypatch.setattr(bursts.loads, "register", register)
    monkeypatch.setattr(bursts.time, "sleep", lambda _s: None)
    monkeypatch.setattr(bursts, "planning_end", lambda _now: planning_end(time.time()) + 900)
    return SimpleNamespace(stage=stage, target={})


def test_a_tick_plans_what_was_registered_for_after_the_planned_window(engine: Any) -> None:
    """What is registered inside a planned window travels in single messages: neither packs nor wakes are tried."""
    planned = bursts.plan(engine, CROWDS)
    assert all(burst.at >= engine.stage.progress().planned_until for burst in planned)
    assert [burst.executions for burst in planned] == [[burst.at] * burst.count for burst in planned]
    off, pace, *registered, tick, on = engine.stage.done
    assert (off, tick, on) == ("off minute8-trial-tick", "tick", "on minute8-trial-tick")
    assert (pace, registered) == ("pace", ["burst-40-event", "burst-5000-requestresponse"])


def test_the_rule_ticks_again_whatever_happens(engine: Any) -> None:
    engine.stage.fails = True
    with pytest.raises(RuntimeError):
        bursts.plan(engine, CROWDS)
    assert engine.stage.done[-1] == "on minute8-trial-tick"


def test_more_than_one_tick_plans_is_refused_before_anything_is_done(engine: Any) -> None:
    with pytest.raises(ValueError, match="give fewer"):
        bursts.plan(engine, [(40_000, "Event")])
    assert engine.stage.done == []


@pytest.mark.parametrize(("ahead_s", "is_planned"), [(60, True), (3, False), (300, False)])
def test_a_burst_that_the_tick_missed_is_a_problem(ahead_s: int, is_planned: bool) -> None:
    """Too near for its wakes, or beyond what is planned."""
    now = int(time.time())
    missed = bursts.not_planned(Stage(now + 240), [Burst(40, "Event", now + ahead_s, [])])  # type: ignore[arg-type]
    assert bool(missed) != is_planned


def test_batches_and_wakes_are_counted_from_the_log() -> None:
    def line(stream: str, **fields: Any) -> dict[str, str]:
        return {"logStreamName": stream, "message": json.dumps(fields)}

    log = [
        line("a", LatenessSeconds=[0.1] * 100),
        line("b", LatenessSeconds=0.2),
        *(line(stream, type="platform.report", record={"metrics": {}}) for stream in "aab"),
        line("c", type="platform.report", record={"metrics": {"initDurationMs": 200}}),
        {"logStreamName": "a", "message": "START"},
    ]
    counted = bursts.batches(log)
    assert (counted.batches, counted.executions, counted.environments) == (2, 101, 2)
    # Two invocations had wakes alone, and one was cold.
    assert (counted.without, counted.cold) == (2, 1)
    assert bursts.cells(counted) == ["2", "50.5", "2", "2", "1"]
    assert bursts.batches(log[:2]).without is None
