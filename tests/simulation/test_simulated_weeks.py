"""The days around clock changes of the simulated year; `python -m tests.simulation` plays the whole year."""

from __future__ import annotations

import pytest

from common.planning.due_index import PlanningProgress
from executor import due_jobs
from scheduler.due import EntryPlanner
from scheduler.planner import WindowPlanner
from scheduler.summary import TickSummary
from tests.simulation.__main__ import judge
from tests.simulation.year import Simulation


@pytest.mark.parametrize(
    ("begins", "seed"),
    [
        ("2027-03-11T00:00:00Z", 1),  # New York, Havana, and Casablanca's Ramadan before
        ("2027-03-26T12:00:00Z", 2),  # Europe, Beirut, Troll, Nuuk
        ("2027-04-02T00:00:00Z", 3),  # Lord Howe, Chatham, Santiago
        ("2027-10-29T00:00:00Z", 4),  # Europe and Cairo in autumn
    ],
)
def test_executions_equal_the_directly_computed_set(begins: str, seed: int) -> None:
    simulation = Simulation(begins, days=4, jobs=80, seed=seed)
    simulation.run()
    verdict, _ = judge(simulation, spots=1)
    assert verdict.wrong == []
    assert verdict.runs > 100
    assert simulation.seen.statuses["duplicate"] > 0
    assert verdict.missed > 0


def _forgets_half(self: EntryPlanner, *arguments: object) -> list[object]:
    _forgets_half.calls += 1  # type: ignore[attr-defined]
    return [] if _forgets_half.calls % 7 == 0 else _plan(self, *arguments)  # type: ignore[attr-defined, arg-type, return-value]


_plan = EntryPlanner._plan


def _played() -> list[str]:
    """In these days many jobs change within minutes of a fire time."""
    simulation = Simulation("2027-03-11T00:00:00Z", days=4, jobs=80, seed=1)
    simulation.run()
    return judge(simulation, spots=0)[0].wrong


def test_the_judge_finds_a_tick_that_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    _forgets_half.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(EntryPlanner, "_plan", _forgets_half)
    assert any("never called" in problem for problem in _played())


def test_the_judge_finds_an_executor_that_admits_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_jobs, "admit", lambda *arguments: None)
    assert any("called and not due" in problem for problem in _played())


def test_the_judge_finds_a_mark_that_moves_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_window = WindowPlanner.plan

    def hasty(self: WindowPlanner, progress: PlanningProgress, summary: TickSummary) -> PlanningProgress:
        self.planner.index.finish_planning(progress.planning_until)
        return plan_window(self, progress, summary)

    monkeypatch.setattr(WindowPlanner, "plan", hasty)
    assert any("never called" in problem for problem in _played())
