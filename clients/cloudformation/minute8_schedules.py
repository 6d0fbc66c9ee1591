"""Schedules of CloudFormation at Minute8: a macro, and the provider of the resources that it writes.

`transform` turns AWS::Scheduler::Schedule and AWS::Scheduler::ScheduleGroup into custom resources with the same
properties. `provide` makes them through Minute8's EventBridge API. It needs nothing but Lambda's own Python.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-macros-overview.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import boto3

TYPES: Final = {
    "AWS::Scheduler::Schedule": "Custom::Minute8Schedule",
    "AWS::Scheduler::ScheduleGroup": "Custom::Minute8ScheduleGroup",
}
_NOT_MADE: Final = "minute8-was-not-made"
_GROUP_WAIT_S: Final = 240
_MAX_REASON_CHARS: Final = 1_000

Event = Mapping[str, Any]
Properties = Mapping[str, Any]


def transform(event: Event, context: object) -> dict[str, Any]:
    """The macro. A resource with `Metadata: {Minute8: false}` stays at AWS."""
    fragment = json.loads(json.dumps(event["fragment"]))
    for resource in fragment.get("Resources", {}).values():
        stays = str((resource.get("Metadata") or {}).get("Minute8", True)).lower() == "false"
        if resource.get("Type") in TYPES and not stays:
            resource["Type"] = TYPES[resource["Type"]]
            resource["Properties"] = {
                "ServiceToken": os.environ["PROVIDER_ARN"],
                **resource.get("Properties", {}),
            }
    return {"requestId": event["requestId"], "status": "success", "fragment": fragment}


def provide(event: Event, context: object) -> None:
    """The provider. CloudFormation waits for the answer, whatever happens."""
    physical_id = event.get("PhysicalResourceId", _NOT_MADE)
    try:
        answer = answer_to(event, scheduler())
    except Exception as error:  # noqa: BLE001  the stack gets the reason of any error
        reason = f"{type(error).__name__}: {error}"[:_MAX_REASON_CHARS]
        answer = {"Status": "FAILED", "Reason": reason, "PhysicalResourceId": physical_id}
    copied = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    body = json.dumps({**copied, **answer}).encode()
    # The address was signed without a type.
    request = urllib.request.Request(event["ResponseURL"], body, {"Content-Type": ""}, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


def scheduler() -> Any:
    """boto3's client of Minute8, with the key pair of the secret."""
    secret = boto3.client("secretsmanager").get_secret_value(SecretId=os.environ["SECRET_ARN"])
    pair = json.loads(secret["SecretString"])
    return boto3.client(
        "scheduler",
        endpoint_url=f"{os.environ['MINUTE8_URL'].rstrip('/')}/eventbridge",
        aws_access_key_id=pair["access_key_id"],
        aws_secret_access_key=pair["secret_access_key"],
    )


def answer_to(event: Event, client: Any, sleep: Callable[[float], None] = time.sleep) -> dict[str, Any]:
    """Do what CloudFormation asks for. Raises ClientError, TimeoutError."""
    is_group = event["ResourceType"] == TYPES["AWS::Scheduler::ScheduleGroup"]
    properties, operation = event["ResourceProperties"], event["RequestType"]
    name = properties.get("Name") or _made_name(event)
    if operation == "Delete":
        physical_id = event["PhysicalResourceId"]
        if physical_id != _NOT_MADE:
            if is_group:
                _delete_group(client, physical_id, sleep)
            else:
                _delete_schedule(client, physical_id, properties.get("GroupName"))
        return {"Status": "SUCCESS", "PhysicalResourceId": physical_id}
    write = _write_group if is_group else _write_schedule
    arn = write(client, event, name)
    return {"Status": "SUCCESS", "PhysicalResourceId": name, "Data": {"Arn": arn}}


def _write_schedule(client: Any, event: Event, name: str) -> str:
    """Create the schedule, or update it. If its group changes it is another one, and the former is deleted."""
    parameters = as_parameters(client, "CreateSchedule", {**event["ResourceProperties"], "Name": name})
    before = event.get("OldResourceProperties") or {}
    is_same = event.get("PhysicalResourceId") == name
    if is_same and before.get("GroupName") == parameters.get("GroupName"):
        arn = client.update_schedule(**parameters, ClientToken=_token(event))["ScheduleArn"]
    else:
        arn = client.create_schedule(**parameters, ClientToken=_token(event))["ScheduleArn"]
        if is_same:
            _delete_schedule(client, name, before.get("GroupName"))
    return str(arn)


def _delete_schedule(client: Any, name: str, group: str | None) -> None:
    with suppress(client.exceptions.ResourceNotFoundException):
        client.delete_schedule(Name=name, **({"GroupName": group} if group else {}))


def _write_group(client: Any, event: Event, name: str) -> str:
    tags = event["ResourceProperties"].get("Tags", [])
    if event.get("PhysicalResourceId") != name:
        created = client.create_schedule_group(Name=name, Tags=tags, ClientToken=_token(event))
        return str(created["ScheduleGroupArn"])
    arn = str(client.get_schedule_group(Name=name)["Arn"])
    keys = {tag["Key"] for tag in tags}
    before = (event.get("OldResourceProperties") or {}).get("Tags", [])
    if removed := [tag["Key"] for tag in before if tag["Key"] not in keys]:
        client.untag_resource(ResourceArn=arn, TagKeys=removed)
    if tags:
        client.tag_resource(ResourceArn=arn, Tags=tags)
    return arn


def _delete_group(client: Any, name: str, sleep: Callable[[float], None]) -> None:
    """Delete the group, and wait until its schedules are gone. Raises TimeoutError."""
    try:
        client.delete_schedule_group(Name=name)
        for _ in range(_GROUP_WAIT_S):
            client.get_schedule_group(Name=name)
            sleep(1)
    except client.exceptions.ResourceNotFoundException:
        return
    raise TimeoutError(f"schedule group {name} is still being deleted after {_GROUP_WAIT_S} s")


def as_parameters(client: Any, operation: str, properties: Properties) -> dict[str, Any]:
    """The properties as the API's parameters: CloudFormation hands over numbers and booleans as texts."""
    shape = client.meta.service_model.operation_model(operation).input_shape
    own = {name: value for name, value in properties.items() if name != "ServiceToken"}
    return dict(_typed(shape, own))


def _typed(shape: Any, value: Any) -> Any:
    if shape.type_name == "structure" and isinstance(value, Mapping):
        names = {name.lower(): name for name in shape.members}  # templates write AwsvpcConfiguration
        exact = {name: names.get(name.lower(), name) for name in value}
        return {
            exact[name]: _typed(shape.members[exact[name]], member)
            if exact[name] in shape.members
            else member
            for name, member in value.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [_typed(shape.member, member) for member in value]
    if shape.type_name == "integer" and isinstance(value, str):
        return int(value)
    if shape.type_name == "boolean" and isinstance(value, str):
        return value.lower() == "true"
    return value


def _made_name(event: Event) -> str:
    """The name of a resource that names itself not: the same for each request about it."""
    if event["RequestType"] != "Create" and event.get("PhysicalResourceId") != _NOT_MADE:
        return str(event["PhysicalResourceId"])
    stack = event["StackId"].split("/")[1] if "/" in event["StackId"] else event["StackId"]
    unique = hashlib.sha256(f"{event['StackId']}/{event['LogicalResourceId']}".encode()).hexdigest()[:12]
    return f"{stack[:24]}-{event['LogicalResourceId'][:24]}-{unique}"


def _token(event: Event) -> str:
    """Lambda may repeat an invocation: the same request has the same token."""
    return hashlib.sha256(event["RequestId"].encode()).hexdigest()[:32]
