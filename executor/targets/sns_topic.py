"""SNS topics, standard and FIFO. https://docs.aws.amazon.com/sns/latest/api/API_Publish.html"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.runs.outcome import Outcome
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import Event, message_attributes, message_body
from executor.targets.sqs_queue import fifo_arguments


def call(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Publish the event as JSON, with tenant, job and execution as attributes to filter by."""
    subject = {"Subject": target["subject"]} if target.get("subject") else {}
    try:
        answer = client("sns", target, event, timeout_s).publish(
            TopicArn=target["arn"],
            Message=message_body(target, event),
            MessageAttributes=message_attributes(event),
            **subject,
            **fifo_arguments(target, event),
        )
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    return Outcome(ok=True, request_id=answers.request_id(answer))
