"""One execution from its message to its record: parse → hold → load → admit → claim → call → classify → record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from common.clock import Clock
from common.errors import Minute8Error
from common.events import RUN_SKIPPED, Events
from common.jobs.backfill import MOVED_ON, Backfills
from common.jobs.job import DELETED, Job
from common.planning.execution import BACKFILL_PREFIX, Execution
from common.planning.executions_queue import ExecutionsQueue
from common.runs.records import DISPATCHED, ENDED, QUEUED, RETRYING, RUNNING, Claim, Outcome, Runs
from common.storage import keys
from common.storage.tables import Item, Table
from common.tenants.rules import ACTIVE, DAY_S, SUSPENDED, TenantRules
from common.tenants.rules_cache import RulesOf
from executor.admission import Skip, admit, admit_tenant
from executor.calling import call
from executor.exclusions import excluded
from executor.failure_streak import FailureStreak
from executor.overlap import OverlapPolicy
from executor.retry import retry_at
from executor.targets import Kind

# SQS delays by whole seconds, so a message is out up to a second before its execution is due; that long it is held.
# What is further away goes back to the queue.
HOLD_S = 2.0
# Between claiming and the call's end there is little but the call itself.
_LEASE_MARGIN_S = 5
_FIRST_WAIT_S = 0.2
# Handing over an event takes milliseconds.
_EVENT_TIMEOUT_S = 10


# Jobs as they were at the second of some executions, by tenant and job id; None: there is no such job.
Jobs = Mapping[tuple[str, str], Job | None]
_NO_JOBS: Final[Jobs] = {}


class StillRunning(Minute8Error):
    """This message's earlier delivery may still be at work: it is to be delivered again, after the lease."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the executions queue."""

    message_id: str
    body: str


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one message, for logs and metrics."""

    result: Literal[
        "succeeded", "dispatched", "failed", "retrying", "skipped", "queued", "duplicate", "sent_on"
    ]
    execution: Execution
    lateness_s: float = 0.0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Executor:
    """Stage two. `kinds` are the target kinds it can call, `turns` sees to jobs that do not allow overlap.

    `tenants` says what each tenant may do, `stage` which targets are Minute8's own.
    """

    jobs: Table
    runs: Runs
    overlap: OverlapPolicy
    failure_streak: FailureStreak
    backfills: Backfills
    events: Events
    queue: ExecutionsQueue
    clock: Clock
    kinds: Mapping[str, Kind]
    tenants: RulesOf
    stage: str

    def execute(self, message: Message, jobs: Jobs = _NO_JOBS) -> Report:
        """Take one message to its end. A job that is not among `jobs` is read.

        Raises:
            UnreadableMessage: it is no execution; it will end in the dead-letter queue.
            StillRunning: it has to be delivered again later.
        """
        execution = Execution.decode(message.body)
        if not self._hold(execution):
            return Report("sent_on", execution)
        name = execution.tenant, execution.job_id
        job = jobs[name] if name in jobs else self._load(execution)
        now = self.clock.now()
        rules = self.tenants.rules(execution.tenant, now)
        skip = admit_tenant(rules, job, self.stage) or admit(execution, job, now)
        if skip or job is None or rules is None:
            return self._skip(execution, message, job, skip or Skip("deleted", ""), now)
        if skip := excluded(self.jobs, execution, job):
            return self._skip(execution, message, job, skip, now)
        kind = self.kinds[job.target["kind"]]
        awaited = kind.is_awaited(job.target)
        timeout_s = job.timeout_s if awaited else _EVENT_TIMEOUT_S
        lease_until = now + timeout_s + _LEASE_MARGIN_S
        claim = Claim(execution, message.message_id, now, lease_until, rules.runs_kept_s)
        if (lock := self.overlap.take(job, claim, now)) is not None:
            return self._yield_to_running(claim, job, lock, now)
        if (record := self.runs.claim(claim, RUNNING if awaited else DISPATCHED)) is not None:
            return self._claim_lost(claim, record, job)
        outcome = call(kind, job, claim, timeout_s)
        lateness_s = max(0.0, now - execution.due_at)
        if outcome.ok and not awaited:
            self._ended(job, execution)
            return Report("dispatched", execution, lateness_s)
        return self._record(job, claim, outcome, lateness_s)

    def _hold(self, execution: Execution) -> bool:
        """Wait for the second at which it is due; False if that is so far away that it went back to the queue."""
        early_s = execution.visible_at - self.clock.now()
        if early_s > HOLD_S:
            self.queue.send([execution])
            return False
        self._wait_until(execution.visible_at)
        return True

    def _wait_until(self, at: int) -> None:
        # Again and again: a sleep may end early, and never may a run start early.
        while (early_s := at - self.clock.now()) > 0:
            self.clock.sleep(early_s)

    def load_when_due(self, executions: Sequence[Execution]) -> Jobs:
        """The jobs of executions that are due at the same second, read at that second; none if it is far away."""
        due_at = executions[0].visible_at
        if due_at - self.clock.now() > HOLD_S:
            return {}
        self._wait_until(due_at)
        names = list(dict.fromkeys((execution.tenant, execution.job_id) for execution in executions))
        found = map(Job.from_item, self.jobs.get_many([keys.job(*name) for name in names]))
        return dict.fromkeys(names) | {(job.tenant, job.job_id): job for job in found}

    def _load(self, execution: Execution) -> Job | None:
        item = self.jobs.get(keys.job(execution.tenant, execution.job_id))
        return Job.from_item(item) if item else None

    def _skip(
        self, execution: Execution, message: Message, job: Job | None, skip: Skip, now: float
    ) -> Report:
        if execution.attempt == 1:
            kept_s = _kept_s(self.tenants.rules(execution.tenant, now))
            recorded = self.runs.skip(execution, skip.reason, skip.detail, now, kept_s)
        else:
            recorded = self.runs.give_up(execution, skip.reason, f"not tried again: {skip.detail}", now)
        if not recorded:
            record = self.runs.get(execution) or {}
            claim = Claim(execution, message.message_id, now, now)
            return self._begun_before(claim, record, job, skip.detail, permanent=True)
        self._ended(job, execution)
        if execution.attempt == 1:
            self._publish_skipped(execution, skip)
            return Report("skipped", execution, detail=skip.reason)
        self.failure_streak.given_up(execution, skip.reason, skip.detail)
        return Report("failed", execution, detail=skip.reason)

    def _yield_to_running(self, claim: Claim, job: Job, lock: Item, now: float) -> Report:
        """Another run of the job is still going: skip this one, or come back when that should have ended."""
        execution = claim.execution
        record = self.runs.get(execution)
        if record is not None and not _is_to_come(execution, record):
            return self._begun_before(claim, record, job, "another run has the job's lock", permanent=False)
        wait = self.overlap.wait(job, execution, lock, now)
        if isinstance(wait, Skip):
            return self._skip(execution, Message(claim.message_id, ""), job, wait, now)
        self.queue.send([replace(execution, not_before_at=wait.until)])
        return Report("queued", execution, detail=wait.detail)

    def _begun_before(
        self, claim: Claim, record: Item, job: Job | None, why: str, *, permanent: bool
    ) -> Report:
        """The attempt has been made already, or was, when an earlier delivery of this message died of it."""
        same_attempt = record.get("attempt") == claim.execution.attempt and record["status"] == RUNNING
        if not same_attempt or record["lease_until"] >= self.clock.now():
            return self._claim_lost(claim, record, job)
        died = Outcome(
            ok=False,
            permanent=permanent,
            error_type="ExecutorDied",
            error=f"the executor died during the call; not taken over: {why}",
        )
        began = replace(claim, message_id=record["claimed_by"], started_at=record["started_at"])
        return self._record(job, began, died, max(0.0, began.started_at - claim.execution.due_at))

    def _publish_skipped(self, execution: Execution, skip: Skip) -> None:
        self.events.publish(
            RUN_SKIPPED,
            {
                "tenant": execution.tenant,
                "job_id": execution.job_id,
                "execution_id": execution.execution_id,
                "fire_at": execution.fire_at,
                "reason": skip.reason,
                "detail": skip.detail,
            },
        )

    def _claim_lost(self, claim: Claim, record: Item, job: Job | None) -> Report:
        """Somebody has this attempt already: another message, or an earlier delivery of this very one."""
        if _is_mine(claim, record):
            if record["status"] == RETRYING:
                # The earlier delivery died between recording and enqueuing the next attempt.
                throttled = record.get("throttles", 0) > claim.execution.throttles
                if job:
                    self.overlap.keep(job, claim.execution, record["next_attempt_at"])
                self.queue.send([claim.execution.retry(record["next_attempt_at"], throttled=throttled)])
                return Report("retrying", claim.execution, detail="next attempt enqueued again")
            if record["status"] in (RUNNING, DISPATCHED) and record["lease_until"] >= self.clock.now():
                raise StillRunning(f"{claim.execution.execution_id} until {record['lease_until']}")
        if record.get("status") in ENDED:
            self._ended(job, claim.execution, record)
            if job and _is_mine(claim, record):
                self.failure_streak.once_more(job, claim.execution, record)
        return Report("duplicate", claim.execution, detail=record.get("status", ""))

    def _ended(self, job: Job | None, execution: Execution, record: Item | None = None) -> None:
        """Let the run that waited for this one go on at once, and a backfill's next; `record` if it ended before."""
        same_job = job and job.state != DELETED and job.created_at <= execution.aged_from_at
        if same_job and execution.trigger_id.startswith(BACKFILL_PREFIX) and MOVED_ON not in (record or {}):
            self.backfills.run_ended(execution, self.queue, int(self.clock.now()))
        if (waiting := self.overlap.ended(job, execution)) is not None:
            self.queue.send([waiting])

    def _finish(self, claim: Claim, outcome: Outcome, finished_at: float, next_at: float | None) -> bool:
        """Record how the attempt ended; again while the lease lasts, for what is not recorded is called once more."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return self.runs.finish(claim, outcome, finished_at, next_at)
            except Exception:
                if self.clock.now() + wait_s >= claim.lease_until:
                    raise
                self.clock.sleep(wait_s)
                wait_s *= 2

    def _record(self, job: Job | None, claim: Claim, outcome: Outcome, lateness_s: float) -> Report:
        execution, finished_at, next_at = claim.execution, self.clock.now(), None
        if job and not outcome.ok:
            next_at = retry_at(job.retry, execution, outcome, execution.aged_from_at, finished_at)
        if not self._finish(claim, outcome, finished_at, next_at):
            return Report("duplicate", execution, detail="its lease had ended and another took it over")
        if job and next_at is not None:
            self.overlap.keep(job, execution, next_at)
            self.queue.send([execution.retry(next_at, throttled=outcome.throttled)])
            return Report("retrying", execution, lateness_s, outcome.error_type)
        self._ended(job, execution)
        if job and outcome.ok:
            self.failure_streak.succeeded(job, execution)
            return Report("succeeded", execution, lateness_s)
        self.failure_streak.failed(job, execution, outcome)
        return Report("failed", execution, lateness_s, outcome.error_type)


def _kept_s(rules: TenantRules | None) -> int:
    """Of a deleted tenant nothing is to stay: nobody can look at it, and its name may be given away again."""
    return rules.runs_kept_s if rules and rules.state in (ACTIVE, SUSPENDED) else DAY_S


def _is_to_come(execution: Execution, record: Item) -> bool:
    """Whether the record waits for this very attempt."""
    if execution.attempt == 1:
        return bool(record["status"] == QUEUED)
    return bool(record["status"] == RETRYING and record["attempt"] == execution.attempt - 1)


def _is_mine(claim: Claim, record: Item) -> bool:
    """Whether the record's latest attempt is this one, claimed by an earlier delivery of this message."""
    return record.get("claimed_by") == claim.message_id and record.get("attempt") == claim.execution.attempt
