"""Names permissions as AWS does: a batch needs the permission of its parts, and reading is not writing."""

from collections.abc import Callable
from typing import Any

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
# A DynamoDB transaction is checked part by part by the server itself, each part on its own table.
_AS_ON_AWS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}

# The server checks reading a function's reserved concurrency as setting it.
_READS_AS_ON_AWS = {"lambda:PutFunctionConcurrency": "lambda:GetFunctionConcurrency"}

# What a function does about loops is checked as reading or changing its code.
_RECURSION = {"GET": "lambda:GetFunctionRecursionConfig", "PUT": "lambda:PutFunctionRecursionConfig"}


def install(iam_actions: Any) -> None:
    """Make the server check these actions as the ones that AWS checks."""
    stock: Callable[..., str | None] = iam_actions.extract_iam_action

    def as_on_aws(service: str, method: str, path: str, *request: Any) -> str | None:
        if service == "lambda" and path.endswith("/recursion-config"):
            return _RECURSION.get(method)
        action = stock(service, method, path, *request)
        if action and method == "GET":
            action = _READS_AS_ON_AWS.get(action, action)
        return _AS_ON_AWS.get(action, action) if action else action

    iam_actions.extract_iam_action = as_on_aws
