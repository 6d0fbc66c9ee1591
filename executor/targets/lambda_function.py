"""Lambda functions: waits for the result (`RequestResponse`) or only sends the event (`Event`).

https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from common.limits import ERROR_BYTES, LOG_TAIL_BYTES, RESULT_BYTES
from common.runs.outcome import Outcome
from common.storage.outgoing import Steps
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import Event, context, event_body

_ALREADY_STARTED: Final = "DurableExecutionAlreadyStartedException"


def call(target: Mapping[str, Any], event: Event, timeout_s: float) -> Steps[Outcome]:
    """Invoke the function once. After `timeout_s` the call is abandoned; the function itself may continue.

    Its first step sends the request if nothing else has to be done for it.
    """
    awaited = target["invocation"] == "RequestResponse"
    request = {
        "FunctionName": target["arn"],
        "InvocationType": target["invocation"],
        "Payload": event_body(target, event).encode(),
        "LogType": "Tail" if awaited else "None",
        # Lambda passes it on for awaited invocations only.
        **({"ClientContext": _client_context(event)} if awaited else {}),
        # The tenant comes from the credential, so no tenant can choose another one's execution environments.
        **({"TenantId": context(event, "tenant")} if target.get("tenant_isolation") else {}),
        **({"DurableExecutionName": context(event, "durable_name")} if target.get("durable") else {}),
    }
    try:
        if target.get("role_arn"):
            yield None  # the role may have to be assumed
        functions = client("lambda", target, event, timeout_s)
        if in_steps := getattr(functions, "invoke_in_steps", None):
            answer = yield from in_steps(**request)
        else:
            yield None
            answer = functions.invoke(**request)
        body = (_beginning if awaited else _drained)(answer["Payload"])
    except (BotoCoreError, ClientError) as error:
        return _refused(target, error, answers.refused_by_aws(error, timeout_s))
    if awaited:
        return _outcome(answer, body)
    arn = answer.get("DurableExecutionArn")
    started, is_durable = (arn,) if arn else (), bool(target.get("durable"))
    return Outcome(ok=True, request_id=answers.request_id(answer), accepted=is_durable, started=started)


def _refused(target: Mapping[str, Any], error: BotoCoreError | ClientError, outcome: Outcome) -> Outcome:
    """The refusal, with what to change in the target if its tenant id was missing or superfluous.

    https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation-troubleshooting.html
    A durable execution of another payload or an unanswered call may have begun: a look by its name tells.
    """
    is_unanswered = isinstance(error, HTTPClientError) or _status(error) >= 500
    if target.get("durable") and (is_unanswered or outcome.error_type == _ALREADY_STARTED):
        return Outcome(ok=True, accepted=True, request_id=outcome.request_id)
    if outcome.error_type != "InvalidParameterValueException" or "tenant" not in outcome.error.lower():
        return outcome
    isolates = "does not isolate" if target.get("tenant_isolation") else "isolates"
    needed = str(not target.get("tenant_isolation")).lower()
    words = f"the function {isolates} its tenants: tenant_isolation of the target must be {needed}"
    return replace(outcome, error=f"{words} ({outcome.error})")


def _status(error: BotoCoreError | ClientError) -> int:
    """The status of an answer; 0 if there was none."""
    answer = error.response if isinstance(error, ClientError) else {}
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _client_context(event: Event) -> str:
    """`context.client_context.custom["traceparent"]` in the function, also where the event is the payload alone."""
    custom = {"custom": {"traceparent": context(event, "traceparent")}}
    return base64.b64encode(json.dumps(custom).encode()).decode()


def _beginning(payload: Any) -> bytes:
    """Read the payload. A complete read returns the connection to its pool; a longer payload closes it."""
    with contextlib.closing(payload):
        return bytes(payload.read(RESULT_BYTES))


def _drained(payload: Any) -> bytes:
    """Read the empty payload of an `Event` call, which returns its connection to the pool:
    https://github.com/boto/boto3/issues/3843

    Lambda has accepted the event by then, so an error here is not a failure of the call.
    """
    with contextlib.suppress(BotoCoreError):
        _beginning(payload)
    return b""


def _outcome(answer: Mapping[str, Any], body: bytes) -> Outcome:
    log_tail = base64.b64decode(answer.get("LogResult", ""))[-LOG_TAIL_BYTES:].decode(errors="replace")
    request_id = answers.request_id(answer)
    if "FunctionError" not in answer:
        return answers.with_details(answers.retry_directive(body) or Outcome(ok=True), log_tail, request_id)
    error_type, message = raised(body)
    failed = Outcome(ok=False, error_type=error_type, error=message)
    return answers.with_details(failed, log_tail, request_id)


def raised(body: bytes) -> tuple[str, str]:
    """The error that a failed function reports. A tenant controls the text, so it can be anything."""
    try:
        error = json.loads(body)
        error_type, message = str(error["errorType"]), str(error["errorMessage"])
    except (ValueError, KeyError, TypeError, RecursionError):
        error_type, message = "FunctionError", body[:ERROR_BYTES].decode(errors="replace")
    return error_type, message
