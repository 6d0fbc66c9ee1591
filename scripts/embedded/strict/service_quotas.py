"""Quotas of services: messages in flight of a queue, and events a second.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
"""

from __future__ import annotations

import time
from typing import Any, Final

MAX_IN_FLIGHT: Final = 120_000
# PutEvents' requests, in us-east-1; 2,400 in us-east-2, fewer elsewhere.
MAX_EVENTS_A_SECOND: Final = 10_000


def limit_messages_in_flight(sqs: Any, most: int = MAX_IN_FLIGHT) -> None:
    """Into the server's module ministack.services.sqs: a queue with so many gives no more. A short poll is told so."""
    receive_for_mapping, receive = sqs._receive_messages_for_esm, sqs._act_receive_message

    def is_full(url: str) -> bool:
        queue = sqs._get_q(url)
        # A queue is seldom so long; only then are its messages counted.
        return len(queue["messages"]) >= most and _in_flight(queue, time.time()) >= most

    def received_for_mapping(url: str, max_number: int) -> list[dict[str, Any]]:
        if is_full(url):
            return []
        messages: list[dict[str, Any]] = receive_for_mapping(url, max_number)
        return messages

    async def received(request: dict[str, Any], url: str) -> Any:
        if not is_full(request.get("QueueUrl", url)):
            return await receive(request, url)
        if not int(request.get("WaitTimeSeconds", 0)):
            raise sqs._Err("OverLimit", f"Too many messages in flight: the maximum is {most}.")
        return {}

    sqs._receive_messages_for_esm = received_for_mapping
    sqs._act_receive_message = sqs._HANDLERS["ReceiveMessage"] = received


def _in_flight(queue: dict[str, Any], now: float) -> int:
    return sum(message["receive_count"] > 0 and message["visible_at"] > now for message in queue["messages"])


def limit_events(eventbridge: Any, most: int = MAX_EVENTS_A_SECOND) -> None:
    """Into the server's module ministack.services.eventbridge: further events of a second are refused."""
    put, used = eventbridge._put_events, [0, 0]

    def limited(request: dict[str, Any], *more: Any, **named: Any) -> Any:
        second, count = int(time.time()), len(request.get("Entries", ()))
        if used[0] != second:
            used[:] = second, 0
        if used[1] >= most:
            return eventbridge.error_response_json("ThrottlingException", "Rate exceeded", 400)
        used[1] += count
        return put(request, *more, **named)

    eventbridge._put_events = limited
