"""Whether what exists has the settings of the deployed template, and whether anything else reads or calls its parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from common.platform.findings import RESTORE, Finding, Repair, failed, not_checked, ok, warning
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.inventory import FEEDS, FUNCTIONS
from minute8.cli.doctor.template import DeployedTemplate, NoStackError, Resource

Properties = dict[str, Any]
# Of these, a setting in `Kind.losing` loses messages.
_ON_THE_WAY: Final = ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Function", "AWS::SQS::Queue")
_MAX_VALUE_CHARS: Final = 120


class Kind(NamedTuple):
    """How the settings of a type of resource are read and put back.

    `read` returns properties by CloudFormation's names. `defaults` has each compared property, and AWS's value for a
    template without it. A difference in one of `losing` loses or holds up executions.
    """

    read: Callable[[Deployment, str], Properties]
    defaults: Properties
    losing: frozenset[str] = frozenset()
    put: Callable[[Deployment, str, Properties], object] | None = None


def settings(deployment: Deployment) -> Iterator[Finding]:
    """Compare each resource of a known type with the deployed template, property by property."""
    compared = 0
    try:
        template = DeployedTemplate(deployment)
    except NoStackError as error:
        yield not_checked(str(error))
        return
    for resource in template.resources():
        if kind := KINDS.get(resource.type):
            compared += 1
            yield from _differences(deployment, resource, kind)
    yield ok(f"{compared} resources are as the template says")


def _differences(deployment: Deployment, resource: Resource, kind: Kind) -> Iterator[Finding]:
    client_errors = deployment.client("sts").exceptions.ClientError
    try:
        actual = kind.read(deployment, resource.physical_id)
    except client_errors as error:
        if not is_missing(error):
            raise
        yield failed(f"{resource.name} is gone: {resource.physical_id}", RESTORE)
        return
    for name, default in kind.defaults.items():
        deployed, current = resource.properties.get(name, default), actual.get(name, default)
        if name in resource.unknown or _plain(deployed) == _plain(current):
            continue
        path, deployed_part, current_part = _first_difference(name, deployed, current)
        message = (
            f"{resource.name} ({resource.physical_id.rpartition('/')[2]}) has {path}"
            f" {_shown(current_part)} instead of {_shown(deployed_part)}"
        )
        repair = _repair(deployment, resource, kind, name, deployed)
        remedy = f"{repair.description}; `minute8 doctor --fix` does it" if repair else RESTORE
        finding = (failed if name in kind.losing else warning)(message, remedy, repair)
        yield replace(finding, loses=name in kind.losing and resource.type in _ON_THE_WAY)


def _first_difference(path: str, deployed: Any, current: Any) -> tuple[str, Any, Any]:
    """The path of the first member that differs, and its values."""
    if isinstance(deployed, dict) and isinstance(current, dict):
        for name in sorted({*deployed, *current}):
            deployed_part, current_part = deployed.get(name), current.get(name)
            if _plain(deployed_part) != _plain(current_part):
                return _first_difference(f"{path}.{name}", deployed_part, current_part)
    return path, deployed, current


def _repair(deployment: Deployment, resource: Resource, kind: Kind, name: str, value: Any) -> Repair | None:
    if (put := kind.put) is None:
        return None
    described = f"put {name} of {resource.name} back to {_shown(value)}"
    return Repair(described, lambda: put(deployment, resource.physical_id, {name: value}))


def is_missing(error: Any) -> bool:
    """Whether a ClientError says that there is no such resource."""
    code = str(error.response["Error"]["Code"])
    return "NotFound" in code or "NonExistent" in code or "NoSuch" in code or "DoesNotExist" in code


def _plain(value: Any) -> Any:
    """A value such that equal settings compare equal: numbers as text, lists without order."""
    match value:
        case dict():
            return {key: _plain(part) for key, part in value.items() if part not in (None, [], {})} or None
        case list():
            return sorted((_plain(part) for part in value), key=json.dumps) or None
        case bool():
            return str(value).lower()
        case None:
            return None
    try:
        return format(float(value), "g")
    except ValueError:
        return str(value)


def _shown(value: Any) -> str:
    text = "no value" if value in (None, [], {}) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[: _MAX_VALUE_CHARS - 1]}…"


# --- what AWS calls the settings ------------------------------------------------------------------
def _read_queue(deployment: Deployment, url: str) -> Properties:
    answer = deployment.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    attributes: Properties = answer["Attributes"]
    if policy := attributes.get("RedrivePolicy"):
        attributes["RedrivePolicy"] = json.loads(policy)
    return attributes


def _put_queue(deployment: Deployment, url: str, properties: Properties) -> None:
    texts = {
        name: json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in properties.items()
    }
    deployment.client("sqs").set_queue_attributes(QueueUrl=url, Attributes=texts)


def _read_mapping(deployment: Deployment, uuid: str) -> Properties:
    mapping: Properties = deployment.client("lambda").get_event_source_mapping(UUID=uuid)
    return {**mapping, "FunctionName": mapping["FunctionArn"]}


def _put_mapping(deployment: Deployment, uuid: str, properties: Properties) -> None:
    emptied = {name: value if value is not None else {} for name, value in properties.items()}
    deployment.client("lambda").update_event_source_mapping(UUID=uuid, **emptied)


def _read_function(deployment: Deployment, name: str) -> Properties:
    client = deployment.client("lambda")
    configuration: Properties = client.get_function_configuration(FunctionName=name)
    return {**configuration, "Layers": [layer["Arn"] for layer in configuration.get("Layers", ())]}


def _read_alias(deployment: Deployment, arn: str) -> Properties:
    function, _, alias = arn.rpartition(":")
    properties: Properties = deployment.client("lambda").get_alias(FunctionName=function, Name=alias)
    return properties


def _read_rule(deployment: Deployment, name: str) -> Properties:
    events, name = deployment.client("events"), name.rpartition("/")[2]
    rule: Properties = events.describe_rule(Name=name)
    targets = events.list_targets_by_rule(Rule=name)["Targets"]
    return {**rule, "Targets": [{"Arn": target["Arn"], "Id": target["Id"]} for target in targets]}


def _put_rule(deployment: Deployment, name: str, properties: Properties) -> None:
    events, name = deployment.client("events"), name.rpartition("/")[2]
    if targets := properties.get("Targets"):
        events.put_targets(Rule=name, Targets=targets)
        return
    current = {
        key: value for key, value in events.describe_rule(Name=name).items() if key in _SETTINGS_OF_RULE
    }
    events.put_rule(Name=name, **{**current, **properties})


_SETTINGS_OF_RULE: Final = ("Description", "ScheduleExpression", "State")


def _read_table(deployment: Deployment, name: str) -> Properties:
    client = deployment.client("dynamodb")
    table = client.describe_table(TableName=name)["Table"]
    ttl = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    is_on = ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return {
        "KeySchema": table["KeySchema"],
        "TimeToLiveSpecification": {"AttributeName": ttl.get("AttributeName"), "Enabled": is_on},
    }


def _read_log_group(deployment: Deployment, name: str) -> Properties:
    groups = deployment.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return next(
        (
            {"RetentionInDays": group.get("retentionInDays")}
            for group in groups
            if group["logGroupName"] == name
        ),
        {"RetentionInDays": "no group"},
    )


def _put_log_group(deployment: Deployment, name: str, properties: Properties) -> None:
    deployment.client("logs").put_retention_policy(
        logGroupName=name, retentionInDays=int(properties["RetentionInDays"])
    )


def _read_alarm(deployment: Deployment, name: str) -> Properties:
    alarms = deployment.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    properties: Properties = alarms[0] if alarms else {"ActionsEnabled": "no alarm"}
    return properties


# The defaults are of AWS's CloudFormation reference, a page for each type.
KINDS: Final[Mapping[str, Kind]] = {
    "AWS::SQS::Queue": Kind(
        _read_queue,
        {
            "DelaySeconds": 0,
            "MessageRetentionPeriod": 345_600,
            "RedrivePolicy": None,
            "VisibilityTimeout": 30,
        },
        frozenset(("DelaySeconds", "MessageRetentionPeriod", "RedrivePolicy", "VisibilityTimeout")),
        _put_queue,
    ),
    "AWS::Lambda::EventSourceMapping": Kind(
        _read_mapping,
        {
            "BatchSize": 10,
            "EventSourceArn": None,
            "FilterCriteria": None,
            "FunctionResponseTypes": [],
            "MaximumBatchingWindowInSeconds": 0,
            "ProvisionedPollerConfig": None,
            "ScalingConfig": None,
        },
        frozenset(("BatchSize", "FilterCriteria", "FunctionResponseTypes", "MaximumBatchingWindowInSeconds")),
        _put_mapping,
    ),
    # Reserved concurrency has a check and a repair of its own: minute8/cli/doctor/functions.py.
    "AWS::Lambda::Function": Kind(
        _read_function,
        {
            "Architectures": ["x86_64"],
            "Environment": None,
            "Handler": None,
            "Layers": [],
            "MemorySize": 128,
            "Role": None,
            "Runtime": None,
            "Timeout": 3,
        },
        frozenset(("Environment", "Handler", "Role", "Timeout")),
    ),
    # A rollback moves an alias to an earlier version, which has a check of its own.
    "AWS::Lambda::Alias": Kind(_read_alias, {"RoutingConfig": None}, frozenset(("RoutingConfig",))),
    "AWS::Events::Rule": Kind(
        _read_rule,
        {"ScheduleExpression": None, "State": "ENABLED", "Targets": []},
        frozenset(("ScheduleExpression", "State", "Targets")),
        _put_rule,
    ),
    # Billing is left out: docs/runbook/table-throttles.md changes it.
    "AWS::DynamoDB::Table": Kind(_read_table, {"KeySchema": None, "TimeToLiveSpecification": None}),
    "AWS::Logs::LogGroup": Kind(_read_log_group, {"RetentionInDays": None}, put=_put_log_group),
    "AWS::CloudWatch::Alarm": Kind(
        _read_alarm,
        {
            "ActionsEnabled": True,
            "AlarmActions": [],
            "ComparisonOperator": None,
            "DatapointsToAlarm": None,
            "EvaluationPeriods": None,
            "Threshold": None,
            "TreatMissingData": None,
        },
    ),
}


# --- what the stack does not have -----------------------------------------------------------------
def strangers(deployment: Deployment) -> Iterator[Finding]:
    """Mappings that read the stage's queues, and rules that start its functions, but are not of the stack."""
    try:
        known = set(DeployedTemplate(deployment).physical_ids.values())
    except NoStackError as error:
        yield not_checked(str(error))
        return
    known_rules = {name.rpartition("/")[2] for name in known}
    lambdas, events = deployment.client("lambda"), deployment.client("events")
    for feed in FEEDS:
        for queue in (feed.queue, f"{feed.queue}-dead"):
            pages = lambdas.get_paginator("list_event_source_mappings")
            for page in pages.paginate(EventSourceArn=deployment.queue_arn(queue)):
                for mapping in page["EventSourceMappings"]:
                    if mapping["UUID"] not in known and mapping["State"] not in ("Disabled", "Disabling"):
                        yield _second_consumer(deployment, queue, mapping)
    for function in FUNCTIONS:
        names = {
            name
            for arn in {deployment.function_arn(function), deployment.called_arn(function)}
            for name in events.list_rule_names_by_target(TargetArn=arn)["RuleNames"]
        }
        for name in sorted(names - known_rules):
            yield warning(
                f"the rule {name} starts {deployment.named(function)}, and the stack does not have it",
                f"aws events disable-rule --name {name}, unless you know what it is for",
            )
    yield ok("nothing else reads the queues or starts the functions")


def _second_consumer(deployment: Deployment, queue: str, mapping: Properties) -> Finding:
    uuid, reader = mapping["UUID"], mapping["FunctionArn"].rpartition("function:")[2]
    disable = f"aws lambda update-event-source-mapping --no-enabled --uuid {uuid}"
    update = deployment.client("lambda").update_event_source_mapping
    finding = failed(
        f"{reader} reads {deployment.named(queue)} too, and the stack does not have that mapping:"
        " Minute8 never receives those messages",
        f"{disable}; `minute8 doctor --fix` does it",
        Repair(disable, lambda: update(UUID=uuid, Enabled=False)),
    )
    return replace(finding, loses=True)
