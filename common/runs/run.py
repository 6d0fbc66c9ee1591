"""A run: the record of one execution, as it is stored. docs/runs.md says what its fields mean.

This is the only place that knows an item's attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from common.limits import MAX_ATTEMPTS_KEPT, MAX_CALL_S, MAX_CALLBACK_TIMEOUT_S, MAX_DURABLE_S
from common.planning.execution import Execution, execution_id, parse_execution_id
from common.runs.outcome import Outcome
from common.runs.states import DISPATCHED, QUEUED, RETRYING, RUNNING, SKIPPED
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.stored import Stored
from common.timing.instants import has_ended

if TYPE_CHECKING:
    from common.storage.unreadable import Unreadable

# The attributes that a read of some attributes names besides those that it is for.
REQUIRED: Final = (
    "pk",
    "sk",
    "tenant",
    "job_id",
    "fire_at",
    "due_at",
    "schedule_revision",
    "trigger",
    "status",
)

# DynamoDB has one kind of number: 12.0 is stored, and read, as 12.
Number = int | float
# What a run does until the end of its lease, or its next attempt, and how far away that can be.
Doing = Literal["call", "callback", "durable", "retry"]
# A lease has margins, and the clocks of two machines may differ by ten minutes.
LEASE_MARGINS_S: Final = 900
LEASE_BOUNDS_S: Final[Mapping[Doing, int]] = {
    "call": MAX_CALL_S,
    "callback": MAX_CALLBACK_TIMEOUT_S,
    "durable": MAX_DURABLE_S,
    "retry": MAX_DURABLE_S,  # a target may ask for a wait of a year
}
# Keys have instants of ten digits.
Instant = Annotated[int, Meta(ge=0, le=9_999_999_999)]
Status = Literal["queued", "running", "retrying", "dispatched", "succeeded", "failed", "skipped"]


# A message may be delivered again so long after its lease.
STUCK_AFTER_S: Final = 120
# A tick tells the truth checker so many of its stuck runs.
MAX_STUCK: Final = 100


class Attempt(Struct, frozen=True, omit_defaults=True):
    """One call of the target that has ended."""

    attempt: int
    started_at: Number
    finished_at: Number
    outcome: Literal["succeeded", "failed"]
    lateness_s: Number | None = None
    error_type: str = ""
    error: str = ""
    log_tail: str = ""
    request_id: str = ""
    retry_after_s: Number | None = None
    throttled: bool = False


class LostCall(Struct, frozen=True):
    """A call whose executor died. Nobody knows whether it went out."""

    attempt: int
    started_at: Number
    lateness_s: Number


class CallbackTerms(Struct, frozen=True):
    """How the newest attempt's target tells the end of its work.

    `hash` is of its token, `wait_s` how long the run waits for each sign of life, `kept_s` how long the record stays
    after that, `message` the execution that brings the end to an executor.
    """

    hash: str
    wait_s: int
    kept_s: int
    message: str


# What the names of all durable executions of runs begin with.
DURABLE_PREFIX: Final = "m8-"


class Durable(Struct, frozen=True, omit_defaults=True):
    """The durable execution that an attempt is: its name, and what was called, since the job may change."""

    attempt: int
    name: str
    function: str
    role_arn: str = ""
    external_id: str = ""

    @classmethod
    def of(cls, attempt: int, name: str, target: Mapping[str, Any]) -> Durable:
        """What a call of this target starts."""
        return cls(attempt, name, target["arn"], target.get("role_arn", ""), target.get("external_id", ""))

    @property
    def target(self) -> dict[str, str]:
        """The target that was called, as far as looks and stops need it."""
        role = {"role_arn": self.role_arn, "external_id": self.external_id}
        return {"kind": "lambda", "arn": self.function} | {key: role[key] for key in role if role[key]}


class Progress(Struct, frozen=True, omit_defaults=True):
    """What the target of an attempt last told about its work."""

    attempt: int
    at: Number
    percent: Number | None = None
    text: str = ""


class Stop(Struct, frozen=True):
    """A person's wish that an attempt stops."""

    at: Number
    note: str


class Report(Struct, frozen=True, omit_defaults=True):
    """The end that the target of an attempt told."""

    at: Number
    ok: bool
    permanent: bool = False
    error_type: str = ""
    error: str = ""
    log_tail: str = ""
    request_id: str = ""
    retry_after_s: Number | None = None
    # How many messages were sent by which the executor ends the run.
    sends: int = 1

    @property
    def outcome(self) -> Outcome:
        """The outcome that was told."""
        return Outcome(
            ok=self.ok,
            permanent=self.permanent,
            error_type=self.error_type,
            error=self.error,
            log_tail=self.log_tail,
            retry_after_s=self.retry_after_s,
        )


def retries_in(run: Run) -> int:
    """An upper bound of the run's attempts after the first. The run itself may come without attempts."""
    return max(0, min(run.attempt, MAX_ATTEMPTS_KEPT) - 1)


def read_runs(items: Iterable[Mapping[str, Any]]) -> Iterator[Run | Unreadable]:
    """The runs of items with their keys; in the place of one that somebody has damaged, what is wrong with it."""
    from common.storage.unreadable import Unreadable  # executors read one run at a time

    for item in items:
        try:
            yield Run.from_item(item)
        except ValueError as error:
            yield Unreadable("runs", keys.key_of(item), str(error)[:300])


def readable_runs(items: Iterable[Mapping[str, Any]]) -> Iterator[Run]:
    """Only the runs that can be read, for what counts and compares: lists name the others."""
    return (run for run in read_runs(items) if isinstance(run, Run))


class Run(Stored, frozen=True, kw_only=True, omit_defaults=True):
    """One execution's record. An instant, count or text that is 0 or empty is not set.

    `run_name` is the last part of the execution id. `v` grows only for what this code would misread.
    """

    tenant: str
    job_id: str
    run_name: str = field(name="sk")
    fire_at: Instant
    status: Status
    # The newest attempt, and the claim of it. An attempt starts when its call goes out. The lease of a queued run ends
    # when it looks whether it may begin; 0: other runs wake it.
    attempt: int = 0
    claimed_by: str = ""
    claim_token: str = ""
    started_at: Number = 0
    lease_until: Number = 0
    expires_at: int = 0
    schedule_revision: int
    trigger: str
    due_at: Instant
    # Of the first attempt: how late it was; None before it. How long it waited for its turn after other runs.
    lateness_s: Number | None = None
    waited_s: Number = 0
    first_started_at: Number = 0
    claims: int = 0
    # The concurrency key whose permit the attempt holds.
    concurrency_key: str = ""
    callback: CallbackTerms | None = None
    # Executions of the same message that were handed over before, one bit each.
    handed_over: int = 0
    reason: str = ""
    detail: str = ""
    queued_at: Number = 0
    finished_at: Number = 0
    duration_s: Number | None = None
    next_attempt_at: Number = 0
    throttles: int = 0
    attempts: tuple[Attempt, ...] = ()
    lost_calls: tuple[LostCall, ...] = ()
    # Why the run ended without an attempt.
    error_type: str = ""
    error: str = ""
    # Set while the run is failed: the index of failures.
    failed_tenant: str = ""
    failed_at: Number = 0
    # Of one record for several missed fire times.
    skipped_count: int = 0
    skipped_from_at: Instant = 0
    dead_letter_error: str = ""
    # Which attempt the target has accepted, has told the end of, a person wants to stop, and needs no other call.
    accepted_attempt: int = 0
    reported_attempt: int = 0
    stop_attempt: int = 0
    settled_attempt: int = 0
    # How often a target or a person has told something.
    signs: int = 0
    progress: Progress | None = None
    report: Report | None = None
    stop: Stop | None = None
    # When what the attempt started was stopped, or why it could not be.
    stopped_at: Number = 0
    stop_problem: str = ""
    # Why the newest look at its durable execution saw nothing.
    look_problem: str = ""
    # Until when the work of the newest attempt can go on, although nobody waits for its answer.
    work_until: Number = 0
    started_arns: tuple[str, ...] = ()
    # Of the newest attempt that is one.
    durable: Durable | None = None
    # When somebody erased its texts, and the group of failures that the error was of.
    erased_at: Number = 0
    error_group: str = ""
    # The run's end has moved its backfill on: to this fire time; True as soon as that one is enqueued.
    moved_on: int | bool | None = None
    v: Literal[1] = 1

    @classmethod
    def of(cls, execution: Execution, status: Status, **fields: Any) -> Run:
        """The record of an execution."""
        return cls(
            tenant=execution.tenant,
            job_id=execution.job_id,
            run_name=execution.run_name,
            fire_at=execution.fire_at,
            status=status,
            schedule_revision=execution.schedule_revision,
            trigger=execution.trigger,
            due_at=execution.due_at,
            **fields,
        )

    @classmethod
    def skipped(
        cls, execution: Execution, reason: str, detail: str, now: float, expires_at: int, **fields: Any
    ) -> Run:
        """The record of an execution that does not run, and why."""
        why = {"reason": reason, "detail": detail, "finished_at": now, "expires_at": expires_at}
        return cls.of(execution, SKIPPED, **why, **fields)

    @classmethod
    def existing(cls, conflict: ConditionFailed) -> Run | None:
        """The record that was in the way of a write; None if there is none. Raises ValueError."""
        return cls.from_item(conflict.existing) if conflict.existing else None

    @property
    def key(self) -> keys.Key:
        """The key of the item."""
        return keys.run(self.tenant, self.job_id, self.run_name)

    @property
    def execution_id(self) -> str:
        """The idempotency key, unique over all tenants."""
        return execution_id(self.tenant, self.job_id, self.run_name)

    @property
    def execution(self) -> Execution:
        """The newest attempt, as far as the record knows it. Raises NotFound."""
        execution = parse_execution_id(self.tenant, self.execution_id)
        return replace(
            execution,
            attempt=self.attempt,
            due_at=self.due_at,
            schedule_revision=self.schedule_revision,
            trigger=self.trigger,
            throttles=self.throttles,
        )

    @property
    def last_attempt(self) -> Attempt | None:
        """The newest call that has ended and is kept."""
        return self.attempts[-1] if self.attempts else None

    def status_at(self, now: float) -> str:
        """The status as people read it. An `Event` run's record is written before its call.

        Until its lease is over nobody knows whether that call was accepted: the run is `dispatching`.
        """
        return "dispatching" if self.status == DISPATCHED and now <= self.lease_until else self.status

    @property
    def durable_execution(self) -> Durable | None:
        """The durable execution that the newest attempt is."""
        return self.durable if self.durable and self.durable.attempt == self.attempt else None

    @property
    def is_to_stop(self) -> bool:
        """Whether a person wants the newest attempt to stop."""
        return 0 < self.attempt == self.stop_attempt

    @property
    def stuck_since(self) -> Number:
        """When the run should have gone on; 0: it waits for nothing but other runs."""
        if self.status == RETRYING:
            return self.next_attempt_at
        return self.lease_until if self.status in (QUEUED, RUNNING) else 0

    @property
    def doing(self) -> Doing:
        """What an open run does until then."""
        if self.status in (QUEUED, RETRYING):
            return "retry"
        if self.durable_execution:
            return "durable"
        return "callback" if self.accepted_attempt == self.attempt else "call"

    def is_stuck(self, now: float) -> bool:
        """Whether the run does not go on: nobody took over from a dead executor, its next message is lost, or it waits
        for an instant that can be none.
        """
        bound_s = LEASE_BOUNDS_S[self.doing] + LEASE_MARGINS_S + STUCK_AFTER_S
        return self.stuck_since > 0 and has_ended(self.stuck_since + STUCK_AFTER_S, now, bound_s)

    def going_on(self, now: float) -> Execution:
        """What lets a stuck run go on; if another message of it is left, one of them does. Raises NotFound.

        The age of its retries counts from now.
        """
        if self.status == QUEUED:
            return replace(self.execution, attempt=1)
        execution = replace(self.execution, first_due_at=int(now))
        if self.status == RUNNING:
            return execution
        return replace(execution, attempt=self.attempt + 1, due_at=int(min(self.next_attempt_at, now)))

    def waits_for(self, attempt: int) -> bool:
        """Whether the run waits for this attempt."""
        if attempt == 1:
            return self.status == QUEUED
        return self.status == RETRYING and self.attempt == attempt - 1

    def awaits_callback(self, attempt: int) -> bool:
        """Whether this attempt's target has accepted the work, or told its end, and the run has not ended yet."""
        return (
            self.status == RUNNING
            and self.attempt == attempt
            and attempt in (self.accepted_attempt, self.reported_attempt)
        )
