"""The call of a target: its event, its outcome, and when it went out.

One thread can send many events one after the other, and one thread can read their answers as they come. A thread for
each event would be woken for its answer, which takes a third of an execution's processor time.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from socket import socket
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from common import telemetry
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
from common.limits import TURN_S
from common.planning.execution import Execution, traceparent
from common.runs.claims import Claim
from common.runs.outcome import Outcome, unless_minute8_fails
from common.storage import outgoing
from common.storage.outgoing import Steps
from common.storage.table import Table
from common.timing.instants import rfc3339
from executor.stages import Admitted, Called, Claimed
from executor.targets.events import Event

if TYPE_CHECKING:
    from common.jobs.calendars import RememberedCalendars
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

Waiting = TypeVar("Waiting")
# The text of a job's payload. Raises if it cannot be read.
PayloadReader = Callable[[Job], str]


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

    def __init__(
        self,
        claimed: Claimed,
        clock: Clock,
        formats: PayloadFormats,
        payload_of: PayloadReader,
        secrets: JobSecrets,
        turns: Turns,
    ) -> None:
        self.claimed = claimed
        # The socket of the answer that the next step reads. None: the next step may take long.
        self.waits_for: socket | None = None
        self._steps = _call(claimed, clock, formats, payload_of, secrets, turns)
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


class AnswerPoll(Generic[Waiting]):
    """Waits for answers on several sockets. Each socket has a value, which is returned when the answer has come."""

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}
        self._poll = select.poll()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, answer: socket, value: Waiting) -> None:
        """Wait for the answer on this socket, too, and keep its value."""
        self._waiting[answer.fileno()] = value
        self._poll.register(answer, select.POLLIN)

    def answered_until(self, ends_at: float) -> Iterator[Waiting]:
        """Each value when its answer has come, until this instant of `time.monotonic`."""
        while self._waiting and (remaining_s := ends_at - time.monotonic()) > 0:
            for number, _ in self._poll.poll(remaining_s * 1000):
                self._poll.unregister(number)
                yield self._waiting.pop(number)

    def unanswered(self) -> list[Waiting]:
        """The values whose answer has not come."""
        return list(self._waiting.values())


def _call(
    claimed: Claimed,
    clock: Clock,
    formats: PayloadFormats,
    payload_of: PayloadReader,
    secrets: JobSecrets,
    turns: Turns,
) -> Steps[Called]:
    """Call the job's target once. Every error becomes an outcome; nothing is raised, and no secret is shown."""
    began_at, attempt = clock.now(), claimed.attempt
    redacted: Callable[[Outcome], Outcome] = _as_it_is
    try:
        prepare = partial(_prepared, attempt, formats, payload_of, secrets)
        if attempt.takes_a_turn:
            with turns.of(attempt.job.tenant) as turn:
                prepared = prepare(turn) if turn else NO_TURN
        else:
            prepared = prepare(None)
        if clock.now() >= claimed.claim.lease_until:  # another executor may have taken the attempt over
            prepared = LEASE_OVER
        if isinstance(prepared, Outcome):
            return Called(claimed, prepared, began_at)
        target, sent, redacted = prepared.target, prepared.event, prepared.redacted
        outgoing.reset(may_be_repeated=attempt.job.spec.on_crash != "fail")
        if attempt.kind.in_steps:
            outcome = redacted((yield from attempt.kind.in_steps(target, sent, attempt.timeout_s)))
        else:
            outcome = redacted(attempt.kind.call(target, sent, attempt.timeout_s))
    except Exception as error:  # noqa: BLE001  an attempt without a recorded end would be made again
        outcome = _unforeseen(attempt, error, redacted)
    ago_s = outgoing.seconds_since_sent()
    called_at = began_at if ago_s is None else clock.now() - ago_s
    claimed.delay.learn(called_at - claimed.claimed_at)
    return Called(claimed, outcome, called_at)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """All that a call needs, and what takes its secrets out of the outcome."""

    target: Mapping[str, Any]
    event: Event
    redacted: Callable[[Outcome], Outcome]


def _prepared(
    attempt: Admitted,
    formats: PayloadFormats,
    payload_of: PayloadReader,
    secrets: JobSecrets,
    turn: Turn | None,
) -> _Prepared | Outcome:
    """What to call and to send, or why there is no call."""
    job, execution = attempt.job, attempt.claim.execution
    payload = unless_minute8_fails(lambda: payload_of(job), "PayloadNotRead")
    if isinstance(payload, Outcome):
        telemetry.logger().warning("payload not read", error=payload.error, **execution.log_fields)
        return payload
    try:
        sent = event(job, payload, execution, attempt.claim, formats)
        if not job.secrets or turn is None:
            return _Prepared(job.spec.target, sent, _as_it_is)
        filled = secrets.filled(job, sent, turn.redaction)
        if isinstance(filled, Outcome):
            return filled
        return _Prepared(filled.target, filled.event, partial(_redacted, turn, filled))
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


def event(
    job: Job, payload: str, execution: Execution, claim: Claim | None, formats: PayloadFormats
) -> Event:
    """The target's event: the rendered payload as text, and the execution's context (such as its id and fire time).

    `claim` is of the call; None: the event is for a dead-letter queue. Raises PayloadTooLarge.
    """
    execution_id = execution.execution_id
    context: dict[str, Any] = {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "execution_id": execution_id,
        "fire_at": rfc3339(execution.fire_at),
        "due_at": rfc3339(execution.due_at),
        "attempt": execution.attempt,
        "schedule_revision": execution.schedule_revision,
        "trigger": execution.trigger,
        "traceparent": traceparent(execution_id, execution.attempt),
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
