"""Overlap: what happens when the previous run of a job is still going (`allow`, `skip`, `queue_one`).

A job that does not allow it has one lock item. The lock is a lease: a crashed executor's ends by itself, it never
sticks. A run that waits for its next attempt is still going and keeps the lock. Jobs that allow overlap pay nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from common import keys
from common.execution import Execution
from common.job import Job
from common.run_changes import RunChanges
from common.runs import OVERLAP, Claim
from common.tables import Condition, ConditionFailed, Item, Table
from executor.admission import Skip

# How long a queued execution keeps its place after the time at which it should have taken the lock.
_PLACE_KEPT_S = 300
_KEPT_S = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Wait:
    """It runs when the run that is going has ended, which should be by `until`."""

    until: int
    detail: str


class Turns:
    """Lets one run of a job go at a time, where the job asks for that."""

    def __init__(self, locks: Locks, changes: RunChanges) -> None:
        self._locks = locks
        self._changes = changes

    def take(self, job: Job, claim: Claim, now: float) -> Skip | Wait | None:
        """None if the execution may go on, else what the job's policy makes of it."""
        execution = claim.execution
        if job.overlap == "allow":
            return None
        lock = self._locks.take(execution, now, claim.lease_until)
        if lock is None:
            return None
        going_until = lock.get("lease_until", 0)
        going = lock.get("holder") if going_until >= now else lock.get("queued")
        detail = f"run {going} is still going"
        wait = Wait(int(max(going_until, now)) + 1, detail)
        if execution.attempt > 1:  # its own lease ran out while it waited for this attempt
            return wait
        if job.overlap == "skip":
            return Skip(OVERLAP, detail)
        if (queued := self._locks.queue_up(execution, now, wait.until)) is not None:
            return Skip(OVERLAP, f"{detail}, and run {queued['queued']} waits for it already")
        self._changes.queue(execution, detail, now)
        return wait

    def keep(self, job: Job, execution: Execution, next_attempt_at: float) -> None:
        """It has not ended: another attempt follows."""
        if job.overlap != "allow":
            self._locks.keep(execution, next_attempt_at + job.timeout_s + _PLACE_KEPT_S)

    def ended(self, job: Job | None, execution: Execution) -> Execution | None:
        """It has ended. Returns the execution that waited for that, to be enqueued at once."""
        if job is None or job.overlap == "allow":
            return None
        return self._locks.release(execution)


class Locks:
    """The locks, one per job with a policy other than `allow`; in the runs table, under a key of their own."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def take(self, execution: Execution, now: float, lease_until: float) -> Item | None:
        """Take the job's lock, or take it again: None if that went well, else the lock as another run holds it."""
        free = (
            "(attribute_not_exists(#holder) OR #lease_until < :now OR (#holder = :me AND #lease_until < :lease))"
            " AND (attribute_not_exists(#queued) OR #queued = :me OR #queued_until < :now)"
        )
        values = {":me": execution.run_name, ":now": now, ":lease": lease_until}
        change = Condition(
            "SET #holder = :me, #lease_until = :lease, #expires_at = :expires"
            " REMOVE #queued, #queued_message, #queued_until",
            {":me": execution.run_name, ":lease": lease_until, ":expires": int(lease_until) + _KEPT_S},
        )
        try:
            self._table.update(_key(execution), change, Condition(free, values))
        except ConditionFailed as held:
            lock = held.existing or {}
            return None if lock.get("holder") == execution.run_name else lock
        return None

    def queue_up(self, execution: Execution, now: float, until: float) -> Item | None:
        """Take the one place in the queue: None if it is ours now, else the lock with who has it."""
        free = Condition(
            "attribute_not_exists(#queued) OR #queued = :me OR #queued_until < :now",
            {":me": execution.run_name, ":now": now},
        )
        change = Condition(
            "SET #queued = :me, #queued_message = :message, #queued_until = :until",
            {
                ":me": execution.run_name,
                ":message": execution.encode(),
                ":until": until + _PLACE_KEPT_S,
            },
        )
        try:
            self._table.update(_key(execution), change, free)
        except ConditionFailed as taken:
            return taken.existing or {}
        return None

    def keep(self, execution: Execution, lease_until: float) -> None:
        """Keep the lock for the next attempt."""
        self._as_holder(execution, Condition("SET #lease_until = :lease", {":lease": lease_until}))

    def release(self, execution: Execution) -> Execution | None:
        """Let go, if we hold it; the execution that waits for it, if any."""
        lock = self._as_holder(execution, Condition("REMOVE #holder, #lease_until", {}))
        return Execution.decode(lock["queued_message"]) if lock and "queued_message" in lock else None

    def _as_holder(self, execution: Execution, change: Condition) -> Item | None:
        mine = Condition("#holder = :me", {":me": execution.run_name})
        try:
            return self._table.update(_key(execution), change, mine)
        except ConditionFailed:
            return None


def _key(execution: Execution) -> keys.Key:
    return keys.overlap_lock(execution.tenant, execution.job_id)
