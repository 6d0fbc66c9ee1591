"""Overlap: what happens when the previous run of a job is still going (`allow`, `skip`, `queue_one`).

A job that does not allow it has one lock item. The lock is a lease: a crashed executor's ends by itself, it never
sticks. A run that waits for its next attempt is still going and keeps the lock. Jobs that allow overlap pay nothing.

The lock names its run, and so does the one place in the queue behind it. Whoever is turned away looks whether those
have ended meanwhile (their executor died before it let go, a person cancelled them), and then takes what they left.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from common.jobs.job import Job
from common.planning.execution import BACKFILL, Execution
from common.runs.changes import RunChanges
from common.runs.records import OVERLAP, Claim
from common.storage import keys
from common.storage.tables import ConditionFailed, Expression, Item, Table
from executor.admission import Skip

# How long a queued execution keeps its place after the time at which it should have taken the lock.
_PLACE_KEPT_S = 300
_KEPT_S = 7 * 86_400
# Who has no lease to wait for looks again after this.
_LOOK_AGAIN_S = 10


@dataclass(frozen=True, slots=True)
class Wait:
    """It runs when the run that is going has ended, which should be by `until`."""

    until: int
    detail: str


class OverlapPolicy:
    """Lets one run of a job go at a time, where the job asks for that."""

    def __init__(self, locks: Locks, changes: RunChanges) -> None:
        self._locks = locks
        self._changes = changes

    def take(self, job: Job, claim: Claim, now: float) -> Item | None:
        """None if the execution may go on, else the lock as others hold it."""
        if job.overlap == "allow":
            return None
        lock = self._locks.take(claim.execution, now, claim.lease_until)
        if lock and self._left_behind(claim.execution, lock):
            lock = self._locks.take(claim.execution, now, claim.lease_until)
        return lock

    def wait(self, job: Job, execution: Execution, lock: Item, now: float) -> Skip | Wait:
        """What the job's policy makes of an execution that has not begun and does not get the lock.

        What has had an attempt already waits whatever the policy says, and so do a backfill's runs: those it would skip
        are the very ones it was asked for.
        """
        going_until = lock.get("lease_until", 0)
        is_going = going_until >= now
        detail = f"run {lock.get('holder' if is_going else 'queued')} is still going"
        wait = Wait(int(going_until if is_going else now + _LOOK_AGAIN_S) + 1, detail)
        patient = execution.attempt > 1 or execution.trigger == BACKFILL
        if job.overlap == "skip" and not patient:
            return Skip(OVERLAP, detail)
        queued = self._locks.queue_up(execution, now, wait.until)
        if queued is not None and not patient:
            return Skip(OVERLAP, f"{detail}, and run {queued.get('queued')} waits for it already")
        if execution.attempt == 1:
            self._changes.queue(execution, detail, now)
        return wait

    def _left_behind(self, execution: Execution, lock: Item) -> bool:
        """Whether a run that has ended was still in the lock; it no longer is."""
        left = False
        for place in ("holder", "queued"):
            name = lock.get(place)
            if name and name != execution.run_name and self._changes.has_ended(execution, name):
                self._locks.forget(execution, place, name)
                left = True
        return left

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
        change = Expression(
            "SET #holder = :me, #lease_until = :lease, #expires_at = :expires"
            " REMOVE #queued, #queued_message, #queued_until",
            {":me": execution.run_name, ":lease": lease_until, ":expires": int(lease_until) + _KEPT_S},
        )
        try:
            self._table.update(_key(execution), change, Expression(free, values))
        except ConditionFailed as held:
            lock = held.existing or {}
            return None if lock.get("holder") == execution.run_name else lock
        return None

    def queue_up(self, execution: Execution, now: float, until: float) -> Item | None:
        """Take the one place in the queue: None if it is ours now, else the lock with who has it."""
        free = Expression(
            "attribute_not_exists(#queued) OR #queued = :me OR #queued_until < :now",
            {":me": execution.run_name, ":now": now},
        )
        change = Expression(
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
        mine = Expression("#holder = :me", {":me": execution.run_name})
        with suppress(ConditionFailed):
            self._table.update(
                _key(execution), Expression("SET #lease_until = :lease", {":lease": lease_until}), mine
            )

    def release(self, execution: Execution) -> Execution | None:
        """Let go, if we hold it; the execution that waits for it, if any."""
        mine = Expression("#holder = :me", {":me": execution.run_name})
        try:
            lock = self._table.update(_key(execution), Expression("REMOVE #holder, #lease_until", {}), mine)
        except ConditionFailed as other:
            lock = other.existing or {}
            if lock.get("queued") == execution.run_name:  # it ended while it waited: paused, say
                self.forget(execution, "queued", execution.run_name)
                return None
            if "holder" in lock:
                return None
        return Execution.decode(lock["queued_message"]) if "queued_message" in lock else None

    def forget(self, execution: Execution, place: str, run_name: str) -> None:
        """Free a place, `holder` or `queued`, of a run that has ended."""
        left = {"holder": "#holder, #lease_until", "queued": "#queued, #queued_message, #queued_until"}[place]
        with suppress(ConditionFailed):
            self._table.update(
                _key(execution),
                Expression(f"REMOVE {left}", {}),
                Expression(f"#{place} = :it", {":it": run_name}),
            )


def _key(execution: Execution) -> keys.Key:
    return keys.overlap_lock(execution.tenant, execution.job_id)
