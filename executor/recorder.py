"""The end of the pipeline: writes the result of an attempt to the record and to the queue, and reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from common.clock import Clock
from common.errors import Minute8Error
from common.jobs.job import Job
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.runs import states
from common.runs.claims import Claim, Settlement
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.run import Run
from common.runs.states import DISPATCHED, ENDED, RETRYING, RUNNING
from executor.admission import Skip, Wait
from executor.overlap import OverlapPolicy
from executor.retry import retry_at
from executor.run_end import RunEnd
from executor.stages import Accepted, ClaimConflict, Dispatched, Verdict

if TYPE_CHECKING:
    from common.planning.postponed import Postponed
    from executor.late_ends import Stops
    from executor.slots import Slots

Recorded = TypeVar("Recorded")
_FIRST_WAIT_S: Final = 0.2
_STARTED: Final = ("succeeded", "dispatched", "accepted", "failed", "retrying")
# What a person can stop, if there is a way: a run that goes on, or what took its event.
_STOPPABLE: Final = (RUNNING, DISPATCHED)
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
            good += lateness_s(report) <= within_s and report.detail not in _OUR_ERRORS
        elif report.result == "unrecorded" or _came_too_late(report):
            total += 1
    return ServiceLevel(good, total)


def lateness_s(report: Report) -> float:
    """The lateness that is Minute8's: without the time that the run waited for its turn after another run."""
    execution = report.execution
    return max(0.0, report.lateness_s - (execution.visible_at - execution.due_at))


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
    overlap: OverlapPolicy
    run_end: RunEnd
    queue: ExecutionsQueue
    postponed: Postponed
    slots: Slots
    stops: Stops
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
            case ClaimConflict():
                return self._conflict(claim, job, verdict)
            case Dispatched():
                return self._dispatched(claim, job, verdict.started)
            case Accepted():
                return self._accepted(claim, job)
            case Outcome():
                return self._outcome(claim, job, verdict)

    def send_on(self, execution: Execution) -> Report:
        """Give an execution that is due too late back to the queue."""
        self.postponed.send(execution)
        return Report("sent_on", execution)

    def send_alone(self, executions: Sequence[Execution]) -> None:
        """Enqueue each execution as a message of its own."""
        self.queue.send(executions)

    def settle(self, execution: Execution, message_id: str) -> None:
        """Note that the call of this message's attempt was made, so that another delivery does not repeat it."""
        self.runs.settle(execution, message_id)

    def _skip(self, claim: Claim, job: Job | None, skip: Skip) -> Report:
        execution, now = claim.execution, claim.started_at
        if execution.attempt == 1:
            if not self.runs.skip(execution, skip.reason, skip.detail, now, claim.retention_s):
                return self._skip_too_late(claim, job, skip)
            self.run_end.skipped(job, execution, skip)
            return Report("skipped", execution, detail=skip.reason)
        error = f"not tried again: {skip.detail}{_last_error(self.runs.get(execution))}"
        if not self.runs.give_up(execution, skip.reason, error, now):
            return self._skip_too_late(claim, job, skip)
        letter_error = self.run_end.given_up(job, execution, skip.reason, error)
        return Report("failed", execution, detail=skip.reason, letter_error=letter_error)

    def _skip_too_late(self, claim: Claim, job: Job | None, skip: Skip) -> Report:
        record = self.runs.get(claim.execution)
        return self._conflict(claim, job, ClaimConflict(record, skip.detail, permanent=True))

    def _wait(self, claim: Claim, wait: Wait) -> Report:
        execution = claim.execution
        if execution.attempt == 1:
            self.runs.queue(execution, wait.detail, claim.started_at)
        self.postponed.send(replace(execution, not_before_at=wait.until))
        return Report("queued", execution, detail=wait.detail)

    def _conflict(self, claim: Claim, job: Job | None, conflict: ClaimConflict) -> Report:
        """Another delivery made this attempt, is making it, or died while making it."""
        record = conflict.record
        if record is None:
            return Report("duplicate", claim.execution)
        attempt = claim.execution.attempt
        if record.stop_attempt == attempt and record.status in _STOPPABLE:
            return self._stop(claim, job, record)
        if record.awaits_callback(attempt):
            return self._by_sign(claim, job, record)
        is_open = record.attempt == attempt and record.status == RUNNING
        if not conflict.no_takeover or not is_open or record.lease_until >= self.clock.now():
            return self._claimed_before(claim, job, record)
        died = Outcome(
            ok=False,
            permanent=conflict.permanent,
            error_type="ExecutorDied",
            error="the executor died during the call, so its outcome is unknown; not called again: "
            + conflict.no_takeover,
        )
        earlier = replace(
            claim, message_id=record.claimed_by, started_at=record.started_at, called_at=None, slot=""
        )
        report = self._outcome(earlier, job, died)
        self._free_slot(record.slot, claim.execution, record.claim_token)
        return report

    def _claimed_before(self, claim: Claim, job: Job | None, record: Run) -> Report:
        """The attempt is claimed already: by another message, or by an earlier delivery of this message."""
        execution = claim.execution
        if record.status in (RETRYING, *ENDED):
            self._free_slot(record.slot, execution, record.claim_token)
        if _lacks_retry(claim, record, self.clock.now()):
            throttled = record.throttles > execution.throttles
            self._retry(job, execution, int(record.next_attempt_at), throttled=throttled)
            return Report("retrying", execution, detail="next attempt enqueued again")
        is_open = record.status in (RUNNING, DISPATCHED)
        if is_open and _is_own(claim, record) and record.lease_until >= self.clock.now():
            raise StillRunning(execution.execution_id, record.lease_until)
        letter_error = None
        if record.status in ENDED:
            self.run_end.ended(job, execution, record)
            if job and _is_own(claim, record):
                letter_error = self.run_end.repeat_end(job, execution, record)
        return Report("duplicate", execution, detail=record.status, letter_error=letter_error)

    def _accepted(self, claim: Claim, job: Job | None) -> Report:
        """The target has accepted the work. Its end comes by a callback, or by the message that ends its time."""
        assert claim.callback
        until = self.clock.now() + claim.callback.wait_s
        record = self._while_leased(claim, lambda: self.runs.accept(claim, until))
        report = self._conflict(claim, job, ClaimConflict(record))
        if report.result == "duplicate" and record and record.claim_token == claim.token:
            return Report("accepted", claim.execution, claim.lateness_s)
        return replace(report, is_late_end=False)

    def _stop(self, claim: Claim, job: Job | None, record: Run) -> Report:
        """Stop what the attempt started, if it can be stopped; the run then ends."""
        problem = self.stops.stop(job, claim.execution, record)
        if problem:
            self.runs.note_not_stopped(record, problem)
        if problem == "" or record.awaits_callback(claim.execution.attempt):
            return self._by_sign(claim, job, record, is_stopped=problem == "")
        return Report("duplicate", claim.execution, detail="it could not be stopped")

    def _by_sign(
        self, claim: Claim, job: Job | None, record: Run | None, *, is_stopped: bool = False
    ) -> Report:
        """End a run by what its target or a person has told, or when its time is over; else its message comes again."""
        from executor.late_ends import told_outcome  # most executors never need it

        execution = claim.execution
        while record and (is_stopped or record.awaits_callback(execution.attempt)):
            now = self.clock.now()
            if (outcome := told_outcome(record, now, is_stopped=is_stopped)) is None:
                again_at = int(record.lease_until) + 1
                if job:
                    self.overlap.keep(job, execution, again_at)
                if record.slot:
                    renewed = replace(claim, token=record.claim_token, lease_until=again_at)
                    self.slots.renew(record.slot, renewed)
                self.postponed.send(replace(execution, not_before_at=again_at))
                return Report("duplicate", execution, detail="its target has accepted it")
            earlier = replace(
                claim,
                message_id=record.claimed_by,
                token=record.claim_token,
                started_at=record.started_at,
                called_at=None,
                slot=record.slot,
            )
            ended_at = min(now, record.report.at) if record.report else now
            settlement = Settlement(claim.message_id, record.signs, max(ended_at, record.started_at))
            report = self._outcome(earlier, job, outcome, settlement)
            if report.result != "duplicate":
                return replace(report, is_late_end=True)
            record = self.runs.get(execution)  # it has given a sign meanwhile, or ended
            is_stopped = is_stopped and record is not None and record.status in _STOPPABLE
        return self._claimed_before(claim, job, record) if record else Report("duplicate", execution)

    def _outcome(
        self, claim: Claim, job: Job | None, outcome: Outcome, settlement: Settlement | None = None
    ) -> Report:
        """Classify the result: success, retry, or permanent failure."""
        execution, now, next_at = claim.execution, self.clock.now(), None
        if job and not outcome.ok:
            next_at = retry_at(job.spec.retry, execution, outcome, execution.aged_from_at, now)
        finished_at = settlement.ended_at if settlement else now
        if not self._while_leased(
            claim, lambda: self.runs.finish(claim, outcome, finished_at, next_at, settlement)
        ):
            return Report("duplicate", execution, detail="its lease had ended and another took it over")
        self._free_slot(claim.slot, execution, claim.token)
        if next_at is not None:
            self._retry(job, execution, next_at, throttled=outcome.throttled)
            return Report("retrying", execution, claim.lateness_s, outcome.error_type, outcome.throttled)
        if outcome.ok:
            self.run_end.succeeded(job, execution)
            return Report("succeeded", execution, claim.lateness_s)
        letter_error = self.run_end.failed(job, execution, outcome)
        return Report(
            "failed", execution, claim.lateness_s, outcome.error_type, outcome.throttled, letter_error
        )

    def _free_slot(self, slot: str, execution: Execution, claim_token: str) -> None:
        """The attempt with this claim has ended: another run of its concurrency key may begin."""
        if slot:
            self.slots.free(slot, execution, claim_token)

    def _retry(self, job: Job | None, execution: Execution, next_at: int, *, throttled: bool) -> None:
        """Enqueue the next attempt. The run keeps its job's lock."""
        if job:
            self.overlap.keep(job, execution, max(next_at, self.clock.now()))
        self.postponed.send(execution.retry(next_at, throttled=throttled))

    def _dispatched(self, claim: Claim, job: Job | None, started: Sequence[str]) -> Report:
        try:
            if started:
                self.runs.note_started(claim.execution, claim.token, started)
            self.run_end.ended(job, claim.execution)
        except Exception:
            # The message comes again, and then only does what follows the run: the call is not repeated.
            self.runs.settle(claim.execution, claim.message_id)
            raise
        return Report("dispatched", claim.execution, claim.lateness_s)

    def _while_leased(self, claim: Claim, record: Callable[[], Recorded]) -> Recorded:
        """Record the result. Tries again while the lease lasts, since an unrecorded attempt is made again."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return record()
            except Exception:
                if self.clock.now() + wait_s >= claim.lease_until:
                    raise
                self.clock.sleep(wait_s)
                wait_s *= 2


def _last_error(record: Run | None) -> str:
    """The last error of a run that waits for its next attempt, as words for the reason why none is made."""
    last = record.last_attempt if record else None
    if last is None or last.outcome != "failed":
        return ""
    words = ": ".join(filter(None, (last.error_type, last.error)))
    return f"; attempt {last.attempt} failed: {words}"


def _is_own(claim: Claim, record: Run) -> bool:
    """Whether the record's latest attempt is this one, claimed by an earlier delivery of this message."""
    return record.claimed_by == claim.message_id and record.attempt == claim.execution.attempt


def _lacks_retry(claim: Claim, record: Run, now: float) -> bool:
    """Whether the executor died between recording this attempt and enqueuing the next one.

    Its message has come again, or, under another id, a dead letter that was sent again: then the attempt is overdue.
    """
    is_waiting = record.status == RETRYING and record.attempt == claim.execution.attempt
    return is_waiting and (_is_own(claim, record) or record.is_stuck(now))
