"""Names the permission of a batch as AWS does: the permission of its parts."""

from collections.abc import Callable
from typing import Any

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
# A DynamoDB transaction is checked part by part by the server itself, each part on its own table.
_AS_ON_AWS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}


def install(iam_actions: Any) -> None:
    """Make the server check each batch action as the one that AWS checks."""
    stock: Callable[..., str | None] = iam_actions.extract_iam_action

    def as_on_aws(*arguments: Any, **named: Any) -> str | None:
        action = stock(*arguments, **named)
        return _AS_ON_AWS.get(action, action) if action else action

    iam_actions.extract_iam_action = as_on_aws
