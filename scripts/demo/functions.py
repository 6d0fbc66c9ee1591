"""Small Lambda functions that the demo, the benchmarks and `make verify` deploy beside Minute8, and remove again."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from botocore.exceptions import ClientError

_LOGS: Final = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")
# What AWS refuses at first: a new role and its policy take seconds to reach Lambda, a removed queue's name a minute.
_NOT_YET: Final = ("cannot be assumed", "does not have permissions", "You must wait 60 seconds")
_PATIENCE_S: Final = 90
_PAUSE_S: Final = 2

Clients = Callable[[str], Any]


def create(client: Clients, name: str, source: str, timeout_s: int, actions: Sequence[str] = ()) -> str:
    """Create the function `name` unless it exists, and return its ARN when it can be called.

    `source` is a module with a function `handle`. Its role may write logs and do `actions`.
    """
    functions = client("lambda")
    try:
        return str(functions.get_function(FunctionName=name)["Configuration"]["FunctionArn"])
    except functions.exceptions.ResourceNotFoundException:
        pass
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("handler.py", source)
    configuration = {
        "FunctionName": name,
        "Runtime": "python3.13",
        "Handler": "handler.handle",
        "Role": _role(client("iam"), name, actions),
        "Timeout": timeout_s,
        "Code": {"ZipFile": package.getvalue()},
    }
    arn = str(until_taken(lambda: functions.create_function(**configuration))["FunctionArn"])
    functions.get_waiter("function_active_v2").wait(FunctionName=name, WaiterConfig={"Delay": 1})
    return arn


def until_taken(call: Callable[[], Any]) -> Any:
    """The answer of a call that AWS may refuse at first. Raises ClientError if it is refused for something else."""
    give_up_at = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return call()
        except ClientError as error:
            if time.monotonic() > give_up_at or not any(words in str(error) for words in _NOT_YET):
                raise
            time.sleep(_PAUSE_S)


def remove(client: Clients, name: str) -> None:
    """Remove the function, its role and its log. What is not there is no error."""
    functions, iam, logs = client("lambda"), client("iam"), client("logs")
    with suppress(functions.exceptions.ResourceNotFoundException):
        functions.delete_function(FunctionName=name)
    with suppress(iam.exceptions.NoSuchEntityException):
        iam.delete_role_policy(RoleName=role_name(name), PolicyName=name)
    with suppress(iam.exceptions.NoSuchEntityException):
        iam.delete_role(RoleName=role_name(name))
    with suppress(logs.exceptions.ResourceNotFoundException):
        logs.delete_log_group(logGroupName=f"/aws/lambda/{name}")


def role_name(name: str) -> str:
    """Of a prefix that the deployer's policy in docs/deploying.md covers."""
    return f"minute8-{name}"


def _role(iam: Any, name: str, actions: Sequence[str]) -> str:
    trust = _policy(["sts:AssumeRole"], Principal={"Service": "lambda.amazonaws.com"})
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=role_name(name), AssumeRolePolicyDocument=trust)
    may = _policy([*_LOGS, *actions], Resource="*")
    iam.put_role_policy(RoleName=role_name(name), PolicyName=name, PolicyDocument=may)
    return str(iam.get_role(RoleName=role_name(name))["Role"]["Arn"])


def _policy(actions: Sequence[str], **fields: Any) -> str:
    statement = {"Effect": "Allow", "Action": list(actions), **fields}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
