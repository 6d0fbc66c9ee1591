"""The end of the pipeline: writes the result of an attempt to the record and to the queue, and reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import structs

from common.clock import Clock
from common.errors import Minute8Error
from common.jobs.job import DELETED, Job
from common.limits import MAX_THROTTLED_RUNS
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.runs import states
from common.runs.claims import FIRST_LOOK_S, Claim, Settlement
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.run import Run
from executor.admission import PASSING, WAITS_AFTER_S, Skip, Wait
from executor.calling import Called
from executor.conflict import (
    ComeAgain,
    Conflict,
    Died,
    Duplicate,
    HandBack,
    Look,
    RepeatEnd,
    SendRetry,
    Settle,
    Stop,
    TakeOver,
    decide,
)
from executor.permits import Permits
from executor.retry import retry_at
from executor.run_end import RunEnd

if TYPE_CHECKING:
    from common.planning.postponed import Postponed
    from executor.started import Started
    from executor.throttled import ThrottledRetries

Recorded = TypeVar("Recorded")
_FIRST_WAIT_S: Final = 0.2
_STARTED: Final = ("succeeded", "dispatched", "accepted", "failed", "retrying")
# Error types for which Minute8 is responsible: the executor's process ended during the call.
_OUR_ERRORS: Final = ("ExecutorDied",)


class StillRunning(Minute8Error):
    """An earlier delivery of this message may still be running: deliver it again after the lease."""

    def __init__(self, execution_id: str, until: float) -> None:
        super().__init__(f"{execution_id} until {until}")
        self.until = until


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one message, for logs and metrics."""

    result: Literal[
        "succeeded",
        "dispatched",
        "accepted",
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
    is_throttled: bool = False
    # What `DeadLetters.send` returned.
    letter_error: str | None = None
    # The attempt was made by an earlier message, which reported its start.
    is_late_end: bool = False


class ServiceLevel(NamedTuple):
    """Executions of a batch: the good ones, and all that count."""

    good: int
    total: int


def service_level(reports: Iterable[Report], within_s: float) -> ServiceLevel:
    """How many executions of a batch were due, and how many of them Minute8 served well. Pure.

    An execution is good if it started within `within_s`, and its result was recorded. A failure of the target is not
    Minute8's. A run that its job's or the platform's rules skip does not count.
    """
    good = total = 0
    for report in reports:
        if has_started(report):
            total += 1
            good += report.lateness_s <= within_s and report.detail not in _OUR_ERRORS
        elif report.result == "unrecorded" or _came_too_late(report):
            total += 1
    return ServiceLevel(good, total)


def has_started(report: Report) -> bool:
    """Whether an attempt was made; its lateness is known then."""
    return report.result in _STARTED and report.detail not in states.REASONS and not report.is_late_end


def _came_too_late(report: Report) -> bool:
    """Whether the execution was skipped or given up because it was late, and not because it waited for its turn."""
    return report.detail == states.MISFIRE and not report.execution.not_before_at


@dataclass(frozen=True, slots=True)
class Recorder:
    """The only writer of the pipeline's results."""

    runs: Runs
    permits: Permits
    run_end: RunEnd
    queue: ExecutionsQueue
    postponed: Postponed
    started: Started
    throttled: ThrottledRetries
    clock: Clock

    def called(self, called: Called) -> Report:
        """Write the result of an attempt that was made. A service that accepted an event has ended the attempt."""
        attempt, outcome, claim = called.claimed.attempt, called.outcome, called.claim
        job = attempt.job
        is_accepted = claim.callback and (outcome.accepted or "url" not in job.spec.target)
        if outcome.ok and (claim.durable or is_accepted):
            return self._accepted(claim, job, outcome.started)
        if outcome.ok and not attempt.is_awaited:
            return self._dispatched(claim, job, outcome.started)
        return self._outcome(claim, job, outcome)

    def not_called(self, claim: Claim, job: Job | None, verdict: Skip | Wait | Conflict) -> Report:
        """Write what becomes of an attempt that is not made; `claim` is the claim that would have been written.

        Raises:
            StillRunning: an earlier delivery holds the attempt, and its lease is not over.
        """
        match verdict:
            case Skip():
                return self._skip(claim, job, verdict)
            case Wait():
                return self._wait(claim, job, verdict)
            case Conflict():
                return self._conflict(claim, job, verdict)

    def _skip(self, claim: Claim, job: Job | None, skip: Skip) -> Report:
        execution, now = claim.execution, claim.started_at
        if execution.attempt == 1:
            if not self.runs.skip(execution, skip.reason, skip.detail, now, claim.retention_s):
                return self._skip_too_late(claim, job, skip)
            if execution.not_before_at or skip.reason not in (states.OVERLAP, states.CONCURRENCY):
                self.permits.run_is_over(job, claim)
            self.run_end.skipped(job, execution, skip)
            return Report("skipped", execution, detail=skip.reason)
        error = f"not tried again: {skip.detail}{_last_error(self.runs.get(execution))}"
        if not self.runs.give_up(execution, skip.reason, error, now):
            return self._skip_too_late(claim, job, skip)
        self.permits.run_is_over(job, claim)
        letter_error = self.run_end.given_up(job, execution, skip.reason, error)
        return Report("failed", execution, detail=skip.reason, letter_error=letter_error)

    def _skip_too_late(self, claim: Claim, job: Job | None, skip: Skip) -> Report:
        record, is_deleted = self.runs.get(claim.execution), job is None or job.state == DELETED
        if record and job and record.first_started_at:  # it may be another job of the same id
            is_deleted = is_deleted or record.first_started_at < job.created_at
        conflict = _if_dead(record, job, skip.detail, waits=skip.reason in PASSING)
        return self._conflict(claim, job, replace(conflict, is_deleted=is_deleted))

    def _wait(self, claim: Claim, job: Job | None, wait: Wait) -> Report:
        execution = claim.execution
        if wait.leaves_line:
            self.permits.leave_line(job, claim)
        until, told_at = wait.until, execution.due_at + WAITS_AFTER_S
        if claim.started_at < told_at:  # it looks then, if only to be told of
            until = told_at if until is None else min(until, told_at)
        if execution.attempt == 1:
            refusal = self.runs.wait(execution, wait.detail, claim.started_at, until or 0)
            if refusal and refusal.run:
                return self._conflict(claim, job, _if_dead(refusal.run, job, wait.detail, waits=True))
        if until is not None:
            if execution.attempt > 1 and (refusal := self.runs.put_off(execution, until, wait.detail)):
                return self._conflict(claim, job, _if_dead(refusal.run, job, wait.detail, waits=True))
            self.postponed.send(structs.replace(execution, not_before_at=until))
        if wait.is_told:
            self.run_end.waits(job, execution, wait.detail)
        return Report("queued", execution, detail=wait.detail)

    def _conflict(self, claim: Claim, job: Job | None, conflict: Conflict) -> Report:
        """Another delivery made this attempt, is making it, or died while making it."""
        execution = claim.execution
        match action := decide(conflict, claim, self.clock.now()):
            case HandBack(until):
                raise StillRunning(execution.execution_id, until)
            case TakeOver(record):  # its lease has ended just now: the message comes again, and takes over
                raise StillRunning(execution.execution_id, record.lease_until)
            case Stop(record):
                return self._conflict(
                    claim, job, replace(conflict, record=self._stopped(job, execution, record))
                )
            case ComeAgain(record, at):
                self.permits.attempt_goes_on(job, _claim_of(record, claim), at)
                self.postponed.send(structs.replace(execution, not_before_at=at))
                return Report("duplicate", execution, detail="its target has accepted it")
            case Look(record):
                return self._look(claim, job, conflict, record)
            case Settle():
                return self._settle(claim, job, conflict, action)
            case Died(record, outcome):
                return self._outcome(_claim_of(record, claim), job, outcome)
            case SendRetry(record, throttled):
                next_at = int(record.next_attempt_at)
                self._retry(
                    _claim_of(record, claim), job, next_at, throttled=throttled, work_until=record.work_until
                )
                return Report("retrying", execution, detail="next attempt enqueued again")
            case RepeatEnd(record, is_own):
                self._run_is_over(job, _claim_of(record, claim), record.work_until, is_copy=not is_own)
                self.run_end.ended(job, execution, record)
                letter_error = self.run_end.repeat_end(job, execution, record) if job and is_own else None
                return Report("duplicate", execution, detail=record.status, letter_error=letter_error)
            case Duplicate(detail):
                return Report("duplicate", execution, detail=detail)

    def _settle(self, claim: Claim, job: Job | None, conflict: Conflict, end: Settle) -> Report:
        is_accepted = end.record.awaits_callback(end.record.attempt)
        settlement = Settlement(claim.message_id, end.record.signs, end.ended_at) if is_accepted else None
        report = self._outcome(_claim_of(end.record, claim), job, end.outcome, settlement)
        if settlement and report.result == "duplicate":  # it has given a sign meanwhile, or ended
            return self._conflict(claim, job, replace(conflict, record=self.runs.get(claim.execution)))
        return replace(report, is_late_end=True)

    def _look(self, claim: Claim, job: Job | None, conflict: Conflict, record: Run) -> Report:
        from executor.started import Ended, next_look_at  # most executors never need it

        seen = self.started.look(job, claim.execution, record)
        if isinstance(seen, Ended):
            ended_at = max(seen.at, record.started_at)
            return self._settle(claim, job, conflict, Settle(record, seen.outcome, ended_at))
        look_at = next_look_at(record.started_at, self.clock.now())
        return self._conflict(
            claim, job, replace(conflict, record=self.runs.goes_on(record, look_at, seen.problem))
        )

    def _accepted(self, claim: Claim, job: Job | None, started: Sequence[str]) -> Report:
        """The target has accepted the work. Its end comes by a callback, a look, or the message that ends its time."""
        wait_s = claim.callback.wait_s if claim.callback else FIRST_LOOK_S
        until = self.clock.now() + wait_s
        record = self._while_leased(claim, lambda: self.runs.accept(claim, until, started))
        report = self._conflict(claim, job, Conflict(record))
        if report.result == "duplicate" and record and record.claim_token == claim.token:
            return Report("accepted", claim.execution, claim.start.lateness_s)
        return replace(report, is_late_end=False)

    def _outcome(
        self, claim: Claim, job: Job | None, outcome: Outcome, settlement: Settlement | None = None
    ) -> Report:
        """Classify the result: success, retry, or permanent failure."""
        execution, now = claim.execution, self.clock.now()
        work_until = claim.start.at + job.work_s if job and outcome.unanswered else 0.0
        next_at, outcome = self._next_at(job, execution, outcome, now, work_until)
        finished_at = settlement.ended_at if settlement else now
        if not self._while_leased(
            claim, lambda: self.runs.finish(claim, outcome, finished_at, next_at, settlement, work_until)
        ):
            if not settlement and not outcome.unanswered:
                self._ended_meanwhile(claim, job)
            return Report("duplicate", execution, detail="another has taken it over, or ended it")
        if next_at is not None:
            self._retry(claim, job, next_at, throttled=outcome.throttled, work_until=work_until)
            return Report(
                "retrying", execution, claim.start.lateness_s, outcome.error_type, outcome.throttled
            )
        if not self._work_goes_on(job, claim, work_until):
            self.permits.attempt_ended(job, claim)
        if outcome.ok:
            self.run_end.succeeded(job, execution)
            return Report("succeeded", execution, claim.start.lateness_s)
        letter_error = self.run_end.failed(job, execution, outcome)
        return Report(
            "failed", execution, claim.start.lateness_s, outcome.error_type, outcome.throttled, letter_error
        )

    def _next_at(
        self, job: Job | None, execution: Execution, outcome: Outcome, now: float, work_until: float
    ) -> tuple[int | None, Outcome]:
        """When the next attempt is due, if there is one, and the outcome, which may say why there is none.

        Throttled runs of a job share the times of their retries.
        """
        if job is None or outcome.ok:
            return None, outcome
        not_before = work_until if job.spec.is_limited else 0.0
        next_at = retry_at(job.spec.retry, execution, outcome, execution.aged_from_at, now, not_before)
        if next_at is None or not outcome.throttled:
            return next_at, outcome
        next_at = self.throttled.retry_at(job, execution, outcome, next_at)
        if next_at is None:
            words = f"; {MAX_THROTTLED_RUNS} runs of the job wait already, so it is not tried again"
            return None, replace(outcome, permanent=True, error=f"{outcome.error}{words}")
        is_too_old = next_at > execution.aged_from_at + job.spec.retry.max_age_s + 1
        return None if is_too_old else next_at, outcome

    def _work_goes_on(self, job: Job | None, claim: Claim, work_until: float) -> bool:
        """Keep the permits of an ended attempt whose work can go on. Its message comes again then, and frees them."""
        if work_until <= self.clock.now() or not self.permits.work_goes_on(job, claim, work_until):
            return False
        self.postponed.send(structs.replace(claim.execution, not_before_at=int(work_until) + 1))
        return True

    def _run_is_over(self, job: Job | None, claim: Claim, work_until: float, *, is_copy: bool) -> None:
        """Free what an ended run has, unless its work goes on. Its last message, whichever that is, is no copy."""
        if not self._work_goes_on(job, claim, work_until):
            self.permits.run_is_over(job, claim, is_copy=is_copy and not work_until)

    def _stopped(self, job: Job | None, execution: Execution, record: Run) -> Run:
        """The record of a run that a person has ended, after what it started was stopped."""
        problem, now = self.started.stop(job, execution, record), self.clock.now()
        if problem is None:  # there is nothing to stop
            return structs.replace(record, stopped_at=now)
        return self.runs.note_stopped(record, problem, now)

    def _ended_meanwhile(self, claim: Claim, job: Job | None) -> None:
        """Free the permits of an attempt that a person has ended before its target answered."""
        record = self.runs.get(claim.execution) if claim.permits else None
        if record and record.claim_token == claim.token and record.status in states.ENDED:
            self.permits.run_is_over(job, claim)

    def _retry(
        self, claim: Claim, job: Job | None, next_at: int, *, throttled: bool, work_until: float = 0.0
    ) -> None:
        """Enqueue the next attempt. The run keeps the permits that it has for all its attempts."""
        now = self.clock.now()
        self.permits.retries(job, claim, max(next_at, now), work_until if work_until > now else 0.0)
        self.postponed.send(claim.execution.retry(next_at, throttled=throttled))

    def _dispatched(self, claim: Claim, job: Job | None, started: Sequence[str]) -> Report:
        try:
            if started:
                self.runs.note_started(claim.execution, claim.token, started)
            self.permits.attempt_ended(job, claim)
            self.run_end.dispatched(job, claim.execution)
        except Exception:
            # The message comes again, and then only does what follows the run: the call is not repeated.
            self.runs.settle(claim.execution, claim.message_id)
            raise
        return Report("dispatched", claim.execution, claim.start.lateness_s)

    def _while_leased(self, claim: Claim, record: Callable[[], Recorded]) -> Recorded:
        """Record the result. Tries again while the lease lasts, since an unrecorded attempt is made again."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return record()
            except (BotoCoreError, ClientError, Minute8Error):
                if self.clock.now() + wait_s >= claim.lease_until:
                    raise
                self.clock.sleep(wait_s)
                wait_s *= 2


def _if_dead(record: Run | None, job: Job | None, detail: str, *, waits: bool) -> Conflict:
    """The conflict of an attempt that is not made now, if an executor died while making it."""
    waits = waits and job is not None and job.spec.on_crash != "fail"
    return Conflict(record, no_takeover=detail, permanent=not waits, waits=waits)


def _last_error(record: Run | None) -> str:
    """The last error of a run that waits for its next attempt, as words for the reason why none is made."""
    last = record.last_attempt if record else None
    if last is None or last.outcome != "failed":
        return ""
    words = ": ".join(filter(None, (last.error_type, last.error)))
    return f"; attempt {last.attempt} failed: {words}"


def _claim_of(record: Run, claim: Claim) -> Claim:
    """The claim that made the record's attempt, which this message ends."""
    return replace(
        claim,
        execution=structs.replace(claim.execution, attempt=record.attempt or claim.execution.attempt),
        message_id=record.claimed_by,
        token=record.claim_token,
        started_at=record.started_at,
        called_at=None,
        concurrency_key=record.concurrency_key,
        durable=record.durable_execution,
        permits=(),
    )
