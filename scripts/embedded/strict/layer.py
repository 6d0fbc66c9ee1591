"""AWS's rules that the server lacks: what `start(strict=True)` adds to it. docs/embedded-aws.md lists them.

The small rules are here. Each larger rule has a file of its own.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import Any, Final

from scripts.embedded.strict import (
    caller_rights,
    conflicts,
    connections,
    iam_delay,
    lambdas,
    quota,
    recursion,
    service_quotas,
    throttling,
)

MAX_DELAY_S: Final = 900
MESSAGES_PER_DUPLICATE: Final = 10
DUPLICATE_AFTER_S: Final = 0.5
SHORT_POLLS_PER_EMPTY_ANSWER: Final = 2


def install(throttled: Callable[[str, bool], None], *, with_shares: bool) -> None:
    """Into the server of this process. `with_shares`: functions get the processor share of their memory too.

    `throttled` gets the name of a table, and whether its writes were throttled or its reads.
    """
    from hypercorn.asyncio.tcp_server import TCPServer
    from ministack.core import iam_evaluator, lambda_runtime, responses  # type: ignore[import-untyped]
    from ministack.services import (  # type: ignore[import-untyped]
        dynamodb,
        eventbridge,
        iam,
        lambda_svc,
        sqs,
    )
    from ministack.services.cloudformation import provisioners, stacks  # type: ignore[import-untyped]

    recursion.install(sqs, lambda_svc)
    conflicts.install(dynamodb)
    throttling.install(dynamodb, throttled)
    iam_delay.install(iam, iam_evaluator, lambda_svc, provisioners)
    caller_rights.install(
        iam_evaluator, provisioners, lambda: (responses.get_region(), responses.get_account_id())
    )
    connections.install(TCPServer)
    lambdas.grow_concurrency(lambda_svc)
    lambdas.update_configuration_first(stacks, provisioners)
    refuse_long_delays(sqs)
    deliver_some_messages_twice(sqs)
    answer_some_short_polls_empty(sqs)
    service_quotas.limit_messages_in_flight(sqs)
    service_quotas.limit_events(eventbridge)
    fire_rules_twice(eventbridge)
    if with_shares:
        quota.install(lambda_runtime)


def refuse_long_delays(sqs: Any) -> None:
    """A message is delayed by 0 to 900 seconds; anything else is refused.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
    """
    send = sqs._act_send_message

    def checked(request: dict[str, Any], url: str) -> Any:
        delay_s = request.get("DelaySeconds")
        if delay_s is not None and not 0 <= int(delay_s) <= MAX_DELAY_S:
            reason = f"Value {delay_s} for parameter DelaySeconds is invalid. Reason: must be from 0 to {MAX_DELAY_S}."
            raise sqs._Err("InvalidParameterValue", reason)
        return send(request, url)

    # A batch calls it for each of its messages.
    sqs._act_send_message = sqs._HANDLERS["SendMessage"] = checked


def deliver_some_messages_twice(sqs: Any) -> None:
    """At least once: every tenth message that a queue hands to a function is handed over a second time, soon.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html
    """
    receive, numbers = sqs._receive_messages_for_esm, itertools.count(1)

    def again(queue_url: str, max_number: int) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = receive(queue_url, max_number)
        queue = sqs._get_q(queue_url)
        if queue["is_fifo"]:
            return messages
        copies = [_copy(message) for message in messages if next(numbers) % MESSAGES_PER_DUPLICATE == 0]
        with sqs._queues_lock:
            queue["messages"].extend(copies)
        return messages

    sqs._receive_messages_for_esm = again


def _copy(message: dict[str, Any]) -> dict[str, Any]:
    """The same message, of the same id, to be received apart from the first."""
    return message | {"receipt_handle": None, "visible_at": time.time() + DUPLICATE_AFTER_S}


def answer_some_short_polls_empty(sqs: Any) -> None:
    """Every second short poll finds nothing.

    On AWS a short poll asks some of SQS's servers, so it can miss a queue's messages. A long poll asks all servers.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
    """
    receive, numbers = sqs._act_receive_message, itertools.count(1)

    async def sampled(request: dict[str, Any], url: str) -> Any:
        queue = sqs._get_q(request.get("QueueUrl", url))
        wait_s = request.get("WaitTimeSeconds", queue["attributes"].get("ReceiveMessageWaitTimeSeconds", "0"))
        if int(wait_s) == 0 and next(numbers) % SHORT_POLLS_PER_EMPTY_ANSWER == 0:
            return {}
        return await receive(request, url)

    sqs._act_receive_message = sqs._HANDLERS["ReceiveMessage"] = sampled


def fire_rules_twice(eventbridge: Any) -> None:
    """Each time that a rule with a schedule fires, its function is invoked twice at once, as AWS may do.

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-troubleshooting.html
    """
    dispatch = eventbridge._dispatch_to_lambda

    def twice(arn: str, payload: str) -> None:
        dispatch(arn, payload)
        if _is_of_a_schedule(payload):
            dispatch(arn, payload)

    eventbridge._dispatch_to_lambda = twice


def _is_of_a_schedule(payload: str) -> bool:
    """Whether the clock made this event. What a rule's target gets instead of the event is not recognised."""
    event = json.loads(payload)
    return isinstance(event, dict) and event.get("detail-type") == "Scheduled Event"
