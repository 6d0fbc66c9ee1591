"""Shared by the tests of all target kinds: the executor's event, and errors as AWS's clients raise them."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from common.planning.execution import traceparent

ACCOUNT = "123456789012"
US = f"us-east-1:{ACCOUNT}"


def event(
    *, tenant: str = "alice", job_id: str = "report", attempt: int = 1, payload: Any = None
) -> dict[str, Any]:
    return {
        "payload": payload,
        "minute8": {
            "tenant": tenant,
            "job_id": job_id,
            "execution_id": f"{tenant}:{job_id}:20261121T030000Z:4",
            "fire_at": "2026-11-21T03:00:00Z",
            "due_at": "2026-11-21T03:00:00Z",
            "attempt": attempt,
            "schedule_revision": 4,
            "trigger": "schedule",
            "traceparent": traceparent(f"{tenant}:{job_id}:20261121T030000Z:4", attempt),
        },
    }


def refused(code: str, status: int = 400, **extra: Any) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": f"said {code}"},
        "ResponseMetadata": {"RequestId": "r-1", "HTTPStatusCode": status},
        **extra,
    }
    return ClientError(response, "Anything")
