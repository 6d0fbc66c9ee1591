"""Changes of a run's record beside those of an attempt: queue, settle, cancel and take that back, reopen manually."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice

from common.planning.execution import SCHEDULE, Execution
from common.runs.claims import RETENTION_S
from common.runs.run import Run
from common.runs.states import CANCELLED, DISPATCHED, FAILED, QUEUED, RETRYING, RUNNING, SKIPPED
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import Expression

# Commits the transaction of a change. A manual change commits its audit entries with it.
Commit = Callable[[Transaction], None]
MAX_RECORDS_READ = 1_000
_PAGE_RECORDS = 100


class RunChanges:
    """Conditional writes to the runs table; each returns whether it was made."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def note(self, executions: Iterable[Execution], now: float) -> None:
        """Write down runs that begin or change beside the plan, before they do. Raises Busy."""
        from common.planning.log import ExecutionLog  # most executors never need it

        ExecutionLog(self._table.beside("due"), keys.CHANGED).note(executions, now)

    def queue(self, execution: Execution, detail: str, now: float) -> bool:
        """Record that an execution waits for its turn. False if it already has a record."""
        item = {
            "tenant": execution.tenant,
            "job_id": execution.job_id,
            "fire_at": execution.fire_at,
            "due_at": execution.due_at,
            "schedule_revision": execution.schedule_revision,
            "trigger": execution.trigger,
            "status": QUEUED,
            "detail": detail,
            "queued_at": now,
            "expires_at": max(int(now), execution.visible_at) + RETENTION_S,
        }
        try:
            self._table.put({**_key(execution), **item}, Expression("attribute_not_exists(pk)", {}))
        except ConditionFailed:
            return False
        return True

    def note_dead_letter(self, execution: Execution, problem: str) -> None:
        """Record why an ended run's message is not in its dead-letter queue."""
        change = Expression("SET #dead_letter_error = :problem", {":problem": problem})
        with suppress(ConditionFailed):  # the record has expired
            self._table.update(_key(execution), change, Expression("attribute_exists(pk)", {}))

    def settle(self, execution: Execution, message_id: str) -> bool:
        """Record that this message's dispatched attempt was made: its redelivery does not repeat the call.

        A message of one execution is deleted then. A pack comes again for the part of it that failed.
        """
        same_attempt = Expression(
            "#status = :dispatched AND #claimed_by = :message AND #attempt = :attempt",
            {":dispatched": DISPATCHED, ":message": message_id, ":attempt": execution.attempt},
        )
        change = Expression("SET #settled_attempt = :attempt", {":attempt": execution.attempt})
        try:
            self._table.update(_key(execution), change, same_attempt)
        except ConditionFailed:
            return False
        return True

    def cancel(
        self, execution: Execution, note: str, now: float, commit: Commit = Transaction.commit
    ) -> bool:
        """End an execution that has not started: one without a record, or a queued one. False if it has started."""
        return self.cancel_all([execution], note, now, commit)

    def cancel_all(
        self, executions: Sequence[Execution], note: str, now: float, commit: Commit = Transaction.commit
    ) -> bool:
        """Like `cancel`: all of them, or none if one has started."""
        waiting = Expression("attribute_not_exists(pk) OR #status = :queued", {":queued": QUEUED})
        self.note(executions, now)
        tx = Transaction(self._table.client)
        for execution in executions:
            tx.update(self._table, _key(execution), _cancellation(execution, note, now), waiting)
        return _committed(tx, commit)

    def cancelled(
        self, tenant: str, job_id: str, schedule_revision: int, from_at: int, until_at: int, most: int
    ) -> list[Execution]:
        """The fire times of a schedule in [from_at, until_at) that are cancelled, at most so many.

        Looks at the first MAX_RECORDS_READ records there: those of former schedules are among them.
        """
        cancelled = {
            "status": SKIPPED,
            "reason": CANCELLED,
            "trigger": SCHEDULE,
            "schedule_revision": schedule_revision,
        }
        items = self._table.query(
            Query(
                keys.runs_of_job(tenant, job_id),
                sk_between=keys.runs_between(from_at, until_at),
                limit=MAX_RECORDS_READ,
                page=_PAGE_RECORDS,
                attributes=("fire_at", "due_at", *cancelled),
            )
        )
        executions = (
            Execution(tenant, job_id, item["fire_at"], item["due_at"], schedule_revision)
            for item in items
            if all(item.get(name) == value for name, value in cancelled.items())
        )
        return list(islice(executions, most))

    def take_back(
        self, executions: Sequence[Execution], now: float, commit: Commit = Transaction.commit
    ) -> bool:
        """Delete the records of cancelled executions that are not due yet, so that they run.

        All of them; False, and none, if one is no longer cancelled.
        """
        cancelled = Expression(
            "#status = :skipped AND #reason = :cancelled", {":skipped": SKIPPED, ":cancelled": CANCELLED}
        )
        self.note(executions, now)
        tx = Transaction(self._table.client)
        for execution in executions:
            tx.delete(self._table, _key(execution), cancelled)
        return _committed(tx, commit)

    def cancel_retry(
        self, execution: Execution, note: str, now: float, commit: Commit = Transaction.commit
    ) -> bool:
        """End a run that waits for its next attempt. False if it does not wait, or no longer waits."""
        self.note([execution], now)
        change = Expression(
            "SET #status = :failed, #finished_at = :now, #failed_tenant = :tenant, #failed_at = :now,"
            " #error_type = :cancelled, #error = :note REMOVE #next_attempt_at",
            {
                ":failed": FAILED,
                ":now": now,
                ":tenant": execution.tenant,
                ":cancelled": CANCELLED,
                ":note": note,
            },
        )
        return self._update(
            execution, change, Expression("#status = :retrying", {":retrying": RETRYING}), commit
        )

    def note_started(self, execution: Execution, claim_token: str, arns: Sequence[str]) -> None:
        """Record what a call started, so that it can be stopped."""
        own = Expression("#claim_token = :token", {":token": claim_token})
        change = Expression("SET #started_arns = :arns", {":arns": list(arns)})
        with suppress(ConditionFailed):
            self._table.update(_key(execution), change, own)

    def ask_to_stop(self, record: Run, note: str, now: float, commit: Commit = Transaction.commit) -> bool:
        """Write down that a person wants this attempt to stop. False if it has ended meanwhile."""
        self.note([record.execution], now)
        change = Expression(
            "SET #stop_attempt = :attempt, #stop = :stop REMOVE #stop_problem ADD #signs :one",
            {":attempt": record.attempt, ":stop": {"at": now, "note": note}, ":one": 1},
        )
        return self._update(record.execution, change, _goes_on(record), commit)

    def note_not_stopped(self, record: Run, problem: str) -> None:
        """Write down why what the attempt started could not be stopped."""
        change = Expression("SET #stop_problem = :problem", {":problem": problem})
        with suppress(ConditionFailed):  # it has ended meanwhile
            self._table.update(record.key, change, _goes_on(record))

    def reopen(self, execution: Execution, now: float, commit: Commit = Transaction.commit) -> bool:
        """Allow one more attempt after this failed one. False if the attempt has not failed permanently."""
        self.note([execution], now)
        change = Expression(
            "SET #status = :retrying, #next_attempt_at = :now, #expires_at = :expires"
            " REMOVE #failed_tenant, #failed_at, #error_type, #error, #lease_until",
            {":retrying": RETRYING, ":now": int(now), ":expires": int(now) + RETENTION_S},
        )
        failed = Expression(
            "#status = :failed AND #attempt = :attempt", {":failed": FAILED, ":attempt": execution.attempt}
        )
        return self._update(execution, change, failed, commit)

    def _update(
        self, execution: Execution, change: Expression, condition: Expression, commit: Commit
    ) -> bool:
        tx = Transaction(self._table.client)
        tx.update(self._table, _key(execution), change, condition)
        return _committed(tx, commit)


def _goes_on(record: Run) -> Expression:
    """The condition that the record's attempt goes on, or that its service accepted the event."""
    return Expression(
        "#status IN (:running, :dispatched) AND #claim_token = :token",
        {":running": RUNNING, ":dispatched": DISPATCHED, ":token": record.claim_token},
    )


def _cancellation(execution: Execution, note: str, now: float) -> Expression:
    return Expression(
        "SET #tenant = :tenant, #job_id = :job_id, #fire_at = :fire_at, #due_at = :due,"
        " #schedule_revision = :revision, #trigger = if_not_exists(#trigger, :trigger), #status = :skipped,"
        " #reason = :cancelled, #detail = :note, #finished_at = :now, #expires_at = :expires",
        {
            ":tenant": execution.tenant,
            ":job_id": execution.job_id,
            ":fire_at": execution.fire_at,
            ":due": execution.due_at,
            ":revision": execution.schedule_revision,
            ":trigger": execution.trigger,
            ":skipped": SKIPPED,
            ":cancelled": CANCELLED,
            ":note": note,
            ":now": now,
            # The record must last until the execution is due, since it keeps it from running.
            ":expires": max(int(now), execution.due_at) + RETENTION_S,
        },
    )


def _committed(tx: Transaction, commit: Commit) -> bool:
    try:
        commit(tx)
    except ConditionFailed:
        return False
    return True


def _key(execution: Execution) -> keys.Key:
    return keys.run(execution.tenant, execution.job_id, execution.run_name)
