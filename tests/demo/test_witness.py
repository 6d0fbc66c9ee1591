"""The demo's checks find each kind of problem."""

from __future__ import annotations

import re

import pytest

from common.planning.execution import Execution
from common.registration.definition import Limits, build_job, parse_definition
from common.timing.fires import next_fires
from scripts.demo.witness import Call, calls_in, problems
from scripts.demo.workload import real_workload
from tests.worlds import ARN

DUE = Execution("alice", "job", fire_at=1000, due_at=1000, schedule_revision=1)
ID = DUE.execution_id
GOOD_RUN = {"status": "succeeded", "lateness_s": 0.1}
GOOD_CALL = Call(ID, 1, 1000.1)
TAIL = "START RequestId: 1\nstart job=job execution={} attempt=1\ndone items=3"
ANSWERED = GOOD_RUN | {"attempts": [{"attempt": 1, "log_tail": TAIL.format(ID)}]}
OF_ANOTHER = GOOD_RUN | {"attempts": [{"attempt": 1, "log_tail": TAIL.format(f"{ID}0")}]}


def test_a_correct_world_has_no_problems() -> None:
    assert problems([DUE], {ID: GOOD_RUN}, [GOOD_CALL]) == []
    assert problems([DUE], {ID: {"status": "skipped", "reason": "paused"}}, []) == []
    assert problems([DUE], {ID: {"status": "retrying", "lateness_s": 0}}, [GOOD_CALL]) == []


@pytest.mark.parametrize(
    ("runs", "calls", "problem"),
    [
        ({}, [], "missing: .* has no run"),
        ({ID: {"status": "running", "lateness_s": 0}}, [GOOD_CALL], "unexplained: .* still running"),
        ({ID: {"status": "skipped"}}, [], "unexplained: .* without a reason"),
        ({ID: GOOD_RUN}, [], "missing: .* was not called"),
        ({ID: ANSWERED}, [], "unwitnessed: .* the target's log lacks the call"),
        ({ID: OF_ANOTHER}, [], "missing: .* was not called"),
        ({ID: GOOD_RUN}, [GOOD_CALL, Call(ID, 1, 1003.35)], "doubled: .* 2 times, again after 3.250 s"),
        ({ID: GOOD_RUN}, [Call(ID, 1, 999.9)], "early: .* 0.100 s before"),
        ({ID: GOOD_RUN | {"lateness_s": -1}}, [GOOD_CALL], "early: .* by its own record"),
    ],
)
def test_each_kind_of_problem_is_found(
    runs: dict[str, dict[str, object]], calls: list[Call], problem: str
) -> None:
    (sentence,) = problems([DUE], runs, calls)
    assert re.match(problem, sentence)


def test_calls_are_read_from_the_targets_log() -> None:
    events = [
        {"timestamp": 1500, "message": "START RequestId: 1"},
        {"timestamp": 1501, "message": f"start job=job execution={ID} attempt=2\n"},
    ]
    assert calls_in(events) == [Call(ID, 2, 1.501)]


def test_the_real_workload_is_accepted_whole() -> None:
    registrations = list(real_workload(ARN))
    assert (len(registrations), len({r.tenant for r in registrations})) == (688, 46)
    for registration in registrations:
        definition = parse_definition(registration.definition, Limits())
        job = build_job(registration.tenant, registration.job_id, definition, None, 1_795_000_000, Limits())
        assert next_fires(job.schedule, 1_795_000_000, 1), registration
