"""The claim of an attempt, and the updates by which it begins and ends."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import to_builtins

from common.limits import MAX_ATTEMPTS_KEPT, MAX_LOST_CALLS, MAX_THROTTLES_KEPT, UNSTARTED_KEPT_S
from common.planning.execution import Execution
from common.runs.moves import By
from common.runs.outcome import Outcome
from common.runs.run import Durable, Run
from common.runs.states import FAILED
from common.storage.expressions import change
from common.storage.wire import Expression, Item
from common.timing.instants import DAY_S

if TYPE_CHECKING:
    from common.runs.holders import Permit

# The run's first claim sets these, or the request that queued it.
_FIRST: Final = ("trigger", "due_at", "lateness_s", "waited_s", "first_started_at")


# A durable execution is looked at for the first time so long after its call.
FIRST_LOOK_S: Final = 15
# A run that calls back ends so long after its attempt began, however often it says that it goes on.
MAX_CALLBACK_S: Final = 14 * DAY_S


@dataclass(frozen=True, slots=True)
class Callback:
    """What a target needs to tell the end of its work later: where, and the attempt's token.

    The run waits `wait_s` seconds for each sign of life.
    """

    url: str
    wait_s: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))


def callback_hash(claim_token: str, token: str) -> str:
    """What a record keeps of a callback's token. It fits only the claim that the token was made for."""
    return hashlib.sha256(f"{claim_token}:{token}".encode()).hexdigest()


class Start(NamedTuple):
    """When an attempt starts, how long it waited for its turn after other runs, and how late it is besides."""

    at: float
    waited_s: float
    lateness_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to make one attempt, as the run's record shows it."""

    execution: Execution
    message_id: str
    started_at: float
    lease_until: float
    # When the call goes out: foreseen in a claim, measured in a finish. None: not known.
    called_at: float | None = None
    retention_s: int = UNSTARTED_KEPT_S
    # None: the call's answer is the end of the attempt.
    callback: Callback | None = None
    # The executions of the same message that were handed over before, one bit each (`executor/batch.py`).
    handed_over: int = 0
    # The concurrency key whose permit the attempt holds.
    concurrency_key: str = ""
    # The durable execution that the attempt is.
    durable: Durable | None = None
    # Those that this executor has taken for the attempt.
    permits: tuple[Permit, ...] = ()
    # Unique for this try: if the answer is lost and botocore repeats the write, the record shows that it is ours.
    token: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def by(self) -> By:
        """Who makes the moves of this attempt."""
        return By(self.execution.attempt, self.token, self.message_id, self.started_at)

    @property
    def start(self) -> Start:
        """When the attempt starts, as the record has it."""
        execution = self.execution
        at = self.started_at if self.called_at is None else self.called_at
        waited_s = 0.0
        if self.permits and execution.not_before_at > execution.due_at:
            # To the end of the second in which it had its turn.
            waited_s = max(0.0, min(at, execution.not_before_at + 1) - execution.due_at)
        return Start(at, waited_s, max(0.0, at - execution.due_at - waited_s))


def claim_fields(claim: Claim, status: str) -> Item:
    """The record of a run that is claimed for the first time, without its key."""
    execution, start = claim.execution, claim.start
    fields = {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "fire_at": execution.fire_at,
        "status": status,
        "attempt": execution.attempt,
        "claimed_by": claim.message_id,
        "claim_token": claim.token,
        "started_at": start.at,
        "lease_until": claim.lease_until,
        "expires_at": int(claim.started_at) + claim.retention_s,
        "schedule_revision": execution.schedule_revision,
        "trigger": execution.trigger,
        "due_at": execution.due_at,
        "lateness_s": start.lateness_s,
        "first_started_at": start.at,
        "claims": 1,
    }
    if execution.attempt == 1 and start.waited_s:
        fields["waited_s"] = start.waited_s
    if claim.concurrency_key:
        fields["concurrency_key"] = claim.concurrency_key
    if claim.callback:
        fields["callback"] = {
            "hash": callback_hash(claim.token, claim.callback.token),
            "wait_s": claim.callback.wait_s,
            "kept_s": claim.retention_s,
            # The end that the target tells comes with the same message.
            "message": execution.encode(),
        }
    if claim.durable:  # before the call: whoever comes after a dead executor looks for it by these
        fields |= {"durable": to_builtins(claim.durable), "started_arns": [], "signs": 0}
    return fields | {"handed_over": claim.handed_over} if claim.handed_over else fields


def claim_update(claim: Claim, status: str) -> Expression:
    """The update by which a run is claimed, for the first time or for its next attempt."""
    written = claim_fields(claim, status)
    if claim.execution.attempt > 1:  # the claim before had another message
        written["handed_over"] = claim.handed_over
    # Of a queued run it says why the run waits.
    words = f"{_words(tuple(written), _FIRST)} REMOVE #detail"
    return Expression(words, {f":{name}": value for name, value in written.items()})


def takeover_update(claim: Claim, status: str, record: Run) -> Expression:
    """The update by which an attempt is claimed again, whose executor died. Its earlier call stays in the record.

    Nobody knows whether that one went out, so the run is as late as the call that is made now.
    """
    written = claim_fields(claim, status) | {"handed_over": claim.handed_over}
    kept = tuple(name for name in _FIRST if name != "lateness_s" or claim.execution.attempt > 1)
    more, values = "", {f":{name}": value for name, value in written.items()}
    if len(record.lost_calls) < MAX_LOST_CALLS:
        more = ", #lost_calls = list_append(if_not_exists(#lost_calls, :none), :lost_calls)"
        started_at = record.started_at
        late_s = max(0.0, started_at - claim.execution.due_at - record.waited_s)
        lost_call = {"attempt": claim.execution.attempt, "started_at": started_at, "lateness_s": late_s}
        values |= {":none": [], ":lost_calls": [lost_call]}
    return Expression(_words(tuple(written), kept, more), values)


def accept_update(claim: Claim, until: float, started: Sequence[str]) -> Expression:
    """The update by which the target has accepted the work: the run waits until then for a sign of life."""
    start = claim.start
    written: Item = {
        "accepted_attempt": claim.execution.attempt,
        "lease_until": until,
        "expires_at": int(until) + claim.retention_s,
        "started_at": start.at,
    }
    if claim.execution.attempt == 1:
        written["lateness_s"] = start.lateness_s
    if started:
        written["started_arns"] = list(started)
    return change(written, keep={"signs": 0})


def look_update(run: Run, until: int, problem: str) -> Expression:
    """The update by which a durable execution goes on: somebody looks again at `until`.

    Lambda has accepted it, though an executor may have died before it could write that down.
    """
    kept_s = max(0, run.expires_at - int(run.lease_until))
    sign: Item = {
        "accepted_attempt": run.attempt,
        "lease_until": until,
        "expires_at": until + kept_s,
        "look_problem": problem,
    }
    return change(sign, add={"signs": 1})


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of an attempt that another message brings than the one that made the call.

    `signs` counts what the target and people have told until then: the end must not overlook a later sign.
    """

    message_id: str
    signs: int
    ended_at: float


def finish_update(
    claim: Claim,
    outcome: Outcome,
    status: str,
    finished_at: float,
    retry_at: float | None,
    settlement: Settlement | None = None,
    also: Mapping[str, Any] | None = None,
) -> Expression:
    """The update that ends an attempt and puts the run into `status`. `retry_at`: when the next attempt is due.

    `also`: further attributes of the record.
    """
    execution, start = claim.execution, claim.start
    written: Item = {
        "status": status,
        "finished_at": finished_at,
        "duration_s": max(0.0, finished_at - start.at),
        **(also or {}),
    }
    removed = ["#lease_until"]
    if settlement:
        written["claimed_by"] = settlement.message_id
    if claim.called_at is not None:
        written["started_at"] = claim.called_at
        if execution.attempt == 1:
            written["lateness_s"] = start.lateness_s
    throttles = execution.throttles + int(outcome.throttled)
    if outcome.throttled:
        written["throttles"] = throttles
    if retry_at is None:
        removed.append("#next_attempt_at")
    else:  # the retry may be later than the record would expire
        written |= {"next_attempt_at": retry_at, "expires_at": int(retry_at) + claim.retention_s}
    if status == FAILED:
        written |= {"failed_tenant": execution.tenant, "failed_at": finished_at}
    words = [f"#{name} = :{name}" for name in written]
    values = {f":{name}": value for name, value in written.items()}
    if not outcome.throttled or throttles <= MAX_THROTTLES_KEPT:
        attempt = _attempt(claim, start, outcome, finished_at)
        if execution.attempt - throttles + min(throttles, MAX_THROTTLES_KEPT) <= MAX_ATTEMPTS_KEPT:
            words.append("#attempts = list_append(if_not_exists(#attempts, :none), :attempts)")
            values |= {":none": [], ":attempts": [attempt]}
        else:  # an index beyond the end appends
            words.append(f"#attempts[{MAX_ATTEMPTS_KEPT}] = :attempt_made")
            values[":attempt_made"] = attempt
            removed.append("#attempts[0]")
    return Expression(f"SET {', '.join(words)} REMOVE {', '.join(removed)}", values)


def _attempt(claim: Claim, start: Start, outcome: Outcome, finished_at: float) -> Item:
    """An attempt as the record keeps it."""
    item = {
        "attempt": claim.execution.attempt,
        "started_at": start.at,
        "finished_at": finished_at,
        "outcome": "succeeded" if outcome.ok else "failed",
        **outcome.to_item(),
    }
    return item if claim.called_at is None else item | {"lateness_s": start.lateness_s}


@lru_cache(maxsize=16)
def _words(names: tuple[str, ...], kept: tuple[str, ...], more: str = "") -> str:
    """`kept` are not overwritten; `more` are further assignments."""
    assigned = [
        f"#{name} = if_not_exists(#{name}, :{name})" if name in kept else f"#{name} = :{name}"
        for name in names
        if name != "claims"
    ]
    return f"SET {', '.join(assigned)}{more} ADD #claims :claims"
