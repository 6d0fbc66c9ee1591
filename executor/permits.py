"""The permits of an attempt: those of its job's `overlap`, which are of the run, and of its concurrency key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from common.jobs.job import Job
from common.jobs.spec import Concurrency
from common.planning.execution import BACKFILL, Execution
from common.runs import states
from common.runs.claims import Claim
from common.runs.holders import MAX_PLACES, MAX_WAIT_S, Full, Holders, Limit, Permit
from common.runs.run import Doing, Run
from common.storage import keys
from executor.admission import Skip, Wait

# The lease of a key's permit outlives that of the call: its executor's message comes again before others take it.
_KEY_MARGIN_S: Final = 60
# After the time at which a run should have gone on. Clocks may differ by ten minutes.
_LATE_S: Final = 900
# A run without a place in line looks by itself: first after so long, then each time after half of its wait.
LOOK_AFTER_S: Final = 60
# Every ten minutes a chore looks after those in line (`scheduler/lines.py`).
SOON_S: Final = 900
# How many may wait before a run of the job does.
_PLACES: Final = {"skip": 0, "queue_one": 1, "wait": MAX_PLACES}


@dataclass(frozen=True, slots=True)
class Permits:
    """Takes the permits of attempts, and frees them. Jobs that limit nothing make no request."""

    holders: Holders

    def take(
        self, job: Job, execution: Execution, lease_until: float, now: float
    ) -> tuple[Permit, ...] | Run | Skip | Wait:
        """All permits of an attempt, or what becomes of it without one: its record, if it does not wait for its turn.

        Raises Busy.
        """
        permits: list[Permit] = []
        for limit in limits_of(job, execution, now):
            result = self.holders.take(limit, execution, lease_until)
            if isinstance(result, Permit):
                permits.append(result)
                continue
            self.give_back(permits)
            if result.record:
                place = Permit(limit.key, execution, execution.attempt)
                self.holders.free([place], is_copy=True)
                return result.record
            return without_permit(job, execution, limit, result, now)
        return tuple(permits)

    def give_back(self, permits: Iterable[Permit]) -> None:
        """Free what was taken just now: the attempt is not made."""
        self.holders.free(permit for permit in permits if permit.is_new)

    def attempt_goes_on(self, job: Job | None, claim: Claim, until: float) -> None:
        """Keep the permits: the target has accepted the work, and nobody looks again before `until`."""
        doing: Doing = "durable" if claim.durable else "callback"
        self.holders.keep(permits_of(job, claim), until + _KEY_MARGIN_S, doing)

    def attempt_ended(self, job: Job | None, claim: Claim) -> None:
        """Free the attempt's permits."""
        if permits := permits_of(job, claim):
            self.holders.free(permits)

    def retries(self, job: Job | None, claim: Claim, next_at: float, work_until: float) -> None:
        """Keep the permits of a run whose next attempt is due at `next_at`.

        Those of the attempt are freed, unless its work can go on until `work_until`.
        """
        permits = permits_of(job, claim)
        of_attempt = [permit for permit in permits if permit.attempt]
        if work_until:
            self.holders.keep(of_attempt, work_until, "call")
        else:
            self.holders.free(of_attempt)
        self.holders.keep((permit for permit in permits if not permit.attempt), next_at + _LATE_S, "retry")

    def work_goes_on(self, job: Job | None, claim: Claim, until: float) -> bool:
        """Keep the permits of an attempt that has ended, but whose work can go on until then. False: it has none."""
        permits = permits_of(job, claim)
        self.holders.keep(permits, until, "call")
        return bool(permits)

    def run_is_over(self, job: Job | None, claim: Claim, *, is_copy: bool = False) -> None:
        """Free whatever an ended run still has: permits, or places of its attempts.

        `is_copy`: the message that has ended the run is another one.
        """
        self.holders.free(_all_of_run(job, claim), is_copy=is_copy)

    def leave_line(self, job: Job | None, claim: Claim) -> None:
        """Give up the places of a run that waits for something else: nobody waits behind it."""
        self.holders.free(_all_of_run(job, claim), is_copy=True, only_places=True)


def limits_of(job: Job, execution: Execution, now: float) -> list[Limit]:
    """The keys whose permits an attempt needs. Later attempts and runs of a backfill wait by any policy. Pure."""
    if not job.spec.is_limited:
        return []
    must_run = execution.attempt > 1 or execution.trigger == BACKFILL
    limits = []
    if key := job.spec.concurrency:
        is_over = now - _asked_at(execution) > key.max_wait_s
        places = 0 if is_over else MAX_PLACES if must_run else _PLACES[key.when_full]
        item_key, until = keys.key_permits(execution.tenant, key.key), _asked_at(execution) + key.max_wait_s
        limits.append(Limit(item_key, key.limit, execution.attempt, places, until, _KEY_MARGIN_S))
    if job.spec.overlap != "allow":
        places = MAX_PLACES if must_run else _PLACES[job.spec.overlap]
        item_key = keys.overlap_permit(execution.tenant, execution.job_id)
        limits.append(Limit(item_key, 1, 0, places, now + MAX_WAIT_S, since=job.created_at))
    return limits


def without_permit(job: Job, execution: Execution, limit: Limit, full: Full, now: float) -> Skip | Wait:
    """What an execution does that finds no permit. Pure."""
    wait_s = now - _asked_at(execution)
    is_woken = full.has_place and execution.attempt == 1  # the record of a retry says when it looks next
    look_at = None if is_woken else int(now + max(LOOK_AFTER_S, wait_s / 2)) + 1
    if (
        full.has_place and limit.wait_until <= now + SOON_S
    ):  # before a chore would find that it has waited too long
        look_at = int(limit.wait_until) + 2
    if job.spec.concurrency is None or not limit.attempt:
        going, *_ = (*full.holders, *full.waiting)
        detail = f"run {going.partition(':')[2]} is still going"
        if full.has_place or limit.places == MAX_PLACES:
            return Wait(look_at, detail)
        if limit.places:
            detail += f", and run {full.waiting[0].partition(':')[2]} waits for it already"
        return Skip(states.OVERLAP, detail)
    going = _going(job.spec.concurrency, full)
    if not limit.places:
        waited = (
            f"; it waited {wait_s:.0f} s for its turn" if wait_s > job.spec.concurrency.max_wait_s else ""
        )
        return Skip(states.CONCURRENCY, f"{going}{waited}")
    return Wait(look_at and min(look_at, int(limit.wait_until) + 2), f"{going}; it waits")


def permits_of(job: Job | None, claim: Claim) -> tuple[Permit, ...]:
    """The permits of a claim: those that this executor has taken, or else what the record and the job say. Pure."""
    if claim.permits:
        return claim.permits
    execution, permits = claim.execution, []
    if claim.concurrency_key:
        permits.append(
            Permit(keys.key_permits(execution.tenant, claim.concurrency_key), execution, execution.attempt)
        )
    if job and job.spec.overlap != "allow":
        permits.append(Permit(keys.overlap_permit(execution.tenant, execution.job_id), execution, 0))
    return tuple(permits)


def _all_of_run(job: Job | None, claim: Claim) -> list[Permit]:
    """The permits and places of any attempt of the run, which need not have any."""
    if job and job.spec.concurrency and not claim.concurrency_key:
        claim = replace(claim, concurrency_key=job.spec.concurrency.key)
    return [permit._replace(attempt=0) for permit in permits_of(job, claim)]


def _going(concurrency: Concurrency, full: Full) -> str:
    if not full.holders:
        return f"other runs wait before it for the concurrency key {concurrency.key}"
    runs, are = ("run", "is") if len(full.holders) == 1 else ("runs", "are")
    of_key = f"{runs} of the concurrency key {concurrency.key} {are} going"
    return f"{len(full.holders)} {of_key}, such as {full.holders[0]}"


def _asked_at(execution: Execution) -> int:
    """From when its wait counts."""
    return (execution.attempt == 1 and execution.first_due_at) or execution.due_at
