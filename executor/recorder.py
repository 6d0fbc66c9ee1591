"""The end of the pipeline: writes the result of an attempt to the record, the queue, the job and the events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from common.clock import Clock
from common.errors import Minute8Error
from common.events import RUN_SKIPPED, Events
from common.jobs.job import DELETED, Job
from common.planning.execution import BACKFILL_PREFIX, Execution
from common.planning.executions_queue import ExecutionsQueue
from common.runs.changes import RunChanges
from common.runs.claims import Claim
from common.runs.outcome import Outcome, last_attempt
from common.runs.records import Runs
from common.runs.states import DISPATCHED, ENDED, FAILED, RETRYING, RUNNING
from common.storage.wire import Item
from executor.admission import Skip, Wait, is_of
from executor.dead_letters import DeadLetters
from executor.failure_streak import FailureStreak, responsible
from executor.overlap import OverlapPolicy
from executor.retry import exhausted, retry_at
from executor.stages import Dispatched, Lost, Verdict

if TYPE_CHECKING:
    from common.jobs.backfill import Backfills
    from common.jobs.ended import EndedJobs
    from common.planning.postponed import Postponed

_FIRST_WAIT_S: Final = 0.2


class StillRunning(Minute8Error):
    """An earlier delivery of this message may still be running: deliver this one again after the lease."""

    def __init__(self, execution_id: str, until: float) -> None:
        super().__init__(f"{execution_id} until {until}")
        self.until = until


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one message, for logs and metrics."""

    result: Literal[
        "succeeded",
        "dispatched",
        "failed",
        "retrying",
        "skipped",
        "queued",
        "duplicate",
        "sent_on",
        "unrecorded",
    ]
    execution: Execution
    lateness_s: float = 0.0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Recorder:
    """The only writer of the pipeline's results."""

    runs: Runs
    changes: RunChanges
    overlap: OverlapPolicy
    failure_streak: FailureStreak
    dead_letters: DeadLetters
    backfills: Backfills
    ended_jobs: EndedJobs
    events: Events
    queue: ExecutionsQueue
    postponed: Postponed
    clock: Clock

    def record(self, claim: Claim, job: Job | None, verdict: Verdict) -> Report:
        """Write the result of an attempt; `claim` is the claim that was or would have been written.

        Raises:
            StillRunning: an earlier delivery holds the attempt, and its lease is not over.
        """
        match verdict:
            case Skip():
                return self._skip(claim, job, verdict)
            case Wait():
                return self._wait(claim, verdict)
            case Lost():
                return self._claim_lost(claim, job, verdict)
            case Dispatched():
                return self._dispatched(claim, job)
            case Outcome():
                return self._outcome(claim, job, verdict)

    def _skip(self, claim: Claim, job: Job | None, skip: Skip) -> Report:
        execution, now = claim.execution, claim.started_at
        error = ""
        if execution.attempt == 1:
            recorded = self.runs.skip(execution, skip.reason, skip.detail, now, claim.kept_s)
        else:
            error = f"not tried again: {skip.detail}{_last_error(self.runs.get(execution) or {})}"
            recorded = self.runs.give_up(execution, skip.reason, error, now)
        if not recorded:
            return self._begun_before(claim, job, self.runs.get(execution) or {}, skip.detail, permanent=True)
        self._ended(job, execution)
        if execution.attempt == 1:
            self._publish_skipped(job, execution, skip)
            return Report("skipped", execution, detail=skip.reason)
        self.failure_streak.given_up(job, execution, skip.reason, error)
        self.dead_letters.send(job, replace(execution, attempt=execution.attempt - 1), skip.reason, error)
        return Report("failed", execution, detail=skip.reason)

    def _wait(self, claim: Claim, wait: Wait) -> Report:
        execution = claim.execution
        if execution.attempt == 1:
            self.changes.queue(execution, wait.detail, claim.started_at)
        self.postponed.send(replace(execution, not_before_at=wait.until))
        return Report("queued", execution, detail=wait.detail)

    def _claim_lost(self, claim: Claim, job: Job | None, lost: Lost) -> Report:
        if lost.no_takeover:
            return self._begun_before(claim, job, lost.record, lost.no_takeover, permanent=lost.permanent)
        return self._claimed_before(claim, job, lost.record)

    def _begun_before(
        self, claim: Claim, job: Job | None, record: Item, why: str, *, permanent: bool
    ) -> Report:
        """Another delivery made this attempt, or died while making it. It is not made again; `why` is the reason."""
        same_attempt = record.get("attempt") == claim.execution.attempt and record["status"] == RUNNING
        if not same_attempt or record["lease_until"] >= self.clock.now():
            return self._claimed_before(claim, job, record)
        died = Outcome(
            ok=False,
            permanent=permanent,
            error_type="ExecutorDied",
            error=f"the executor died during the call, so its outcome is unknown; not called again: {why}",
        )
        began = replace(
            claim, message_id=record["claimed_by"], started_at=record["started_at"], called_at=None
        )
        return self._outcome(began, job, died)

    def _claimed_before(self, claim: Claim, job: Job | None, record: Item) -> Report:
        """The attempt is claimed already: by another message, or by an earlier delivery of this one."""
        if _is_mine(claim, record):
            if record["status"] == RETRYING:
                # The earlier delivery died between recording and enqueuing the next attempt.
                throttled = record.get("throttles", 0) > claim.execution.throttles
                if job:
                    self.overlap.keep(job, claim.execution, record["next_attempt_at"])
                self.postponed.send(claim.execution.retry(record["next_attempt_at"], throttled=throttled))
                return Report("retrying", claim.execution, detail="next attempt enqueued again")
            if record["status"] in (RUNNING, DISPATCHED) and record["lease_until"] >= self.clock.now():
                raise StillRunning(claim.execution.execution_id, record["lease_until"])
        if record.get("status") in ENDED:
            self._ended(job, claim.execution, record)
            if job and _is_mine(claim, record):
                self.failure_streak.once_more(job, claim.execution, record)
                self._dead_letter_once_more(job, claim.execution, record)
        return Report("duplicate", claim.execution, detail=record.get("status", ""))

    def _outcome(self, claim: Claim, job: Job | None, outcome: Outcome) -> Report:
        """Classify the result: success, retry, or permanent failure."""
        execution, finished_at, next_at = claim.execution, self.clock.now(), None
        lateness_s = claim.lateness_s
        if job and not outcome.ok:
            next_at = retry_at(job.retry, execution, outcome, execution.aged_from_at, finished_at)
        if not self._finish(claim, outcome, finished_at, next_at):
            return Report("duplicate", execution, detail="its lease had ended and another took it over")
        if job and next_at is not None:
            self.overlap.keep(job, execution, next_at)
            self.postponed.send(execution.retry(next_at, throttled=outcome.throttled))
            return Report("retrying", execution, lateness_s, outcome.error_type)
        self._ended(job, execution)
        if job and outcome.ok:
            self.failure_streak.succeeded(job, execution)
            return Report("succeeded", execution, lateness_s)
        self.failure_streak.failed(job, execution, outcome)
        why = exhausted(job.retry, execution, outcome) if job else ""
        self.dead_letters.send(job, execution, outcome.error_type, outcome.error, why)
        return Report("failed", execution, lateness_s, outcome.error_type)

    def _dead_letter_once_more(self, job: Job, execution: Execution, record: Item) -> None:
        """For a run whose executor may have died between recording its end and sending the message."""
        last = last_attempt(record)
        if record["status"] == FAILED and last.get("outcome") == "failed":
            said = [str(last.get(name, "")) for name in ("error_type", "error")]
            self.dead_letters.send(job, execution, said[0], said[1])

    def _dispatched(self, claim: Claim, job: Job | None) -> Report:
        try:
            self._ended(job, claim.execution)
        except Exception:
            # The message comes again for what follows the run, and not to call again.
            self.changes.settle(claim.execution, claim.message_id)
            raise
        return Report("dispatched", claim.execution, claim.lateness_s)

    def _finish(self, claim: Claim, outcome: Outcome, finished_at: float, next_at: float | None) -> bool:
        """Record the result. Tries again while the lease lasts, since an unrecorded attempt is made again."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return self.runs.finish(claim, outcome, finished_at, next_at)
            except Exception:
                if self.clock.now() + wait_s >= claim.lease_until:
                    raise
                self.clock.sleep(wait_s)
                wait_s *= 2

    def _ended(self, job: Job | None, execution: Execution, record: Item | None = None) -> None:
        """Start the run that waited for this one, and a backfill's next one; note the job's end.

        `record`: of a run that ended before.
        """
        same_job = job and job.state != DELETED and is_of(execution, job)
        if same_job and execution.trigger_id.startswith(BACKFILL_PREFIX):
            self.backfills.run_ended(execution, self.queue, int(self.clock.now()), record)
        if (waiting := self.overlap.ended(job, execution)) is not None:
            self.queue.send([waiting])
        if job and job.after_completion == "delete":
            self.ended_jobs.run_ended(job, execution, self.clock.now())

    def _publish_skipped(self, job: Job | None, execution: Execution, skip: Skip) -> None:
        self.events.publish(
            RUN_SKIPPED,
            {
                "tenant": execution.tenant,
                "job_id": execution.job_id,
                "execution_id": execution.execution_id,
                "fire_at": execution.fire_at,
                "reason": skip.reason,
                "detail": skip.detail,
                **responsible(job),
            },
        )


def _last_error(record: Item) -> str:
    """The error that a run waits with, for the words of why it is not tried again."""
    last = last_attempt(record)
    if last.get("outcome") != "failed":
        return ""
    words = ": ".join(filter(None, (last.get("error_type"), last.get("error"))))
    return f"; attempt {last['attempt']} failed: {words}"


def _is_mine(claim: Claim, record: Item) -> bool:
    """Whether the record's latest attempt is this one, claimed by an earlier delivery of this message."""
    return record.get("claimed_by") == claim.message_id and record.get("attempt") == claim.execution.attempt
