"""How long a trial waits: until its load is over, and `patience_s` more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from common.planning.execution import Execution
from scripts.verify import trials
from scripts.verify.trials import SMALL, Deployed, Trials

NOW, LOAD_S = 1_000, 300


class Stage:
    """A stage whose target is called so much after each second."""

    def __init__(self, late_s: float) -> None:
        self.now, self._late_s = float(NOW), late_s

    def runs(self, executions: list[Execution]) -> dict[str, Any]:
        run = {"status": "dispatched", "attempt": 1, "lateness_s": self._late_s}
        return {due.execution_id: run for due in executions if self.now >= due.due_at + self._late_s}

    def target_log(self, _since: float) -> list[dict[str, Any]]:
        return [
            {
                "timestamp": (due.due_at + self._late_s) * 1000,
                "message": f"start job=j execution={due.execution_id} attempt=1",
            }
            for due in EXECUTIONS
            if self.now >= due.due_at + self._late_s
        ]


EXECUTIONS = [Execution("acme", "each-second", at, at, 1) for at in range(NOW, NOW + LOAD_S)]


@pytest.mark.parametrize(("late_s", "is_seen"), [(SMALL.patience_s - 2, True), (SMALL.patience_s * 3, False)])
def test_patience_counts_from_the_last_second(
    monkeypatch: pytest.MonkeyPatch, late_s: int, is_seen: bool
) -> None:
    """A load goes on after the update that it tries: patience from then on would end before its last second."""
    stage = Stage(late_s)
    clock = SimpleNamespace(
        time=lambda: stage.now, sleep=lambda s: setattr(stage, "now", stage.now + s), monotonic=None
    )
    monkeypatch.setattr(trials, "time", clock)
    tried = Trials(SimpleNamespace(stage=stage), Deployed("", 0, print), SMALL)  # type: ignore[arg-type]
    late, wrong = tried._measure(EXECUTIONS, NOW, len(EXECUTIONS))
    assert (late == [late_s] * LOAD_S, not wrong) == (is_seen, is_seen)


@pytest.mark.parametrize(("again_s", "is_problem"), [(16, False), (5, True)])
def test_the_demos_workload_allows_what_the_bursts_allow(
    monkeypatch: pytest.MonkeyPatch, again_s: int, is_problem: bool
) -> None:
    """A copy of an event's message calls again after the lease."""
    due = EXECUTIONS[0]
    log = [
        {"timestamp": at * 1000, "message": f"start job=j execution={due.execution_id} attempt=1"}
        for at in (NOW, NOW + again_s)
    ]
    run = {"status": "dispatched", "attempt": 1, "lateness_s": 0}
    show = SimpleNamespace(due=lambda: [due], runs={due.execution_id: run})
    for name in ("watch", "settle", "forget_later_runs"):
        setattr(show, name, lambda *_: None)
    stage = SimpleNamespace(
        allow=lambda *_: None, register=lambda _: [], target_log=lambda _: log, runs=lambda _: show.runs
    )
    for name in ("real_workload", "lively_jobs"):
        monkeypatch.setattr(trials, name, lambda *_: [])
    monkeypatch.setattr(trials, "Show", lambda *_: show)
    engine = SimpleNamespace(stage=stage, target={"arn": "arn"})
    result = Trials(engine, Deployed("", 0, print), SMALL).workload()  # type: ignore[arg-type]
    assert bool(result.problems) is is_problem
