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

    `read` returns what AWS describes, by CloudFormation's names. `defaults` has each compared property, and AWS's value
    for a template without it: all that is described, but for the exceptions in tests/doctor/described.py.
    A difference in one of `losing` loses or holds up executions.
    """

    read: Callable[[Deployment, Resource], Properties]
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
        actual = kind.read(deployment, resource)
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
    """A value such that equal settings compare equal: numbers as text, lists without order, nothing for what is off."""
    match value:
        case dict():
            return {
                key: plain
                for key, part in value.items()
                if part is not False and (plain := _plain(part)) is not None
            } or None
        case list():
            return sorted((_plain(part) for part in value), key=json.dumps) or None
        case bool():
            return str(value).lower()
        case None:
            return None
    try:
        return format(float(value), "g")
    except ValueError:
        return str(value) or None


def _shown(value: Any) -> str:
    text = "no value" if value in (None, [], {}) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[: _MAX_VALUE_CHARS - 1]}…"


# --- what AWS calls the settings ------------------------------------------------------------------
def _described(
    service: str, operation: str, argument: str, answer: str = ""
) -> Callable[[Deployment, Resource], Properties]:
    """A read of one resource by its physical id, whose answer has CloudFormation's names."""

    def read(deployment: Deployment, resource: Resource) -> Properties:
        described = getattr(deployment.client(service), operation)(
            **{
                argument: resource.physical_id.rpartition("/")[2]
                if service == "events"
                else resource.physical_id
            }
        )
        properties: Properties = described[answer] if answer else described
        return properties

    return read


def _read_queue(deployment: Deployment, resource: Resource) -> Properties:
    answer = deployment.client("sqs").get_queue_attributes(
        QueueUrl=resource.physical_id, AttributeNames=["All"]
    )
    attributes: Properties = answer["Attributes"]
    for name in ("RedrivePolicy", "RedriveAllowPolicy"):
        if policy := attributes.get(name):
            attributes[name] = json.loads(policy)
    # Since August 2025 AWS gives new queues 1 MiB.
    if int(attributes.get("MaximumMessageSize", _MESSAGE_BYTES)) >= _MESSAGE_BYTES:
        attributes["MaximumMessageSize"] = _MESSAGE_BYTES
    return attributes


# What Minute8 sends at most.
_MESSAGE_BYTES: Final = 262_144


def _put_queue(deployment: Deployment, url: str, properties: Properties) -> None:
    texts = {
        name: json.dumps(value) if isinstance(value, dict) else str("" if value is None else value)
        for name, value in properties.items()
    }
    deployment.client("sqs").set_queue_attributes(QueueUrl=url, Attributes=texts)


def _read_mapping(deployment: Deployment, resource: Resource) -> Properties:
    mapping = _described("lambda", "get_event_source_mapping", "UUID")(deployment, resource)
    return {**mapping, "KmsKeyArn": mapping.get("KMSKeyArn")}


def _put_mapping(deployment: Deployment, uuid: str, properties: Properties) -> None:
    emptied = {name: value if value is not None else {} for name, value in properties.items()}
    deployment.client("lambda").update_event_source_mapping(UUID=uuid, **emptied)


def _read_function(deployment: Deployment, resource: Resource) -> Properties:
    function = _described("lambda", "get_function_configuration", "FunctionName")(deployment, resource)
    vpc, log = function.get("VpcConfig", {}), function.get("LoggingConfig", {})
    own_log = f"/aws/lambda/{resource.physical_id}"
    return {
        **function,
        "KmsKeyArn": function.get("KMSKeyArn"),
        "Layers": [layer["Arn"] for layer in function.get("Layers", ())],
        "LoggingConfig": {"LogFormat": "Text", **log, "LogGroup": _unless(own_log, log.get("LogGroup"))},
        "SnapStart": {"ApplyOn": _unless("None", function.get("SnapStart", {}).get("ApplyOn"))},
        "VpcConfig": {key: value for key, value in vpc.items() if key != "VpcId"},
    }


def _unless(default: str, value: str | None) -> str | None:
    return None if value == default else value


def _read_alias(deployment: Deployment, resource: Resource) -> Properties:
    function, _, alias = resource.physical_id.rpartition(":")
    properties: Properties = deployment.client("lambda").get_alias(FunctionName=function, Name=alias)
    return properties


def _read_rule(deployment: Deployment, resource: Resource) -> Properties:
    rule = _described("events", "describe_rule", "Name")(deployment, resource)
    targets = deployment.client("events").list_targets_by_rule(Rule=rule["Name"])["Targets"]
    pattern = rule.get("EventPattern")
    return {**rule, "EventPattern": json.loads(pattern) if pattern else None, "Targets": targets}


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


def _read_table(deployment: Deployment, resource: Resource) -> Properties:
    client, name = deployment.client("dynamodb"), resource.physical_id
    table = client.describe_table(TableName=name)["Table"]
    ttl = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    is_on = ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    is_on_demand = table.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
    deployed = resource.properties.get("BillingMode", "PROVISIONED")
    return {
        **table,
        "BillingMode": deployed if is_on_demand else "PROVISIONED",
        "TableClass": table.get("TableClassSummary", {}).get("TableClass", "STANDARD"),
        "TimeToLiveSpecification": {"AttributeName": ttl.get("AttributeName"), "Enabled": is_on},
    }


def _read_log_group(deployment: Deployment, resource: Resource) -> Properties:
    name = resource.physical_id
    groups = deployment.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    group = next(
        (group for group in groups if group["logGroupName"] == name), {"retentionInDays": "no group"}
    )
    return {key[0].upper() + key[1:]: value for key, value in group.items()}


def _put_log_group(deployment: Deployment, name: str, properties: Properties) -> None:
    deployment.client("logs").put_retention_policy(
        logGroupName=name, retentionInDays=int(properties["RetentionInDays"])
    )


def _alarms(kind: str) -> Callable[[Deployment, Resource], Properties]:
    def read(deployment: Deployment, resource: Resource) -> Properties:
        alarms = deployment.client("cloudwatch").describe_alarms(
            AlarmNames=[resource.physical_id], AlarmTypes=[kind]
        )[f"{kind}s"]
        # The check of alarms names a missing one, so that nothing differs here.
        properties: Properties = alarms[0] if alarms else resource.properties
        # ReturnData is true where nothing else is said.
        metrics = [
            {key: part for key, part in metric.items() if (key, part) != ("ReturnData", True)}
            for metric in properties.get("Metrics", ())
        ]
        # An alarm has one of the two statistics.
        statistic = None if properties.get("ExtendedStatistic") else properties.get("Statistic")
        return {**properties, "Metrics": metrics, "Statistic": statistic}

    return read


def _compared(names: str, **defaults: Any) -> Properties:
    """The compared properties; those in `names` have no value in a template without them."""
    return {**dict.fromkeys(names.split()), **defaults}


# The defaults are of AWS's CloudFormation reference, a page for each type. A type that is not here has a check of its
# own, or loses nothing if it is changed: tests/doctor/described.py.
KINDS: Final[Mapping[str, Kind]] = {
    "AWS::SQS::Queue": Kind(
        _read_queue,
        _compared(
            "KmsMasterKeyId RedriveAllowPolicy RedrivePolicy",
            DelaySeconds=0,
            MaximumMessageSize=_MESSAGE_BYTES,
            MessageRetentionPeriod=345_600,
            ReceiveMessageWaitTimeSeconds=0,
            VisibilityTimeout=30,
        ),
        frozenset(
            (
                *("DelaySeconds", "MaximumMessageSize", "MessageRetentionPeriod", "RedriveAllowPolicy"),
                *("RedrivePolicy", "VisibilityTimeout"),
            )
        ),
        _put_queue,
    ),
    "AWS::Lambda::EventSourceMapping": Kind(
        _read_mapping,
        _compared(
            "DestinationConfig EventSourceArn FilterCriteria FunctionResponseTypes KmsKeyArn MetricsConfig"
            " ProvisionedPollerConfig ScalingConfig",
            BatchSize=10,
            MaximumBatchingWindowInSeconds=0,
        ),
        frozenset(("BatchSize", "FilterCriteria", "FunctionResponseTypes", "MaximumBatchingWindowInSeconds")),
        _put_mapping,
    ),
    # Reserved concurrency, which a person may raise, has a check and a repair of its own: functions.py.
    "AWS::Lambda::Function": Kind(
        _read_function,
        _compared(
            "DeadLetterConfig DurableConfig Environment FileSystemConfigs Handler KmsKeyArn Layers Role Runtime"
            " SnapStart TenancyConfig VpcConfig",
            Architectures=["x86_64"],
            EphemeralStorage={"Size": 512},
            LoggingConfig={"LogFormat": "Text"},
            MemorySize=128,
            PackageType="Zip",
            Timeout=3,
            TracingConfig={"Mode": "PassThrough"},
        ),
        frozenset(("Environment", "Handler", "Layers", "Role", "Timeout", "VpcConfig")),
    ),
    # A rollback moves an alias to an earlier version, which has a check of its own.
    "AWS::Lambda::Alias": Kind(_read_alias, _compared("RoutingConfig"), frozenset(("RoutingConfig",))),
    "AWS::Events::Rule": Kind(
        _read_rule,
        _compared("EventPattern RoleArn ScheduleExpression", State="ENABLED", Targets=[]),
        frozenset(("EventPattern", "ScheduleExpression", "State", "Targets")),
        _put_rule,
    ),
    "AWS::Events::EventBus": Kind(
        _described("events", "describe_event_bus", "Name"),
        _compared("DeadLetterConfig KmsKeyIdentifier Policy"),
    ),
    # On demand is always right: docs/runbook/table-throttles.md bills so. Units are auto scaling's.
    "AWS::DynamoDB::Table": Kind(
        _read_table,
        _compared(
            "KeySchema LocalSecondaryIndexes StreamSpecification TimeToLiveSpecification",
            BillingMode="PROVISIONED",
            TableClass="STANDARD",
        ),
    ),
    "AWS::Logs::LogGroup": Kind(_read_log_group, _compared("KmsKeyId RetentionInDays"), put=_put_log_group),
    "AWS::CloudWatch::Alarm": Kind(
        _alarms("MetricAlarm"),
        _compared(
            "AlarmActions ComparisonOperator DatapointsToAlarm Dimensions EvaluateLowSampleCountPercentile"
            " EvaluationPeriods ExtendedStatistic InsufficientDataActions MetricName Metrics Namespace OKActions"
            " Period Statistic Threshold ThresholdMetricId TreatMissingData Unit",
            ActionsEnabled=True,
        ),
    ),
    "AWS::CloudWatch::CompositeAlarm": Kind(
        _alarms("CompositeAlarm"),
        _compared(
            "ActionsSuppressor AlarmActions AlarmRule InsufficientDataActions OKActions", ActionsEnabled=True
        ),
    ),
    "AWS::KMS::Key": Kind(
        _described("kms", "describe_key", "KeyId", "KeyMetadata"),
        _compared(
            "", Enabled=True, KeySpec="SYMMETRIC_DEFAULT", KeyUsage="ENCRYPT_DECRYPT", MultiRegion=False
        ),
        frozenset(("Enabled",)),
        lambda deployment, key, _: deployment.client("kms").enable_key(KeyId=key),
    ),
    "AWS::ApiGatewayV2::Route": Kind(
        lambda deployment, route: deployment.client("apigatewayv2").get_route(
            ApiId=route.properties["ApiId"], RouteId=route.physical_id.rpartition("/")[2]
        ),
        _compared(
            "AuthorizationScopes AuthorizerId RequestParameters RouteKey Target",
            ApiKeyRequired=False,
            AuthorizationType="NONE",
        ),
    ),
    "AWS::ApiGatewayV2::Integration": Kind(
        lambda deployment, integration: deployment.client("apigatewayv2").get_integration(
            ApiId=integration.properties["ApiId"], IntegrationId=integration.physical_id.rpartition("/")[2]
        ),
        _compared(
            "ConnectionId CredentialsArn IntegrationSubtype IntegrationType IntegrationUri PayloadFormatVersion"
            " RequestParameters ResponseParameters TimeoutInMillis TlsConfig"
        ),
    ),
}


# --- what the stack does not have -----------------------------------------------------------------
def strangers(deployment: Deployment) -> Iterator[Finding]:
    """Mappings that read the stage's queues, and who starts its functions, but is not of the stack."""
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
        yield from _callers(deployment, function)
    yield ok("nothing else reads the queues or starts the functions")


def _callers(deployment: Deployment, function: str) -> Iterator[Finding]:
    """Who may invoke a function. The template names services alone."""
    client = deployment.client("lambda")
    for arn in sorted({deployment.function_arn(function), deployment.called_arn(function)}):
        try:
            policy = json.loads(client.get_policy(FunctionName=arn)["Policy"])
        except client.exceptions.ResourceNotFoundException:
            continue
        for statement in policy["Statement"]:
            principal = statement["Principal"]
            if not isinstance(principal, dict) or "AWS" in principal:
                yield warning(
                    f"{json.dumps(principal)} may invoke {deployment.named(function)}, and no template says so:"
                    " what it sends is taken for a message of the stage's",
                    f"aws lambda remove-permission --function-name {arn} --statement-id {statement['Sid']},"
                    " unless you know what it is for",
                )


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
