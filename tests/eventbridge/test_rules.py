"""Scheduled rules of EventBridge as jobs: what each kind of target and of input becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.ids import is_id
from common.registration.definition import Limits, parse_definition
from minute8.cli.sources.source_job import Defaults, SourceJob
from minute8.eventbridge.moving import importing
from minute8.eventbridge.moving.rules import rule_job_id
from tests.worlds import ARN

RULE_ARN = "arn:aws:events:eu-west-1:123456789012:rule/nightly"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders"
ROLE = "arn:aws:iam::123456789012:role/r"
EVENT = {
    "version": "0",
    "id": "{{execution_id}}",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "account": "123456789012",
    "time": "{{fire_time}}",
    "region": "eu-west-1",
    "resources": [RULE_ARN],
    "detail": {},
}


def rule(*targets: dict[str, Any], **more: Any) -> dict[str, Any]:
    described = {
        "Name": "nightly",
        "Arn": RULE_ARN,
        "ScheduleExpression": "cron(0 3 * * ? *)",
        "State": "ENABLED",
    }
    return {**described, "Targets": [{"Id": "1", **target} for target in targets], **more}


def jobs(value: Any, **defaults: Any) -> list[SourceJob]:
    return list(importing.read(json.dumps([value]), Defaults(**defaults)))


def the_job(value: Any, **defaults: Any) -> SourceJob:
    (job,) = jobs(value, **defaults)
    assert not job.refusal, job.refusal
    return job


def test_a_rule_becomes_a_job_for_each_target() -> None:
    both = jobs(rule({"Arn": ARN}, {"Arn": QUEUE, "Id": "queue"}, Description="at night", State="DISABLED"))
    assert [(job.job_id, job.suspended, job.definition["name"]) for job in both] == [
        ("nightly.1", True, "at night"),
        ("nightly.queue", True, "at night"),
    ]
    assert both[0].definition["schedule"] == {"cron": "0 3 * * *", "timezone": "UTC", "spread_s": 0}
    assert both[0].definition["target"] == {
        "kind": "lambda",
        "invocation": "Event",
        "arn": ARN,
        "envelope": False,
    }
    assert both[0].definition["retry"] == {"max_attempts": 186, "max_age_s": 86_400}


@pytest.mark.parametrize(
    ("arn", "parameters", "payload"),
    [
        (ARN, {}, EVENT),
        (QUEUE, {}, json.dumps(EVENT)),
        (ARN, {"Input": ' {"n": 1, "t": "{{x"}'}, {"n": 1, "t": "{{{{x"}),
        (QUEUE, {"Input": ' {"n": 1.50}'}, ' {"n": 1.50}'),
        (ARN, {"InputPath": "$.detail"}, {}),
        (ARN, {"InputPath": "$"}, EVENT),
        (ARN, {"InputPath": "$['resources'][0]"}, RULE_ARN),
        (QUEUE, {"InputPath": "$.time"}, '"{{fire_time}}"'),
        (
            ARN,
            {
                "InputTransformer": {
                    "InputPathsMap": {"at": "$.time", "all": "$"},
                    "InputTemplate": '{"at": <at>, "text": "on <at> by <aws.events.rule-name>", "e": <all>}',
                }
            },
            {"at": "{{fire_time}}", "text": "on {{fire_time}} by nightly", "e": EVENT},
        ),
        (
            QUEUE,
            {"InputTransformer": {"InputTemplate": '"{{ <aws.events.rule-arn>"'}},
            f'"{{{{{{{{ {RULE_ARN}"',
        ),
    ],
)
def test_a_target_gets_what_the_rule_sends(arn: str, parameters: dict[str, Any], payload: Any) -> None:
    assert the_job(rule({"Arn": arn, **parameters})).definition["payload"] == payload


@pytest.mark.parametrize(
    ("target", "arn", "payload"),
    [
        (
            {"Arn": "arn:aws:kinesis:eu-west-1:123456789012:stream/s", "RoleArn": ROLE, "Input": '{"a": 1}'},
            "kinesis:putRecord",
            {
                "StreamARN": "arn:aws:kinesis:eu-west-1:123456789012:stream/s",
                "PartitionKey": "{{execution_id}}",
                "Data": '{"a": 1}',
            },
        ),
        (
            {
                "Arn": "arn:aws:ecs:eu-west-1:123456789012:cluster/c",
                "RoleArn": ROLE,
                "EcsParameters": {"TaskDefinitionArn": "t", "TaskCount": 2},
            },
            "ecs:runTask",
            {
                "cluster": "arn:aws:ecs:eu-west-1:123456789012:cluster/c",
                "taskDefinition": "t",
                "count": 2,
            },
        ),
    ],
)
def test_other_services_are_called_as_operations(target: Any, arn: str, payload: Any) -> None:
    definition = the_job(rule(target)).definition
    assert definition["target"] == {
        "kind": "aws_operation",
        "arn": f"arn:aws:scheduler:::aws-sdk:{arn}",
        "role_arn": ROLE,
    }
    assert definition["payload"] == payload


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (rule(), "it has no target"),
        (rule({"Arn": ARN}, ScheduleExpression=""), "events start its targets"),
        (rule({"Arn": ARN}, ManagedBy="states.amazonaws.com"), "states.amazonaws.com made this rule"),
        (rule({"Arn": ARN}, ScheduleExpression="cron(61 * * * ? *)"), "ScheduleExpression"),
        (
            rule({"Arn": "arn:aws:events:eu-west-1:123456789012:event-bus/b"}),
            "whose source only AWS may write",
        ),
        (rule({"Arn": "arn:aws:batch:eu-west-1:123456789012:job-queue/b"}), "is of no kind"),
        (rule({"Arn": "arn:aws:kinesis:eu-west-1:123456789012:stream/s"}), "RoleArn: is missing"),
        (rule({"Arn": ARN, "InputPath": "$.detail.x"}), "has nothing at $.detail.x"),
        (rule({"Arn": ARN, "InputPath": "$..x"}), "cannot be read here"),
        (rule({"Arn": ARN, "Input": "text"}), "is not JSON"),
        (rule({"Arn": ARN, "InputTransformer": {"InputTemplate": "{<a>}"}}), "<a> is not in InputPathsMap"),
        (rule({"Arn": ARN, "InputTransformer": {"InputTemplate": "plain"}}), "not one value of JSON"),
    ],
)
def test_what_a_job_cannot_do_is_named(value: Any, why: str) -> None:
    (refused,) = jobs(value)
    assert why in refused.refusal


def test_what_is_left_out_is_named() -> None:
    target = {"Arn": ARN, "RoleArn": ROLE, "HttpParameters": {"PathParameterValues": []}}
    notes = "; ".join(the_job(rule(target, EventPattern="{}", ScheduleExpression="rate(1 hour)")).notes)
    for words in (
        "EventPattern is left out",
        "Target.RoleArn",
        "Target.HttpParameters",
        "from the first import",
    ):
        assert words in notes


def test_another_target_takes_the_place_of_all() -> None:
    other = {"kind": "lambda", "arn": ARN}
    job = the_job(rule({"Arn": "arn:aws:batch:eu-west-1:123456789012:job-queue/b"}), target=other)
    assert (job.definition["target"], job.definition["payload"]) == (other, EVENT)


def test_the_ids_are_ids_and_differ() -> None:
    names = [("a", "b.c"), ("a.b", "c"), (".", "a"), ("a" * 64, "b" * 64), ("a.", ".b"), ("a", "b")]
    ids = [rule_job_id(*name) for name in names]
    assert all(is_id(job_id, 128) for job_id in ids)
    assert len(set(ids)) == len(names)


def test_a_job_of_a_rule_is_registered() -> None:
    definition = the_job(rule({"Arn": ARN})).definition
    assert parse_definition(definition, Limits()) is not None
