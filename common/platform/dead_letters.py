"""Dead letters: messages that a function failed on until SQS gave them up. An operator resends or discards them.

SQS cannot find a message by its id. So dead letters are received a batch at a time, and hidden from others meanwhile.
The rest is shown at once, after a crash a minute later. A message that is sent twice is the same execution: the id
of the execution is derived, so it runs once. StartMessageMoveTask does not say what it moves, and is not available
everywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from common.errors import Minute8Error, NotFound
from common.planning.execution import Execution, UnreadableMessage, split_execution_id
from common.planning.packs import Pack, is_wake, lines
from common.planning.shares import PlanningWork, UnreadableShare
from common.storage import keys
from common.storage.transactions import Transaction
from common.tenants.audit import AuditedCommit

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef, SendMessageBatchRequestEntryTypeDef

EXECUTIONS: Final = "executions"
# Only a deployment that takes registrations by event has this queue.
REGISTRATIONS: Final = "registrations"
QUEUES: Final = (EXECUTIONS, "planning", "outcomes", REGISTRATIONS)
MAX_LETTERS: Final = 100
_BATCH: Final = 10
# For years SQS accepted requests of at most 256 KB.
_BATCH_BYTES: Final = 256 * 1024
# Letters stay hidden for longer than one call works, and its last requests take.
_HIDDEN_S: Final = 60
_WORK_S: Final = 40
# A short poll asks some of SQS's servers, so its empty answer means nothing. A long poll asks all of them.
# A long poll that finds a message answers at once.
_LONG_POLL_S: Final = 1
# Of registrations: those that are refused again come back within seconds.
_POLLS_FOR_REFUSED: Final = 5
# The attribute that says why a registration was refused.
_REASON: Final = "reason"

Result = Literal["moved", "discarded", "left"]
REFUSED_AGAIN: Final = "refused again"
MOVED: Final = "moved"
DISCARDED: Final = "discarded"
LEFT: Final = "left"


class _NoRecord(Minute8Error):
    """A message of the outcomes queue that no destination sent, or of registrations that no rule did."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter. `about` names its executions or its share; or its event, and why it was refused.

    `problem` says why this version cannot read the dead letter, which is not resent then. A later version may read it,
    unless it `is_garbage`: a wake, or a text that no version of Minute8 has written.
    """

    message_id: str
    sent_at: float
    size: int
    about: tuple[str, ...] = ()
    problem: str = ""
    is_garbage: bool = False


def dead_letter_of(queue: str, message: MessageTypeDef) -> DeadLetter:
    """The dead letter of a received message of the queue."""
    body = message["Body"]
    sent_at = int(message.get("Attributes", {}).get("SentTimestamp", 0)) / 1000
    about: tuple[str, ...] = ()
    problem = ""
    try:
        about = _ABOUT[queue](body)
    except (UnreadableMessage, UnreadableShare, _NoRecord) as error:
        problem = str(error)
    if (attribute := message.get("MessageAttributes", {}).get(_REASON)) and "StringValue" in attribute:
        about = (*about, attribute["StringValue"])
    size = len(body.encode("utf-8", "replace"))
    is_garbage = bool(problem) and not _is_ours(body, _FIELD[queue])
    return DeadLetter(message["MessageId"], sent_at, size, about, problem, is_garbage)


def _is_ours(body: str, field: str) -> bool:
    """Whether each line is an object with this field, as messages of all versions are."""
    try:
        objects = [json.loads(line) for line in body.split("\n")]
    except (ValueError, RecursionError):
        return False
    return all(isinstance(line, dict) and field in line for line in objects)


def pack_in(body: str) -> Pack:
    """The executions of a message. Raises UnreadableMessage."""
    if is_wake(body):
        raise UnreadableMessage("a wake, which carries no execution")
    return Pack(tuple(map(Execution.decode, lines(body))))


def _executions(body: str) -> tuple[str, ...]:
    return tuple(execution.execution_id for execution in pack_in(body).executions)


def _work(body: str) -> tuple[str, ...]:
    work = PlanningWork.of(body)
    return work.set_aside or (f"share {work.share} of the window until {work.end}",)


def _outcome(body: str) -> tuple[str, ...]:
    """The execution that a destination's record is about; none if it is somebody else's invocation."""
    if not _is_ours(body, _FIELD["outcomes"]):
        raise _NoRecord(f"no record of a destination: {body[:200]!r}")
    try:
        named = json.loads(body)["requestPayload"]["minute8"]["execution_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return (named,) if isinstance(named, str) and split_execution_id(named) else ()


def _registration(body: str) -> tuple[str, ...]:
    """What the event asks for, and of which job."""
    try:
        message = json.loads(body)
        event = message["event"]
        words = f"{event['detail-type']} of {message['tenant']}:{event['detail']['job_id']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _NoRecord(f"no event of a rule for registrations: {body[:200]!r}") from None
    return (words[:200],)


# A field that each message of a queue has, in every version.
_FIELD: Final[Mapping[str, str]] = {
    EXECUTIONS: "v",
    "planning": "v",
    "outcomes": "requestContext",
    REGISTRATIONS: "event",
}
_ABOUT: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    EXECUTIONS: _executions,
    "planning": _work,
    "outcomes": _outcome,
    REGISTRATIONS: _registration,
}


@dataclass(slots=True)
class HandledDeadLetters:
    """The results of dead letters. `more`: the queue may hold others that were requested."""

    moved: list[DeadLetter] = field(default_factory=list)
    discarded: list[DeadLetter] = field(default_factory=list)
    remaining: list[DeadLetter] = field(default_factory=list)
    more: bool = False

    @property
    def count(self) -> int:
        """How many of the requested dead letters were received."""
        return len(self.moved) + len(self.discarded) + len(self.remaining)


class _Received(NamedTuple):
    """A received dead letter, hidden from other receivers. SQS knows the dead letter by its `handle`."""

    dead_letter: DeadLetter
    handle: str
    body: str


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The dead letters of a deployment's queues. `url` is that of the executions queue, beside the others.

    A call begins its last requests within `work_s`.
    """

    client: SQSClient
    url: str
    monotonic: Callable[[], float] = monotonic
    work_s: float = _WORK_S

    def counts(self) -> dict[str, int]:
        """About how many dead letters are in each queue that there is, hidden ones included."""
        return {queue: count for queue in QUEUES if (count := self.count(queue)) is not None}

    def count(self, queue: str) -> int | None:
        """About how many dead letters are in a queue, hidden ones included; None if there is no such queue."""
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = self._dead(queue)
        try:
            counts = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        except self.client.exceptions.QueueDoesNotExist:
            return None
        return sum(int(counts.get(name, 0)) for name in names)

    def peek(self, queue: str, limit: int = MAX_LETTERS) -> HandledDeadLetters:
        """The first dead letters, in no order. Raises NotFound (the queue)."""
        return self._handle(queue, limit, None, lambda dead_letter: LEFT, math.inf, most=limit)

    def redrive(
        self,
        queue: str,
        limit: int = MAX_LETTERS,
        only: Collection[str] | None = None,
        *,
        began_at: float = math.inf,
        discard_garbage: bool = False,
    ) -> HandledDeadLetters:
        """Send readable dead letters to their queue again, or `only` the dead letters with these ids.

        Calls with the same `began_at` meet each dead letter once: those sent since stay. A registration among them,
        which was refused again, is `remaining`, with the reason. Raises NotFound.
        """

        def decide(dead_letter: DeadLetter) -> Result:
            if dead_letter.problem:
                return DISCARDED if dead_letter.is_garbage and discard_garbage else LEFT
            return MOVED

        polls = _POLLS_FOR_REFUSED if queue == REGISTRATIONS else 1
        most = max(limit, MAX_LETTERS * _BATCH)
        return self._handle(queue, limit, only, decide, began_at, polls, most)

    def discard(
        self,
        queue: str,
        limit: int = MAX_LETTERS,
        only: Collection[str] | None = None,
        *,
        began_at: float = math.inf,
    ) -> HandledDeadLetters:
        """Delete dead letters that were sent before `began_at`. Raises NotFound."""
        return self._handle(queue, limit, only, lambda dead_letter: DISCARDED, began_at)

    def _handle(
        self,
        queue: str,
        limit: int,
        only: Collection[str] | None,
        decide: Callable[[DeadLetter], Result],
        began_at: float,
        polls: int = 1,
        most: int = MAX_LETTERS * _BATCH,
    ) -> HandledDeadLetters:
        """Receive dead letters, and move, discard or keep each as `decide` says: up to `limit`, besides what stays.

        They are looked for among so many at `most`. After so many empty `polls` in a row there are no others. The
        call ends before the first received dead letters are visible again.
        """
        url, until = self._dead(queue), self.monotonic() + self.work_s
        handled: dict[Result, list[DeadLetter]] = {MOVED: [], DISCARDED: [], LEFT: []}
        hidden: set[str] = set()
        more = True

        def room() -> int:
            return limit - len(handled[MOVED]) - len(handled[DISCARDED])

        try:
            for messages in self._received(url, most, room, until, polls):
                more = bool(messages)
                hidden.update(message["ReceiptHandle"] for message in messages)
                received = [
                    _Received(dead_letter_of(queue, message), message["ReceiptHandle"], message["Body"])
                    for message in messages
                ]
                decided = list(_decided(received, only, decide, began_at, are_refused=polls > 1))
                failed, deleted = self._carry_out(queue, decided)
                hidden -= deleted
                for result, item in decided:
                    if problem := failed.get(item.handle):
                        handled[LEFT].append(replace(item.dead_letter, problem=problem))
                    else:
                        handled[result].append(item.dead_letter)
                if only is not None and polls == 1 and sum(map(len, handled.values())) == len(only):
                    more = False
                    break
        except self.client.exceptions.QueueDoesNotExist:
            raise NotFound("dead-letter queue", queue) from None
        finally:
            self._show(url, sorted(hidden))
        return HandledDeadLetters(handled[MOVED], handled[DISCARDED], handled[LEFT], more)

    def _carry_out(
        self, queue: str, decided: Sequence[tuple[Result, _Received]]
    ) -> tuple[dict[str, str], set[str]]:
        """Move and discard. Returns the problems by their handles, and the handles of the deleted dead letters."""
        failed = self._resend(queue, [item for result, item in decided if result == MOVED])
        to_delete = [item for result, item in decided if result != LEFT and item.handle not in failed]
        failed |= self._delete(self._dead(queue), to_delete)
        return failed, {item.handle for item in to_delete} - failed.keys()

    def _received(
        self, url: str, most: int, room: Callable[[], int], until: float, polls: int
    ) -> Iterator[list[MessageTypeDef]]:
        """Batches with each message once, hidden for a while. An empty batch is the last one."""
        seen: set[str] = set()
        empty = 0
        while (size := min(_BATCH, most - len(seen), room())) > 0 and self.monotonic() < until:
            answer = self.client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=size,
                VisibilityTimeout=_HIDDEN_S,
                WaitTimeSeconds=_LONG_POLL_S,
                AttributeNames=["SentTimestamp"],
                MessageAttributeNames=[_REASON],
            )
            if not (messages := answer.get("Messages", [])):
                empty += 1
                if empty < polls:
                    continue
                yield []
                return
            empty = 0
            # SQS may deliver a hidden message once more.
            if fresh := [message for message in messages if message["MessageId"] not in seen]:
                seen.update(message["MessageId"] for message in fresh)
                yield fresh

    def _show(self, url: str, handles: list[str]) -> None:
        for first in range(0, len(handles), _BATCH):
            entries = enumerate(handles[first : first + _BATCH])
            self.client.change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(nth), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                    for nth, handle in entries
                ],
            )

    def _resend(self, queue: str, dead_letters: list[_Received]) -> dict[str, str]:
        """Send up to ten dead letters to their queue. Returns the errors of SQS by handle."""
        failed: dict[str, str] = {}
        for part in _requests_of(dead_letters):
            answer = self.client.send_message_batch(
                QueueUrl=self._alive(queue),
                Entries=[_entry(queue, nth, dead_letter.body) for nth, dead_letter in enumerate(part)],
            )
            for entry in answer.get("Failed", []):
                failed[part[int(entry["Id"])].handle] = f"SQS did not take it again: {entry['Code']}"
        return failed

    def _delete(self, url: str, dead_letters: list[_Received]) -> dict[str, str]:
        """Delete up to ten dead letters. Returns the errors of SQS by handle."""
        if not dead_letters:
            return {}
        answer = self.client.delete_message_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(nth), "ReceiptHandle": dead_letter.handle}
                for nth, dead_letter in enumerate(dead_letters)
            ],
        )
        return {
            dead_letters[int(entry["Id"])].handle: f"SQS did not delete it: {entry['Code']}"
            for entry in answer.get("Failed", [])
        }

    def _dead(self, queue: str) -> str:
        if queue not in QUEUES:
            raise NotFound("dead-letter queue", queue)
        return f"{self._alive(queue)}-dead"

    def _alive(self, queue: str) -> str:
        return self.url.removesuffix(EXECUTIONS) + queue


def audit_dead_letters(commit: AuditedCommit, queue: str, handled: HandledDeadLetters, now: float) -> None:
    """Add the numbers of moved and discarded dead letters to the platform's audit. Raises Busy."""
    for action, result, dead_letters in (
        ("dead_letters.redriven", MOVED, handled.moved),
        ("dead_letters.discarded", DISCARDED, handled.discarded),
    ):
        if dead_letters:
            tx = Transaction(commit.audit.tenants.client)
            commit.commit(tx, keys.OPERATORS, action, queue, now, after={result: len(dead_letters)})


def _decided(
    received: Sequence[_Received],
    only: Collection[str] | None,
    decide: Callable[[DeadLetter], Result],
    began_at: float,
    *,
    are_refused: bool,
) -> Iterator[tuple[Result, _Received]]:
    """What becomes of the dead letters that were asked for. With `are_refused`, those sent since were refused again."""
    for item in received:
        dead_letter = item.dead_letter
        if dead_letter.sent_at < began_at and (only is None or dead_letter.message_id in only):
            yield decide(dead_letter), item
        elif dead_letter.sent_at >= began_at and are_refused:
            *_, reason = dead_letter.about or ("",)
            yield LEFT, item._replace(dead_letter=replace(dead_letter, problem=f"{REFUSED_AGAIN}: {reason}"))


def _requests_of(dead_letters: list[_Received]) -> Iterator[list[_Received]]:
    """The dead letters in parts that each fit into a request."""
    part: list[_Received] = []
    size = 0
    for received in dead_letters:
        if part and size + received.dead_letter.size > _BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(received)
        size += received.dead_letter.size
    if part:
        yield part


def _entry(queue: str, nth: int, body: str) -> SendMessageBatchRequestEntryTypeDef:
    if queue != EXECUTIONS:
        return {"Id": str(nth), "MessageBody": body}
    # A pack's executions are handed over fairly, as when they were planned.
    return {"Id": str(nth), "MessageBody": body, "MessageGroupId": pack_in(body).group}
