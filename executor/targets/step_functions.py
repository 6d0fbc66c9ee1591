"""Step Functions state machines. https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.runs.outcome import Outcome
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import Event, event_body, execution_name


def call(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Start one execution, named after Minute8's: a name is taken for 90 days, so a second start has no effect.

    This holds for standard workflows; express workflows start again.
    """
    try:
        answer = client("stepfunctions", target, event, timeout_s).start_execution(
            stateMachineArn=target["arn"], name=execution_name(event), input=event_body(target, event)
        )
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ExecutionAlreadyExists":
            # An earlier attempt started it, but its answer was lost.
            return Outcome(ok=True, request_id=answers.request_id(error.response))
        return answers.refused_by_aws(error, timeout_s)
    except BotoCoreError as error:
        return answers.refused_by_aws(error, timeout_s)
    return Outcome(ok=True, request_id=answers.request_id(answer))
