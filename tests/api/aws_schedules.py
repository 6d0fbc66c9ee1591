"""Requests to EventBridge Scheduler's API, and what its answers say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from minute8.eventbridge.api.endpoint import ADVICE_HEADER
from tests.worlds import ARN

ROLE = "arn:aws:iam::123456789012:role/scheduler"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
Aws = Callable[..., Any]


def target(**more: Any) -> dict[str, Any]:
    return {"Arn": ARN, "RoleArn": ROLE, **more}


def schedule(expression: str = "rate(5 minutes)", **more: Any) -> dict[str, Any]:
    return {
        "Name": "nightly",
        "ScheduleExpression": expression,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": target(),
    } | more


def refusal(call: Callable[..., Any], **arguments: Any) -> tuple[int, str, str]:
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    error = refused.value.response
    return error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"], error["Error"]["Message"]


def advice(call: Callable[..., Any], **arguments: Any) -> tuple[str, str]:
    """AWS's message of a refusal, and Minute8's own beside it."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    error = refused.value.response
    return error["Error"]["Message"], error["ResponseMetadata"]["HTTPHeaders"].get(ADVICE_HEADER, "")


def without_metadata(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}
