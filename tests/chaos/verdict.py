"""The verdict: the demo's checks, except for what the guarantee allows after a crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.planning.execution import Execution, split_execution_id, split_run_name
from common.runs.states import DISPATCHED, ENDED
from scripts.demo.witness import Call, problems

_LATE_S = 10


@dataclass(frozen=True)
class Verdict:
    """The figures, and the violations."""

    due: int
    statuses: Counter[str]
    attempts: int
    takeovers: int
    doubled: int
    retried_by_lambda: int
    lost_events: int
    unwitnessed: int
    late: int
    late_in_faults: int
    problems: list[str]


def judge(
    due: Iterable[Execution],
    runs: Mapping[str, Mapping[str, Any]],
    calls: Iterable[Call],
    until: float = 0.0,
    faults: Sequence[tuple[float, float]] = (),
) -> Verdict:
    """Hold schedules, runs and the target's own log against each other.

    `due` are the executions of fire times before `until`; a call of another one is a problem. Calls of later ones are
    not judged: the jobs go on, and the runs of those are not read. An attempt may be called twice only if its run was
    taken over. What Lambda does with an event once it has taken it is its own: it tries again where a function was
    killed, and the embedded one loses some; both are counted. So are answered calls that the log lacks, late runs, and
    those of them that were due between the begin and end of one of the `faults`.
    """
    due = list(due)
    ids = {execution.execution_id for execution in due}
    calls = [call for call in calls if call.execution_id in ids or _fire_at(call) < until]
    wrong = [f"not due: {call.execution_id} was called" for call in calls if call.execution_id not in ids]
    doubled, retried, lost_events, unwitnessed = 0, 0, 0, 0
    for problem in problems(due, runs, calls):
        execution_id = problem.split()[1]
        run = runs.get(execution_id, {})
        if problem.startswith("doubled:") and _takeovers(run):
            doubled += 1
        elif problem.startswith("doubled:") and run.get("status") == DISPATCHED:
            retried += 1
        elif problem.startswith("missing:") and run.get("status") == DISPATCHED:
            lost_events += 1
        elif problem.startswith("unwitnessed:"):
            unwitnessed += 1
        else:
            wrong.append(problem)
    wrong += [
        f"not final: {e.execution_id} is {runs[e.execution_id]['status']}"
        for e in due
        if runs.get(e.execution_id, {}).get("status") not in (*ENDED, None)
    ]
    kept = list(runs.values())
    late = [run for run in kept if run.get("lateness_s", 0) > _LATE_S]
    return Verdict(
        due=len(due),
        statuses=Counter(_status_of(run) for run in kept),
        attempts=sum(run.get("attempt", 0) for run in kept),
        takeovers=sum(_takeovers(run) for run in kept),
        doubled=doubled,
        retried_by_lambda=retried,
        lost_events=lost_events,
        unwitnessed=unwitnessed,
        late=len(late),
        late_in_faults=sum(_is_within(run["due_at"], faults) for run in late),
        problems=wrong,
    )


def _fire_at(call: Call) -> float:
    """The fire time of a call by its execution id."""
    name = split_execution_id(call.execution_id)
    parts = split_run_name(name[2]) if name else None
    return parts[0] if parts else 0


def _is_within(at: float, spans: Iterable[tuple[float, float]]) -> bool:
    return any(begin <= at <= end for begin, end in spans)


def _takeovers(run: Mapping[str, Any]) -> int:
    return int(run.get("claims", 0)) - int(run.get("attempt", 0))


def _status_of(run: Mapping[str, Any]) -> str:
    return f"{run['status']} ({run['reason']})" if "reason" in run else str(run["status"])
