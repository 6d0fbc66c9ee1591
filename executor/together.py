"""Reads and claims of a batch's executions that one request can make for all of them.

What is not claimed here is claimed by its own request, which can do more: it takes over, tries again, and returns the
record of an attempt that it may not make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common import telemetry
from common.planning.execution import SCHEDULE, Execution
from executor.due_jobs import Jobs
from executor.pipeline import Attempt, Executor, Message


@dataclass(frozen=True, slots=True)
class Due:
    """An execution that is due, and its message."""

    message: Message
    execution: Execution


def claim_together(executor: Executor, due: Sequence[Due], jobs: Jobs) -> dict[Message, Attempt]:
    """Claim the attempts that need nothing but a claim. Returns those that may be made, and whether each is claimed.

    If it is not certain that a claim was written, the attempt's own request finds out by the same claim.
    """
    found = [one for one in due if _is_simple(one.execution, jobs)]
    if len(found) < 2:
        return {}
    attempts: dict[Message, Attempt] = {}
    try:
        executor.tenants.learn({one.execution.tenant for one in found}, executor.clock.now())
        attempts = _attempts(executor, found, jobs)
        if len(attempts) < 2:
            return attempts
        return dict(zip(attempts, executor.claim_together(list(attempts.values())), strict=True))
    except Exception as error:  # noqa: BLE001  each is claimed by itself then
        telemetry.logger().warning("executions not claimed together", error=repr(error))
        return attempts


def _is_simple(execution: Execution, jobs: Jobs) -> bool:
    """Whether a run of it has no record before its claim, and no other run or calendar can prevent it."""
    job = jobs.get((execution.tenant, execution.job_id))
    return (
        job is not None
        and execution.trigger == SCHEDULE
        and execution.attempt == 1
        and not execution.not_before_at
        and job.overlap == "allow"
        and not job.schedule.calendars
    )


def _attempts(executor: Executor, due: Sequence[Due], jobs: Jobs) -> dict[Message, Attempt]:
    """The attempts that may be made, one of each execution: a copy of a message is claimed by itself."""
    found: dict[Message, Attempt] = {}
    seen: set[str] = set()
    for one in due:
        name = one.execution.execution_id
        attempt = executor.admit(one.message, one.execution, jobs)
        if name not in seen and isinstance(attempt, Attempt):
            found[one.message] = attempt
            seen.add(name)
    return found
