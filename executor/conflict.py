"""What becomes of an attempt that has a record already: one decision over the record, the claim and the time. Pure.

Another message has made the attempt, or is making it; or an earlier delivery of this message has, or died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.runs.states import DELETED_JOB, DISPATCHED, ENDED, FAILED, RETRYING, RUNNING

_OPEN: Final = (RUNNING, DISPATCHED)


@dataclass(frozen=True, slots=True)
class Conflict:
    """The record of the attempt that was in the way. None: it has expired.

    `takes_over`: if its executor died, this message makes the attempt again. `no_takeover` says why it does not, and
    ends the attempt; `permanent`: no further attempt follows then; `waits`: one does, and this one does not count.
    `is_deleted`: the run's job is, so the run ends.
    """

    record: Run | None
    takes_over: bool = False
    no_takeover: str = ""
    permanent: bool = False
    waits: bool = False
    is_deleted: bool = False


class TakeOver(NamedTuple):
    """Its executor died: this message claims the attempt again."""

    record: Run


class Stop(NamedTuple):
    """A person has ended the run: what its call started is to be stopped."""

    record: Run


class ComeAgain(NamedTuple):
    """Its target has accepted the work, and tells its end by a callback: this message comes again at `at`."""

    record: Run
    at: int


class Look(NamedTuple):
    """It is a durable execution, which may have ended: a look tells."""

    record: Run


class Settle(NamedTuple):
    """The attempt ends by what its target has told, or because its time is over or its job deleted."""

    record: Run
    outcome: Outcome
    ended_at: float


class Died(NamedTuple):
    """Its executor died, and the attempt is not made again."""

    record: Run
    outcome: Outcome


class SendRetry(NamedTuple):
    """Its executor died before it enqueued the next attempt."""

    record: Run
    throttled: bool


class HandBack(NamedTuple):
    """An earlier delivery of this message may still be making the attempt: it comes again after that lease."""

    until: float


class RepeatEnd(NamedTuple):
    """The run has ended. `is_own`: by an earlier delivery of this message, which may have died before what follows."""

    record: Run
    is_own: bool


class Duplicate(NamedTuple):
    """There is nothing to do."""

    detail: str = ""


Action = TakeOver | Stop | ComeAgain | Look | Settle | Died | SendRetry | HandBack | RepeatEnd | Duplicate


def decide(conflict: Conflict, claim: Claim, now: float) -> Action:
    """What to do about an attempt that others have claimed."""
    record, attempt = conflict.record, claim.execution.attempt
    if record is None:
        return Duplicate()
    is_ended_by_hand = record.status == FAILED and record.is_to_stop and record.attempt == attempt
    if is_ended_by_hand and not (record.stopped_at or record.stop_problem):
        return Stop(record)
    if conflict.is_deleted and (end := _end_with_job(record, attempt, conflict.no_takeover, now)):
        return end
    if record.awaits_callback(attempt):
        return _late_end(record, now)
    return _after_a_death(record, conflict, claim, now) or _claimed_before(record, claim, now)


def _end_with_job(record: Run, attempt: int, words: str, now: float) -> Settle | None:
    """The end of an attempt that goes on, though its job was deleted."""
    if record.status != RUNNING or record.attempt != attempt or record.reported_attempt == attempt:
        return None
    if record.durable_execution:
        words = f"{words}; its durable execution goes on"
        return Settle(record, Outcome(False, True, DELETED_JOB, words), now)
    if record.lease_until < now:
        return None
    unanswered = not record.awaits_callback(attempt)
    return Settle(record, Outcome(False, True, DELETED_JOB, words, unanswered=unanswered), now)


def _late_end(record: Run, now: float) -> ComeAgain | Look | Settle:
    """The end that comes after the call: the target told it, or its time is over."""
    report = record.report if record.reported_attempt == record.attempt else None
    if not report and record.lease_until >= now:
        return ComeAgain(record, int(record.lease_until) + 1)
    if not report and (record.durable_execution or not record.callback):
        return Look(record)
    no_sign = Outcome(ok=False, error_type="CallbackTimedOut", error="no callback came in time")
    ended_at = min(now, report.at) if report else now
    return Settle(record, report.outcome if report else no_sign, max(ended_at, record.started_at))


def _after_a_death(
    record: Run, conflict: Conflict, claim: Claim, now: float
) -> Died | TakeOver | Look | None:
    """What follows if the lease of this attempt is over; None: nothing shows that its executor died.

    A durable execution is started again only by the very call that may have started it. The record of an `Event` run is
    written before the call. So only a redelivery of the same message shows a death, unless the record says that the
    call was made.
    """
    if record.status not in _OPEN or record.attempt != claim.execution.attempt or record.lease_until >= now:
        return None
    if record.durable_execution and (conflict.no_takeover or record.durable != claim.durable):
        return Look(record)  # it may have begun
    is_own = record.claimed_by == claim.message_id and record.settled_attempt != record.attempt
    if conflict.no_takeover:
        ends = record.status == RUNNING or (is_own and conflict.waits)
        return Died(record, _unknown(conflict)) if ends else None
    return TakeOver(record) if conflict.takes_over and (record.status == RUNNING or is_own) else None


def _unknown(conflict: Conflict) -> Outcome:
    not_again = "not called again yet" if conflict.waits else "not called again"
    words = (
        f"the executor died during the call, so its outcome is unknown; {not_again}: {conflict.no_takeover}"
    )
    return Outcome(
        ok=False,
        permanent=conflict.permanent,
        throttled=conflict.waits,
        error_type="ExecutorDied",
        error=words,
    )


def _claimed_before(record: Run, claim: Claim, now: float) -> SendRetry | HandBack | RepeatEnd | Duplicate:
    is_attempt = record.attempt == claim.execution.attempt
    is_own = record.claimed_by == claim.message_id and is_attempt
    # A dead letter that was sent again has another id than the message that was lost: then the attempt is overdue.
    if record.status == RETRYING and is_attempt and (is_own or record.is_stuck(now)):
        return SendRetry(record, record.throttles > claim.execution.throttles)
    if record.status in _OPEN and is_own and record.lease_until >= now:
        return HandBack(record.lease_until)
    if record.status in ENDED:
        return RepeatEnd(record, is_own)
    return Duplicate(record.status)
