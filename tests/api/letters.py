"""SQS as far as dead letters use it; tests/cli/test_manual.py compares it with moto."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

URL = "https://sqs.test/minute8-test-executions"


@dataclass
class LetterBox:
    """Queues by their addresses, each with its messages by id; received ones are hidden until they are shown."""

    queues: dict[str, dict[str, str]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    numbers: Any = field(default_factory=lambda: count(1))

    def bodies(self, queue: str) -> list[str]:
        return [*self.queues.get(_url(queue), {}).values()]

    def put(self, queue: str, *bodies: str) -> None:
        for body in bodies:
            self.send_message(QueueUrl=_url(queue), MessageBody=body)

    def send_message(self, QueueUrl: str, MessageBody: str, MessageGroupId: str = "") -> None:
        self.queues.setdefault(QueueUrl, {})[f"m{next(self.numbers)}"] = MessageBody

    def receive_message(self, QueueUrl: str, MaxNumberOfMessages: int, **_: Any) -> dict[str, Any]:
        found = [(key, body) for key, body in self.queues.get(QueueUrl, {}).items() if key not in self.hidden]
        messages = [
            {
                "MessageId": key,
                "ReceiptHandle": key,
                "Body": body,
                "Attributes": {"SentTimestamp": "1795230000000"},
            }
            for key, body in found[:MaxNumberOfMessages]
        ]
        self.hidden.update(str(one["MessageId"]) for one in messages)
        return {"Messages": messages} if messages else {}

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:
        del self.queues[QueueUrl][ReceiptHandle]

    def change_message_visibility_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> None:
        assert 0 < len(Entries) <= 10
        self.hidden -= {entry["ReceiptHandle"] for entry in Entries}

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:
        messages = self.queues.get(QueueUrl, {})
        hidden = len(self.hidden & set(messages))
        return {
            "Attributes": {
                "ApproximateNumberOfMessages": str(len(messages) - hidden),
                "ApproximateNumberOfMessagesNotVisible": str(hidden),
            }
        }


def _url(queue: str) -> str:
    return URL.removesuffix("executions") + queue
