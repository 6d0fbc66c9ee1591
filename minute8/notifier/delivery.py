"""Sends messages to the addresses of subscriptions: signed webhooks, and SNS topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from common.notices.subscription import Notice, Subscription
from common.runs.outcome import Outcome
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.http_endpoint import HttpEndpoints, Outgoing

# Name resolution, connection, TLS and answer together.
TIMEOUT_S: Final = 5.0
# SNS takes fewer than 100: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
_SUBJECT_CHARS: Final = 99


# Sends one message.
Deliver = Callable[[Subscription, Notice], Outcome]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Sends by the kind of the address."""

    endpoints: HttpEndpoints

    def __call__(self, subscription: Subscription, message: Notice) -> Outcome:
        """Try once, within TIMEOUT_S. Nothing that an address does raises an error."""
        if subscription.target["kind"] == "sns":
            return _published(subscription, message)
        headers = {
            "content-type": "application/json",
            "minute8-tenant": subscription.tenant,
            "minute8-subscription": subscription.name,
        }
        request = Outgoing(
            subscription.target["url"], "POST", headers, message.body.encode(), message.message_id
        )
        return self.endpoints.send(subscription.tenant, request, TIMEOUT_S)


def _published(subscription: Subscription, message: Notice) -> Outcome:
    arn = subscription.target["arn"]
    fifo = {"MessageGroupId": subscription.name, "MessageDeduplicationId": message.message_id}
    names = {"minute8_tenant": subscription.tenant, "minute8_subscription": subscription.name}
    try:
        answer = client("sns", {"arn": arn}, {"minute8": {"tenant": subscription.tenant}}, TIMEOUT_S).publish(
            TopicArn=arn,
            Subject=subject_of(subscription),
            Message=message.body,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value} for name, value in names.items()
            },
            **(fifo if arn.endswith(".fifo") else {}),
        )
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, TIMEOUT_S)
    return Outcome(ok=True, request_id=answers.request_id(answer))


def subject_of(subscription: Subscription) -> str:
    """One line for an e-mail. Tenant and name are ids, so nothing in it is markup. Pure."""
    return f"Minute8: {subscription.tenant}, {subscription.name}"[:_SUBJECT_CHARS]
