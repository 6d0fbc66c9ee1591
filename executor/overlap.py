"""The overlap locks: one item in the runs table per job with a policy other than `allow`.

A lock is a lease, so a crashed executor's lock expires. A run that waits for its next attempt keeps the lock. The item
names the run that holds it and the run that waits for it. A run that does not get the lock checks whether those have
ended meanwhile (their executor died, or a person cancelled them), and then frees their places.
"""

from __future__ import annotations

from contextlib import suppress

from common.jobs.job import Job
from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.records import Runs
from common.runs.states import ENDED
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table
from common.storage.wire import Expression, Item
from common.timing.instants import DAY_S
from executor.admission import Skip, Wait, admit_without_lock

# After the time at which a queued execution should have taken the lock. Clocks may differ by ten minutes.
_PLACE_RETENTION_S = 900
# A run takes the lock just before its claim, for the lease of its first call.
_MAX_FIRST_LEASE_S = 3_600
# After the last lease, or place in the queue, has ended.
_LOCK_RETENTION_S = 7 * DAY_S


class OverlapPolicy:
    """Lets only one run of a job run at a time, if the job's policy says so."""

    def __init__(self, locks: Locks, runs: Runs) -> None:
        self._locks = locks
        self._runs = runs

    def take(self, job: Job, claim: Claim) -> Item | None:
        """None if the execution may continue, else the lock that others hold."""
        if job.spec.overlap == "allow":
            return None
        lock = self._locks.take(claim)
        if lock and self._free_ended(claim, lock):
            lock = self._locks.take(claim)
        return lock

    def wait(self, job: Job, execution: Execution, lock: Item, now: float) -> Skip | Wait:
        """The policy's decision about an execution without the lock. If it waits, it takes the place in the queue."""
        while True:
            decision = admit_without_lock(job, execution, lock, now)
            if isinstance(decision, Skip) or not decision.queues_up:
                return decision
            conflict = self._locks.queue_up(execution, now, decision.until)
            if conflict is None:
                return decision
            lock = conflict  # another run took the place since the lock was read

    def keep(self, job: Job, execution: Execution, next_attempt_at: float) -> None:
        """Keep the lock: the run has not ended, and another attempt follows."""
        if job.spec.overlap != "allow":
            self._locks.keep(execution, next_attempt_at + job.spec.timeout_s + _PLACE_RETENTION_S)

    def ended(self, job: Job | None, execution: Execution) -> Execution | None:
        """Free the lock of an ended run. Returns the execution that waited for it, to be enqueued at once."""
        if job is None or job.spec.overlap == "allow":
            return None
        return self._locks.release(execution)

    def _free_ended(self, claim: Claim, lock: Item) -> bool:
        """Free the places of runs that have ended, or never began. Returns whether there were any."""
        freed, execution = False, claim.execution
        for place in ("holder", "queued"):
            name = lock.get(place)
            if name and name != execution.run_name:
                record = self._runs.named(execution.tenant, execution.job_id, str(name))
                is_free = record.status in ENDED if record else _is_damaged(lock, claim.started_at)
                if is_free:
                    self._locks.forget(execution, place, name)
                    freed = True
        return freed


class Locks:
    """The lock items. Every write is conditional."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def take(self, claim: Claim) -> Item | None:
        """Take or renew the job's lock for a claim: None on success, else the lock that another run holds."""
        me, lease_until = claim.execution.run_name, claim.lease_until
        free = (
            "(attribute_not_exists(#holder) OR #lease_until < :now OR (#holder = :me AND #lease_until < :lease))"
            " AND (attribute_not_exists(#queued) OR #queued = :me OR #queued_until < :now)"
        )
        values = {":me": me, ":now": claim.started_at, ":lease": lease_until}
        change = Expression(
            "SET #holder = :me, #lease_until = :lease, #expires_at = :expires"
            " REMOVE #queued, #queued_message, #queued_until",
            {":me": me, ":lease": lease_until, ":expires": int(lease_until) + _LOCK_RETENTION_S},
        )
        try:
            self._table.update(_key(claim.execution), change, Expression(free, values))
        except ConditionFailed as conflict:
            lock = conflict.existing or {}
            return None if lock.get("holder") == me else lock
        return None

    def queue_up(self, execution: Execution, now: float, until: float) -> Item | None:
        """Take the one place in the queue: None on success, else the lock with the run that has the place."""
        free = Expression(
            "attribute_not_exists(#queued) OR #queued = :me OR #queued_until < :now",
            {":me": execution.run_name, ":now": now},
        )
        change = Expression(
            "SET #queued = :me, #queued_message = :message, #queued_until = :until, #expires_at = :expires",
            {
                ":me": execution.run_name,
                ":message": execution.encode(),
                ":until": until + _PLACE_RETENTION_S,
                ":expires": int(until) + _LOCK_RETENTION_S,
            },
        )
        try:
            self._table.update(_key(execution), change, free)
        except ConditionFailed as conflict:
            return conflict.existing or {}
        return None

    def keep(self, execution: Execution, lease_until: float) -> None:
        """Keep the lock for the next attempt."""
        is_holder = Expression("#holder = :me", {":me": execution.run_name})
        change = Expression(
            "SET #lease_until = :lease, #expires_at = :expires",
            {":lease": lease_until, ":expires": int(lease_until) + _LOCK_RETENTION_S},
        )
        with suppress(ConditionFailed):
            self._table.update(_key(execution), change, is_holder)

    def release(self, execution: Execution) -> Execution | None:
        """Release the lock, if we hold it. Returns the execution that waits for it, if any."""
        is_holder = Expression("#holder = :me", {":me": execution.run_name})
        try:
            lock = self._table.update(
                _key(execution), Expression("REMOVE #holder, #lease_until", {}), is_holder
            )
        except ConditionFailed as conflict:
            lock = conflict.existing or {}
            if lock.get("queued") == execution.run_name:  # a waiting run can end, for example by a pause
                self.forget(execution, "queued", execution.run_name)
                return None
            if "holder" in lock:
                return None
        return Execution.decode(lock["queued_message"]) if "queued_message" in lock else None

    def forget(self, execution: Execution, place: str, run_name: str) -> None:
        """Free the place (`holder` or `queued`) of a run that has ended."""
        attributes = (
            "#holder, #lease_until" if place == "holder" else "#queued, #queued_message, #queued_until"
        )
        with suppress(ConditionFailed):
            self._table.update(
                _key(execution),
                Expression(f"REMOVE {attributes}", {}),
                Expression(f"#{place} = :run", {":run": run_name}),
            )


def _is_damaged(lock: Item, now: float) -> bool:
    """Whether a run that never began cannot hold the lock for so long: somebody wrote the item. Pure."""
    lease_until = lock.get("lease_until", 0)
    return not isinstance(lease_until, int | float) or lease_until > now + _MAX_FIRST_LEASE_S


def _key(execution: Execution) -> keys.Key:
    return keys.overlap_lock(execution.tenant, execution.job_id)
