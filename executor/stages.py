"""An execution at each stage of the pipeline: delivered, held, loaded, admitted, claimed, and called or decided.

A pack delivers several executions, any other message one. A wake delivers none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from common.jobs.job import Job
from common.jobs.spec import PAYLOAD_PATCH
from common.limits import MAX_HOLD_S
from common.planning.execution import Execution, UnreadableMessage
from common.planning.packs import lines
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.states import DISPATCHED, RUNNING
from executor.admission import Skip, Wait
from executor.conflict import Conflict
from executor.targets import Kind

# The weight of the last call in the estimate.
_WEIGHT: Final = 0.2
# One slow call, such as the first of a process, must not spoil the estimate for the next calls.
_MAX_STEP_S: Final = 0.02
_MAX_DELAY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the executions queue, with the receipt handle and the delivery count of SQS."""

    message_id: str
    body: str
    receipt: str = ""
    receives: int = 1


@dataclass(frozen=True, slots=True)
class Delivery:
    """One execution that a message delivers. `body` is the message that it would have alone.

    `execution` is None if the body cannot be read. `received_at` is when the batch arrived. `position`: in its message.
    `handed_over`: the positions of the message's executions that were handed over, as far as this process knows.
    """

    message: Message
    body: str
    execution: Execution | None
    received_at: float
    position: int = 0
    handed_over: set[int] = field(default_factory=set, compare=False)

    @property
    def is_in_pack(self) -> bool:
        """Whether the message also delivers other executions."""
        return self.body != self.message.body

    @property
    def is_early(self) -> bool:
        """Whether the execution is due too late to be held."""
        return self.execution is not None and self.execution.visible_at - self.received_at > MAX_HOLD_S


def deliveries_of(messages: Iterable[Message], received_at: float) -> list[Delivery]:
    """The executions of these messages; each execution of a message once. The first ones of all messages come first.

    Two cut-off registrations of a job have the same executions, which can come into the same pack.
    """
    deliveries: list[Delivery] = []
    for message in messages:
        handed_over: set[int] = set()
        deliveries += [
            Delivery(message, body, _read(body), received_at, position, handed_over)
            for position, body in enumerate(dict.fromkeys(lines(message.body)))
        ]
    return sorted(deliveries, key=lambda delivery: delivery.position)


def _read(body: str) -> Execution | None:
    try:
        return Execution.decode(body)
    except UnreadableMessage:
        return None  # the pipeline reports it


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
class Held:
    """An execution that is due, and its delivery."""

    delivery: Delivery
    execution: Execution


@dataclass(frozen=True, slots=True)
class Loaded:
    """A due execution with its current job. None: the job does not exist."""

    delivery: Delivery
    execution: Execution
    job: Job | None


@dataclass(frozen=True, slots=True)
class Admitted:
    """An attempt that may be made. Its claim has a lease, and is not yet written."""

    delivery: Delivery
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
class Dispatched:
    """A service accepted the event; the claim is the complete record. `started`: ARNs of what the call started."""

    started: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """The target has accepted the work, and tells its end by a callback, or a look does. `started`: as above."""

    started: tuple[str, ...] = ()


Verdict = Skip | Wait | Conflict | Dispatched | Accepted | Outcome


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
    def verdict(self) -> Dispatched | Accepted | Outcome:
        """The verdict to record. A service that accepted an event has ended the attempt."""
        attempt, outcome = self.claimed.attempt, self.outcome
        claim, is_url = attempt.claim, "url" in attempt.job.spec.target
        if outcome.ok and (claim.durable or (claim.callback and (outcome.accepted or not is_url))):
            return Accepted(outcome.started)
        return Dispatched(outcome.started) if outcome.ok and not attempt.is_awaited else outcome

    @property
    def takes_requests(self) -> bool:
        """Whether recording the call takes requests. The claim is the record of an event that was accepted."""
        attempt = self.claimed.attempt
        job = attempt.job
        changes_job = job.spec.after_completion != "keep" or bool(job.not_running)
        is_recorded = self.outcome.ok and not self.outcome.started and not changes_job
        return attempt.is_awaited or not is_recorded


@dataclass(frozen=True, slots=True)
class Decided:
    """An attempt that is not made, and why. `claim` is the claim that would have been written."""

    claim: Claim
    job: Job | None
    verdict: Verdict
