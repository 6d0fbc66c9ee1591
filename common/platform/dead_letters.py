"""Dead letters: messages that a function failed on until SQS gave them up. An operator resends or discards them.

SQS knows no message by its id: they are received, a batch at a time, and hidden for others meanwhile. What was not
dealt with is shown again at once; after a crash, a minute later. A message that is sent twice is the same execution:
its id is derived, and it runs once. StartMessageMoveTask does not say what it moves, and is not available everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from common.clock import Clock
from common.errors import NotFound
from common.planning.execution import Execution, UnreadableMessage, split_execution_id
from common.planning.packs import Pack, lines
from common.planning.shares import ShareName, UnreadableShare, decode
from common.storage import keys
from common.storage.tables import Transaction
from common.tenants.audit import Audit, AuditedCommit

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

EXECUTIONS: Final = "executions"
QUEUES: Final = (EXECUTIONS, "planning", "outcomes")
# How many one call looks at, resends or discards.
MOST: Final = 100
_BATCH: Final = 10
_HIDDEN_S: Final = 60

Verb = Literal["redriven", "discarded"]


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `about` names what it is for; `problem` says why it cannot be read, and then it is not resent."""

    message_id: str
    sent_at: float
    size: int
    about: tuple[str, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class Done:
    """What became of letters. `more`: others may be left in the queue."""

    letters: list[Letter] = field(default_factory=list)
    left: list[Letter] = field(default_factory=list)
    more: bool = False


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The dead letters of a deployment's queues. `url` is that of the executions queue, beside the others."""

    client: SQSClient
    url: str

    def count(self, queue: str) -> int:
        """How many are in the queue, about; those that somebody looks at included."""
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = self._dead(queue)
        found = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(found.get(name, 0)) for name in names)

    def look(self, queue: str, limit: int = MOST) -> Done:
        """The first of them, in no order. Raises NotFound (there is no such queue)."""
        return self._deal(queue, limit, None, lambda message, letter: False)

    def redrive(self, queue: str, limit: int = MOST, only: Collection[str] | None = None) -> Done:
        """Send readable ones to their queue again; `only` those with these ids. Raises NotFound."""
        return self._deal(queue, limit, only, lambda message, letter: self._resend(queue, message, letter))

    def discard(self, queue: str, limit: int = MOST, only: Collection[str] | None = None) -> Done:
        """Delete them. Raises NotFound."""
        return self._deal(queue, limit, only, lambda message, letter: True)

    def _deal(
        self,
        queue: str,
        limit: int,
        only: Collection[str] | None,
        is_done: Callable[[MessageTypeDef, Letter], bool],
    ) -> Done:
        """`only` letters are looked for among all that are visible, up to MOST batches."""
        url, done = self._dead(queue), Done()
        kept: list[str] = []
        try:
            for message in self._received(url, MOST * _BATCH if only is not None else limit):
                letter = _letter(queue, message)
                if only is not None and letter.message_id not in only:
                    kept.append(message["ReceiptHandle"])
                elif is_done(message, letter):
                    self.client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    done.letters.append(letter)
                else:
                    kept.append(message["ReceiptHandle"])
                    done.left.append(letter)
                if only is not None and len(done.letters) + len(done.left) == len(only):
                    break
        finally:
            self._show(url, kept)
        done.more = len(done.letters) + len(done.left) >= limit
        return done

    def _received(self, url: str, limit: int) -> Iterator[MessageTypeDef]:
        """Each message once, hidden for a while."""
        seen: set[str] = set()
        while len(seen) < limit:
            answer = self.client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=min(_BATCH, limit - len(seen)),
                VisibilityTimeout=_HIDDEN_S,
                AttributeNames=["SentTimestamp"],
            )
            fresh = [one for one in answer.get("Messages", []) if one["MessageId"] not in seen]
            if not fresh:
                return
            seen.update(one["MessageId"] for one in fresh)
            yield from fresh

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

    def _resend(self, queue: str, message: MessageTypeDef, letter: Letter) -> bool:
        if letter.problem:
            return False
        body = message["Body"]
        # A pack's executions are handed over fairly, as when they were planned.
        group: dict[str, Any] = {"MessageGroupId": _pack(body).group} if queue == EXECUTIONS else {}
        self.client.send_message(QueueUrl=self._alive(queue), MessageBody=body, **group)
        return True

    def _dead(self, queue: str) -> str:
        if queue not in QUEUES:
            raise NotFound("dead-letter queue", queue)
        return f"{self._alive(queue)}-dead"

    def _alive(self, queue: str) -> str:
        return self.url.removesuffix(EXECUTIONS) + queue


def write_down(
    audit: Audit, verb: Verb, subject: str, letters: int, now: float, by: str, clock: Clock
) -> None:
    """Note in the platform's audit that letters were redriven or discarded. Raises Busy."""
    tx = Transaction(audit.tenants.client)
    count: dict[str, int] = {"moved" if verb == "redriven" else verb: letters}
    commit = AuditedCommit(audit, by, clock).commit
    commit(tx, keys.OPERATORS, f"dead_letters.{verb}", subject, now, after=count)


def _letter(queue: str, message: MessageTypeDef) -> Letter:
    body = message["Body"]
    sent_at = int(message.get("Attributes", {}).get("SentTimestamp", 0)) / 1000
    about: tuple[str, ...] = ()
    problem = ""
    try:
        about = _ABOUT[queue](body)
    except (UnreadableMessage, UnreadableShare) as error:
        problem = str(error)
    return Letter(message["MessageId"], sent_at, len(body.encode("utf-8", "replace")), about, problem)


def _pack(body: str) -> Pack:
    return Pack(tuple(map(Execution.decode, lines(body))))


def _executions(body: str) -> tuple[str, ...]:
    return tuple(execution.execution_id for execution in _pack(body).executions)


def _work(body: str) -> tuple[str, ...]:
    work = decode(body)
    return (
        (f"share {work.number} of the window until {work.end}",)
        if isinstance(work, ShareName)
        else tuple(work)
    )


def _outcome(body: str) -> tuple[str, ...]:
    """The execution that a destination's record is about; none if it is somebody else's invocation."""
    try:
        named = json.loads(body)["requestPayload"]["minute8"]["execution_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return (named,) if isinstance(named, str) and split_execution_id(named) else ()


_ABOUT: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    EXECUTIONS: _executions,
    "planning": _work,
    "outcomes": _outcome,
}
