"""Templated targets that are operations of AWS's services here: the operation, and the text of its parameters. Pure.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-templated.html
The text can hold context attributes, which are replaced for each attempt. `RoleArn` is assumed for the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from common.errors import InvalidInput

# https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html
_RUN_TASK: Final[Mapping[str, str]] = {
    "TaskDefinitionArn": "taskDefinition",
    "TaskCount": "count",
    "LaunchType": "launchType",
    "PlatformVersion": "platformVersion",
    "Group": "group",
    "CapacityProviderStrategy": "capacityProviderStrategy",
    "EnableECSManagedTags": "enableECSManagedTags",
    "EnableExecuteCommand": "enableExecuteCommand",
    "PlacementConstraints": "placementConstraints",
    "PlacementStrategy": "placementStrategy",
    "PropagateTags": "propagateTags",
    "ReferenceId": "referenceId",
    "Tags": "tags",
}
# As `schedule_input` writes it; what is in brackets is replaced.
_NOTIFICATION: Final = {
    "version": "0",
    "id": "<aws.scheduler.execution-id>",
    "detail-type": "Scheduled Event",
    "source": "aws.scheduler",
    "time": "<aws.scheduler.scheduled-time>",
    "resources": ["<aws.scheduler.schedule-arn>"],
    "detail": "{}",
}

AwsTarget = Mapping[str, Any]
Parameters = tuple[str, dict[str, Any]]


def is_templated(arn: str) -> bool:
    """Whether this is the ARN of such a target."""
    return _service(arn) in _OPERATIONS


def operation_text(aws_target: AwsTarget) -> tuple[str, str]:
    """The universal ARN of the operation, and its parameters as JSON. Raises InvalidInput."""
    arn = aws_target["Arn"]
    operation, parameters = _OPERATIONS[_service(arn)](aws_target)
    partition = arn.split(":")[1]
    return f"arn:{partition}:scheduler:::aws-sdk:{operation}", json.dumps(parameters, ensure_ascii=False)


def _run_task(aws_target: AwsTarget) -> Parameters:
    members = _needed(aws_target, "EcsParameters", "TaskDefinitionArn")
    parameters: dict[str, Any] = {"cluster": aws_target["Arn"]}
    parameters |= {name: members[aws_name] for aws_name, name in _RUN_TASK.items() if aws_name in members}
    if network := members.get("NetworkConfiguration"):
        vpc = network.get("awsvpcConfiguration", {})
        names = {"Subnets": "subnets", "SecurityGroups": "securityGroups", "AssignPublicIp": "assignPublicIp"}
        parameters["networkConfiguration"] = {
            "awsvpcConfiguration": {names[name]: value for name, value in vpc.items()}
        }
    if aws_target.get("Input"):
        parameters["overrides"] = _object(aws_target["Input"])
    return "ecs:runTask", parameters


def _put_record(aws_target: AwsTarget) -> Parameters:
    members = _needed(aws_target, "KinesisParameters", "PartitionKey")
    parameters = {"StreamARN": aws_target["Arn"], "PartitionKey": members["PartitionKey"]}
    return "kinesis:putRecord", parameters | {"Data": _data(aws_target)}


def _put_delivery(aws_target: AwsTarget) -> Parameters:
    stream = aws_target["Arn"].rpartition("/")[2]
    return "firehose:putRecord", {"DeliveryStreamName": stream, "Record": {"Data": _data(aws_target)}}


def _start_build(aws_target: AwsTarget) -> Parameters:
    more = _object(aws_target["Input"]) if aws_target.get("Input") else {}
    return "codebuild:startBuild", {**more, "projectName": aws_target["Arn"].rpartition("/")[2]}


def _start_pipeline(aws_target: AwsTarget) -> Parameters:
    return "codepipeline:startPipelineExecution", {"name": aws_target["Arn"].rpartition(":")[2]}


def _start_model_pipeline(aws_target: AwsTarget) -> Parameters:
    members = (aws_target.get("SageMakerPipelineParameters") or {}).get("PipelineParameterList", [])
    parameters: dict[str, Any] = {"PipelineName": aws_target["Arn"].rpartition("/")[2]}
    return "sagemaker:startPipelineExecution", parameters | (
        {"PipelineParameters": members} if members else {}
    )


def _start_assessment(aws_target: AwsTarget) -> Parameters:
    return "inspector:startAssessmentRun", {"assessmentTemplateArn": aws_target["Arn"]}


_OPERATIONS: Final[Mapping[str, Callable[[AwsTarget], Parameters]]] = {
    "ecs": _run_task,
    "kinesis": _put_record,
    "firehose": _put_delivery,
    "codebuild": _start_build,
    "codepipeline": _start_pipeline,
    "sagemaker": _start_model_pipeline,
    "inspector": _start_assessment,
}


def _service(arn: str) -> str:
    return [*arn.split(":"), "", "", ""][2] if arn.startswith("arn:aws") else ""


def _needed(aws_target: AwsTarget, name: str, member: str) -> Mapping[str, Any]:
    members: Mapping[str, Any] = aws_target.get(name) or {}
    if member not in members:
        raise InvalidInput(f"Target.{name}.{member}", "is missing", accepted=f"{member}: the target needs it")
    return members


def _data(aws_target: AwsTarget) -> str:
    return aws_target.get("Input") or json.dumps(_NOTIFICATION)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput("Target.Input", "must be an object", value=text, accepted="a JSON object")
    return value
