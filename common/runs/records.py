"""The runs table: one record per execution, written only by conditional writes.

`run.py` declares the record, `moves.py` its moves from state to state, `claims.py` what a claim and its end write.

If an executor dies, any message of its `running` run can claim it again after the lease. `claimed_by` is the SQS
message id. For a `dispatched` run it distinguishes a redelivery, which calls again, from a duplicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from msgspec.structs import replace

from common.limits import MAX_RECORDS_READ, UNSTARTED_KEPT_S
from common.planning.due_entry import Missed
from common.planning.execution import SCHEDULE, Execution, split_run_name
from common.runs.claims import (
    Claim,
    Settlement,
    accept_update,
    claim_fields,
    claim_update,
    finish_update,
    look_update,
    takeover_update,
)
from common.runs.moves import MOVES, By, MoveRefused, by_claim_of
from common.runs.outcome import STOPPED, Outcome
from common.runs.run import REQUIRED, Run, readable_runs
from common.runs.states import (
    CANCELLED,
    DISPATCHED,
    FAILED,
    MISSED,
    QUEUED,
    RETRYING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
)
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.expressions import PRESENT, Attribute, Condition, change, unchanged
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import Expression

# A run that changes later than this after it was due is noted: the projection reads each run ten minutes after.
CHANGED_AFTER_S: Final = 540
# The start of a run without a record is noted if it is later than this.
STARTED_AFTER_S: Final = 12 * 3_600
_PAGE_RECORDS: Final = 100
# While missed fire times are recorded, others may record some of them.
_MISSED_TRIES: Final = 3

# Commits the transaction of a change. A manual change commits its audit entries with it.
Commit = Callable[[Transaction], None]


class Runs:
    """The runs table. Every write is conditional; losing is normal, and the return value says so."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def move(
        self, name: str, key: keys.Key, write: Expression | Run, by: By, to: str = ""
    ) -> MoveRefused | None:
        """Make a move of `MOVES` as `by`, to the state `to`. Returns None, or MoveRefused.

        A refusal that shows our own token is a success: the answer was lost, and the write was sent again.
        """
        condition = MOVES[name].condition(by)
        try:
            if isinstance(write, Run):
                self._table.put(write.to_item(), condition)
            else:
                self._table.apply(key, write, condition)
        except ConditionFailed as conflict:
            run = Run.existing(conflict)
            return None if run and (run.status, run.claim_token) == (to, by.token) else MoveRefused(run)
        return None

    def _move_within(self, name: str, key: keys.Key, update: Expression, by: By) -> Run | MoveRefused:
        """Make a move within a state. Returns the record as it is now."""
        try:
            return Run.from_item(self._table.update(key, update, MOVES[name].condition(by)))
        except ConditionFailed as conflict:
            return MoveRefused(Run.existing(conflict))

    def _move_together(
        self, name: str, writes: Iterable[tuple[keys.Key, Expression | Run | None]], by: By, commit: Commit
    ) -> bool:
        """Make a move of several runs: all, or none if one is lost. Without an update or a record, that is deleted."""
        tx, condition = Transaction(self._table.client), MOVES[name].condition(by)
        for key, write in writes:
            if isinstance(write, Expression):
                tx.update(self._table, key, write, condition)
            elif write is None:
                tx.delete(self._table, key, condition)
            else:
                tx.put(self._table, write.to_item(), condition)
        try:
            commit(tx)
        except ConditionFailed:
            return False
        return True

    def note(self, executions: Iterable[Execution], now: float) -> None:
        """Write down runs that begin or change beside the plan, before they do. Raises Busy."""
        from common.planning.log import ExecutionLog  # most executors never need it

        ExecutionLog(self._table.beside("due")).note(executions, now)

    def note_late(self, execution: Execution, since: float, after_s: float, now: float) -> None:
        """Note a change of a run that ticks no longer expect, before it is made. `since`: when the run was due.

        The projection of runs reads a run for the first time ten minutes after it was due, and looks again for a day
        if the run has no record.
        """
        if now - since > after_s:
            self.note([execution], now)

    def claim(self, claim: Claim, status: str = RUNNING) -> MoveRefused | None:
        """Claim the attempt: None if this executor may continue.

        `status` is `running`, or `dispatched` if this is the run's only write.
        """
        self._note_late_start(claim)
        key, name = (
            _key(claim.execution),
            "claim" if claim.execution.attempt == 1 else "claim the next attempt",
        )
        return self.move(name, key, claim_update(claim, status), claim.by, status)

    def take_over(self, claim: Claim, status: str, run: Run) -> MoveRefused | None:
        """Claim an attempt again whose executor died: None if this executor may continue."""
        if run.status == DISPATCHED:
            self.note_late(claim.execution, run.due_at, CHANGED_AFTER_S, claim.started_at)
        update = takeover_update(claim, status, run)
        return self.move("take over", _key(claim.execution), update, claim.by, status)

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
        execution = claim.execution
        if execution.attempt == 1 and claim.started_at - execution.visible_at > STARTED_AFTER_S:
            self.note([execution], claim.started_at)

    def accept(self, claim: Claim, until: float, started: Sequence[str] = ()) -> Run | None:
        """Record that the target has accepted the work, and tells its end later. Returns the record as it is now.

        It may have told the end already, or another executor may have taken the attempt over.
        """
        update = accept_update(claim, until, started)
        run = self._move_within("accept", _key(claim.execution), update, claim.by)
        return run.run if isinstance(run, MoveRefused) else run

    def goes_on(self, run: Run, until: int, problem: str) -> Run | None:
        """Record that a durable execution goes on: somebody looks again at `until`. Returns the record as it is now."""
        by = by_claim_of(run)._replace(signs=run.signs)
        looked = self._move_within("look", run.key, look_update(run, until, problem), by)
        return looked.run if isinstance(looked, MoveRefused) else looked

    def tell(self, run: Run, update: Expression, now: float) -> Run | MoveRefused:
        """Write what a target has told, while its attempt goes on. Returns the record as it is now."""
        return self._move_within("tell", run.key, update, by_claim_of(run, now))

    def tell_again(self, run: Run, update: Expression) -> bool:
        """Write that the target has told its end again. False if the run has changed meanwhile."""
        by = by_claim_of(run)._replace(signs=run.signs)
        return not isinstance(self._move_within("tell again", run.key, update, by), MoveRefused)

    def finish(
        self,
        claim: Claim,
        outcome: Outcome,
        finished_at: float,
        retry_at: float | None,
        settlement: Settlement | None = None,
        work_until: float = 0.0,
    ) -> bool:
        """End the attempt: succeeded, failed, or retrying at `retry_at`. False if the claim was lost meanwhile.

        With a settlement also if the target has given a sign meanwhile. The run then belongs to its message. Its work
        can go on until `work_until`.
        """
        status = SUCCEEDED if outcome.ok else RETRYING if retry_at is not None else FAILED
        also = {"work_until": work_until} if work_until else None
        update = finish_update(claim, outcome, status, finished_at, retry_at, settlement, also)
        by, name = claim.by, "finish"
        if settlement:
            by, name = by._replace(signs=settlement.signs), "finish by a sign"
        return self.move(name, _key(claim.execution), update, by, status) is None

    def settle(self, execution: Execution, message_id: str) -> bool:
        """Record that this message's dispatched attempt was made: its redelivery does not repeat the call.

        A message of one execution is deleted then. A pack comes again for the part of it that failed.
        """
        by = By(execution.attempt, message_id=message_id)
        settled = change({"settled_attempt": execution.attempt})
        return self.move("settle", _key(execution), settled, by) is None

    def queue(self, execution: Execution, detail: str, now: float, until: int = 0) -> MoveRefused | None:
        """Record that an execution waits for its turn, and looks at `until`. Refused if it already has a record."""
        expires_at = max(int(now), execution.visible_at) + UNSTARTED_KEPT_S
        run = Run.of(
            execution, QUEUED, detail=detail, queued_at=now, lease_until=until, expires_at=expires_at
        )
        return self.move("queue", run.key, run, By())

    def wait(self, execution: Execution, detail: str, now: float, until: int = 0) -> MoveRefused | None:
        """Record that a first attempt waits, for what, and when it looks again; 0: it is woken.

        Refused if its record does not show that it waits.
        """
        refusal = self.queue(execution, detail, now, until)
        if refusal is None or refusal.run is None or refusal.run.status != QUEUED:
            return refusal
        if (refusal.run.detail, refusal.run.lease_until) == (detail, until):
            return None
        return self.move("wait on", _key(execution), change({"detail": detail, "lease_until": until}), By())

    def skip(
        self, execution: Execution, reason: str, detail: str, now: float, retention_s: int = UNSTARTED_KEPT_S
    ) -> bool:
        """Record that an execution will not run, and why. False if it already has a record."""
        self.note_late(execution, execution.visible_at, STARTED_AFTER_S, now)
        run = Run.skipped(execution, reason, detail, now, int(now) + retention_s)
        return self.move("skip", run.key, run, By()) is None

    def put_off(self, execution: Execution, until: int, detail: str) -> MoveRefused | None:
        """Write down that a run's next attempt waits until then, and for what."""
        put_off = change({"next_attempt_at": until, "detail": detail})
        return self.move("put off", _key(execution), put_off, By(execution.attempt))

    def give_up(self, execution: Execution, error_type: str, error: str, now: float) -> bool:
        """End a run that waits for its next attempt, which will not come. False if it does not wait for this one."""
        update = _failure(execution, error_type, error, now)
        return self.move("give up", _key(execution), update, By(execution.attempt)) is None

    def record_missed(self, missed: Missed, now: float) -> Run | None:
        """Write one record for the missed fire times of a job that have none, under the last of them. None: all have.

        Some have one, as they were cancelled or planned before.
        """
        detail = f"no tick planned it within ten minutes of its fire time; catch_up is {missed.catch_up}"
        for _ in range(_MISSED_TRIES):
            count, first_at, last_at = self._unrecorded(missed)
            if not count:
                break
            run = Run.skipped(
                Execution(missed.tenant, missed.job_id, last_at, last_at, missed.schedule_revision),
                *(MISSED, detail, now, int(now) + UNSTARTED_KEPT_S),
                skipped_count=count,
                skipped_from_at=first_at,
            )
            if self.move("miss", run.key, run, By()) is None:
                return run
        return None

    def record_anew(self, execution: Execution, known_by: str, now: float) -> None:
        """Write a record for an execution that had one, or was called: dispatched, since nobody knows its end."""
        detail = f"its record was lost with the runs table; that it was called says: {known_by}"
        kept_until = max(int(now), execution.due_at) + UNSTARTED_KEPT_S
        run = Run.of(execution, DISPATCHED, attempt=1, detail=detail, finished_at=now, expires_at=kept_until)
        self.move("record anew", run.key, run, By())

    def _unrecorded(self, missed: Missed) -> tuple[int, int, int]:
        """How many of the missed fire times have no record, the first and the last of them."""
        first_at, last_at = missed.first_fire_at, missed.last_fire_at
        spans = self.recorded_spans(missed.tenant, missed.job_id, first_at)
        if all(begin > last_at for begin, _ in spans):
            return missed.count, first_at, last_at
        from common.timing.fires import fires  # executors never need it

        times = without_record(fires(missed.schedule, first_at, last_at + 1, excluded=missed.excluded), spans)
        return (len(times), times[0], times[-1]) if times else (0, 0, 0)

    def recorded_spans(self, tenant: str, job_id: str, first_at: int) -> list[tuple[int, int]]:
        """The job's records of scheduled runs from `first_at` on: the first and the last fire time of each."""
        query = Query(
            keys.runs_of_job(tenant, job_id),
            sk_between=keys.runs_between(first_at, None),
            attributes=("sk", "skipped_from_at"),
        )
        named = (
            (split_run_name(item["sk"]), item.get("skipped_from_at")) for item in self._table.query(query)
        )
        return [
            (begin if isinstance(begin, int) else name[0], name[0])
            for name, begin in named
            if name and not name[1]
        ]

    def note_dead_letter(self, execution: Execution, problem: str) -> None:
        """Record why an ended run's message is not in its dead-letter queue."""
        self._noted(execution, change({"dead_letter_error": problem}), PRESENT)

    def note_started(self, execution: Execution, claim_token: str, arns: Sequence[str]) -> None:
        """Record what a call started, so that it can be stopped."""
        self._noted(execution, change({"started_arns": list(arns)}), Attribute("claim_token") == claim_token)

    def note_stopped(self, run: Run, problem: str, now: float) -> Run:
        """Write down that what the attempt started was stopped, or why it could not be. Returns the record."""
        noted = {"stop_problem": problem} if problem else {"stopped_at": now}
        self.move("note a stop", run.key, change(noted), by_claim_of(run))
        return replace(run, **noted)

    def end_lease(self, run: Run, now: float) -> bool:
        """End a lease that cannot be so long: who gets the run's message then takes over. False if it has changed."""
        ended, item = change({"lease_until": int(now) - 1}), run.to_item()
        as_read = unchanged(item, "status", "claim_token", "lease_until")
        return self._table.update_if(run.key, ended, as_read) is not None

    def _noted(self, execution: Execution, update: Expression, condition: Condition) -> bool:
        with suppress(ConditionFailed):
            self._table.update(_key(execution), update, condition)
            return True
        return False

    def cancel(
        self, executions: Sequence[Execution], note: str, now: float, commit: Commit = Transaction.commit
    ) -> bool:
        """End executions that have not started: those without a record, and queued ones.

        All of them; False, and none, if one has started.
        """
        self.note(executions, now)
        # The record must last until the execution is due, since it keeps it from running.
        runs = [
            Run.skipped(execution, CANCELLED, note, now, max(int(now), execution.due_at) + UNSTARTED_KEPT_S)
            for execution in executions
        ]
        return self._move_together("cancel", [(run.key, run) for run in runs], By(), commit)

    def cancelled(
        self, tenant: str, job_id: str, from_at: int, until_at: int, most: int | None
    ) -> list[Execution]:
        """The fire times in [from_at, until_at) that are cancelled, at most so many; None: all.

        Looks at the first MAX_RECORDS_READ records there.
        """
        items = self._table.query(
            Query(
                keys.runs_of_job(tenant, job_id),
                sk_between=keys.runs_between(from_at, until_at),
                limit=MAX_RECORDS_READ,
                page=_PAGE_RECORDS,
                attributes=(*REQUIRED, "reason"),
            )
        )
        executions = (
            Execution(tenant, job_id, run.fire_at, run.due_at, run.schedule_revision)
            for run in readable_runs(items)
            if (run.status, run.reason, run.trigger) == (SKIPPED, CANCELLED, SCHEDULE)
        )
        return list(islice(executions, most))

    def newest_scheduled(self, tenant: str, job_id: str) -> Iterator[Run]:
        """The runs of fire times, the newest first, of the newest MAX_RECORDS_READ records."""
        items = self._table.query(
            Query(
                keys.runs_of_job(tenant, job_id),
                newest_first=True,
                limit=MAX_RECORDS_READ,
                page=_PAGE_RECORDS,
                attributes=(*REQUIRED, "reason"),
            )
        )
        return (run for run in readable_runs(items) if run.trigger == SCHEDULE)

    def take_back(
        self, executions: Sequence[Execution], now: float, commit: Commit = Transaction.commit
    ) -> bool:
        """Delete the records of cancelled executions that are not due yet, so that they run.

        All of them; False, and none, if one is no longer cancelled.
        """
        self.note(executions, now)
        writes = [(_key(execution), None) for execution in executions]
        return self._move_together("take back a cancellation", writes, By(), commit)

    def cancel_retries(
        self, executions: Sequence[Execution], note: str, now: float, commit: Commit = Transaction.commit
    ) -> bool:
        """End runs that wait for their next attempts: all of them; False, and none, if one does not wait."""
        self.note(executions, now)
        writes = [(_key(each), _failure(each, CANCELLED, note, now)) for each in executions]
        return self._move_together("cancel the next attempt", writes, By(), commit)

    def reopen(self, execution: Execution, now: float, commit: Commit = Transaction.commit) -> bool:
        """Allow one more attempt after this failed one. False if the attempt has not failed permanently."""
        self.note([execution], now)
        update = change(
            {"status": RETRYING, "next_attempt_at": int(now), "expires_at": int(now) + UNSTARTED_KEPT_S},
            remove=("failed_tenant", "failed_at", "error_type", "error", "error_group", "lease_until"),
        )
        by = By(execution.attempt)
        return self._move_together("open again by hand", [(_key(execution), update)], by, commit)

    def end_by_hand(
        self, run: Run, note: str, now: float, work_until: float, commit: Commit = Transaction.commit
    ) -> bool:
        """End an attempt that a person wants to stop. Its work can go on until `work_until`.

        False if it has ended meanwhile.
        """
        self.note([run.execution], now)
        words = f"stopped by hand{f': {note}' if note else ''}"
        outcome = Outcome(ok=False, permanent=True, error_type=STOPPED, error=words)
        also = {"stop_attempt": run.attempt, "stop": {"at": now, "note": note}, "stop_problem": ""}
        also |= {"work_until": work_until} if work_until else {}
        claim = Claim(run.execution, run.claimed_by, run.started_at, run.lease_until, token=run.claim_token)
        update = finish_update(claim, outcome, FAILED, now, None, also=also)
        return self._move_together("end by hand", [(run.key, update)], by_claim_of(run), commit)

    def forget_work(self, run: Run) -> None:
        """Write down that nothing of an ended run goes on."""
        self._noted(run.execution, change({"work_until": 0}), Attribute("claim_token") == run.claim_token)

    def get(self, execution: Execution) -> Run | None:
        """The record of an execution; None if it has none. Raises ValueError: it is unreadable."""
        return self.named(execution.tenant, execution.job_id, execution.run_name)

    def named(self, tenant: str, job_id: str, run_name: str) -> Run | None:
        """The run of an execution id: `run_name` is the part after tenant and job. Raises ValueError."""
        item = self._table.get(keys.run(tenant, job_id, run_name))
        return Run.from_item(item) if item else None

    def of_executions(self, executions: Sequence[Execution]) -> dict[str, Run]:
        """The records of one job's executions that exist, by their run names, in one query."""
        if not executions:
            return {}
        fire_times = [execution.fire_at for execution in executions]
        names = {execution.run_name for execution in executions}
        partition = keys.runs_of_job(executions[0].tenant, executions[0].job_id)
        span = keys.runs_between(min(fire_times), max(fire_times) + 1)
        items = self._table.query(Query(partition, sk_between=span))
        return {run.run_name: run for run in readable_runs(items) if run.run_name in names}

    def of_job(
        self,
        tenant: str,
        job_id: str,
        *,
        limit: int,
        attributes: Sequence[str] = (),
    ) -> list[Run]:
        """A job's runs, newest fire time first; with `attributes` they have only these. Raises ValueError."""
        query = Query(
            keys.runs_of_job(tenant, job_id),
            newest_first=True,
            limit=limit,
            attributes=(*REQUIRED, *attributes) if attributes else (),
        )
        return list(readable_runs(self._table.query(query)))


def _failure(execution: Execution, error_type: str, error: str, now: float) -> Expression:
    """The update that ends a run without an attempt."""
    failed = {"status": FAILED, "finished_at": now, "failed_tenant": execution.tenant, "failed_at": now}
    return change(failed | {"error_type": error_type, "error": error}, remove=("next_attempt_at", "detail"))


def _key(execution: Execution) -> keys.Key:
    return keys.run(execution.tenant, execution.job_id, execution.run_name)


def without_record(fire_times: Iterable[int], spans: Sequence[tuple[int, int]]) -> list[int]:
    """The fire times that no record stands for, in order. Pure."""
    recorded = {last for _, last in spans}
    longer = [span for span in spans if span[0] < span[1]]
    return [
        at
        for at in fire_times
        if at not in recorded and not any(first <= at <= last for first, last in longer)
    ]
