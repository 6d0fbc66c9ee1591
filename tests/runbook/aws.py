"""`aws`, as far as the documents use it: an operation and its options, by botocore's own model of the service."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import jmespath  # type: ignore[import-untyped]
from botocore import xform_name

# Options that the AWS CLI names in another way than the API: there, `--endpoint-url` begins like `endpoint`.
_RENAMED = {"notification-endpoint": "endpoint"}


def main(arguments: list[str]) -> int:
    """Run one command and print its answer; returns the exit code."""
    service, operation, *rest = arguments
    client: Any = boto3.client(service)  # type: ignore[call-overload]
    if (service, operation) == ("logs", "tail"):
        since = int(time.time() - 3600) * 1000
        events = client.filter_log_events(logGroupName=rest[0], startTime=since)["events"]
        print("".join(event["message"].rstrip() + "\n" for event in events), end="")
        return 0
    if (service, operation) in (("s3", "sync"), ("cloudformation", "deploy")):
        if service == "s3":
            sync(client, *rest)
        else:
            deploy(client, parsed(rest)[1])
        return 0
    positional, query, members = request(client.meta.service_model, operation, rest)
    answer = getattr(client, operation.replace("-", "_"))(**members)
    answer.pop("ResponseMetadata", None)
    if payload := answer.pop("Payload", None):
        with Path(positional[0]).open("ab") as file:
            file.write(payload.read() + b"\n")
    result = jmespath.search(query, answer) if query else answer
    print(result if "text" in rest and isinstance(result, str) else json.dumps(result, default=str))
    return 1 if "FunctionError" in answer else 0


def request(service: Any, operation: str, words: list[str]) -> tuple[list[str], str | None, dict[str, Any]]:
    """The words without an option, `--query`, and the operation's members, by botocore's model of the service."""
    positional, options = parsed(words)
    query = options.pop("query", [None])[0]
    options.pop("output", None)
    options = {_RENAMED.get(name, name): values for name, values in options.items()}
    names = {xform_name(name): name for name in service.operation_names}
    shape = service.operation_model(names[operation.replace("-", "_")]).input_shape
    return positional, query, typed(shape, options)


def parsed(words: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The words before the first option or after a last one that takes none, and each option's values."""
    positional: list[str] = []
    options: dict[str, list[str]] = {}
    values = positional
    for word in words:
        if word.startswith("--"):
            values = options.setdefault(word[2:], [])
        elif word == "/dev/stdout":
            positional.append(word)
        else:
            values.append(word)
    return positional, options


def typed(shape: Any, options: dict[str, list[str]]) -> dict[str, Any]:
    """The options as the operation's members. Raises KeyError for an option that it does not have."""
    members = {xform_name(name).replace("_", "-"): name for name in shape.members}
    typed_options: dict[str, Any] = {}
    for option, values in options.items():
        if not values:
            name = members.get(option) or members[option.removeprefix("no-")]
            typed_options[name] = option in members
            continue
        typed_options[members[option]] = value_of(shape.members[members[option]], values)
    return typed_options


def value_of(shape: Any, values: list[str]) -> Any:
    """A member's value; a structure is JSON, or AWS's shorthand `Name=value,Name=value`."""
    if shape.type_name == "list":
        return [value_of(shape.member, [value]) for value in values]
    [value] = values
    if value.startswith("file://"):
        value = Path(value.removeprefix("file://")).read_text()
    if shape.type_name == "structure":
        if value.startswith("{"):
            return json.loads(value)
        pairs = dict(pair.split("=", 1) for pair in value.split(","))
        return {name: value_of(shape.members[name], [text]) for name, text in pairs.items()}
    return {"integer": int, "long": int, "boolean": lambda text: text == "true"}.get(shape.type_name, str)(
        value
    )


def sync(client: Any, folder: str, address: str) -> None:
    """Put a folder's files into a bucket."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    for path in sorted(Path(folder).iterdir()):
        client.upload_file(str(path), bucket, prefix + path.name)


def deploy(client: Any, options: dict[str, list[str]]) -> None:
    """Create or update a stack by a change set, with a template that lies in a bucket. Raises WaiterError."""
    [stack], [bucket], [path] = options["stack-name"], options["s3-bucket"], options["template-file"]
    boto3.client("s3").upload_file(path, bucket, "deployed.template")
    try:
        client.describe_stacks(StackName=stack)
        kind = "UPDATE"
    except client.exceptions.ClientError:
        kind = "CREATE"
    pairs = [pair.split("=", 1) for pair in options["parameter-overrides"]]
    change_set = client.create_change_set(
        StackName=stack,
        ChangeSetName=f"deploy-{time.time_ns()}",
        ChangeSetType=kind,
        TemplateURL=f"{client.meta.endpoint_url}/{bucket}/deployed.template",
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in pairs],
        Capabilities=options["capabilities"],
    )["Id"]
    often = {"Delay": 1, "MaxAttempts": 600}
    client.get_waiter("change_set_create_complete").wait(ChangeSetName=change_set, WaiterConfig=often)
    client.execute_change_set(ChangeSetName=change_set)
    client.get_waiter(f"stack_{kind.lower()}_complete").wait(StackName=stack, WaiterConfig=often)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
