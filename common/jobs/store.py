"""The stored jobs: the only code that changes a job, its due entry and the directory, in one atomic step.

A change takes effect at once: executions that become due in a window that may be planned already are enqueued here.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec import structs

from common import telemetry
from common.clock import Clock
from common.errors import RequestUnderWay
from common.events import Events
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.jobs.corrupt import stored_job, unchanged_corrupt
from common.jobs.ended import may_end, why_over
from common.jobs.failures import FailureCounts, NotRunningNotes
from common.jobs.former_jobs import FormerRuns, as_deleted, former_item, load_jobs
from common.jobs.idempotency import IdempotencyKey
from common.jobs.job import ACTIVE, CORRUPT, DELETED, Job, check_revision, existing, exists
from common.jobs.large_texts import LargeTexts
from common.jobs.ledger import ShardChoice, TenantLedger, moves
from common.jobs.not_running import CHANGED, ENDED, NEVER_FIRES, NotRunning, ended_by
from common.jobs.preconditions import Precondition
from common.jobs.revisions import counted_on, deleted, next_second, paused, resumed, with_pauses
from common.planning.due_index import DueIndex, PendingRegistration
from common.planning.plan import fires_soon, plan_registered
from common.planning.queue import ExecutionsQueue
from common.storage import expressions, keys
from common.storage.conflicts import ConditionFailed, TransactionConflict, retry_if_changed, retry_on_conflict
from common.storage.expressions import ABSENT, PRESENT, Attribute, Condition, change
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.tenants.audit import ITSELF, Audit, AuditedCommit
from common.tenants.webhook_secrets import WebhookSecrets
from common.timing.instants import DAY_S

# A transaction has at most 100 writes. A job that moves to another group needs seven: its item, audit, entries, shard
# counts and pending entry. The tenant's counts are one more, and so is each calendar or secret that they newly name,
# and after an outage what no tick has planned of a job's former times.
MAX_AT_ONCE = 14

_log = logging.getLogger("minute8.job_store")

# From the stored job and the time to the job to store.
Change = Callable[[Job | None, float], Job]


@dataclass(frozen=True, slots=True)
class JobStore:
    """The jobs of all tenants. Every method takes the tenant from the credential, never from a request's body.

    The `ledger` counts changes against the tenant's quotas and audits them with `by` as the author. The `preconditions`
    add conditions of other data.
    """

    jobs: Table
    index: DueIndex
    queue: ExecutionsQueue
    clock: Clock
    rng: random.Random
    ledger: TenantLedger
    preconditions: Sequence[Precondition]
    webhook_secrets: WebhookSecrets
    events: Events
    by: str = field(default=ITSELF, kw_only=True)
    # Decide only: `change` returns what it would store.
    is_dry: bool = field(default=False, kw_only=True)
    # Called with the tenant and the number of executions that a change is about to enqueue.
    before_hand_over: Callable[[str, int], None] = field(
        default=lambda tenant, executions: None, kw_only=True
    )

    def pause(self, tenant: str, job_id: str, note: str = "", expected_revision: int | None = None) -> Job:
        """Stop the job: no execution starts, not even a queued one. Raises NotFound, RevisionMismatch, Busy."""

        def change(old: Job | None, now: float) -> Job:
            return paused(existing(old, job_id, expected_revision), note, now)

        return self.change(tenant, job_id, change)

    def resume(self, tenant: str, job_id: str, expected_revision: int | None = None) -> Job:
        """Let the job fire again from now on. Raises NotFound, RevisionMismatch, Busy."""

        def change(old: Job | None, now: float) -> Job:
            return resumed(existing(old, job_id, expected_revision), now)

        return self.change(tenant, job_id, change)

    def delete(self, tenant: str, job_id: str, expected_revision: int | None = None) -> Job:
        """Delete the job; its id and revision stay known. Raises NotFound, RevisionMismatch, Busy."""

        def change(old: Job | None, now: float) -> Job:
            if old and old.state == CORRUPT:
                check_revision(old, job_id, expected_revision)
                return deleted(old, now)
            return deleted(existing(old, job_id, expected_revision), now)

        return self.change(tenant, job_id, change)

    def get(self, tenant: str, job_id: str) -> Job:
        """The job with its failures in a row, and without a large payload. Raises NotFound."""
        item = self.jobs.get(keys.job(tenant, job_id))
        job = existing(stored_job(item) if item else None, job_id, None)
        return self.failures.counted([job])[0]

    def list_jobs(self, tenant: str, limit: int = 100) -> Iterator[Job]:
        """A tenant's first jobs by their ids, at most `limit`."""
        return self._read(Query(tenant, sk_prefix=keys.JOB_PREFIX, limit=limit))

    def read_on(self, tenant: str, after: str, limit: int, *, page: int | None = None) -> Iterator[Job]:
        """The jobs after the id `after`, at most `limit`. Damaged ones are `corrupt`.

        A request reads `page` jobs, or 1 MB.
        """
        after_key = keys.job(tenant, after) if after else None
        return self._read(Query(tenant, sk_prefix=keys.JOB_PREFIX, after=after_key, limit=limit, page=page))

    def _read(self, jobs: Query) -> Iterator[Job]:
        return map(stored_job, self.jobs.query(jobs))

    @property
    def texts(self) -> LargeTexts:
        """The large texts of the jobs, such as payloads."""
        return LargeTexts(self.jobs)

    @property
    def audited(self) -> AuditedCommit:
        """Audits other changes that belong to jobs, with the same author."""
        return AuditedCommit(Audit(self.ledger.table), self.by, self.clock)

    @property
    def failures(self) -> FailureCounts:
        """The jobs' failures in a row. Each change of a job starts its count anew."""
        return FailureCounts(self.jobs, self.clock)

    @property
    def not_running(self) -> NotRunningNotes:
        """Why jobs do not run."""
        return NotRunningNotes(self.jobs, self.clock, self.events)

    def load_all(self, tenant: str, job_ids: Sequence[str]) -> dict[str, Job]:
        """The jobs that exist, and deleted ones, by their ids."""
        jobs = load_jobs(self.jobs, [(tenant, job_id) for job_id in job_ids])
        return {job_id: job for (_, job_id), job in jobs.items()}

    def change(
        self, tenant: str, job_id: str, change: Change, idempotency_key: IdempotencyKey | None = None
    ) -> Job:
        """Read, decide, and write if no other writer was faster; repeat until it is done.

        With an idempotency key, the same request takes effect once.
        Raises Busy, AlreadyCreated, KeyReused, RequestUnderWay, and what `change` and the ledger raise.
        """
        return self.change_all(tenant, {job_id: change}, idempotency_key)[job_id]

    def change_all(
        self, tenant: str, changes: Mapping[str, Change], idempotency_key: IdempotencyKey | None = None
    ) -> dict[str, Job]:
        """`change` for up to MAX_AT_ONCE jobs in one transaction: all or none.

        Raises TooManyWrites.
        """
        conflicts = 0
        shard_choice = ShardChoice(self.index.directory, self.rng)

        def attempt() -> dict[str, Job]:
            nonlocal conflicts
            olds = self.load_all(tenant, list(changes))
            now = self.clock.now()
            # Check after loading jobs, so that a duplicate request sees the first one's job.
            if idempotency_key:
                idempotency_key.check_first(self.jobs)
            news = {job_id: change(olds.get(job_id), now) for job_id, change in changes.items()}
            pairs = [(olds.get(job_id), new) for job_id, new in news.items()]
            moved = [(old, self._revised(old, new, now)) for old, new in pairs if new is not old]
            if not moved or self.is_dry:
                return news | {new.job_id: new for _, new in moved}
            try:
                return news | self._commit(tenant, moved, now, shard_choice, conflicts, idempotency_key)
            except ConditionFailed as conflict:
                self._check_still_possible(tenant, moved, now, conflict.key)
                raise  # the job changed meanwhile, or a quota has room again: decide again
            except TransactionConflict as conflict:
                if idempotency_key and idempotency_key.item_key in conflict.keys:
                    raise RequestUnderWay(idempotency_key.key) from conflict
                conflicts += 1
                raise

        subject = f"job {next(iter(changes))!r}" if len(changes) == 1 else f"one of {len(changes)} jobs"
        try:
            changed = retry_if_changed(
                attempt,
                f"{subject}, its schedule's shard or its tenant",
                sleep=self.clock.sleep,
                uniform=self.rng.uniform,
            )
        finally:
            shard_choice.tidy()
        whys = {job_id: self.why_over(job) for job_id, job in changed.items()}
        if not self.is_dry:
            for job_id, job in changed.items():
                self._note_over(job, whys[job_id])
        return {job_id: as_noted(job, whys[job_id]) for job_id, job in changed.items()}

    def note_if_over(self, job: Job) -> str:
        """Note that no fire time of the job is left, if that is so; or else that one is. Returns why, in words."""
        why = self.why_over(job)
        self._note_over(job, why)
        return why or ""

    def _note_over(self, job: Job, why: str | None) -> None:
        if as_noted(job, why) is job:
            return
        if why:
            note = NotRunning(NEVER_FIRES, self.clock.now(), why)
            self.not_running.begin(job.tenant, job.job_id, note, job.schedule_revision)
        else:
            self.not_running.end(job, CHANGED)

    def why_over(self, job: Job) -> str | None:
        """Why no fire time of the job is left, in words; empty if one is. None: a calendar that it names is missing."""
        if not may_end(job.schedule):
            return ""
        try:
            excluded = partial(Calendars(self.jobs).excluded, job.tenant, job.schedule)
            return why_over(job, 0, self.clock.now(), excluded)
        except MissingCalendar:
            return None

    def _revised(self, old: Job | None, new: Job, now: float) -> Job:
        """The changed job with the coming skips of the old one, and as the preconditions revise it."""
        noted = old.not_running if old and exists(old) and not _ended_by(old, new) else ""
        new = structs.replace(
            new, is_failing=False, failures_in_row=0, not_running=noted, skips=kept_skips(old, now)
        )
        for precondition in self.preconditions:
            new = precondition.revised(old, new, now)
        return counted_on(old, with_pauses(old, new, now), now)

    def _check_still_possible(
        self, tenant: str, moved: Sequence[tuple[Job | None, Job]], now: float, failed_key: keys.Key | None
    ) -> None:
        """Raises the reason if trying again is of no use. `failed_key` is the key whose condition failed."""
        if failed_key == keys.tenant(tenant):
            self.ledger.check_room(tenant, moved, now)
        if failed_key is None:
            return
        for precondition in self.preconditions:
            precondition.explain(failed_key)

    def _commit(
        self,
        tenant: str,
        moved: Sequence[tuple[Job | None, Job]],
        now: float,
        shard_choice: ShardChoice,
        conflicts: int,
        idempotency_key: IdempotencyKey | None,
    ) -> dict[str, Job]:
        progress = self.index.ensure_progress(now)
        if any(_is_first_http(old, new) for old, new in moved):
            self.webhook_secrets.ensure(tenant, now, by=self.by)
        placed = shard_choice.place(moved, conflicts)
        tx = Transaction(self.jobs.client)
        pending = [self._write(tx, old, new, now) for old, new in placed]
        for old, new in placed:
            self._write_unplanned(tx, old, new, progress.planned_until, now)
        for old, new in placed:
            self.ledger.audit(tx, self.by, old, new, now)
        self.ledger.count(tx, tenant, placed, now)
        for precondition in self.preconditions:
            precondition.require(tx, placed)
        shard_choice.count(tx, placed)
        if idempotency_key:
            idempotency_key.remember(tx, self.jobs, placed[0][1], now)
        tx.commit()
        shard_choice.committed()
        self._publish_over(placed)
        self._hand_over([entry for entry in pending if entry])
        self._end_runs([old for old, new in placed if old and new.state == DELETED])
        return {new.job_id: new for _, new in placed}

    def _publish_over(self, changed: Sequence[tuple[Job | None, Job]]) -> None:
        for old, new in changed:
            if old and old.not_running and (over_by := _ended_by(old, new)):
                self.not_running.ended(old, over_by)

    def _end_runs(self, deleted: Sequence[Job]) -> None:
        """Have executors end what goes on of deleted jobs. If this fails, their leases end it."""
        for job in deleted:
            with telemetry.tolerated("runs are left to their leases", job=job.key):
                FormerRuns(self.jobs.beside("runs"), self.queue).end(job)

    def _write(self, tx: Transaction, old: Job | None, new: Job, now: float) -> PendingRegistration | None:
        """Add the change of one job to `tx`."""
        self.texts.write(tx, old, new, now)
        job_key, former_key = keys.job(new.tenant, new.job_id), keys.former_job(new.tenant, new.job_id)
        if old is not None and new.state == DELETED:
            tx.delete(self.jobs, job_key, _unchanged(old))
            tx.put(self.jobs, former_item(new))
        elif old is not None and (exists(old) or old.state == CORRUPT):
            tx.put(self.jobs, {**job_key, **new.to_item()}, _unchanged(old))
        else:
            tx.put(self.jobs, {**job_key, **new.to_item()}, ABSENT)
            tx.check(self.jobs, former_key, as_deleted(old))
        self._write_note(tx, old, new, now)
        if old and old.group and moves(old, new):
            self.index.delete_entry(tx, old.group, old.shard, old.tenant, old.job_id)
        if not new.group:
            return None
        entry = new.due_entry()
        self.index.put_entry(tx, entry, new.group, new.shard)
        # Ticks may have missed fire times of a job that is new, resumed, or has other times.
        if _goes_on(old, new) or not fires_soon(entry, now):
            return None
        return self.index.put_pending(tx, entry, new.revision)

    def _write_note(self, tx: Transaction, old: Job | None, new: Job, now: float) -> None:
        """Delete a note that is over, with the count of failures, which starts anew.

        Of a job that Minute8 deletes it stays for a day, so that the next round of notices still tells it.
        """
        if old is None or not old.not_running or new.not_running:
            return
        key = keys.failure_streak(new.tenant, new.job_id)
        if new.state == DELETED and self.by == ITSELF:
            tx.update(self.jobs, key, expressions.change({"expires_at": math.floor(now) + DAY_S}))
        else:
            tx.delete(self.jobs, key)

    def _write_unplanned(
        self, tx: Transaction, old: Job | None, new: Job, planned_until: int, now: float
    ) -> None:
        """Add to `tx` what no tick has planned of the times that end now: after an outage, its last hours."""
        until = next_second(now)
        if old is None or old.state != ACTIVE or _goes_on(old, new):
            return
        if (from_at := max(old.effective_at, planned_until)) < until:
            entry = structs.replace(old, effective_at=from_at).due_entry()
            self.index.put_unplanned(tx, entry, until, new.revision)

    def _hand_over(self, pending: Sequence[PendingRegistration]) -> None:
        """Enqueue the executions that became due in the time that may be planned already.

        The registrations are committed before. If this fails, the pending entries stay, and the next tick enqueues.
        """
        if not pending:
            return
        entry = pending[0].entry
        name = {"tenant": entry.tenant, "job_id": entry.job_id}
        with telemetry.tolerated("executions are left to the next tick", count=len(pending), **name):
            progress = self.index.ensure_progress(self.clock.now())
            calendars = RememberedCalendars(Calendars(self.jobs))
            executions = [
                execution
                for registration in pending
                for execution in plan_registered(
                    registration.entry,
                    progress.planning_until,
                    calendars.excluded(registration.entry.tenant, registration.entry.schedule),
                )
            ]
            self.before_hand_over(entry.tenant, len(executions))
            log = self.index.log.writer(self.clock.now())
            _, refused = self.queue.send(log.recording(executions))
            for unwritten in log.write():
                _log.error("%s/%s: %s", entry.tenant, entry.job_id, unwritten)
            if not refused:  # else the next tick records the reason
                self.index.confirm(*pending)


def _is_first_http(old: Job | None, new: Job) -> bool:
    """Whether the job begins to call an endpoint, so that the tenant needs a secret to sign with."""
    return new.spec.target.get("kind") == "http" and (old is None or old.spec.target.get("kind") != "http")


def as_noted(job: Job, why: str | None) -> Job:
    """The job with a note that it never fires, or without it. `why` as `why_over` has it. Pure."""
    is_noted = job.not_running in (ENDED, NEVER_FIRES)
    if why is None or bool(why) == is_noted:
        return job
    return structs.replace(job, not_running=NEVER_FIRES if why else "")


def _ended_by(old: Job, new: Job) -> str:
    """How the change ends what is noted of the job; empty: it does not."""
    return ended_by(old.not_running, old.state, new.state, same_note=old.note == new.note)


def _goes_on(old: Job | None, new: Job) -> bool:
    """Whether an active job keeps its times."""
    if old is None or old.state != ACTIVE or new.state != ACTIVE:
        return False
    # Compare both: two changes within one second have the same effective_at.
    return (old.effective_at, old.schedule_revision) == (new.effective_at, new.schedule_revision)


def _unchanged(old: Job) -> Condition:
    if old.state == CORRUPT:
        return unchanged_corrupt(old)
    not_running = Attribute("not_running")
    same_note = not_running == old.not_running if old.not_running else not_running.is_absent
    return (Attribute("revision") == old.revision) & same_skips(old) & same_note


def note_skips(
    jobs: Table,
    tenant: str,
    job_id: str,
    cancelled: Callable[[], Sequence[int]],
    sleep: Callable[[float], None],
) -> None:
    """Note on the job's item the coming fire times that `cancelled` reads: so lists of jobs read no runs.

    The note is a copy: the runs' records decide what runs. The job's revision stays. No job: nothing is written.

    Two calls may read and write in any order. So each reads again after its write, and repeats if the result differs.
    Raises Busy.
    """
    key = keys.job(tenant, job_id)

    def attempt() -> None:
        skips = list(cancelled())
        is_noted = jobs.update_if(key, change({"skips": skips}), PRESENT)
        if is_noted and list(cancelled()) != skips:
            raise TransactionConflict([key])

    retry_on_conflict(attempt, f"what job {job_id!r} skips", sleep=sleep)


def same_skips(old: Job) -> Condition:
    """The condition that the note is still the one that was read. The revision does not show that."""
    noted = Attribute("skips")
    same = noted == list(old.skips)
    return same if old.skips else noted.is_absent | same


def kept_skips(old: Job | None, now: float) -> tuple[int, ...]:
    """The noted fire times after a change of the job: all that come. If its times have changed, they may again."""
    return tuple(fire_at for fire_at in old.skips if fire_at > now) if old else ()
