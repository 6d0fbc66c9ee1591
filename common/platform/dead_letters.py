"""Dead letters: messages that a function failed on until SQS gave them up. An operator resends or discards them.

SQS knows no message by its id: they are received, a batch at a time, and hidden for others meanwhile. What was not
dealt with is shown again at once; after a crash, a minute later. A message that is sent twice is the same execution:
its id is derived, and it runs once. StartMessageMoveTask does not say what it moves, and is not available everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from common.errors import NotFound
from common.platform.letter import EXECUTIONS, QUEUES, Letter, letter_of, pack_in
from common.storage import keys
from common.storage.table import Transaction
from common.tenants.audit import AuditedCommit

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef, SendMessageBatchRequestEntryTypeDef

# How many one call looks at, resends or discards.
MOST: Final = 100
_BATCH: Final = 10
# What SQS takes in one request was 256 KB for years.
_BATCH_BYTES: Final = 256 * 1024
# Letters stay hidden for longer than one call works, and its last requests take.
_HIDDEN_S: Final = 60
_WORK_S: Final = 40
# A short poll asks some of SQS's servers, so its empty answer means nothing. A long poll asks all of them.
# It answers at once if it finds a message.
_LONG_POLL_S: Final = 1

Result = Literal["moved", "discarded", "left"]
MOVED: Final = "moved"
DISCARDED: Final = "discarded"
LEFT: Final = "left"


@dataclass(slots=True)
class Done:
    """What became of letters. `more`: others that were wanted may be left in the queue."""

    moved: list[Letter] = field(default_factory=list)
    discarded: list[Letter] = field(default_factory=list)
    left: list[Letter] = field(default_factory=list)
    more: bool = False

    @property
    def count(self) -> int:
        """How many were looked at, without those that were not wanted."""
        return len(self.moved) + len(self.discarded) + len(self.left)


class _Taken(NamedTuple):
    """A letter that was received and is hidden from others. SQS knows it by its `handle`."""

    letter: Letter
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

    def count(self, queue: str) -> int:
        """How many are in the queue, about; those that somebody looks at included."""
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = self._dead(queue)
        found = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(found.get(name, 0)) for name in names)

    def look(self, queue: str, limit: int = MOST) -> Done:
        """The first of them, in no order. Raises NotFound (there is no such queue)."""
        return self._deal(queue, limit, None, lambda letter: LEFT)

    def redrive(
        self,
        queue: str,
        limit: int = MOST,
        only: Collection[str] | None = None,
        *,
        discard_garbage: bool = False,
    ) -> Done:
        """Send readable ones to their queue again; `only` those with these ids. Raises NotFound."""

        def decide(letter: Letter) -> Result:
            if letter.problem:
                return DISCARDED if letter.is_garbage and discard_garbage else LEFT
            return MOVED

        return self._deal(queue, limit, only, decide)

    def discard(self, queue: str, limit: int = MOST, only: Collection[str] | None = None) -> Done:
        """Delete them. Raises NotFound."""
        return self._deal(queue, limit, only, lambda letter: DISCARDED)

    def _deal(
        self,
        queue: str,
        limit: int,
        only: Collection[str] | None,
        decide: Callable[[Letter], Result],
    ) -> Done:
        """`only` letters are looked for among all that are visible, up to MOST batches.

        It ends before those that were received first, and stay, are visible again.
        """
        url, until = self._dead(queue), self.monotonic() + self.work_s
        dealt: dict[Result, list[Letter]] = {MOVED: [], DISCARDED: [], LEFT: []}
        hidden: set[str] = set()
        more = True
        try:
            for messages in self._received(url, MOST * _BATCH if only is not None else limit, until):
                more = bool(messages)
                hidden.update(message["ReceiptHandle"] for message in messages)
                taken = [_Taken(letter_of(queue, one), one["ReceiptHandle"], one["Body"]) for one in messages]
                wanted = [one for one in taken if only is None or one.letter.message_id in only]
                decided = [(decide(one.letter), one) for one in wanted]
                failed = self._resend(queue, [one for result, one in decided if result == MOVED])
                leave = [one for result, one in decided if result != LEFT and one.handle not in failed]
                failed |= self._delete(url, leave)
                hidden -= {one.handle for one in leave} - failed.keys()
                for result, one in decided:
                    if problem := failed.get(one.handle):
                        dealt[LEFT].append(replace(one.letter, problem=problem))
                    else:
                        dealt[result].append(one.letter)
                if only is not None and sum(map(len, dealt.values())) == len(only):
                    more = False
                    break
        finally:
            self._show(url, sorted(hidden))
        return Done(dealt[MOVED], dealt[DISCARDED], dealt[LEFT], more)

    def _received(self, url: str, limit: int, until: float) -> Iterator[list[MessageTypeDef]]:
        """Batches with each message once, hidden for a while. An empty batch is the last: the queue has no more."""
        seen: set[str] = set()
        while len(seen) < limit and self.monotonic() < until:
            answer = self.client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=min(_BATCH, limit - len(seen)),
                VisibilityTimeout=_HIDDEN_S,
                WaitTimeSeconds=_LONG_POLL_S,
                AttributeNames=["SentTimestamp"],
            )
            if not (messages := answer.get("Messages", [])):
                yield []
                return
            # SQS may deliver a hidden message once more.
            if fresh := [one for one in messages if one["MessageId"] not in seen]:
                seen.update(one["MessageId"] for one in fresh)
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

    def _resend(self, queue: str, letters: list[_Taken]) -> dict[str, str]:
        """Send up to ten of them to their queue. Returns what SQS did not take: handle -> why."""
        failed: dict[str, str] = {}
        for part in _of_one_request(letters):
            answer = self.client.send_message_batch(
                QueueUrl=self._alive(queue),
                Entries=[_entry(queue, nth, one.body) for nth, one in enumerate(part)],
            )
            for one in answer.get("Failed", []):
                failed[part[int(one["Id"])].handle] = f"SQS did not take it again: {one['Code']}"
        return failed

    def _delete(self, url: str, letters: list[_Taken]) -> dict[str, str]:
        """Delete up to ten of them. Returns what SQS did not delete: handle -> why."""
        if not letters:
            return {}
        answer = self.client.delete_message_batch(
            QueueUrl=url,
            Entries=[{"Id": str(nth), "ReceiptHandle": one.handle} for nth, one in enumerate(letters)],
        )
        return {
            letters[int(one["Id"])].handle: f"SQS did not delete it: {one['Code']}"
            for one in answer.get("Failed", [])
        }

    def _dead(self, queue: str) -> str:
        if queue not in QUEUES:
            raise NotFound("dead-letter queue", queue)
        return f"{self._alive(queue)}-dead"

    def _alive(self, queue: str) -> str:
        return self.url.removesuffix(EXECUTIONS) + queue


def write_down(commit: AuditedCommit, queue: str, done: Done, now: float) -> None:
    """Note in the platform's audit how many of the queue were moved, and how many discarded. Raises Busy."""
    for action, result, letters in (
        ("dead_letters.redriven", MOVED, done.moved),
        ("dead_letters.discarded", DISCARDED, done.discarded),
    ):
        if letters:
            tx = Transaction(commit.audit.tenants.client)
            commit.commit(tx, keys.OPERATORS, action, queue, now, after={result: len(letters)})


def _of_one_request(letters: list[_Taken]) -> Iterator[list[_Taken]]:
    """Parts that fit into a request; each has a letter at least."""
    part: list[_Taken] = []
    size = 0
    for one in letters:
        if part and size + one.letter.size > _BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(one)
        size += one.letter.size
    if part:
        yield part


def _entry(queue: str, nth: int, body: str) -> SendMessageBatchRequestEntryTypeDef:
    if queue != EXECUTIONS:
        return {"Id": str(nth), "MessageBody": body}
    # A pack's executions are handed over fairly, as when they were planned.
    return {"Id": str(nth), "MessageBody": body, "MessageGroupId": pack_in(body).group}
