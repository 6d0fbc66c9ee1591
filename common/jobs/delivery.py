"""How often each kind of target is called for an execution, and by which key whoever is called knows a repetition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

AT_LEAST: Final = "at least once"
EXACTLY: Final = "exactly once"
EACH_ATTEMPT: Final = "each attempt exactly once"
Called = Literal["at least once", "exactly once", "each attempt exactly once"]


class Delivery(Struct, frozen=True):
    """A kind of target. `applies_to` says to which of the kind, `key` knows a repetition for as long as `kept` says."""

    kind: str
    applies_to: str
    called: Called
    key: str
    kept: str


_AS_LONG: Final = "as long as {} keeps it"
DELIVERIES: Final = (
    Delivery("lambda", "not durable", AT_LEAST, "the event's execution_id", _AS_LONG.format("the function")),
    Delivery("lambda", "durable", EACH_ATTEMPT, "DurableExecutionName", "the function's retention"),
    Delivery("step_functions", "standard workflows", EXACTLY, "the execution's name", "90 days"),
    Delivery("step_functions", "express workflows", AT_LEAST, "the execution's name", "not at all"),
    Delivery("sqs", "FIFO", EXACTLY, "MessageDeduplicationId", "5 minutes"),
    Delivery("sqs", "standard", AT_LEAST, "minute8_execution_id", _AS_LONG.format("the consumer")),
    Delivery("sns", "FIFO", EXACTLY, "MessageDeduplicationId", "5 minutes"),
    Delivery("sns", "standard", AT_LEAST, "minute8_execution_id", _AS_LONG.format("the consumer")),
    Delivery("event_bus", "all", AT_LEAST, "the detail's execution_id", _AS_LONG.format("the consumer")),
    Delivery("aws_operation", "with a client token", EXACTLY, "the token", _AS_LONG.format("the service")),
    Delivery("aws_operation", "without a client token", AT_LEAST, "none", "not at all"),
    Delivery("http", "all", AT_LEAST, "Idempotency-Key", _AS_LONG.format("the endpoint")),
)


def delivery_of(target: Mapping[str, Any]) -> Delivery:
    """The row of a stored target. A workflow counts as standard. An operation counts as without a token."""
    kind, is_fifo = target["kind"], str(target.get("arn", "")).endswith(".fifo")
    applies_to = {
        "lambda": "durable" if target.get("durable") else "not durable",
        "step_functions": "standard workflows",
        "sqs": "FIFO" if is_fifo else "standard",
        "sns": "FIFO" if is_fifo else "standard",
        "aws_operation": "without a client token",
    }.get(kind, "all")
    return next(row for row in DELIVERIES if (row.kind, row.applies_to) == (kind, applies_to))
