"""Manual commands: run a job now, retry a failed run, cancel a waiting one, skip fire times, backfill, erase.

Erasing takes what a run's target and caller said: payload, answer, log, error texts. The record stays, as does its
outcome. The projection has no texts of runs. A muted failure loses its error, and its group stays muted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec import structs, to_builtins
from msgspec.structs import replace

from common.clock import Clock
from common.errors import Conflict, NotFound
from common.jobs.calendars import Calendars, MissingCalendar
from common.jobs.job import ACTIVE, MAX_WORK_S, Job
from common.jobs.muted_groups import MutedGroups
from common.jobs.placeholders import PayloadFormats, format_of
from common.jobs.revisions import end_of
from common.jobs.store import JobStore, note_skips
from common.limits import (
    MAX_SKIPPED,
    PAYLOAD_KEPT_S,
    SKIPPED_AHEAD_S,
)
from common.planning.execution import (
    MANUAL,
    MANUAL_PREFIX,
    OWN_PAYLOAD_PREFIX,
    RETRY,
    SCHEDULE,
    Execution,
    parse_execution_id,
    split_run_name,
)
from common.planning.plan import execution_of
from common.planning.queue import ExecutionsQueue
from common.registration.backfills import BackfillCommands
from common.registration.payload_checks import Named, check_fits, check_secrets_exist, named_by, secret_names
from common.runs.holders import Holders, Permit
from common.runs.records import Commit, Runs
from common.runs.run import Run
from common.runs.states import DISPATCHED, ENDED, RETRYING, RUNNING
from common.storage import keys
from common.storage.conflicts import ConditionFailed, retry_on_conflict
from common.storage.expressions import PRESENT, Attribute, change, unchanged
from common.storage.table import Tables
from common.storage.transactions import Transaction
from common.storage.wire import DAMAGE, Item
from common.tenants.audit import AuditedCommit
from common.timing.excluded_days import Excluded
from common.timing.fires import next_fires
from common.timing.instants import DAY_S

# How long a nonce is remembered.
_ASKED_KEPT_S = DAY_S
# A skip can be taken back until this long before its fire time: its message must not have come yet.
MIN_NOTICE_S = 60
# If taking back ends less than this before the fire time, the message may have come, so another one is sent.
_SENT_AGAIN_S = 5


class EndedByForce(NamedTuple):
    """What an end by force did: whether the run was open, and what it had that others wait for."""

    execution: Execution
    was_open: bool
    freed: list[str]


@dataclass(frozen=True, slots=True)
class ManualCommands:
    """A tenant's commands on its own jobs and runs; the tenant comes from the credential."""

    store: JobStore
    runs: Runs
    queue: ExecutionsQueue
    clock: Clock
    payload_formats: PayloadFormats
    holders: Holders

    @property
    def backfills(self) -> BackfillCommands:
        """The commands on past ranges."""
        return BackfillCommands(self.store, self.queue, self.clock)

    def run_now(self, tenant: str, job_id: str, nonce: str, payload: str | None = None) -> Execution:
        """Start the job at once, even if it is paused. The same `nonce` starts it once.

        `payload`, as JSON, takes the place of the job's for this run. Raises NotFound, Conflict, InvalidInput.
        """
        job = self.store.get(tenant, job_id)
        named: tuple[Named, ...] = ()
        if payload is not None:
            value = json.loads(payload)
            check_fits(job.spec.target, value, format_of(job.spec.target, self.payload_formats))
            named = named_by(job.spec.target, value, (), self.payload_formats)
            check_secrets_exist(self.store.ledger.table, tenant, named)
        now = self.clock.now()
        execution = Execution(
            tenant,
            job_id,
            fire_at=math.floor(now),
            due_at=math.floor(now),
            schedule_revision=job.schedule_revision,
            trigger=MANUAL,
            trigger_id=f"{MANUAL_PREFIX if payload is None else OWN_PAYLOAD_PREFIX}{nonce}",
        )
        own: Item = {} if payload is None else {"payload": payload}
        if named:
            own["secrets"] = list(secret_names(named))
        fire_at = self._first_asked(execution, nonce, own, now)
        execution = structs.replace(execution, fire_at=fire_at, due_at=fire_at)
        self.runs.note([execution], now)
        # Sent first: after a crash the job still runs, and a repeated request is the same execution.
        self.queue.send([execution])
        self.runs.queue(execution, "started by hand", now)
        return execution

    def own_payload(self, tenant: str, job_id: str, trigger_id: str) -> str | None:
        """The payload, as JSON, that a run was started with by hand; None if it had the job's, or it has expired."""
        if not trigger_id.startswith(OWN_PAYLOAD_PREFIX):
            return None
        nonce = trigger_id.removeprefix(OWN_PAYLOAD_PREFIX)
        item = self.store.jobs.get(keys.asked_by_hand(tenant, job_id, nonce))
        return item.get("payload") if item else None

    def _first_asked(self, execution: Execution, nonce: str, own: Item, now: float) -> int:
        """When this nonce was first used, so that a client that repeats the request later starts nothing new.

        `own`: what the run has of its own, such as its payload. Raises Conflict if it was used with another payload.
        """
        request = {
            **keys.asked_by_hand(execution.tenant, execution.job_id, nonce),
            "fire_at": execution.fire_at,
            "expires_at": execution.fire_at + (PAYLOAD_KEPT_S if own else _ASKED_KEPT_S),
            **own,
        }
        tx = Transaction(self.store.jobs.client)
        tx.put(self.store.jobs, request, self.store.jobs.absent)
        try:
            self._with_audit("job.run", [execution], now)(tx)
        except ConditionFailed as before:
            if not before.existing:
                return execution.fire_at
            if before.existing.get("payload") != own.get("payload"):
                raise Conflict(f"the nonce {nonce!r} was used before, with another payload") from None
            with suppress(*DAMAGE):
                return int(before.existing["fire_at"])
            raise Conflict(f"the nonce {nonce!r} was used before, and nobody can read when") from None
        return execution.fire_at

    def _with_audit(self, action: str, executions: Sequence[Execution], now: float, note: str = "") -> Commit:
        """Commits the command together with an audit entry for each execution."""
        audit, by = self.store.audited.audit, self.store.by

        def commit(tx: Transaction) -> None:
            for execution in executions:
                command = {"execution_id": execution.execution_id, "note": note or None}
                audit.add(tx, execution.tenant, by, action, execution.job_id, now, after=command)
            retry_on_conflict(tx.commit, repr(executions[0].job_id), sleep=self.clock.sleep)

        return commit

    def retry(self, tenant: str, execution_id: str) -> Execution:
        """Give a failed run one more attempt, even beyond its retry policy. Raises NotFound, Conflict.

        If the next attempt is due already, its message is sent again: the request before may have been interrupted.
        """
        execution, record = self._execution_and_record(tenant, execution_id)
        now = self.clock.now()
        execution = structs.replace(execution, attempt=record.attempt)
        overdue = record.status == RETRYING and record.next_attempt_at <= now
        commit = self._with_audit("run.retried", [execution], now)
        if not overdue and not self.runs.reopen(execution, now, commit):
            raise Conflict(f"run {execution_id} is {record.status}; only a failed run can be tried again")
        again = structs.replace(
            execution,
            attempt=execution.attempt + 1,
            due_at=math.floor(now),
            trigger=RETRY,
            throttles=record.throttles,
            first_due_at=math.floor(now),
        )
        self.queue.send([again])
        return again

    def cancel(self, tenant: str, execution_id: str, note: str) -> Execution:
        """End an execution at once: it does not start, is not tried again, or nobody waits for its target any more.

        What its call started in AWS is stopped, and a target that calls back hears it. Raises NotFound, Conflict.
        """
        now = self.clock.now()
        execution = parse_execution_id(tenant, execution_id)
        record = self.runs.get(execution)
        if record is not None and record.status in (RUNNING, DISPATCHED):
            return self._end_call(execution, record, note, now)
        if record is None:
            self._check_planned(execution, now)
        detail = _cancelled(note)
        commit = self._with_audit("run.cancelled", [execution], now, note)
        waits = record is not None and record.status == RETRYING
        cancel = self.runs.cancel_retries if waits else self.runs.cancel
        try:
            if not cancel([execution], detail, now, commit):
                run = self.runs.get(execution)
                status = run.status if run else "unknown"
                raise Conflict(f"run {execution_id} is {status}; only one that waits can be cancelled")
        finally:
            # Also if it was cancelled before: that call may have died before its note.
            if execution.trigger == SCHEDULE and execution.fire_at > now:
                self._note_skips(execution)
        if record is not None:  # it may have a permit, or a place in line
            self.queue.send([execution])
        return execution

    def _end_call(self, execution: Execution, record: Run, note: str, now: float) -> Execution:
        """End a run whose target was called. Its permits stay as long as nothing tells that the work is over.

        Raises Conflict: it has ended, or was handed over to what nobody can stop.
        """
        job = self.store.load_all(execution.tenant, [execution.job_id]).get(execution.job_id)
        is_in_aws = bool(record.started_arns or record.durable_execution) or (
            job and job.spec.target["kind"] == "step_functions"
        )
        if record.status == DISPATCHED and not is_in_aws:
            raise Conflict(f"run {execution.execution_id} was handed over, and nothing can stop it")
        work_until = 0.0
        if record.status == RUNNING and not record.callback and not is_in_aws:
            work_until = max(record.lease_until, record.started_at + (job.work_s if job else MAX_WORK_S))
        commit = self._with_audit("run.cancelled", [execution], now, note)
        if not self.runs.end_by_hand(record, note, now, work_until, commit):
            raise Conflict(f"run {execution.execution_id} has ended meanwhile")
        self.queue.send([record.execution])  # an executor stops it in AWS, and does what follows an end
        return execution

    def end(self, tenant: str, execution_id: str, note: str) -> EndedByForce:
        """End a run by force: its record, and whatever permit or place it has, though its work may go on.

        Raises NotFound.
        """
        now = self.clock.now()
        execution = parse_execution_id(tenant, execution_id)
        record = self.runs.get(execution)
        if record is None:
            raise NotFound("run", execution_id)
        is_open = record.status not in ENDED
        commit = self._with_audit("run.ended", [execution], now, note)
        if record.status == RUNNING:
            ended = self.runs.end_by_hand(record, note, now, 0.0, commit)
        elif is_open:
            cancel = self.runs.cancel_retries if record.status == RETRYING else self.runs.cancel
            ended = cancel([execution], _cancelled(note), now, commit)
        else:
            commit(Transaction(self.store.jobs.client))
            ended = True
        if not ended:
            raise Conflict(f"run {execution_id} has gone on meanwhile; ask again")
        if record.work_until:
            self.runs.forget_work(record)
        job = self.store.load_all(tenant, [execution.job_id]).get(execution.job_id)
        slot = record.concurrency_key or (job.spec.concurrency.key if job and job.spec.concurrency else "")
        item_keys = {"overlap": keys.overlap_permit(tenant, execution.job_id)}
        item_keys |= {f"concurrency key {slot}": keys.key_permits(tenant, slot)} if slot else {}
        freed = self.holders.free([Permit(key, execution, 0) for key in item_keys.values()], is_copy=True)
        if is_open:
            self.queue.send([record.execution])
        return EndedByForce(execution, is_open, [name for name, key in item_keys.items() if key in freed])

    def skip_next(self, tenant: str, job_id: str, count: int, note: str) -> list[Execution]:
        """Cancel the next `count` fire times beforehand, of those within SKIPPED_AHEAD_S; the job stays active.

        Repeating it skips the same ones, as long as none of them has passed. Raises NotFound, Conflict, Busy.
        """
        job, now = self.store.get(tenant, job_id), self.clock.now()
        executions = self.coming(job, count, now)
        if not executions:
            within = f"never fires again within {SKIPPED_AHEAD_S // DAY_S} days"
            why = "is paused" if job.state != ACTIVE else within
            raise Conflict(f"job {job_id!r} {why}, so there is nothing to skip")

        def cancel(batch: Sequence[Execution]) -> Sequence[Execution]:
            commit = self._with_audit("run.cancelled", batch, now, note)
            return batch if self.runs.cancel(batch, _cancelled(note), now, commit) else ()

        self._change(executions, cancel)
        return executions

    def skipped(self, tenant: str, job_id: str) -> list[Execution]:
        """The next fire times that are cancelled beforehand, not due within MIN_NOTICE_S.

        Raises NotFound, Conflict (a missing calendar).
        """
        job, from_at = self.store.get(tenant, job_id), math.ceil(self.clock.now()) + MIN_NOTICE_S
        excluded = self._excluded(job)
        cancelled = self._cancelled_from(tenant, job_id, from_at, None)
        return [run for run in cancelled if end_of(job, run.fire_at, excluded) is None][:MAX_SKIPPED]

    def take_back(self, skipped: Sequence[Execution]) -> list[Execution]:
        """Let these fire times run after all; returns those for which it is not too late. Raises Busy."""

        def take_back(batch: Sequence[Execution]) -> Sequence[Execution]:
            now = self.clock.now()
            batch = [execution for execution in batch if execution.fire_at >= now + MIN_NOTICE_S]
            commit = self._with_audit("run.restored", batch, now)
            try:
                return batch if batch and self.runs.take_back(batch, now, commit) else ()
            finally:
                # Also after an error: a commit whose answer was lost is done.
                self._send_late(batch)

        return self._change(skipped, take_back)

    def _send_late(self, restored: Sequence[Execution]) -> None:
        """Send those whose messages may have come while they were cancelled. A second message does no harm."""
        soon = self.clock.now() + _SENT_AGAIN_S
        if late := [execution for execution in restored if execution.fire_at < soon]:
            self.queue.send(late)

    def _change(
        self, executions: Sequence[Execution], change: Callable[[Sequence[Execution]], Sequence[Execution]]
    ) -> list[Execution]:
        """Change them in one transaction; if one's condition fails, each by itself. Returns those that were changed."""
        if not executions:
            return []
        try:
            if len(executions) > 1 and (changed := change(executions)):
                return list(changed)
            return [done for execution in executions for done in change([execution])]
        finally:
            self._note_skips(executions[0])

    def _note_skips(self, execution: Execution) -> None:
        """Note on its job what is cancelled now, after a change of that."""
        job, from_at = (execution.tenant, execution.job_id), math.ceil(self.clock.now())

        def cancelled() -> list[int]:
            return [run.fire_at for run in self._cancelled_from(*job, from_at, MAX_SKIPPED)]

        note_skips(self.store.jobs, *job, cancelled, self.clock.sleep)

    def _cancelled_from(self, tenant: str, job_id: str, from_at: int, most: int | None) -> list[Execution]:
        until_at = math.floor(self.clock.now()) + SKIPPED_AHEAD_S
        return self.runs.cancelled(tenant, job_id, from_at, until_at, most)

    def _excluded(self, job: Job) -> Excluded:
        """The dates of its calendars. Raises Conflict."""
        try:
            return Calendars(self.store.jobs).excluded(job.tenant, job.schedule)
        except MissingCalendar as missing:
            raise Conflict(str(missing)) from None

    def coming(self, job: Job, count: int, now: float) -> list[Execution]:
        """The executions of a job's next fire times within SKIPPED_AHEAD_S; none while it is paused.

        Raises Conflict (a missing calendar).
        """
        if job.state != ACTIVE:
            return []
        excluded = self._excluded(job)
        from_at, until_at = max(math.floor(now) + 1, job.effective_at), math.floor(now) + SKIPPED_AHEAD_S
        times = next_fires(job.schedule, from_at, count, until_at, excluded=excluded)
        entry = job.due_entry()
        return [execution_of(entry, fire_at) for fire_at in times]

    def _execution_and_record(self, tenant: str, execution_id: str) -> tuple[Execution, Run]:
        execution = parse_execution_id(tenant, execution_id)
        record = self.runs.get(execution)
        if record is None:
            raise NotFound("run", execution_id)
        revision = record.schedule_revision
        return structs.replace(execution, trigger=record.trigger, schedule_revision=revision), record

    def _check_planned(self, execution: Execution, now: float) -> None:
        """Check that an execution without a record exists: its job must be going to fire then."""
        job = self.store.get(execution.tenant, execution.job_id)
        is_past = execution.fire_at < max(job.effective_at, math.floor(now))
        if execution.trigger != SCHEDULE or is_past or end_of(job, execution.fire_at, self._excluded(job)):
            raise NotFound("run", execution.execution_id)


def _cancelled(note: str) -> str:
    return f"cancelled by hand{f': {note}' if note else ''}"


ERASED: Final = ("payload of its own", "answer", "log tails", "error texts", "progress", "notes of its end")
# What holds copies that Minute8 does not reach.
NOT_COVERED: Final = (
    "exported days of runs",
    "backups of the tables",
    "messages and events that were sent, and dead letters",
    "the job's definition and payload",
    "logs of the target and of traces",
)
_TEXTS: Final = (
    "error",
    "detail",
    "dead_letter_error",
    "stop_problem",
    "look_problem",
    "progress",
    "report",
    "stop",
)


def erase_details(tables: Tables, run: Run, error_group: str, commit: AuditedCommit, now: float) -> None:
    """Erase a run's texts, with an audit entry. Repeating it changes nothing more. `error_group`: of its failure.

    Raises Conflict (it goes on), Busy.
    """
    if run.status not in ENDED:
        raise Conflict(f"run {run.execution_id} goes on, and would write more: erase it when it has ended")
    bare = [to_builtins(replace(attempt, error="", log_tail="")) for attempt in run.attempts]
    tx = Transaction(tables.runs.client)
    kept = {"attempts": bare, "erased_at": int(now), "error_group": error_group}
    written = change(kept, remove=_TEXTS)
    as_read = unchanged(run.to_item(), "status", "attempt", "signs")
    tx.update(tables.runs, run.key, written, as_read)
    if failure := commit.try_commit(tx, run.tenant, "run.erased", run.execution_id, now):
        raise Conflict(f"run {run.execution_id} has changed meanwhile") from failure
    _erase_payload(tables, run)
    _erase_muted(tables, run)


def _erase_payload(tables: Tables, run: Run) -> None:
    named = split_run_name(run.run_name)
    if named and named[1].startswith(OWN_PAYLOAD_PREFIX):
        key = keys.asked_by_hand(run.tenant, run.job_id, named[1].removeprefix(OWN_PAYLOAD_PREFIX))
        tables.jobs.update_if(key, change(remove=["payload"]), PRESENT)


def _erase_muted(tables: Tables, run: Run) -> None:
    for group in MutedGroups(tables.jobs).stored(run.tenant):
        if group.job_id == run.job_id:
            key = keys.muted_group(run.tenant, group.job_id, group.fingerprint)
            tables.jobs.update_if(key, change({"error": ""}), Attribute("fingerprint") == group.fingerprint)
