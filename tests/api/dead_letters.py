"""SQS as far as dead letters use it; tests/cli/test_manual.py compares it with moto."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any


class QueueDoesNotExist(Exception):
    """SQS has no such queue."""


# Of all messages of a request.
BATCH_BYTES = 256 * 1024
URL = "https://sqs.test/minute8-test-executions"


@dataclass
class LetterBox:
    """Queues by their addresses, each with its messages by id; received ones are hidden until they are shown."""

    queues: dict[str, dict[str, str]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    numbers: Any = field(default_factory=lambda: count(1))
    # Bodies that it does not take, and those that it does not delete.
    refused: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    # A hidden message that comes once more.
    again: list[str] = field(default_factory=list)
    # The deployment takes no registrations by event unless a test says so.
    missing: set[str] = field(default_factory=lambda: {"registrations-dead"})
    # When messages were sent, by id; those before a test said it, long ago.
    now: float = 1_795_230_000 - 3_600
    sent_at: dict[str, float] = field(default_factory=dict)
    # The attribute `reason` of messages, by body.
    reasons: dict[str, str] = field(default_factory=dict)
    exceptions: Any = field(default_factory=lambda: SimpleNamespace(QueueDoesNotExist=QueueDoesNotExist))

    def bodies(self, queue: str) -> list[str]:
        return [*self.queues.get(_url(queue), {}).values()]

    def put(self, queue: str, *bodies: str) -> None:
        dead_letters = self.queues.setdefault(_url(queue), {})
        fresh = {f"m{next(self.numbers)}": body for body in bodies}
        dead_letters |= fresh
        self.sent_at |= dict.fromkeys(fresh, self.now)

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        assert 0 < len(Entries) <= 10 and sum(len(entry["MessageBody"]) for entry in Entries) <= BATCH_BYTES
        accepted = [entry for entry in Entries if entry["MessageBody"] not in self.refused]
        self.put(QueueUrl.rpartition("minute8-test-")[2], *[entry["MessageBody"] for entry in accepted])
        return _answer(Entries, accepted)

    def receive_message(
        self, QueueUrl: str, MaxNumberOfMessages: int, WaitTimeSeconds: int = 0, **_: Any
    ) -> dict[str, Any]:
        """A short poll finds none: SQS asks only some of its servers then. A long poll does not wait here."""
        self._exists(QueueUrl)
        dead_letters = self.queues.get(QueueUrl, {}) if WaitTimeSeconds else {}
        visible = [
            (key, body) for key, body in dead_letters.items() if key not in self.hidden or key in self.again
        ]
        messages = [
            {
                "MessageId": key,
                "ReceiptHandle": key,
                "Body": body,
                "Attributes": {"SentTimestamp": str(int(self.sent_at[key] * 1000))},
                "MessageAttributes": {"reason": {"StringValue": self.reasons[body]}}
                if body in self.reasons
                else {},
            }
            for key, body in visible[:MaxNumberOfMessages]
        ]
        self.hidden.update(str(entry["MessageId"]) for entry in messages)
        self.again.clear()
        return {"Messages": messages} if messages else {}

    def delete_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        assert 0 < len(Entries) <= 10
        dead_letters = self.queues[QueueUrl]
        deleted = [entry for entry in Entries if dead_letters[entry["ReceiptHandle"]] not in self.kept]
        for entry in deleted:
            del dead_letters[entry["ReceiptHandle"]]
        return _answer(Entries, deleted)

    def change_message_visibility_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> None:
        assert 0 < len(Entries) <= 10
        self.hidden -= {entry["ReceiptHandle"] for entry in Entries}

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:
        self._exists(QueueUrl)
        messages = self.queues.get(QueueUrl, {})
        hidden = len(self.hidden & set(messages))
        return {
            "Attributes": {
                "ApproximateNumberOfMessages": str(len(messages) - hidden),
                "ApproximateNumberOfMessagesNotVisible": str(hidden),
            }
        }

    def _exists(self, url: str) -> None:
        if url.rpartition("minute8-test-")[2] in self.missing:
            raise QueueDoesNotExist(url)


def _url(queue: str) -> str:
    return URL.removesuffix("executions") + queue


def _answer(entries: list[dict[str, Any]], done: list[dict[str, Any]]) -> dict[str, Any]:
    failed = [{"Id": entry["Id"], "Code": "InternalError"} for entry in entries if entry not in done]
    return {"Successful": [{"Id": entry["Id"]} for entry in done]} | ({"Failed": failed} if failed else {})
