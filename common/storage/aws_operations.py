"""Operations of AWS's services by the names of universal targets, such as `aws-sdk:ecs:runTask`.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
The models are botocore's. The layer has few of them, and Lambda's own Python has all. They are read when a job first
names a service: nobody else pays for them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from common.cache import FairCache
from common.errors import InvalidInput
from common.storage.aws import model_bytes, session_of_all_services

PATTERN: Final = r"arn:aws[a-z-]{0,20}:scheduler:::aws-sdk:[a-z0-9]{1,64}:[a-z][A-Za-z0-9]{1,127}"
_ARN: Final = re.compile(PATTERN, re.ASCII)
# AWS's universal targets cannot read. These are the guide's words.
_READING: Final = (
    *("get", "describe", "list", "poll", "receive", "search", "scan", "query", "select", "read", "lookup"),
    *("discover", "validate", "batchGet", "batchDescribe", "batchRead", "transactGet", "adminGet"),
    *("adminList", "testMigration", "retrieve", "testConnection", "translateDocument", "isAuthorized"),
    "invokeModel",
)
_DEEPEST: Final = 64
# About the four largest models. A larger one is read for each check.
_MODELS_BYTES: Final = 40_000_000
# AWS's name of a service, and botocore's where that is another one. Schedules may leave out a last "service".
_SERVICES: Final = {
    "costexplorer": "ce",
    "cognitoidentityprovider": "cognito-idp",
    "configservice": "config",
    "costandusagereportservice": "cur",
    "applicationdiscoveryservice": "discovery",
    "databasemigrationservice": "dms",
    "directoryservice": "ds",
    "directoryservicedata": "ds-data",
    "elasticloadbalancing": "elb",
    "elasticloadbalancingv2": "elbv2",
    "elasticsearchservice": "es",
    "eventbridge": "events",
    "iotdataplane": "iot-data",
    "iotjobsdataplane": "iot-jobs-data",
    "lexmodelbuildingservice": "lex-models",
    "lexruntimeservice": "lex-runtime",
    "lexmodelsv2": "lexv2-models",
    "lexruntimev2": "lexv2-runtime",
    "cloudwatchlogs": "logs",
    "marketplaceentitlementservice": "marketplace-entitlement",
    "marketplacemetering": "meteringmarketplace",
    "migrationhub": "mgh",
    "simpledb": "sdb",
    "serverlessapplicationrepository": "serverlessrepo",
    "pinpointsmsvoice": "sms-voice",
    "sfn": "stepfunctions",
}


def names_in(arn: str) -> tuple[str, str]:
    """The service and the operation, as the ARN has them. Raises InvalidInput."""
    if not _ARN.fullmatch(arn):
        accepted = "arn:aws:scheduler:::aws-sdk:<service>:<operation>"
        raise InvalidInput("target.arn", "names no operation", value=arn, accepted=accepted)
    service, operation = arn.split(":")[-2:]
    if operation.startswith(_READING):
        accepted = "an operation that changes something"
        raise InvalidInput("target.arn", "is an operation that only reads", value=arn, accepted=accepted)
    return service, operation


def service_name(service: str) -> str:
    """botocore's name of the service. Raises InvalidInput."""
    full_name = service if service in _SERVICES else f"{service}service"
    plain_name = _SERVICES.get(full_name, service).replace("-", "")
    for name in _known_services():
        if name.replace("-", "") == plain_name:
            return name
    raise InvalidInput("target.arn", "names an unknown service", value=service, accepted="a service of AWS")


def operation_of(arn: str, model: Any = None) -> Any:
    """botocore's model of the operation, from that of its service if it is at hand. Raises InvalidInput."""
    service, operation = names_in(arn)
    if model is None:
        botocore_name = service_name(service)
        model = _models.get(
            botocore_name, "", lambda: session_of_all_services().get_service_model(botocore_name)
        )
    name = next((known for known in model.operation_names if known.lower() == operation.lower()), None)
    if name is None:
        raise InvalidInput(
            "target.arn", "names an unknown operation", value=operation, accepted=f"an operation of {service}"
        )
    return model.operation_model(name)


def check_parameters(arn: str, parameters: Any) -> None:
    """Whether the operation takes these parameters. Raises InvalidInput."""
    from botocore.validate import ParamValidator

    operation = operation_of(arn)
    if not isinstance(parameters, dict):
        accepted = f"a JSON object with the parameters of {operation.name}"
        raise InvalidInput("payload", "must be the operation's parameters", accepted=accepted)
    if operation.input_shape is None:
        if parameters:
            raise InvalidInput("payload", f"{operation.name} takes no parameters", accepted="{}")
        return
    # A call has these of its execution.
    tokens = dict.fromkeys(operation.idempotent_members, "x" * 64)
    named = with_model_names(operation.input_shape, parameters)
    report = ParamValidator().validate({**tokens, **named}, operation.input_shape)
    if report.has_errors():
        problem = report.generate_report()[:500]
        raise InvalidInput("payload", problem, accepted=f"the parameters of {operation.name}")


def with_model_names(shape: Any, value: Any, depth: int = 0) -> Any:
    """The parameters by the model's names: universal targets write `Cluster`, and ECS's model `cluster`.

    Raises InvalidInput if they nest too deep.
    """
    if depth > _DEEPEST:
        raise InvalidInput("payload", "nests too deep", accepted=f"at most {_DEEPEST} levels")
    if shape.type_name == "structure" and isinstance(value, dict):
        names = {name.lower(): name for name in shape.members}
        exact = {name: name if name in shape.members else names.get(name.lower(), name) for name in value}
        return {
            exact[name]: with_model_names(shape.members[exact[name]], member, depth + 1)
            if exact[name] in shape.members
            else member
            for name, member in value.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [with_model_names(shape.member, member, depth + 1) for member in value]
    if shape.type_name == "map" and isinstance(value, dict):
        return {name: with_model_names(shape.value, member, depth + 1) for name, member in value.items()}
    return value


@cache
def _known_services() -> tuple[str, ...]:
    return tuple(session_of_all_services().get_available_services())


# What checks of parameters have read, the last used first.
_models: Final[FairCache[Any]] = FairCache(_MODELS_BYTES, model_bytes)
