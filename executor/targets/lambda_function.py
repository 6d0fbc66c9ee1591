"""Lambda functions, called and waited for (`RequestResponse`) or handed the event (`Event`).

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.runs.outcome import ERROR_BYTES, LOG_TAIL_BYTES, Outcome
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import Event, encoded

# Lambda answers with 6 MB at most; a wish stands in far less.
_READ_BYTES = 256 * 1024


def is_awaited(target: Mapping[str, Any]) -> bool:
    return bool(target["invocation"] == "RequestResponse")


def call(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Invoke the function once. A call that outlives `timeout_s` is given up; the function itself may go on."""
    awaited = is_awaited(target)
    try:
        answer = client("lambda", target, event, timeout_s).invoke(
            FunctionName=target["arn"],
            InvocationType=target["invocation"],
            Payload=encoded(event).encode(),
            LogType="Tail" if awaited else "None",
        )
        body = _beginning(answer["Payload"]) if awaited else _drained(answer["Payload"])
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    return _outcome(answer, body)


def _beginning(payload: Any) -> bytes:
    """A payload that is read to its end gives its connection back; of a longer one the connection is closed."""
    with contextlib.closing(payload):
        return bytes(payload.read(_READ_BYTES))


def _drained(payload: Any) -> bytes:
    """Read the empty payload of an `Event` call, which gives its connection back: https://github.com/boto/boto3/issues/3843

    Lambda has taken the event by then, so what goes wrong here is no failure of the call.
    """
    with contextlib.suppress(BotoCoreError):
        _beginning(payload)
    return b""


def _outcome(answer: Mapping[str, Any], body: bytes) -> Outcome:
    log_tail = base64.b64decode(answer.get("LogResult", ""))[-LOG_TAIL_BYTES:].decode(errors="replace")
    request_id = answers.request_id(answer)
    if "FunctionError" not in answer:
        return answers.with_details(answers.wish(body) or Outcome(ok=True), log_tail, request_id)
    error_type, message = raised(body)
    failed = Outcome(ok=False, error_type=error_type, error=message)
    return answers.with_details(failed, log_tail, request_id)


def raised(body: bytes) -> tuple[str, str]:
    """What a function that failed says of its error; what it returned instead is a tenant's, so anything."""
    try:
        error = json.loads(body)
        error_type, message = str(error["errorType"]), str(error["errorMessage"])
    except (ValueError, KeyError, TypeError, RecursionError):
        error_type, message = "FunctionError", body[:ERROR_BYTES].decode(errors="replace")
    return error_type, message
