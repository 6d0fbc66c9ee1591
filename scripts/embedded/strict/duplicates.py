"""At least once: every tenth message that a queue hands to a function is handed over a second time, soon.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
"""

from __future__ import annotations

import itertools
import time
from typing import Any, Final

EVERY: Final = 10
SOON_S: Final = 0.5


def install(sqs: Any) -> None:
    """Into the server's module ministack.services.sqs."""
    receive, numbers = sqs._receive_messages_for_esm, itertools.count(1)

    def again(queue_url: str, max_number: int) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = receive(queue_url, max_number)
        queue = sqs._get_q(queue_url)
        if queue["is_fifo"]:
            return messages
        copies = [copy(message) for message in messages if next(numbers) % EVERY == 0]
        with sqs._queues_lock:
            queue["messages"].extend(copies)
        return messages

    sqs._receive_messages_for_esm = again


def copy(message: dict[str, Any]) -> dict[str, Any]:
    """The same message, of the same id, to be received apart from the first."""
    return message | {"receipt_handle": None, "visible_at": time.time() + SOON_S}
