"""A rule may fire twice: each time that a rule with a schedule fires, its function is invoked twice at once.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-troubleshooting.html
"""

from __future__ import annotations

import json
from typing import Any


def install(eventbridge: Any) -> None:
    """Into the server's module ministack.services.eventbridge."""
    dispatch = eventbridge._dispatch_to_lambda

    def twice(arn: str, payload: str) -> None:
        dispatch(arn, payload)
        if is_of_a_schedule(payload):
            dispatch(arn, payload)

    eventbridge._dispatch_to_lambda = twice


def is_of_a_schedule(payload: str) -> bool:
    """Whether the clock made this event. What a rule's target gets instead of the event is not recognised."""
    event = json.loads(payload)
    return isinstance(event, dict) and event.get("detail-type") == "Scheduled Event"
