"""Lambda functions, called and waited for (`RequestResponse`) or handed the event (`Event`).

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError, ReadTimeoutError

from common import aws
from common.runs import Outcome

# What of the target's log is kept with the run: a write unit holds 1 KB.
LOG_TAIL_CHARS = 800
ERROR_CHARS = 400

# Asking again gives the same answer until somebody changes something.
_PERMANENT = frozenset(
    {
        "AccessDeniedException",
        "InvalidParameterValueException",
        "InvalidRequestContentException",
        "InvalidRuntimeException",
        "InvalidSecurityGroupIDException",
        "InvalidSubnetIDException",
        "InvalidZipFileException",
        "KMSAccessDeniedException",
        "KMSDisabledException",
        "KMSNotFoundException",
        "RequestTooLargeException",
        "ResourceNotFoundException",
        "UnsupportedMediaTypeException",
        "ValidationException",
    }
)


def is_awaited(target: Mapping[str, Any]) -> bool:
    return bool(target["invocation"] == "RequestResponse")


def call(target: Mapping[str, Any], event: Mapping[str, Any], timeout_s: float) -> Outcome:
    """Invoke the function once. A call that outlives `timeout_s` is given up; the function itself may go on."""
    awaited = is_awaited(target)
    try:
        answer = aws.lambda_(timeout_s).invoke(
            FunctionName=target["arn"],
            InvocationType=target["invocation"],
            Payload=json.dumps(event, separators=(",", ":")).encode(),
            LogType="Tail" if awaited else "None",
        )
        body = answer["Payload"].read() if awaited else b""
    except ReadTimeoutError:
        return Outcome(ok=False, error_type="TimedOut", error=f"no answer within {timeout_s:g} s")
    except ClientError as error:
        return _refused(error)
    except (ConnectionError, HTTPClientError) as error:
        return Outcome(ok=False, error_type=type(error).__name__, error=str(error)[:ERROR_CHARS])
    return _outcome(answer, body)


def _refused(error: ClientError) -> Outcome:
    details = error.response.get("Error", {})
    return Outcome(
        ok=False,
        permanent=details.get("Code") in _PERMANENT,
        error_type=details.get("Code", "ClientError"),
        error=details.get("Message", "")[:ERROR_CHARS],
        request_id=_request_id(error.response),
    )


def _outcome(answer: Mapping[str, Any], body: bytes) -> Outcome:
    log_tail = base64.b64decode(answer.get("LogResult", "")).decode(errors="replace")[-LOG_TAIL_CHARS:]
    request_id = _request_id(answer)
    if "FunctionError" not in answer:
        return Outcome(ok=True, log_tail=log_tail, request_id=request_id)
    error_type, message = _raised(body)
    return Outcome(
        ok=False,
        error_type=error_type,
        error=message,
        log_tail=log_tail,
        request_id=request_id,
    )


def _raised(body: bytes) -> tuple[str, str]:
    """What a function that failed says of its error; what it returned instead is a tenant's, so anything."""
    try:
        error = json.loads(body)
        return str(error["errorType"])[:100], str(error["errorMessage"])[:ERROR_CHARS]
    except (ValueError, KeyError, TypeError):
        return "FunctionError", body[:ERROR_CHARS].decode(errors="replace")


def _request_id(answer: Mapping[str, Any]) -> str:
    return str(answer.get("ResponseMetadata", {}).get("RequestId", ""))
