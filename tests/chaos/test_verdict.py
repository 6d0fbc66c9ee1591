"""The chaos verdict allows exactly what the guarantee allows."""

from __future__ import annotations

import pytest

from common.planning.execution import Execution
from scripts.demo.witness import Call
from tests.chaos.verdict import judge

DUE = Execution("alice", "job", fire_at=1000, due_at=1000, schedule_revision=1)
ID = DUE.execution_id
RUN = {"status": "succeeded", "lateness_s": 0.1, "attempt": 1, "claims": 1}
CALL = Call(ID, 1, 1000.1)


@pytest.mark.parametrize(
    ("run", "calls", "problem"),
    [
        (RUN, [CALL], ""),
        (RUN, [CALL, CALL], "doubled"),
        (RUN | {"claims": 2}, [CALL, CALL], ""),
        (RUN | {"status": "dispatched"}, [CALL, CALL], ""),
        (RUN | {"status": "retrying"}, [CALL], "not final"),
        (RUN | {"status": "running"}, [CALL], "unexplained"),
        (RUN, [], "missing"),
        (RUN | {"status": "dispatched"}, [], ""),
        (None, [], "missing"),
    ],
)
def test_the_judge(run: dict[str, object] | None, calls: list[Call], problem: str) -> None:
    verdict = judge([DUE], {ID: run} if run else {}, calls)
    assert [text.startswith(problem) for text in verdict.problems[:1]] == ([True] if problem else [])
