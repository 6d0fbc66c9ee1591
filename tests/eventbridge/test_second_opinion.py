"""The same calls to moto's EventBridge Scheduler and to Minute8: the same answers, or an explained difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws

from examples.schedule_per_customer import register_all
from tests.worlds import ARN

ROLE = "arn:aws:iam::123456789012:role/r"
TARGET = {"Arn": ARN, "RoleArn": ROLE, "Input": '{"n": 1}'}
GROUP_ARN = "arn:aws:scheduler:us-east-1:123456789012:schedule-group/billing"
FIRST = {
    "Name": "a",
    "ScheduleExpression": "rate(5 minutes)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": TARGET,
}
SECOND = {
    **FIRST,
    "Name": "b",
    "GroupName": "billing",
    "Description": "second",
    "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 10},
    "ScheduleExpression": "cron(0 3 * * ? *)",
    "ScheduleExpressionTimezone": "Europe/Paris",
    "State": "DISABLED",
    "ActionAfterCompletion": "DELETE",
    "Target": {**TARGET, "RetryPolicy": {"MaximumEventAgeInSeconds": 600, "MaximumRetryAttempts": 2}},
}
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("create a group", "create_schedule_group", {"Name": "billing", "Tags": [{"Key": "k", "Value": "v"}]}),
    ("create it again", "create_schedule_group", {"Name": "billing"}),
    ("get the group", "get_schedule_group", {"Name": "billing"}),
    ("get no group", "get_schedule_group", {"Name": "nothing"}),
    ("list groups", "list_schedule_groups", {}),
    ("list groups by prefix", "list_schedule_groups", {"NamePrefix": "b"}),
    ("tag", "tag_resource", {"ResourceArn": GROUP_ARN, "Tags": [{"Key": "l", "Value": "w"}]}),
    ("list tags", "list_tags_for_resource", {"ResourceArn": GROUP_ARN}),
    ("untag", "untag_resource", {"ResourceArn": GROUP_ARN, "TagKeys": ["k"]}),
    ("list tags again", "list_tags_for_resource", {"ResourceArn": GROUP_ARN}),
    ("create", "create_schedule", FIRST),
    ("create again", "create_schedule", FIRST),
    ("create in a group", "create_schedule", SECOND),
    ("create in no group", "create_schedule", {**FIRST, "GroupName": "nothing"}),
    ("get", "get_schedule", {"Name": "a"}),
    ("get from a group", "get_schedule", {"Name": "b", "GroupName": "billing"}),
    ("get from another group", "get_schedule", {"Name": "b"}),
    ("list", "list_schedules", {}),
    ("list a group", "list_schedules", {"GroupName": "billing"}),
    ("list a state", "list_schedules", {"State": "DISABLED"}),
    ("update", "update_schedule", {**SECOND, "Description": "third", "State": "ENABLED"}),
    ("get what was updated", "get_schedule", {"Name": "b", "GroupName": "billing"}),
    ("update nothing", "update_schedule", {**FIRST, "Name": "nothing"}),
    ("update less", "update_schedule", {**FIRST, "Name": "b", "GroupName": "billing"}),
    ("get what was reset", "get_schedule", {"Name": "b", "GroupName": "billing"}),
    (
        "invalid expression",
        "create_schedule",
        {**FIRST, "Name": "c", "ScheduleExpression": "rate(10 seconds)"},
    ),
    ("delete", "delete_schedule", {"Name": "a"}),
    ("delete again", "delete_schedule", {"Name": "a"}),
    ("delete the group", "delete_schedule_group", {"Name": "billing"}),
    ("get its schedule", "get_schedule", {"Name": "b", "GroupName": "billing"}),
    ("delete the group again", "delete_schedule_group", {"Name": "billing"}),
]
# Where moto differs from Minute8, and why moto probably differs from AWS, too.
EXPLAINED = {
    "create it again": "moto creates the group once more and forgets its tags; AWS: ConflictException",
    "create again": "moto answers 400; AWS's description of ConflictException has 409",
    "create in no group": "moto fails with a KeyError",
    "get": "moto leaves out ActionAfterCompletion; AWS answers with its default NONE",
    "get what was reset": "moto keeps ActionAfterCompletion and has no State; AWS's update resets what is left out",
    "invalid expression": "moto accepts any expression",
    "delete the group again": "moto fails with a KeyError",
}


def answers(client: Any) -> Iterator[tuple[str, Any]]:
    for step, method, arguments in CALLS:
        try:
            answer = getattr(client, method)(**arguments)
        except ClientError as error:
            response = error.response
            yield step, (response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"])
            continue
        except KeyError as error:  # moto's own
            yield step, repr(error)
            continue
        yield step, _comparable({name: value for name, value in answer.items() if name != "ResponseMetadata"})


def _comparable(value: Any) -> Any:
    """Without times: both clocks differ. Lists in one order."""
    if isinstance(value, dict):
        return {name: _comparable(member) for name, member in value.items() if not name.endswith("Date")}
    if isinstance(value, list):
        return sorted((_comparable(member) for member in value), key=repr)
    return value


def test_moto_and_minute8_agree_except_where_explained(aws: Callable[..., Any], monkeypatch: Any) -> None:
    minute8s = dict(answers(aws()))
    with mock_aws():
        motos = dict(answers(boto3.client("scheduler", region_name="us-east-1")))
    differing = {step: answer for step, answer in minute8s.items() if answer != motos[step]}
    assert set(differing) == set(EXPLAINED), {step: (minute8s[step], motos[step]) for step in differing}
    assert {step: answer for step, answer in differing.items() if isinstance(answer, tuple)} == {
        "create it again": (409, "ConflictException"),
        "create again": (409, "ConflictException"),
        "create in no group": (404, "ResourceNotFoundException"),
        "invalid expression": (400, "ValidationException"),
        "delete the group again": (404, "ResourceNotFoundException"),
    }


def test_a_platforms_program_does_the_same_with_both(aws: Callable[..., Any]) -> None:
    """Twice: the second time a customer is new, one has left, and one has moved."""
    first = [{"id": "1", "timezone": "Europe/Paris"}, {"id": "2", "timezone": "UTC"}]
    second = [{"id": "2", "timezone": "Asia/Tokyo"}, {"id": "3", "timezone": "UTC"}]

    def played(scheduler: Any) -> list[Any]:
        lists = [register_all(scheduler, customers, ARN, ROLE) for customers in (first, second)]
        zones = [
            scheduler.get_schedule(Name=name, GroupName="reports")["ScheduleExpressionTimezone"]
            for name in lists[1]
        ]
        return [*lists, zones]

    minute8s = played(aws())
    with mock_aws():
        assert played(boto3.client("scheduler", region_name="us-east-1")) == minute8s
    assert minute8s == [["report-1", "report-2"], ["report-2", "report-3"], ["Asia/Tokyo", "UTC"]]
