"""Checks that every due execution happened, from the schedules and the target's own log, without Minute8's records."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.jobs.job import Job
from common.planning.execution import Execution
from common.runs.states import DISPATCHED, FAILED, RETRYING, SKIPPED, SUCCEEDED
from common.timing.fires import due_at, fires

ENDED = frozenset({SUCCEEDED, FAILED, SKIPPED, DISPATCHED})
# A run that waits for its next attempt is explained, although it has not ended.
EXPLAINED = ENDED | {RETRYING}
_CALL = re.compile(r"start job=\S+ execution=(?P<execution>\S+) attempt=(?P<attempt>\d+)")


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the target logged it; `at` in epoch seconds with milliseconds."""

    execution_id: str
    attempt: int
    at: float


def expected(job: Job, start: int, end: int) -> Iterator[Execution]:
    """The executions of `job` with a fire time in [start, end), from its schedule alone."""
    for fire_at in fires(job.schedule, max(start, job.effective_at), end):
        yield Execution(
            tenant=job.tenant,
            job_id=job.job_id,
            fire_at=fire_at,
            due_at=due_at(job.schedule, job.key, fire_at),
            schedule_revision=job.schedule_revision,
        )


def calls_in(log_events: Iterable[Mapping[str, Any]]) -> list[Call]:
    """The calls in the target's log events (CloudWatch's `timestamp` in ms and `message`)."""
    matches = ((event["timestamp"] / 1000, _CALL.search(event["message"])) for event in log_events)
    return [Call(match["execution"], int(match["attempt"]), at) for at, match in matches if match]


def problems(
    due: Iterable[Execution], runs: Mapping[str, Mapping[str, Any]], calls: Iterable[Call]
) -> list[str]:
    """The problems, one sentence each: missing, unwitnessed, unexplained, doubled, early. `runs` are by execution id.

    Unwitnessed: the log lacks a call whose answer brought the target's own lines. The witness lost it, not Minute8.
    """
    calls = list(calls)
    due_by_id = {execution.execution_id: execution for execution in due}
    called = {call.execution_id for call in calls}
    return [
        *(
            sentence
            for execution in due_by_id.values()
            if (sentence := _problem_of(execution, runs.get(execution.execution_id), called))
        ),
        *_doubled(calls),
        *_early(calls, due_by_id),
    ]


def _problem_of(execution: Execution, run: Mapping[str, Any] | None, called: Collection[str]) -> str | None:
    execution_id = execution.execution_id
    if run is None:
        return f"missing: {execution_id} was due and has no run"
    if run["status"] not in EXPLAINED:
        return f"unexplained: {execution_id} is still {run['status']}"
    if run["status"] == SKIPPED and not run.get("reason"):
        return f"unexplained: {execution_id} was skipped without a reason"
    if run["status"] in (SUCCEEDED, DISPATCHED) and execution_id not in called:
        if _was_answered(execution_id, run):
            return f"unwitnessed: {execution_id} has its target's answer, but the target's log lacks the call"
        return f"missing: {execution_id} is {run['status']}, but its target was not called"
    if run["status"] != SKIPPED and run["lateness_s"] < 0:
        return f"early: {execution_id} by its own record, {run['lateness_s']} s; due {execution.due_at}"
    return None


def _was_answered(execution_id: str, run: Mapping[str, Any]) -> bool:
    """Whether an answer of the target, in the record, begins as its log does."""
    answers = (_CALL.search(attempt.get("log_tail", "")) for attempt in run.get("attempts", ()))
    return any(answer["execution"] == execution_id for answer in answers if answer)


def _doubled(calls: Iterable[Call]) -> Iterator[str]:
    times: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.at):
        times[call.execution_id, call.attempt].append(call.at)
    for (execution_id, attempt), at in times.items():
        if len(at) > 1:
            after = ", ".join(f"{later - at[0]:.3f}" for later in at[1:])
            yield f"doubled: {execution_id} attempt {attempt} called its target {len(at)} times, again after {after} s"


def _early(calls: Iterable[Call], due_by_id: Mapping[str, Execution]) -> Iterator[str]:
    for call in calls:
        execution = due_by_id.get(call.execution_id)
        if execution and call.at < execution.due_at:
            early_s = execution.due_at - call.at
            yield f"early: {call.execution_id} called its target {early_s:.3f} s before it was due"
