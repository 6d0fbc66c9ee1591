"""The run record: one item per execution, written only by conditional writes.

`states.py` has its states and transitions, docs/runs.md its fields.

If an executor dies, any message of its `running` run can claim it again after the lease. `claimed_by` is the SQS
message id. For a `dispatched` run it distinguishes a redelivery, which calls again, from a duplicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from common.planning.due_entry import Missed
from common.planning.execution import Execution, split_run_name
from common.runs.claims import (
    RETENTION_S,
    Claim,
    Settlement,
    accept_update,
    claim_fields,
    claim_update,
    finish_update,
    takeover_update,
)
from common.runs.outcome import Outcome
from common.runs.run import REQUIRED, Run
from common.runs.states import DISPATCHED, FAILED, MISSED, QUEUED, RETRYING, RUNNING, SKIPPED, SUCCEEDED
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item

# A change of an ended run is noted from this time after it was due on, for the projection of runs.
CHANGED_AFTER_S: Final = 540
# The start of a run without a record is noted if it is later than this.
STARTED_AFTER_S: Final = 12 * 3_600


@dataclass(frozen=True, slots=True)
class Lost:
    """A write that was not made, since the run is in another state. `run` is its record; None: it has none."""

    run: Run | None


class Runs:
    """The runs table. Every write is conditional; losing is normal, and the return value says so."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def note_late(self, execution: Execution, since: float, after_s: float, now: float) -> None:
        """Note a change of a run that ticks no longer expect, before it is made. `since`: when the run was due.

        The projection of runs reads a run for the first time ten minutes after it was due, and looks again for a day
        if the run has no record.
        """
        if now - since > after_s:
            from common.planning.log import ExecutionLog  # most executors never need it

            ExecutionLog(self._table.beside("due"), keys.CHANGED).note([execution], now)

    def claim(self, claim: Claim, status: str = RUNNING, takes_over: bool = True) -> Lost | None:
        """Claim the attempt: None if this executor may continue.

        `status` is `running`, or `dispatched` if this is the run's only write. With `takes_over`, an attempt whose
        executor died is claimed again.
        """
        self._note_late_start(claim)
        lost = self._claimed(claim, claim_update(claim, status), _free(claim))
        record = lost.run if lost else None
        if record is None or not takes_over or not _may_have_died(claim, record):
            return lost
        if record.status == DISPATCHED:
            self.note_late(claim.execution, record.due_at, CHANGED_AFTER_S, claim.started_at)
        return self._claimed(claim, takeover_update(claim, status, record), _abandoned(claim))

    def _claimed(self, claim: Claim, change: Expression, condition: Expression) -> Lost | None:
        try:
            self._table.update(_key(claim.execution), change, condition)
        except ConditionFailed as conflict:
            record = Run.existing(conflict)
            return None if record and _is_own(claim, record) else Lost(record)
        return None

    def claim_together(self, claims: Sequence[tuple[Claim, str]]) -> list[bool]:
        """Claim first attempts of different executions, with the status of each, in few requests.

        Returns for each whether this call has certainly claimed it. For the others, call `claim`.
        """
        for claim, _ in claims:
            self._note_late_start(claim)
        return self._table.insert_many(
            [_key(claim.execution) | claim_fields(claim, status) for claim, status in claims]
        )

    def _note_late_start(self, claim: Claim) -> None:
        if claim.execution.attempt == 1:
            self.note_late(claim.execution, claim.execution.visible_at, STARTED_AFTER_S, claim.started_at)

    def accept(self, claim: Claim, until: float) -> Run | None:
        """Record that the target has accepted the work, and tells its end later. Returns the record as it is now.

        It may have told the end already, or another executor may have taken the attempt over.
        """
        untold = Expression(
            "#claim_token = :token AND #status = :running AND NOT #reported_attempt = :attempt",
            {":token": claim.token, ":running": RUNNING, ":attempt": claim.execution.attempt},
        )
        try:
            return Run.from_item(
                self._table.update(_key(claim.execution), accept_update(claim, until), untold)
            )
        except ConditionFailed as conflict:
            return Run.existing(conflict)

    def finish(
        self,
        claim: Claim,
        outcome: Outcome,
        finished_at: float,
        retry_at: float | None,
        settlement: Settlement | None = None,
    ) -> bool:
        """End the attempt: succeeded, failed, or retrying at `retry_at`. False if the claim was lost meanwhile.

        With a settlement also if the target has given a sign meanwhile. The run then belongs to its message.
        """
        status = SUCCEEDED if outcome.ok else RETRYING if retry_at is not None else FAILED
        change = finish_update(claim, outcome, status, finished_at, retry_at)
        own_claim = Expression(
            "#claimed_by = :mine AND #attempt = :attempt AND #status IN (:running, :dispatched)",
            {
                ":mine": claim.message_id,
                ":attempt": claim.execution.attempt,
                ":running": RUNNING,
                ":dispatched": DISPATCHED,
            },
        )
        if settlement:
            own_claim = own_claim.and_also("#signs = :signs", {":signs": settlement.signs})
            change = change.also_set("claimed_by", settlement.message_id)
        try:
            self._table.update(_key(claim.execution), change, own_claim)
        except ConditionFailed as conflict:
            record = Run.existing(conflict)
            return record is not None and _is_own(claim, record) and record.status == status
        return True

    def skip(
        self, execution: Execution, reason: str, detail: str, now: float, retention_s: int = RETENTION_S
    ) -> bool:
        """Record that an execution will not run, and why. False if it already has a record."""
        self.note_late(execution, execution.visible_at, STARTED_AFTER_S, now)
        item = _skipped(execution, reason, detail, now, retention_s)
        waiting = Expression("attribute_not_exists(pk) OR #status = :queued", {":queued": QUEUED})
        try:
            self._table.put({**_key(execution), **item}, waiting)
        except ConditionFailed:
            return False
        return True

    def give_up(self, execution: Execution, error_type: str, error: str, now: float) -> bool:
        """End a run that waits for its next attempt, which will not come. False if it does not wait for this one."""
        words = (
            "SET #status = :failed, #finished_at = :now, #failed_tenant = :tenant, #failed_at = :now,"
            " #error_type = :type, #error = :error REMOVE #next_attempt_at"
        )
        values = {
            ":failed": FAILED,
            ":now": now,
            ":tenant": execution.tenant,
            ":type": error_type,
            ":error": error,
        }
        try:
            self._table.update(_key(execution), Expression(words, values), _waits_for(execution))
        except ConditionFailed:
            return False
        return True

    def record_missed(self, missed: Missed, now: float) -> bool:
        """Write one record for all missed fire times of a job, under the last of them. False if it exists already.

        If the last one already has a record, because it was cancelled, that record also counts the others.
        """
        execution = Execution(
            tenant=missed.tenant,
            job_id=missed.job_id,
            fire_at=missed.last_fire_at,
            due_at=missed.last_fire_at,
            schedule_revision=missed.schedule_revision,
        )
        detail = f"no tick planned it within ten minutes of its fire time; catch_up is {missed.catch_up}"
        item = _skipped(execution, MISSED, detail, now)
        item |= {"skipped_count": missed.count, "skipped_from_at": missed.first_fire_at}
        try:
            self._table.put({**_key(execution), **item}, Expression("attribute_not_exists(pk)", {}))
        except ConditionFailed as conflict:
            return self._add_missed(execution, missed, detail, Run.existing(conflict))
        return True

    def _add_missed(self, execution: Execution, missed: Missed, detail: str, record: Run | None) -> bool:
        is_counted = record is not None and record.status == SKIPPED
        unrecorded = missed.count - self._recorded(missed)
        change = Expression(
            "SET #detail = :detail, #skipped_count = :count, #skipped_from_at = :from",
            {
                ":detail": f"{record.detail}; {detail}" if record and record.detail else detail,
                ":count": unrecorded + is_counted,
                ":from": missed.first_fire_at,
            },
        )
        if (record and record.skipped_count) or unrecorded <= 0:
            return False
        try:
            self._table.update(
                _key(execution), change, Expression("attribute_not_exists(#skipped_count)", {})
            )
        except ConditionFailed:
            return False
        return True

    def _recorded(self, missed: Missed) -> int:
        """How many of the missed fire times have a record all the same: they were planned before."""
        span = keys.runs_between(missed.first_fire_at, missed.last_fire_at + 1)
        items = self._table.query(
            Query(keys.runs_of_job(missed.tenant, missed.job_id), sk_between=span, attributes=("sk",))
        )
        names = (split_run_name(item["sk"]) for item in items)
        return sum(name is not None and name[1:] == (missed.schedule_revision, "") for name in names)

    def get(self, execution: Execution) -> Run | None:
        """The record of an execution; None if it has none. Raises ValueError: it is unreadable."""
        return self.named(execution.tenant, execution.job_id, execution.run_name)

    def of_executions(self, executions: Sequence[Execution]) -> dict[str, Run]:
        """The records of one job's executions that exist, by their run names, in one query."""
        if not executions:
            return {}
        first, last = (
            min(execution.fire_at for execution in executions),
            max(execution.fire_at for execution in executions),
        )
        names = {execution.run_name for execution in executions}
        partition = keys.runs_of_job(executions[0].tenant, executions[0].job_id)
        items = self._table.query(Query(partition, sk_between=keys.runs_between(first, last + 1)))
        return {item["sk"]: Run.from_item(item) for item in items if item["sk"] in names}

    def named(self, tenant: str, job_id: str, run_name: str) -> Run | None:
        """The run of an execution id: `run_name` is the part after tenant and job. Raises ValueError."""
        item = self._table.get(keys.run(tenant, job_id, run_name))
        return Run.from_item(item) if item else None

    def of_job(
        self,
        tenant: str,
        job_id: str,
        *,
        limit: int,
        before_run_name: str = "",
        attributes: Sequence[str] = (),
    ) -> list[Run]:
        """A job's runs, newest fire time first; with `attributes` they have only these. Raises ValueError."""
        after = keys.run(tenant, job_id, before_run_name) if before_run_name else None
        query = Query(
            keys.runs_of_job(tenant, job_id),
            newest_first=True,
            limit=limit,
            after=after,
            attributes=(*REQUIRED, *attributes) if attributes else (),
        )
        return list(map(Run.from_item, self._table.query(query)))


def _free(claim: Claim) -> Expression:
    """The condition of a claim: nobody has claimed the attempt."""
    if claim.execution.attempt == 1:
        return Expression("attribute_not_exists(pk) OR #status = :queued", {":queued": QUEUED})
    return _waits_for(claim.execution)


def _waits_for(execution: Execution) -> Expression:
    """The condition that a run waits for this attempt, which is not its first one."""
    return Expression(
        "#status = :retrying AND #attempt = :before",
        {":retrying": RETRYING, ":before": execution.attempt - 1},
    )


def _abandoned(claim: Claim) -> Expression:
    """The condition of a takeover: the lease of the attempt's claim is over, because its executor died.

    The record of an `Event` run is written before the call. So only a redelivery of the same message shows that its
    executor died, unless `RunChanges.settle` says that the call was made. A target that has accepted or ended the work
    ends the run by its callback. A message that was redriven from the dead
    letters has a new id.
    """
    return Expression(
        "#attempt = :attempt AND #lease_until < :now"
        " AND NOT #accepted_attempt = :attempt AND NOT #reported_attempt = :attempt"
        " AND (#status = :running OR (#status = :dispatched AND #claimed_by = :message"
        " AND NOT #settled_attempt = :attempt))",
        {
            ":attempt": claim.execution.attempt,
            ":message": claim.message_id,
            ":now": claim.started_at,
            ":running": RUNNING,
            ":dispatched": DISPATCHED,
        },
    )


def _may_have_died(claim: Claim, record: Run) -> bool:
    """Whether it is worth trying to take the attempt over; `_abandoned` decides."""
    is_open = record.status in (RUNNING, DISPATCHED)
    return is_open and record.attempt == claim.execution.attempt and record.lease_until < claim.started_at


def _is_own(claim: Claim, record: Run) -> bool:
    """Whether this claim wrote the record: the answer was lost, and botocore repeated the write."""
    return record.claim_token == claim.token


def _skipped(
    execution: Execution, reason: str, detail: str, now: float, retention_s: int = RETENTION_S
) -> Item:
    return {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "fire_at": execution.fire_at,
        "due_at": execution.due_at,
        "schedule_revision": execution.schedule_revision,
        "trigger": execution.trigger,
        "status": SKIPPED,
        "reason": reason,
        "detail": detail,
        "finished_at": now,
        "expires_at": int(now) + retention_s,
    }


def _key(execution: Execution) -> keys.Key:
    return keys.run(execution.tenant, execution.job_id, execution.run_name)
