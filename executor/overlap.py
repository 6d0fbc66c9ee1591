"""What happens when the previous run of a job is still going: `allow`, `skip` or `queue_one`. Pure.

`locks.py` keeps who runs and who waits; jobs that allow overlap never come here.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.jobs.job import Job
from common.planning.execution import BACKFILL, Execution
from common.runs.states import OVERLAP
from common.storage.wire_format import Item
from executor.admission import Skip

# A run that waits for another without a lease looks again after this.
_LOOK_AGAIN_S = 10


@dataclass(frozen=True, slots=True)
class Wait:
    """It runs when the run that is going has ended, which should be by `until`.

    `takes_place`: it takes the one place in the queue; without one it comes back and asks again.
    """

    until: int
    detail: str
    takes_place: bool


def decide(job: Job, execution: Execution, lock: Item, now: float) -> Skip | Wait:
    """What the job's policy makes of an execution that has not begun and did not get the lock.

    A later attempt waits whatever the policy is, and so do a backfill's runs: a person asked for exactly those.
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
