"""Everything that a verification makes, by its exact names: what of it is there, and how each resource is removed.

A stage's names end in words that are known, so those of another stage, such as `trial-2` beside `trial`, are not ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from common.platform.signing_masters import parameter_name
from minute8.cli.doctor.inventory import FEEDS, FUNCTIONS, TABLES
from scripts.cloudwatch import alarms

_GONE: Final = ("NotFound", "NonExistent", "NoSuch", "does not exist")
# What IAM calls a refusal differs by service.
_DENIED: Final = ("AccessDenied", "UnauthorizedOperation", "AuthorizationError", "not authorized")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource that is there: `kind` and `name` for people, `command` removes it, and so does `remove`."""

    kind: str
    name: str
    command: str
    remove: Callable[[], object]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: `{self.command}`"


def client(service: str) -> Any:
    return boto3.client(service)  # type: ignore[call-overload]


def target_names(stage: str) -> tuple[str, str]:
    """The functions beside the stack: the target, and the one of the bare path, whose queue has its name."""
    return f"verify-{stage}-target", f"verify-{stage}-bare"


class Names:
    """The names that a stage's own resources have, and those of what a verification puts beside it."""

    def __init__(self, stage: str) -> None:
        def of(words: Any) -> set[str]:
            return {f"minute8-{stage}-{word}" for word in words}

        beside = target_names(stage)
        self.stack = f"minute8-{stage}"
        self.stage = stage
        self.functions = of(FUNCTIONS) | {f"canary-minute8-{stage}", *beside}
        self.tables = of(TABLES)
        queues = [feed.queue for feed in FEEDS]
        self.queues = of([*queues, *(f"{queue}-dead" for queue in queues)]) | {beside[1]}
        self.alarms = of(alarms.declared())
        self.rules = of(("tick", "notify"))
        self.apis = of(("api",))
        self.log_groups = {f"/aws/lambda/{name}" for name in self.functions} | {f"/aws/http-api/{self.stack}"}
        self.roles = re.compile(rf"minute8-({re.escape(stage)}-[A-Za-z]+Role-\w+|{'|'.join(beside)})")
        self.buckets = re.compile(rf"minute8-{re.escape(stage)}-serverlessdeploymentbucket-\w+")


def resources_of(stage: str, region: str) -> tuple[list[Resource], list[str]]:
    """What of a stage is there, in an order in which it can be removed; and what could not be looked for, and why.

    While there is a stack, what is in it goes with it, and only what is beside it is listed too.
    """
    names = Names(stage)
    resources: list[Resource] = []
    unknown: list[str] = []
    for kind, look in _KINDS.items():
        try:
            for name, command, remove in look(names):
                is_beside = kind in ("stack", "parameter") or f"verify-{stage}-" in name
                if is_beside or not any(resource.kind == "stack" for resource in resources):
                    resources.append(
                        Resource(kind, name, command.replace("aws ", f"aws --region {region} "), remove)
                    )
        except (BotoCoreError, ClientError) as error:
            unknown.append(f"could not look for a {kind} of stage {stage}: {error}")
    return resources, unknown


def is_gone(error: ClientError) -> bool:
    """Whether it says that the resource does not exist."""
    return any(word in str(error) for word in _GONE)


def is_denied(error: ClientError) -> bool:
    """Whether IAM refused the call."""
    return any(word in str(error) for word in _DENIED)


Listing = Iterator[tuple[str, str, Callable[[], object]]]


def _pages(service: str, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
    for page in client(service).get_paginator(operation).paginate(**arguments):
        yield from page.get(key, [])


def _stack(names: Names) -> Listing:
    """Removed before everything else, by its own module: emptying its bucket and waiting take a while."""
    try:
        (description,) = client("cloudformation").describe_stacks(StackName=names.stack)["Stacks"]
    except ClientError as error:
        if is_gone(error):
            return
        raise
    if description["StackStatus"] != "DELETE_COMPLETE":
        bucket = bucket_of(names.stack)
        empty = f"aws s3 rm s3://{bucket} --recursive && " if bucket else ""
        command = f"{empty}aws cloudformation delete-stack --stack-name {names.stack}"
        yield names.stack, command, partial(client("cloudformation").delete_stack, StackName=names.stack)


def bucket_of(stack: str) -> str:
    """The bucket of a stack with the archives of its deployments; empty if there is none, or not yet."""
    try:
        parts = client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
    except ClientError as error:
        if not is_gone(error):
            raise
        return ""
    return next(
        (
            str(part.get("PhysicalResourceId", ""))
            for part in parts
            if part["LogicalResourceId"] == "ServerlessDeploymentBucket"
            and part["ResourceStatus"] != "DELETE_COMPLETE"
        ),
        "",
    )


def _mappings(names: Names) -> Listing:
    for mapping in _pages("lambda", "list_event_source_mappings", "EventSourceMappings"):
        function = mapping.get("FunctionArn", "").rpartition(":function:")[2].partition(":")[0]
        if function in names.functions and mapping.get("State") != "Deleting":
            identifier = mapping["UUID"]
            yield (
                f"{identifier} of {function}",
                f"aws lambda delete-event-source-mapping --uuid {identifier}",
                partial(client("lambda").delete_event_source_mapping, UUID=identifier),
            )


def _functions(names: Names) -> Listing:
    for function in _pages("lambda", "list_functions", "Functions"):
        if (name := function["FunctionName"]) in names.functions:
            command = f"aws lambda delete-function --function-name {name}"
            yield name, command, partial(client("lambda").delete_function, FunctionName=name)


def _roles(names: Names) -> Listing:
    for role in _pages("iam", "list_roles", "Roles"):
        if names.roles.fullmatch(name := role["RoleName"]):
            policies = client("iam").list_role_policies(RoleName=name)["PolicyNames"]
            commands = [
                *(
                    f"aws iam delete-role-policy --role-name {name} --policy-name {policy}"
                    for policy in policies
                ),
                f"aws iam delete-role --role-name {name}",
            ]
            yield name, " && ".join(commands), partial(_remove_role, name)


def _remove_role(name: str) -> None:
    iam = client("iam")
    for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    iam.delete_role(RoleName=name)


def _queues(names: Names) -> Listing:
    for prefix in (f"{names.stack}-", f"verify-{names.stage}-"):
        for url in _pages("sqs", "list_queues", "QueueUrls", QueueNamePrefix=prefix):
            if (name := url.rpartition("/")[2]) in names.queues:
                command = f"aws sqs delete-queue --queue-url {url}"
                yield name, command, partial(client("sqs").delete_queue, QueueUrl=url)


def _tables(names: Names) -> Listing:
    for name in _pages("dynamodb", "list_tables", "TableNames"):
        if name in names.tables:
            command = f"aws dynamodb delete-table --table-name {name}"
            yield name, command, partial(client("dynamodb").delete_table, TableName=name)


def _rules(names: Names) -> Listing:
    for rule in _pages("events", "list_rules", "Rules", NamePrefix=f"{names.stack}-"):
        if (name := rule["Name"]) in names.rules:
            targets = [target["Id"] for target in client("events").list_targets_by_rule(Rule=name)["Targets"]]
            without = f"aws events remove-targets --rule {name} --ids {' '.join(targets)} && " * bool(targets)
            yield (
                name,
                f"{without}aws events delete-rule --name {name}",
                partial(_remove_rule, name, targets),
            )


def _remove_rule(name: str, targets: list[str]) -> None:
    if targets:
        client("events").remove_targets(Rule=name, Ids=targets)
    client("events").delete_rule(Name=name)


def _buses(names: Names) -> Listing:
    for bus in client("events").list_event_buses(NamePrefix=names.stack)["EventBuses"]:
        if (name := bus["Name"]) == names.stack:
            command = f"aws events delete-event-bus --name {name}"
            yield name, command, partial(client("events").delete_event_bus, Name=name)


def _alarms(names: Names) -> Listing:
    described = client("cloudwatch").get_paginator("describe_alarms")
    kinds = ["CompositeAlarm", "MetricAlarm"]
    for page in described.paginate(AlarmNamePrefix=f"{names.stack}-", AlarmTypes=kinds):
        for alarm in [*page.get("CompositeAlarms", []), *page.get("MetricAlarms", [])]:
            if (name := alarm["AlarmName"]) in names.alarms:
                command = f"aws cloudwatch delete-alarms --alarm-names {name}"
                yield name, command, partial(client("cloudwatch").delete_alarms, AlarmNames=[name])


def _apis(names: Names) -> Listing:
    for api in _pages("apigatewayv2", "get_apis", "Items"):
        if api["Name"] in names.apis:
            identifier = api["ApiId"]
            command = f"aws apigatewayv2 delete-api --api-id {identifier}"
            yield api["Name"], command, partial(client("apigatewayv2").delete_api, ApiId=identifier)


def _parameters(names: Names) -> Listing:
    name = parameter_name(names.stage)
    filters = [{"Key": "Name", "Values": [name]}]
    if client("ssm").describe_parameters(ParameterFilters=filters)["Parameters"]:
        command = f"aws ssm delete-parameter --name {name}"
        yield name, command, partial(client("ssm").delete_parameter, Name=name)


def _buckets(names: Names) -> Listing:
    for bucket in client("s3").list_buckets()["Buckets"]:
        if names.buckets.fullmatch(name := bucket["Name"]):
            yield name, f"aws s3 rb s3://{name} --force", partial(remove_bucket, name)


def empty_bucket(name: str) -> None:
    """Delete all objects of a bucket."""
    for page in client("s3").get_paginator("list_objects_v2").paginate(Bucket=name):
        if keys := [{"Key": entry["Key"]} for entry in page.get("Contents", [])]:
            client("s3").delete_objects(Bucket=name, Delete={"Objects": keys})


def remove_bucket(name: str) -> None:
    """Delete a bucket with all that is in it."""
    empty_bucket(name)
    client("s3").delete_bucket(Bucket=name)


def _log_groups(names: Names) -> Listing:
    """Last: an invocation that is still under way makes its own again."""
    prefixes = [f"/aws/{place}-" for place in (f"lambda/{names.stack}", f"lambda/verify-{names.stage}")]
    for prefix in [*prefixes, f"/aws/lambda/canary-{names.stack}", f"/aws/http-api/{names.stack}"]:
        for group in _pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=prefix):
            if (name := group["logGroupName"]) in names.log_groups:
                command = f"aws logs delete-log-group --log-group-name {name}"
                yield name, command, partial(client("logs").delete_log_group, logGroupName=name)


# In the order of removal.
_KINDS: Final[dict[str, Callable[[Names], Listing]]] = {
    "stack": _stack,
    "event source mapping": _mappings,
    "rule": _rules,
    "function": _functions,
    "role": _roles,
    "queue": _queues,
    "table": _tables,
    "event bus": _buses,
    "alarm": _alarms,
    "API": _apis,
    "parameter": _parameters,
    "bucket": _buckets,
    "log group": _log_groups,
}
