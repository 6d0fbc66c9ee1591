"""SQS queues, standard and FIFO.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.runs.outcome import Outcome
from common.storage.domains import domain_of
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import Event, execution_hash, group_of, message_attributes, message_body


def call(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Send one message: the event as JSON, with tenant, job and execution as attributes."""
    try:
        answer = client("sqs", target, event, timeout_s).send_message(
            QueueUrl=queue_url(target["arn"]),
            MessageBody=message_body(target, event),
            MessageAttributes=message_attributes(event),
            **fifo_arguments(target, event),
        )
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    return Outcome(ok=True, request_id=answers.request_id(answer))


def queue_url(arn: str) -> str:
    """The queue's URL from the ARN, without a request. The client uses its region's endpoint, whatever the host is."""
    _, partition, _, region, account, name = arn.split(":")
    return f"https://sqs.{region}.{domain_of(partition)}/{account}/{name}"


def fifo_arguments(target: Mapping[str, Any], event: Event) -> dict[str, str]:
    """Group and deduplication id, for SQS and SNS. Derived ids are the same for each attempt of an execution, so a
    message whose answer was lost is not delivered twice (within SQS's five minutes)."""
    arguments = {}
    is_fifo = target["arn"].endswith(".fifo")
    if group := target.get("message_group_id") or (group_of(event) if is_fifo else None):
        arguments["MessageGroupId"] = group
    if is_fifo:
        arguments["MessageDeduplicationId"] = target.get("deduplication_id") or execution_hash(event)
    return arguments
