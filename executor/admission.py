"""Decides whether an execution that is due may run: by its current tenant and its job. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from common.jobs.job import DELETED, PAUSED, Job
from common.planning.execution import SCHEDULE, Execution
from common.runs import states
from common.tenants.allowed_targets import Block, is_allowed, is_blocked, is_minute8_resource
from common.tenants.tenant import ACTIVE, SUSPENDED, TenantRules

# Attempts wait for the end of these.
PASSING: Final = (states.PAUSED_JOB, states.BLOCKED)
# An attempt that waits for the end of a pause or a block looks again after half of its wait.
_FIRST_LOOK_S = 15
_LAST_LOOKS_S = 900
# The last attempt within the policy's age may be a minute late, and clocks may differ by ten minutes.
_RETRY_LATE_S = 660
# A run that waits so long for other runs is told.
WAITS_AFTER_S = 600


@dataclass(frozen=True, slots=True)
class Skip:
    """The execution does not run. `reason` is a word of `states.py`, `detail` a sentence for a person.

    `since`: when that pause or block began.
    """

    reason: str
    detail: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """The execution waits for other runs, or a block or pause, to end. It looks again at `until`; None: it is woken.

    `leaves_line`: it waits for something else than runs, and nobody waits behind it. `is_told`: to its job's
    subscribers, after ten minutes.
    """

    until: int | None
    detail: str
    leaves_line: bool = False
    is_told: bool = True


def admit(execution: Execution, job: Job | None) -> Skip | None:
    """Why the job as it is now does not let the execution run. None: it does, if the times of its schedule do."""
    if job is None or job.state == DELETED:
        return Skip(states.DELETED_JOB, "the job was deleted after this execution was planned")
    if execution.trigger == SCHEDULE:
        if job.state == PAUSED:
            note = f": {job.note}" if job.note else ""
            since = job.pauses[-1].from_at if job.pauses else 0
            return Skip(states.PAUSED_JOB, f"the job is paused{note}", since)
    elif not is_for_job(execution, job):
        return Skip(states.DELETED_JOB, "the job was deleted, and created again, after this was asked for")
    return None


def put_off(execution: Execution, job: Job | None, skip: Skip, now: float) -> Skip | Wait | None:
    """The skip, or until when the attempt waits for the end of a pause or block. None: it is due later by now.

    A first attempt waits if it was due before that began, as long as the job's retries may.
    """
    if job is None or skip.reason not in PASSING:
        return skip
    if execution.attempt == 1:
        from common.jobs.revisions import due_now  # most executors never need it

        due_at = due_now(execution, job)
        if due_at > max(now, execution.due_at):
            return None
        if not now - job.spec.retry.max_age_s <= due_at < skip.since:
            return skip
    wait_s = min(_LAST_LOOKS_S, max(_FIRST_LOOK_S, (now - execution.due_at) / 2))
    return Wait(int(now + wait_s) + 1, skip.detail, leaves_line=True)


def too_late(execution: Execution, job: Job, now: float) -> Skip | None:
    """Whether the attempt comes too late for the job's policies."""
    too_old_s = now - execution.aged_from_at - job.spec.retry.max_age_s
    if execution.attempt > 1 and too_old_s > _RETRY_LATE_S:
        return Skip(
            states.MISFIRE,
            f"{too_old_s:.0f} s beyond the retry policy's max_age_s of {job.spec.retry.max_age_s} s",
        )
    late_s = now - execution.due_at
    if (
        job.spec.start_deadline_s is not None
        and execution.attempt == 1
        and late_s > job.spec.start_deadline_s
    ):
        return Skip(
            states.MISFIRE, f"{late_s:.0f} s late, the start deadline is {job.spec.start_deadline_s} s"
        )
    return None


def is_for_job(execution: Execution, job: Job) -> bool:
    """Whether a person requested the execution for this job, and not for a deleted job of the same name.

    The revision decides if the clock of the requesting machine was slower than that of the machine that created the
    job.
    """
    return execution.aged_from_at >= job.created_at or execution.schedule_revision == job.schedule_revision


def admit_tenant(rules: TenantRules | None, job: Job | None, blocks: Sequence[Block] = ()) -> Skip | None:
    """Why the platform does not let the tenant run this. None: it does. Checked before every attempt."""
    if rules is None:
        return Skip(states.DELETED_JOB, "there is no such tenant (any more)")
    if rules.state == SUSPENDED:
        return Skip(states.SUSPENDED_TENANT, "the platform has suspended the tenant")
    if rules.state != ACTIVE:
        return Skip(states.DELETED_JOB, "the tenant was deleted")
    if job is None:
        return None
    target = job.spec.target.get("arn") or job.spec.target.get("url")
    if is_minute8_resource(job.spec.target):
        return Skip(states.TARGET_NOT_ALLOWED, f"{target} is Minute8's own")
    if not is_allowed(job.spec.target, rules.allowed_targets):
        with_role = f" with {job.spec.target['role_arn']}" if job.spec.target.get("role_arn") else ""
        return Skip(
            states.TARGET_NOT_ALLOWED,
            f"the platform does not allow the tenant the target {target}{with_role}",
        )
    for block in blocks:
        if is_blocked(job.spec.target, (block.pattern,)):
            note = f": {block.note}" if block.note else ""
            return Skip(states.BLOCKED, f"the platform blocks {target}{note}", block.blocked_at)
    return None
