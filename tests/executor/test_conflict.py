"""What becomes of an attempt that has a record already: a table of the pure decision."""

from __future__ import annotations

from typing import Any

import pytest

from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.run import CallbackTerms, Report, Run
from common.runs.run import Stop as AskedToStop
from executor.conflict import Conflict, Settle, decide

NOW = 1_800_000_000.0
EXECUTION = Execution("alice", "report", int(NOW), int(NOW), 1)
CLAIM = Claim(EXECUTION, "mine", NOW, NOW + 40)
AGO, LATER = NOW - 1, NOW + 30


def record(status: Any, **fields: Any) -> Run:
    values = {"attempt": 1, "claimed_by": "other", "claim_token": "t", "started_at": NOW - 40, **fields}
    return Run(
        tenant="alice",
        job_id="report",
        run_name=EXECUTION.run_name,
        fire_at=int(NOW),
        due_at=int(NOW),
        schedule_revision=1,
        trigger="schedule",
        status=status,
        **values,
    )


def accepted(lease_until: float = LATER, **fields: Any) -> Run:
    terms = CallbackTerms(hash="h", wait_s=60, kept_s=1, message="")
    return record("running", callback=terms, accepted_attempt=1, lease_until=lease_until, **fields)


def reported(ok: bool, at: float = AGO, **fields: Any) -> Run:
    return accepted(
        reported_attempt=1, report=Report(at=at, ok=ok, error_type="" if ok else "Boom"), **fields
    )


WISH: dict[str, Any] = {"stop_attempt": 1, "stop": AskedToStop(at=AGO, note="wrong file")}


@pytest.mark.parametrize(
    ("run", "action"),
    [
        (None, "Duplicate"),
        # Another message has it, or had it.
        (record("running", lease_until=LATER), "Duplicate"),
        (record("running", lease_until=AGO), "Duplicate"),
        (record("running", attempt=2, lease_until=LATER), "Duplicate"),
        (record("queued", attempt=0), "Duplicate"),
        (record("retrying", next_attempt_at=LATER), "Duplicate"),
        (record("retrying", next_attempt_at=NOW - 121), "SendRetry"),
        (record("succeeded"), "RepeatEnd"),
        (record("skipped", attempt=0), "RepeatEnd"),
        (record("dispatched", lease_until=LATER), "RepeatEnd"),
        # An earlier delivery of this message has it, or had it.
        (record("running", claimed_by="mine", lease_until=LATER), "HandBack"),
        (record("dispatched", claimed_by="mine", lease_until=LATER), "HandBack"),
        (record("dispatched", claimed_by="mine", lease_until=AGO), "RepeatEnd"),
        (record("retrying", claimed_by="mine", next_attempt_at=LATER), "SendRetry"),
        (record("retrying", claimed_by="mine", attempt=2, next_attempt_at=LATER), "Duplicate"),
        (record("failed", claimed_by="mine"), "RepeatEnd"),
        # Its target has accepted the work.
        (accepted(), "ComeAgain"),
        (accepted(attempt=2), "Duplicate"),
        (reported(True), "Settle"),
        (reported(False), "Settle"),
        # A person has ended it: what it started is stopped once.
        (record("failed", **WISH), "Stop"),
        (record("failed", stopped_at=AGO, **WISH), "RepeatEnd"),
        (record("failed", stop_problem="no", **WISH), "RepeatEnd"),
        (record("failed", attempt=2, **WISH), "RepeatEnd"),
        (record("retrying", next_attempt_at=LATER, **WISH), "Duplicate"),
    ],
)
def test_each_record_has_one_answer(run: Run | None, action: str) -> None:
    assert type(decide(Conflict(run), CLAIM, NOW)).__name__ == action


@pytest.mark.parametrize(
    ("run", "no_takeover", "action"),
    [
        (record("running", lease_until=AGO), "others hold it", "Died"),
        (record("running", claimed_by="mine", lease_until=AGO), "others hold it", "Died"),
        (record("running", lease_until=LATER), "others hold it", "Duplicate"),
        (record("running", attempt=2, lease_until=AGO), "others hold it", "Duplicate"),
        (record("dispatched", claimed_by="mine", lease_until=AGO), "others hold it", "RepeatEnd"),
        (accepted(lease_until=AGO), "others hold it", "Settle"),
    ],
)
def test_a_dead_executors_attempt_fails_if_it_may_not_be_made_again(
    run: Run, no_takeover: str, action: str
) -> None:
    assert type(decide(Conflict(run, no_takeover=no_takeover), CLAIM, NOW)).__name__ == action


@pytest.mark.parametrize(
    ("run", "error_type", "ended_at"),
    [
        (reported(True), "", AGO),
        (reported(True, at=NOW + 9), "", NOW),
        (reported(True, at=NOW - 99), "", NOW - 40),  # not before it started
        (reported(False), "Boom", AGO),
        (accepted(lease_until=AGO), "CallbackTimedOut", NOW),
    ],
)
def test_how_and_when_an_attempt_ends_that_was_accepted(run: Run, error_type: str, ended_at: float) -> None:
    action = decide(Conflict(run), CLAIM, NOW)
    assert isinstance(action, Settle)
    assert (action.outcome.error_type, action.ended_at) == (error_type, ended_at)
    assert action.outcome.ok == (not error_type)


@pytest.mark.parametrize(
    ("run", "unanswered"),
    [(accepted(), False), (record("running", lease_until=LATER), True)],
)
def test_the_run_of_a_deleted_job_ends_at_once(run: Run, unanswered: bool) -> None:
    action = decide(Conflict(run, no_takeover="the job was deleted", is_deleted=True), CLAIM, NOW)
    assert isinstance(action, Settle)
    outcome = action.outcome
    assert (outcome.error_type, outcome.permanent, outcome.unanswered) == ("deleted", True, unanswered)


@pytest.mark.parametrize(
    ("run", "action"),
    [
        (record("running", lease_until=AGO), "TakeOver"),
        (record("running", claimed_by="mine", lease_until=AGO), "TakeOver"),
        (record("running", claimed_by="mine", lease_until=NOW), "HandBack"),
        (record("running", attempt=2, lease_until=AGO), "Duplicate"),
        # The record of an event was written before its call.
        (record("dispatched", claimed_by="mine", lease_until=AGO), "TakeOver"),
        (record("dispatched", claimed_by="mine", lease_until=AGO, settled_attempt=1), "RepeatEnd"),
        (record("dispatched", lease_until=AGO), "RepeatEnd"),
        (accepted(lease_until=AGO), "Settle"),
    ],
)
def test_a_message_after_the_lease_takes_over_from_a_dead_executor(run: Run, action: str) -> None:
    assert type(decide(Conflict(run, takes_over=True), CLAIM, NOW)).__name__ == action
