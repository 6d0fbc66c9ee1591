"""Dead letters of any of the queues: readable ones go back to their queue, garbage is discarded.

A message of a later version, which this one cannot read, is neither: it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from common.planning.execution import Execution, UnreadableMessage
from common.planning.packs import Pack, lines
from common.storage import keys
from common.storage.tables import Table, Transaction
from common.tenants.audit import Audit, AuditedCommit

BATCH: Final = 10
# Hidden only for a while: a message that is not moved becomes visible again.
HIDDEN_S: Final = 60
_MOST: Final = 1_000
MOVED: Final = "moved"
LEFT: Final = "left"
DISCARDED: Final = "discarded"


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The dead letters of one queue."""

    sqs: Any
    stage: str
    kind: str
    url: str
    dead_url: str
    # The receipts of what was received and not deleted.
    _kept: dict[str, str] = field(default_factory=dict)

    def messages(self, limit: int = _MOST) -> Iterator[Any]:
        """Each of them once, at most `limit`. What is left can be received again afterwards, at once."""
        try:
            yield from self._received(limit)
        finally:
            receipts = list(self._kept.values())
            self._kept.clear()
            for first in range(0, len(receipts), BATCH):
                entries = [
                    {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                    for n, receipt in enumerate(receipts[first : first + BATCH])
                ]
                self.sqs.change_message_visibility_batch(QueueUrl=self.dead_url, Entries=entries)

    def _received(self, limit: int) -> Iterator[Any]:
        seen: set[str] = set()
        while len(seen) < limit:
            answer = self.sqs.receive_message(
                QueueUrl=self.dead_url,
                MaxNumberOfMessages=min(BATCH, limit - len(seen)),
                VisibilityTimeout=HIDDEN_S,
            )
            found = [one for one in answer.get("Messages", []) if one["MessageId"] not in seen]
            if not found:
                return
            for message in found:
                seen.add(message["MessageId"])
                self._kept[message["MessageId"]] = message["ReceiptHandle"]
                yield message

    def sort_out(self, message: Any, *, discard: bool) -> tuple[str, str]:
        """Move it, discard it, or leave it. Returns which, and what it is."""
        body = message["Body"]
        result, what, group = self._judged(body)
        if result == MOVED:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **group)
        elif result == DISCARDED and not discard:
            return LEFT, what
        if result != LEFT:
            self.sqs.delete_message(QueueUrl=self.dead_url, ReceiptHandle=message["ReceiptHandle"])
            self._kept.pop(message["MessageId"], None)
        return result, what

    def judged(self, body: str) -> tuple[str, str]:
        """What would become of it: `found` if it would go back to its queue."""
        result, what, _ = self._judged(body)
        return ("found" if result == MOVED else LEFT), what

    def _judged(self, body: str) -> tuple[str, str, dict[str, str]]:
        if self.kind == "executions":
            try:
                pack = Pack(tuple(map(Execution.decode, lines(body))))
            except UnreadableMessage as error:
                return (LEFT if _may_be_ours(body, "v") else DISCARDED), str(error), {}
            what = ", ".join(execution.execution_id for execution in pack.executions)
            return MOVED, what, {"MessageGroupId": pack.group}
        if self.kind == "planning":  # the next tick sends again what is not planned
            return DISCARDED, body[:200], {}
        return (MOVED if _may_be_ours(body, "requestContext") else DISCARDED), body[:200], {}

    def told(self, tenants: Table, now: float) -> str:
        """Sort them all out, and write that down. Returns the counts as text."""
        results = [self.sort_out(message, discard=True) for message in self.messages()]
        counts = {
            word: count
            for word in (MOVED, DISCARDED, LEFT)
            if (count := sum(result == word for result, _ in results))
        }
        first = next((what for result, what in results if result == DISCARDED), "")
        write_down(tenants, self.stage, counts, now)
        shown = f"; the first that was discarded: {first!r}" if first else ""
        return ", ".join(f"{count} {word}" for word, count in counts.items()) + shown


def dead_letters_of(sqs: Any, stage: str, kind: str) -> DeadLetters:
    """The dead letters of a stage's queue: executions, planning or outcomes."""
    name = f"minute8-{stage}-{kind}"
    url, dead = (sqs.get_queue_url(QueueName=one)["QueueUrl"] for one in (name, f"{name}-dead"))
    return DeadLetters(sqs, stage, kind, url, dead)


def write_down(tenants: Table, stage: str, counts: dict[str, int], now: float) -> None:
    """An entry of the platform's audit, if something was done."""
    done = {word: counts[word] for word in (MOVED, DISCARDED) if counts.get(word)}
    if done:
        AuditedCommit(Audit(tenants)).commit(
            Transaction(tenants.client), keys.OPERATORS, "dead_letters.redriven", stage, now, after=done
        )


def _may_be_ours(body: str, field: str) -> bool:
    """Whether each of its lines is an object with this field, as messages of all versions are."""
    try:
        return all(field in json.loads(line) for line in body.split("\n"))
    except (ValueError, TypeError, RecursionError):
        return False
