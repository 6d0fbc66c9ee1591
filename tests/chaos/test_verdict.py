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
ANSWERED = RUN | {"attempts": [{"attempt": 1, "log_tail": f"start job=job execution={ID} attempt=1"}]}


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
        (ANSWERED, [], ""),
        (RUN | {"status": "dispatched"}, [], ""),
        (None, [], "missing"),
    ],
)
def test_the_judge(run: dict[str, object] | None, calls: list[Call], problem: str) -> None:
    verdict = judge([DUE], {ID: run} if run else {}, calls)
    assert [text.startswith(problem) for text in verdict.problems[:1]] == ([True] if problem else [])


def test_calls_of_later_fire_times_are_not_judged() -> None:
    """The jobs go on while the judge waits: what they call then has a run that is not read."""
    later = Call(Execution("alice", "job", 2000, 2000, 1).execution_id, 1, 2000.1)
    assert judge([DUE], {ID: RUN}, [CALL, later, later], until=1500).problems == []


def test_a_call_at_a_time_that_no_schedule_has_is_a_problem() -> None:
    other = Call(Execution("alice", "job", 1200, 1200, 1).execution_id, 1, 1200.1)
    assert judge([DUE], {ID: RUN}, [CALL, other], until=1500).problems == [
        f"not due: {other.execution_id} was called"
    ]


def test_lateness_within_a_fault_is_told_apart() -> None:
    run = RUN | {"lateness_s": 30, "due_at": 1000}
    judged = judge([DUE], {ID: run}, [CALL], faults=[(900, 1100)])
    assert (judged.late, judged.late_in_faults) == (1, 1)
    judged = judge([DUE], {ID: run}, [CALL], faults=[(1001, 1100)])
    assert (judged.late, judged.late_in_faults) == (1, 0)
