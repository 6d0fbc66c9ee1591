"""An attempt that is admitted, claimed and called, and the call: its event, its outcome, and when it went out.

One thread can send many events one after the other, and one thread can read their answers as they come. A thread for
each event would be woken for its answer, which takes a third of an execution's processor time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cached_property, partial
from socket import socket
from typing import TYPE_CHECKING, Any, Final

from common import telemetry
from common.cache import FairCache
from common.clock import Clock
from common.errors import shown
from common.jobs.job import Job
from common.jobs.placeholders import (
    PayloadFormats,
    PayloadTooLarge,
    format_of,
    has_placeholders,
    render,
    values_for,
)
from common.jobs.spec import PAYLOAD_PATCH
from common.limits import TURN_S
from common.planning.execution import Execution, traceparent
from common.runs.claims import Claim
from common.runs.outcome import Outcome, unless_minute8_fails
from common.runs.states import DISPATCHED, RUNNING
from common.storage import outgoing
from common.storage.outgoing import Steps
from common.storage.table import Table
from common.timing.instants import rfc3339
from executor.targets import Kind
from executor.targets.events import Event

if TYPE_CHECKING:
    from common.jobs.calendars import RememberedCalendars
    from common.jobs.large_texts import LargeTexts
    from executor.secrets import Filled, JobSecrets, Redaction

# A claim's lease has a margin of five seconds for the time up to the call.
TURN_WAIT_S: Final = 2.0
NO_TURN: Final = Outcome(
    ok=False,
    throttled=True,
    error_type="NoTurn",
    error=f"its tenant's executions of one batch took {TURN_S:g} s of processor to prepare; this one goes on by itself",
)
LEASE_OVER: Final = Outcome(
    ok=False,
    throttled=True,
    error_type="LeaseOver",
    error="the executor was stopped, or got no processor, until its lease was over: it did not call",
)

# Of the memory of 512 MB.
MAX_KEPT_BYTES: Final = 16 * 1024 * 1024

# The text of a job's payload. Raises if it cannot be read.
PayloadReader = Callable[[Job], str]
# What to call, what to send, and what takes the secrets out of the outcome.
Prepared = tuple[Mapping[str, Any], Event, Callable[[Outcome], Outcome]]
# The weight of the last call in the estimate.
_WEIGHT: Final = 0.2
# One slow call, such as the first of a process, must not spoil the estimate for the next calls.
_MAX_STEP_S: Final = 0.02
_MAX_DELAY_S: Final = 5.0


class CallDelay:
    """The delay between a claim and its call, estimated from the last calls of this process.

    The claim is the whole record of an `Event` run. So it must state the time of the call before the call is made.
    """

    def __init__(self) -> None:
        self.s = 0.0

    def learn(self, seconds: float) -> None:
        """Update the estimate: a call went out `seconds` after its claim."""
        step_s = max(-_MAX_STEP_S, min(_MAX_STEP_S, _WEIGHT * (seconds - self.s)))
        self.s = max(0.0, min(_MAX_DELAY_S, self.s + step_s))


@dataclass(frozen=True, slots=True)
class Admitted:
    """An attempt that may be made. Its claim has a lease, and is not yet written."""

    # The positions of the message's executions that were handed over (`Delivery`).
    handed_over: set[int]
    claim: Claim
    job: Job
    kind: Kind
    timeout_s: float
    is_awaited: bool

    @property
    def takes_a_turn(self) -> bool:
        """Whether preparing the call can take milliseconds. Most calls take none, and wait for no turn."""
        job = self.job
        return job.payload.is_large or bool(job.secrets) or PAYLOAD_PATCH in job.spec.schedule

    @property
    def status(self) -> str:
        """The status of the run while the attempt is made."""
        return RUNNING if self.is_awaited else DISPATCHED


@dataclass(frozen=True, slots=True)
class Claimed:
    """An attempt with its claim, which is sent at `claimed_at`. `delay` estimated when the call goes out.

    Until that write succeeds, only the pipeline has it.
    """

    attempt: Admitted
    claim: Claim
    claimed_at: float
    delay: CallDelay

    @property
    def sends_only(self) -> bool:
        """Whether the call waits for no result, and one thread can make several such calls at once.

        What takes a turn of its tenant's is prepared in its own thread.
        """
        attempt = self.attempt
        return not attempt.is_awaited and attempt.kind.in_steps is not None and not attempt.takes_a_turn


@dataclass(frozen=True, slots=True)
class Called:
    """An attempt that was made: its outcome, and when the call went out."""

    claimed: Claimed
    outcome: Outcome
    called_at: float

    @property
    def claim(self) -> Claim:
        """The claim with the measured time of the call."""
        return replace(self.claimed.claim, called_at=self.called_at)

    @property
    def takes_requests(self) -> bool:
        """Whether recording the call takes requests. The claim is the record of an event that was accepted."""
        attempt = self.claimed.attempt
        job = attempt.job
        changes_job = job.spec.after_completion != "keep" or bool(job.not_running)
        is_recorded = self.outcome.ok and not self.outcome.started and not changes_job
        return attempt.is_awaited or not is_recorded


class Payloads:
    """Reads and keeps payloads."""

    def __init__(self, texts: LargeTexts, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self._texts = texts
        self._kept: FairCache[str] = FairCache(most_bytes, lambda text: len(text.encode()))

    def of(self, job: Job) -> str:
        """The text of the job's payload, with the patch of the schedule that fired.

        Raises MissingText, Busy, and whatever else a read raises.
        """
        payload = job.payload
        text = payload.text
        if text is None:
            name = (job.tenant, job.job_id, payload.sha256)
            text = self._kept.get(name, job.tenant, lambda: self._texts.texts(*name[:2], [payload])[0])
        if (patch := job.spec.schedule.get(PAYLOAD_PATCH)) is None:
            return text
        from common.jobs.placeholders import patched_text  # few jobs have a patch

        # All executions of its fire times share the patched text: making it can take tens of milliseconds.
        key = (job.tenant, job.job_id, payload.sha256, json.dumps(patch))
        return self._kept.get(key, job.tenant, lambda: patched_text(text, patch))


class Turn:
    """What a tenant has in one batch: its calendars, each read once, and the processor time that it used."""

    def __init__(self, jobs: Table) -> None:
        self.used_s = 0.0
        self._lock = threading.Lock()
        self._jobs = jobs

    @contextmanager
    def hold(self, wait_s: float = -1) -> Iterator[bool]:
        """Whether the turn is the caller's: not if it is not free within `wait_s`, or its processor time is used.

        Without `wait_s` it is, at last, free. What must not be put off is then done whatever was used.
        """
        if not self._lock.acquire(timeout=wait_s):
            yield False
            return
        began_s = time.thread_time()
        try:
            yield self.used_s < TURN_S
        finally:
            self.used_s += time.thread_time() - began_s
            self._lock.release()

    @cached_property
    def calendars(self) -> RememberedCalendars:
        """The tenant's calendars. Most jobs name none."""
        from common.jobs.calendars import Calendars, RememberedCalendars

        return RememberedCalendars(Calendars(self._jobs))

    @cached_property
    def redaction(self) -> Redaction:
        """Knows the secrets of the tenant's calls. Most jobs name none."""
        from executor.secrets import Redaction

        return Redaction({})


class Turns:
    """The turns of the tenants of a batch, in which they prepare calls: calendars, patched payloads, secrets.

    One thread at a time prepares for a tenant, so its neighbours share the processor with one thread of it, however
    many of its executions are under way. What exceeds the tenant's processor time goes on later.
    """

    def __init__(self, jobs: Table) -> None:
        self._jobs = jobs
        self._of: dict[str, Turn] = {}

    def begin_batch(self) -> None:
        """Forget what the tenants of the last batch read and used."""
        self._of = {}

    def turn(self, tenant: str) -> Turn:
        """The tenant's turn in this batch."""
        return self._of.setdefault(tenant, Turn(self._jobs))

    @contextmanager
    def of(self, tenant: str) -> Iterator[Turn | None]:
        """The tenant's turn. None: it has used its processor time, or has none within TURN_WAIT_S."""
        turn = self.turn(tenant)
        with turn.hold(TURN_WAIT_S) as is_held:
            yield turn if is_held else None


class Sending:
    """A call in steps. One thread at a time does a step."""

    def __init__(self, claimed: Claimed, steps: Steps[Called]) -> None:
        self.claimed = claimed
        # The socket of the answer that the next step reads. None: the next step may take long.
        self.waits_for: socket | None = None
        self._steps = steps
        # The context notes when this call's request went out.
        self._context = copy_context()

    def step(self) -> Called | None:
        """Do the next step. None: further steps follow."""
        try:
            self.waits_for = self._context.run(next, self._steps)
        except StopIteration as end:
            called: Called = end.value
            return called
        return None

    def finish(self) -> Called:
        """Do the remaining steps in this thread, which waits for the answer."""
        while (called := self.step()) is None:
            pass
        return called


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes the calls of claimed attempts."""

    clock: Clock
    formats: PayloadFormats
    payload_of: PayloadReader
    secrets: JobSecrets
    turns: Turns

    def begin(self, claimed: Claimed) -> Sending:
        """The call of a claimed attempt, before its first step."""
        return Sending(claimed, self._steps(claimed))

    def _steps(self, claimed: Claimed) -> Steps[Called]:
        """Call the job's target once. Every error becomes an outcome; nothing is raised, and no secret is shown."""
        began_at, attempt = self.clock.now(), claimed.attempt
        redacted: Callable[[Outcome], Outcome] = _as_it_is
        try:
            if attempt.takes_a_turn:
                with self.turns.of(attempt.job.tenant) as turn:
                    prepared = self._prepared(attempt, turn) if turn else NO_TURN
            else:
                prepared = self._prepared(attempt, None)
            # After the lease, another executor may have taken the attempt over.
            if self.clock.now() >= claimed.claim.lease_until:
                prepared = LEASE_OVER
            if isinstance(prepared, Outcome):
                return Called(claimed, prepared, began_at)
            target, sent, redacted = prepared
            outgoing.reset(may_be_repeated=attempt.job.spec.on_crash != "fail")
            if attempt.kind.in_steps:
                outcome = redacted((yield from attempt.kind.in_steps(target, sent, attempt.timeout_s)))
            else:
                outcome = redacted(attempt.kind.call(target, sent, attempt.timeout_s))
        except Exception as error:  # noqa: BLE001  an attempt without a recorded end would be made again
            outcome = _unforeseen(attempt, error, redacted)
        ago_s = outgoing.seconds_since_sent()
        called_at = began_at if ago_s is None else self.clock.now() - ago_s
        claimed.delay.learn(called_at - claimed.claimed_at)
        return Called(claimed, outcome, called_at)

    def _prepared(self, attempt: Admitted, turn: Turn | None) -> Prepared | Outcome:
        """What to call, what to send, and what takes its secrets out of the outcome; or why there is no call."""
        job, execution = attempt.job, attempt.claim.execution
        payload = unless_minute8_fails(lambda: self.payload_of(job), "PayloadNotRead")
        if isinstance(payload, Outcome):
            telemetry.logger().warning("payload not read", error=payload.error, **execution.log_fields)
            return payload
        try:
            sent = event(job, payload, execution, attempt.claim, self.formats)
            if not job.secrets or turn is None:
                return job.spec.target, sent, _as_it_is
            filled = self.secrets.filled(job, sent, turn.redaction)
            if isinstance(filled, Outcome):
                return filled
            return filled.target, filled.event, partial(_redacted, turn, filled)
        except PayloadTooLarge as error:  # by its secrets
            return Outcome(ok=False, permanent=True, error_type="PayloadTooLarge", error=str(error))


def _unforeseen(attempt: Admitted, error: Exception, redacted: Callable[[Outcome], Outcome]) -> Outcome:
    failed = redacted(Outcome(ok=False, error_type=type(error).__name__, error=shown(str(error))))
    telemetry.logger().warning(
        "unforeseen error of a call",
        kind=attempt.job.spec.target["kind"],
        type=failed.error_type,
        error=failed.error,
        **attempt.claim.execution.log_fields,
    )
    return failed


def _redacted(turn: Turn, filled: Filled, outcome: Outcome) -> Outcome:
    with turn.hold():
        return filled.redacted(outcome)


def _as_it_is(outcome: Outcome) -> Outcome:
    return outcome


def run_names(execution: Execution) -> dict[str, Any]:
    """What of an event's context names the run."""
    return {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "execution_id": execution.execution_id,
        "fire_at": rfc3339(execution.fire_at),
    }


def event(
    job: Job, payload: str, execution: Execution, claim: Claim | None, formats: PayloadFormats
) -> Event:
    """The target's event: the rendered payload as text, and the execution's context (such as its id and fire time).

    `claim` is of the call; None: the event is for a dead-letter queue. Raises PayloadTooLarge.
    """
    context = run_names(execution)
    context |= {
        "due_at": rfc3339(execution.due_at),
        "attempt": execution.attempt,
        "schedule_revision": execution.schedule_revision,
        "trigger": execution.trigger,
        "traceparent": traceparent(context["execution_id"], execution.attempt),
    }
    if claim and claim.callback:
        context["callback"] = {"url": claim.callback.url, "token": claim.callback.token}
    if claim and claim.durable:
        # All that it gets is the same at each delivery: Lambda compares what it starts under one name.
        context["durable_name"] = claim.durable.name
    elif claim and job.spec.target.get("invocation") == "Event":
        # Lambda passes the token to the function's destination. There it proves which attempt an outcome belongs to.
        context["outcome_token"] = claim.token
    if payload_format := format_of(job.spec.target, formats):
        payload = payload_format.render(job, payload, execution)
    elif has_placeholders(payload):
        timezone = job.spec.schedule.get("timezone", "UTC")
        values = values_for(execution, timezone)
        if claim and claim.callback:
            values |= {"callback_url": claim.callback.url, "callback_token": claim.callback.token}
        payload = render(payload, values)
    return {"payload": payload, "minute8": context}
