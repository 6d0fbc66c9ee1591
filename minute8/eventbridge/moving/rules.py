"""Scheduled rules of EventBridge as jobs: one for each target of a rule. Pure.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-rule-schedule.html
The event of a rule that is due is known beforehand but for its id and time. So a path or a transformer of a target is
evaluated here once, with placeholders in the place of both.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from common.errors import InvalidInput
from common.ids import is_id
from common.limits import JOB_ID_CHARS
from minute8.cli.sources.source_job import (
    Defaults,
    Known,
    NoEquivalent,
    SourceJob,
    left_out,
    literal,
    loads,
)
from minute8.eventbridge.mapping import definition_of

_RULE: Final[Known] = {
    **dict.fromkeys(("Name", "Arn", "ScheduleExpression", "State", "Description", "Targets")),
    **dict.fromkeys(("EventBusName", "CreatedBy", "ManagedBy")),
}
_TARGET: Final[Known] = {
    **dict.fromkeys(("Id", "Arn", "Input", "InputPath", "InputTransformer", "EcsParameters")),
    "SqsParameters": {"MessageGroupId": None},
    "KinesisParameters": {"PartitionKeyPath": None},
    "SageMakerPipelineParameters": {"PipelineParameterList": None},
    "DeadLetterConfig": {"Arn": None},
    "RetryPolicy": {"MaximumRetryAttempts": None, "MaximumEventAgeInSeconds": None},
}
_WHY: Final = {
    "EventPattern": "Minute8 calls at times alone",
    "RoleArn": "Minute8's own role makes the call; role_arn names one that trusts it",
}
# Kinds whose message is a text, and those that get JSON.
_TEXTS: Final = ("sqs", "sns")
# Members that are the same in a schedule's target.
_SAME: Final = (
    *("DeadLetterConfig", "RetryPolicy", "EcsParameters", "SqsParameters"),
    "SageMakerPipelineParameters",
)
# Services that would take the event for parameters.
_OWN_INPUT: Final = ("ecs", "codebuild", "codepipeline", "sagemaker", "inspector")
_PATH: Final = re.compile(r"\$(?:\.[A-Za-z0-9_-]+|\[[0-9]+\]|\['[^']+'\])*", re.ASCII)
_STEP: Final = re.compile(r"\.([A-Za-z0-9_-]+)|\[([0-9]+)\]|\['([^']+)'\]", re.ASCII)
_VARIABLE: Final = re.compile(r"<([A-Za-z0-9._-]+)>", re.ASCII)
# A text of JSON, or what is between two texts.
_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[^"]+', re.DOTALL)


def is_rule(value: object) -> bool:
    """Whether this is a rule, as `describe-rule` prints it, with its `Targets`."""
    return isinstance(value, Mapping) and "Targets" in value


def rule_jobs(rule: Mapping[str, Any], defaults: Defaults) -> Iterator[SourceJob]:
    """The jobs of a scheduled rule, or why they are none."""
    where = f"rule {rule['Name']}"
    if by := rule.get("ManagedBy"):
        yield SourceJob(where, refusal=f"{by} made this rule, and manages it")
    elif not rule.get("ScheduleExpression"):
        yield SourceJob(where, refusal="it has no ScheduleExpression: events start its targets")
    elif not rule["Targets"]:
        yield SourceJob(where, refusal="it has no target")
    else:
        for target in rule["Targets"]:
            try:
                yield _job(rule, target, defaults)
            except (NoEquivalent, InvalidInput) as error:
                yield SourceJob(f"{where}/{target['Id']}", refusal=str(error))


def rule_job_id(rule: str, target_id: str) -> str:
    """The id of the job of a rule's target; different for any two targets."""
    natural = f"{rule}.{target_id}"
    if is_id(natural, JOB_ID_CHARS) and ".." not in natural and "." not in target_id:
        return natural
    return f"rule-{hashlib.sha256(f'{rule}/{target_id}'.encode()).hexdigest()[:32]}"


def _job(rule: Mapping[str, Any], target: Mapping[str, Any], defaults: Defaults) -> SourceJob:
    notes = [*left_out(rule, _RULE, _WHY), *left_out(target, _TARGET, _WHY, "Target.")]
    if rule["ScheduleExpression"].startswith("rate("):
        notes.append("AWS does not tell when the rate began, so it counts from the first import on")
    if defaults.target:
        notes.append(f"Target.Arn {target['Arn']} is left out: --target takes its place")
    definition = _definition(rule, target, defaults)
    if '"{{execution_id}}"' in json.dumps(definition["payload"]):
        notes.append("the event's id is Minute8's execution id, which is no UUID")
    return SourceJob(
        f"rule {rule['Name']}/{target['Id']}",
        rule_job_id(rule["Name"], target["Id"]),
        definition,
        notes=tuple(notes),
        suspended=rule.get("State") == "DISABLED",
    )


def _definition(rule: Mapping[str, Any], target: Mapping[str, Any], defaults: Defaults) -> dict[str, Any]:
    service = [*str(target["Arn"]).split(":"), "", "", ""][2]
    if service == "events":
        raise NoEquivalent("Target.Arn: a rule passes its own event on, whose source only AWS may write")
    text = _input_text(rule, target)
    aws_target = _schedule_target(rule, target, text)
    if defaults.target:
        aws_target = {"Arn": "arn:aws:sns:us-east-1:000000000000:any", "RoleArn": ""}
    schedule = {
        "ScheduleExpression": rule["ScheduleExpression"],
        "Description": rule.get("Description"),
        "Target": aws_target,
    }
    definition = definition_of(schedule, "arn:aws:scheduler:us-east-1:000000000000:schedule/default/any")
    own_target = {name: value for name, value in definition["target"].items() if name != "schedule_arn"}
    if own_target["kind"] == "aws_operation":
        if not own_target["role_arn"]:
            raise NoEquivalent("Target.RoleArn: is missing, and Minute8 calls this target with a role")
        return {**definition, "target": own_target, "payload": loads(definition["payload"])}
    is_text = own_target["kind"] in _TEXTS and not defaults.target
    payload = text if is_text else loads(text)
    own_target = defaults.target or {**own_target, "envelope": False}
    return {**definition, "target": own_target, "payload": payload}


def _schedule_target(rule: Mapping[str, Any], target: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The target as a schedule of EventBridge Scheduler has it, with what the rule sends."""
    service = [*str(target["Arn"]).split(":"), "", "", ""][2]
    aws_target = {"Arn": target["Arn"], "RoleArn": target.get("RoleArn", "")}
    aws_target |= {name: target[name] for name in _SAME if target.get(name)}
    if service == "kinesis":
        aws_target["KinesisParameters"] = {"PartitionKey": _partition_key(rule, target)}
    if service not in _OWN_INPUT or _has_input(target):
        aws_target["Input"] = text
    return aws_target


def _has_input(target: Mapping[str, Any]) -> bool:
    return any(target.get(name) for name in ("Input", "InputPath", "InputTransformer"))


def _input_text(rule: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """What the target gets, as text with placeholders. Raises NoEquivalent."""
    if target.get("Input"):
        try:
            loads(target["Input"])
        except ValueError:
            raise NoEquivalent("Target.Input is not JSON") from None
        return literal(target["Input"])
    event = _event(rule)
    if path := target.get("InputPath"):
        return _json(_at(event, path, "Target.InputPath"))
    if transformer := target.get("InputTransformer"):
        return _transformed(rule, event, transformer)
    return _json(event)


def _event(rule: Mapping[str, Any]) -> dict[str, Any]:
    _, _, _, region, account, *_ = [*str(rule.get("Arn", "")).split(":"), *[""] * 5]
    return {
        "version": "0",
        "id": "{{execution_id}}",
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": account,
        "time": "{{fire_time}}",
        "region": region,
        "resources": [rule.get("Arn", "")],
        "detail": {},
    }


def _partition_key(rule: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_KinesisParameters.html: else the event's id."""
    path = (target.get("KinesisParameters") or {}).get("PartitionKeyPath") or "$.id"
    return str(_at(_event(rule), path, "Target.KinesisParameters.PartitionKeyPath"))


def _at(event: Any, path: str, where: str) -> Any:
    """The part of the event at a path. Raises NoEquivalent."""
    if not _PATH.fullmatch(path):
        raise NoEquivalent(f"{where}: the path {path} cannot be read here")
    value = event
    for name, number, quoted in _STEP.findall(path):
        try:
            value = value[int(number)] if number else value[name or quoted]
        except (KeyError, IndexError, TypeError):
            raise NoEquivalent(f"{where}: the event of a schedule has nothing at {path}") from None
    return value


def _transformed(rule: Mapping[str, Any], event: Any, transformer: Mapping[str, Any]) -> str:
    """https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html"""
    where = "Target.InputTransformer"
    values = {
        "aws.events.rule-arn": rule.get("Arn", ""),
        "aws.events.rule-name": rule["Name"],
        "aws.events.event.ingestion-time": "{{fire_time}}",
        "aws.events.event": {name: value for name, value in event.items() if name != "detail"},
        "aws.events.event.json": event,
    } | {
        name: _at(event, path, f"{where}.InputPathsMap.{name}")
        for name, path in (transformer.get("InputPathsMap") or {}).items()
    }

    def filled(piece: str) -> str:
        is_text = piece.startswith('"')

        def value_of(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise NoEquivalent(f"{where}.InputTemplate: <{match[1]}> is not in InputPathsMap")
            value = values[match[1]]
            if not is_text:
                return _json(value)
            return _json(value if isinstance(value, str) else _json(value))[1:-1]

        return _VARIABLE.sub(value_of, literal(piece))

    text = "".join(map(filled, _PIECE.findall(transformer["InputTemplate"])))
    try:
        loads(text)
    except ValueError:
        raise NoEquivalent(f"{where}.InputTemplate is not one value of JSON when it is filled in") from None
    return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
