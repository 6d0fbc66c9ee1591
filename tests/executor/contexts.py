"""Shared by the tests of all target kinds: the executor's event, and errors as AWS's clients raise them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from common.planning.execution import traceparent
from common.runs.outcome import Outcome
from common.storage.outgoing import at_once
from executor.targets import lambda_function

ACCOUNT = "123456789012"
US = f"us-east-1:{ACCOUNT}"


def event(
    *, tenant: str = "alice", job_id: str = "report", attempt: int = 1, payload: Any = None
) -> dict[str, Any]:
    return {
        "payload": json.dumps(payload, separators=(",", ":"), ensure_ascii=False),
        "minute8": {
            "tenant": tenant,
            "job_id": job_id,
            "execution_id": f"{tenant}:{job_id}:20261121T030000Z",
            "fire_at": "2026-11-21T03:00:00Z",
            "due_at": "2026-11-21T03:00:00Z",
            "attempt": attempt,
            "schedule_revision": 4,
            "trigger": "schedule",
            "traceparent": traceparent(f"{tenant}:{job_id}:20261121T030000Z", attempt),
        },
    }


def parsed(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event as its target reads it."""
    return {**event, "payload": json.loads(event["payload"])}


def call_function(target: Mapping[str, Any], event: Mapping[str, Any], timeout_s: float) -> Outcome:
    """Call a Lambda function, and wait for the outcome."""
    return at_once(lambda_function.call(target, event, timeout_s))


def refused(code: str, status: int = 400, **extra: Any) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": f"said {code}"},
        "ResponseMetadata": {"RequestId": "r-1", "HTTPStatusCode": status},
        **extra,
    }
    return ClientError(response, "Anything")
