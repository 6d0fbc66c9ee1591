"""Whether an execution whose second has come may run, decided from the job as it is now. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from common import runs
from common.execution import SCHEDULE, Execution
from common.job import DELETED, PAUSED, Job


@dataclass(frozen=True, slots=True)
class Skip:
    """It does not run; `reason` is one of a few words, `detail` a sentence for a person."""

    reason: str
    detail: str


def admit(execution: Execution, job: Job | None, now: float) -> Skip | None:
    """None if it may run, else why it may not."""
    if job is None or job.state == DELETED:
        return Skip(runs.DELETED_JOB, "the job was deleted after this execution was planned")
    if execution.trigger == SCHEDULE:
        if job.state == PAUSED:
            note = f": {job.note}" if job.note else ""
            return Skip(runs.PAUSED_JOB, f"the job is paused{note}")
        if execution.schedule_revision != job.schedule_revision:
            return Skip(
                runs.RESCHEDULED,
                f"planned by schedule revision {execution.schedule_revision}, the job is at {job.schedule_revision}",
            )
        if execution.attempt == 1 and execution.fire_at < job.effective_at:
            return Skip(runs.PAUSED_JOB, "the job was paused and resumed after this fire time")
    late_s = now - execution.due_at
    if job.start_deadline_s is not None and execution.attempt == 1 and late_s > job.start_deadline_s:
        return Skip(runs.MISFIRE, f"{late_s:.0f} s late, the start deadline is {job.start_deadline_s} s")
    return None
