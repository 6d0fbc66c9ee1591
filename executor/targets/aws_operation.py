"""Any operation of AWS's services, with the rights of the tenant's role. The payload has the parameters.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
The executor's own rights are never used: they reach Minute8's tables and queues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from common.errors import InvalidInput
from common.runs.outcome import Outcome
from common.storage import aws
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import Event, execution_hash, payload_body

# What services answer with status 200 if they refused all or some entries.
_COUNTS: Final = ("FailedEntryCount", "FailedRecordCount", "FailedPutCount")
_LISTS: Final = ("failures", "Failed")


def call(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Call the operation once."""
    from common.storage.aws_operations import operation_of, with_model_names

    if not target.get("role_arn"):
        return Outcome(ok=False, permanent=True, error_type="NotAllowed", error="the target has no role_arn")
    try:
        operation = operation_of(target["arn"])
        parameters = json.loads(payload_body(event))
        if operation.input_shape is not None:
            parameters = with_model_names(operation.input_shape, parameters)
        # Each attempt has the same token, so the service knows a repeated call.
        tokens = dict.fromkeys(operation.idempotent_members, execution_hash(event))
        placed = {**target, "arn": f"arn:aws:any:{_region(target)}:"}
        services = client(operation.service_model.service_name, placed, event, timeout_s)
        answer = services._make_api_call(operation.name, {**tokens, **parameters})
    except (InvalidInput, ParamValidationError, TypeError, ValueError, RecursionError) as error:
        return Outcome(ok=False, permanent=True, error_type="InvalidParameters", error=str(error))
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    return _outcome(answer)


def _region(target: Mapping[str, Any]) -> str:
    """The region of the schedule that the job replaces, or else the deployment's."""
    if arn := target.get("schedule_arn"):
        return str(arn).split(":")[3]
    return str(aws.dynamodb().meta.region_name)


def _outcome(answer: Mapping[str, Any]) -> Outcome:
    for value in answer.values():
        if close := getattr(value, "close", None):  # a stream that nobody reads keeps its connection
            close()
    request_id = answers.request_id(answer)
    if error := answer.get("FunctionError"):
        return answers.failed("FunctionError", str(error), request_id=request_id)
    for name in _COUNTS:
        if count := answer.get(name):
            return answers.failed("PartlyRefused", f"{name} is {count}", request_id=request_id)
    for name in _LISTS:
        if refused := answer.get(name):
            return answers.failed("PartlyRefused", f"{name}: {refused!r}"[:1_000], request_id=request_id)
    return Outcome(ok=True, request_id=request_id)
