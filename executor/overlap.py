"""The overlap policy: what happens if the previous run of a job has not ended (`allow`, `skip`, `queue_one`). Pure.

`locks.py` stores which run holds the lock and which one waits. Jobs that allow overlap never use this module.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.jobs.job import Job
from common.planning.execution import BACKFILL, Execution
from common.runs.states import OVERLAP
from common.storage.wire import Item
from executor.admission import Skip

# How long a run waits before it checks again, if the other run has no lease.
_LOOK_AGAIN_S = 10


@dataclass(frozen=True, slots=True)
class Wait:
    """Run after the current run has ended, which should be by `until`.

    `takes_place`: it takes the one place in the queue. Otherwise its message comes back and asks again.
    """

    until: int
    detail: str
    takes_place: bool


def decide(job: Job, execution: Execution, lock: Item, now: float) -> Skip | Wait:
    """The policy's decision for an execution that did not get the lock.

    Later attempts always wait, whatever the policy is. So do a backfill's runs: a person requested exactly those.
    """
    going_until = lock.get("lease_until", 0)
    is_going = going_until >= now
    detail = f"run {lock.get('holder' if is_going else 'queued')} is still going"
    until = int(going_until if is_going else now + _LOOK_AGAIN_S) + 1
    must_run = execution.attempt > 1 or execution.trigger == BACKFILL
    if job.overlap == "skip" and not must_run:
        return Skip(OVERLAP, detail)
    if _place_is_free(lock, execution, now):
        return Wait(until, detail, takes_place=True)
    if must_run:
        return Wait(until, detail, takes_place=False)
    return Skip(OVERLAP, f"{detail}, and run {lock['queued']} waits for it already")


def _place_is_free(lock: Item, execution: Execution, now: float) -> bool:
    return lock.get("queued") in (None, execution.run_name) or lock["queued_until"] < now
