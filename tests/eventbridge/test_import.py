"""What `minute8 import` makes of schedules is the same as what EventBridge Scheduler's API makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.commands.transfer import _line
from cli.sources import eventbridge
from cli.sources.found import Defaults
from common.eventbridge.origin import MOST_BYTES
from common.jobs.schedule_groups import MOST_GROUPS, ScheduleGroup
from tests.api.calls import Office
from tests.worlds import ARN, job

Aws = Callable[..., Any]
ROLE = "arn:aws:iam::123456789012:role/r"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
SDK = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
OFF = {"Mode": "OFF"}
TARGET = {"Arn": ARN, "RoleArn": ROLE}
DAILY = {
    "Name": "daily",
    "GroupName": "billing",
    "ScheduleExpression": "cron(15 3 * * ? *)",
    "FlexibleTimeWindow": OFF,
    "Target": {**TARGET, "Input": ' {"n": 1.50}'},
}
SCHEDULES: list[dict[str, Any]] = [
    DAILY,
    {**DAILY, "Name": "-odd", "GroupName": "default"},
    {
        **DAILY,
        "Name": "full",
        "ActionAfterCompletion": "DELETE",
        "Description": "d" * 300,
        "ScheduleExpression": "cron(0 3 L-2 * ? 2027-2030)",
        "ScheduleExpressionTimezone": "Europe/Paris",
        "StartDate": 1_795_305_600.5,
        "EndDate": 1_995_305_600,
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
        "State": "DISABLED",
        "Target": {
            "Arn": f"{QUEUE}.fifo",
            "RoleArn": ROLE,
            "Input": "<aws.scheduler.execution-id> {{",
            "SqsParameters": {"MessageGroupId": "g"},
            "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 60},
            "DeadLetterConfig": {"Arn": f"{QUEUE}-dead"},
        },
    },
    {**DAILY, "Name": "once", "ScheduleExpression": "at(2026-12-01T03:00:00)"},
    {**DAILY, "Name": "rate", "ScheduleExpression": "rate(1 hour)", "StartDate": 1_795_305_600},
    {
        **DAILY,
        "Name": "universal",
        "Target": {
            "Arn": SDK,
            "RoleArn": ROLE,
            "Input": json.dumps({"QueueUrl": URL, "MessageBody": "<aws.scheduler.scheduled-time>"}),
        },
    },
]


def exported(schedule: dict[str, Any]) -> dict[str, Any]:
    """As `aws scheduler get-schedule` prints it."""
    group = schedule["GroupName"]
    return {
        **schedule,
        "Arn": f"arn:aws:scheduler:us-east-1:123456789012:schedule/{group}/{schedule['Name']}",
        "CreationDate": "2026-01-01T00:00:07.250000+00:00",
        "LastModificationDate": 1_795_000_000.123,
    }


def line(schedule: dict[str, Any], /, **changes: Any) -> dict[str, Any]:
    """The line that `minute8 import` sends."""
    (found,) = eventbridge.read(json.dumps(exported(schedule)), Defaults())
    assert not found.refusal
    return {**_line(found), **changes}


def put(office: Office, *lines: dict[str, Any], query: str = "") -> list[dict[str, Any]]:
    answer = office.alice("POST", f"/v1/jobs/_bulk{query}", lines)
    assert answer.status == 200, answer
    results: list[dict[str, Any]] = answer.json["results"]
    return results


def said(client: Any) -> dict[str, Any]:
    """What the API says of all schedules."""
    pages = client.get_paginator("list_schedules").paginate()
    listed = [(one["GroupName"], one["Name"]) for page in pages for one in page["Schedules"]]
    found = {of: client.get_schedule(GroupName=of[0], Name=of[1]) for of in listed}
    for one in found.values():
        del one["ResponseMetadata"]
    return found


def test_an_imported_schedule_is_the_one_that_the_api_makes(office: Office, aws: Aws) -> None:
    """alice imports; bob calls CreateSchedule."""
    bob = aws("bob")
    bob.create_schedule_group(Name="billing")
    for one in SCHEDULES:
        bob.create_schedule(**one)
    assert {one["result"] for one in put(office, *map(line, SCHEDULES))} == {"created"}
    assert said(aws("alice")) == said(bob)
    assert len(said(bob)) == len(SCHEDULES)
    alices, bobs = (caller("GET", "/v1/jobs?limit=100").json["jobs"] for caller in (office.alice, office.bob))
    assert alices == bobs
    assert {one["result"] for one in put(office, *map(line, SCHEDULES))} == {"unchanged"}


def test_an_imported_rate_goes_on_as_it_began(office: Office, aws: Aws) -> None:
    """The one difference: through the API it fires at once, as on AWS. An import keeps its phase."""
    rate = {**DAILY, "Name": "rate", "GroupName": "default", "ScheduleExpression": "rate(10 minutes)"}
    put(office, line(rate))
    office.world.run_until("2026-11-21T03:25:00Z", ticks=True)
    assert office.world.target.fire_times("rate") == ["2026-11-21T03:20:07Z"]
    assert aws().get_schedule(Name="rate")["ScheduleExpression"] == "rate(10 minutes)"


def test_an_imported_schedule_is_updated_and_deleted_through_the_api(office: Office, aws: Aws) -> None:
    client = aws()
    put(office, line(DAILY))
    client.update_schedule(**{**DAILY, "ScheduleExpression": "rate(5 minutes)"})
    assert office.alice("GET", "/v1/jobs/billing..daily").json["schedule"]["every"] == "5m"
    [result] = put(office, line(DAILY))
    assert (result["result"], set(result["changed"])) == ("replaced", {"schedule", "eventbridge"})
    client.delete_schedule_group(Name="billing")
    assert office.alice("GET", "/v1/jobs/billing..daily").status == 404


def test_a_job_of_an_earlier_import_becomes_a_schedule(office: Office, aws: Aws) -> None:
    before = line(DAILY)
    schedule = before.pop("eventbridge")
    put(office, before)
    assert said(aws()) == {}
    [result] = put(office, {**before, "eventbridge": schedule})
    assert (result["result"], result["changed"]) == ("replaced", ["eventbridge"])
    assert list(said(aws())) == [("billing", "daily")]
    # Its definition alone, such as from an export, leaves it a schedule.
    [result] = put(office, before)
    assert result["result"] == "unchanged"
    assert list(said(aws())) == [("billing", "daily")]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another job": ({"job_id": "other"}, "job_id"),
    "another payload": ({"payload": "{}"}, "eventbridge"),
    "another time": ({"schedule": {"cron": "0 3 * * *", "timezone": "UTC", "spread_s": 0}}, "eventbridge"),
    "a field that schedules do not have": ({"owner": "billing"}, "eventbridge"),
    "no schedule ARN": ({"target": {"kind": "lambda", "arn": ARN, "invocation": "Event"}}, "eventbridge"),
    "a text": ({"eventbridge": "x"}, "eventbridge"),
    "nothing": ({"eventbridge": {}}, "eventbridge.FlexibleTimeWindow"),
    "an unknown field": ({"eventbridge": {**DAILY, "Color": 1}}, "eventbridge.Color"),
    "a key of KMS": ({"eventbridge": {**DAILY, "KmsKeyArn": "x"}}, "eventbridge.KmsKeyArn"),
    "a name with a slash": ({"eventbridge": {**DAILY, "Name": "a/b"}}, "eventbridge.Name"),
    "a group that is a number": ({"eventbridge": {**DAILY, "GroupName": 1}}, "eventbridge.GroupName"),
    "another expression": (
        {"eventbridge": {**DAILY, "ScheduleExpression": "cron(15 4 * * ? *)"}},
        "eventbridge",
    ),
    "an expression that is none": (
        {"eventbridge": {**DAILY, "ScheduleExpression": "x"}},
        "ScheduleExpression",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_line_that_says_two_things_is_refused(office: Office, name: str) -> None:
    changes, field = REFUSED[name]
    before = office.stored()
    [result] = put(office, line(DAILY, **changes))
    assert result["result"] == "refused"
    assert result["problem"]["errors"][0]["field"] == field
    assert office.stored() == before


def test_a_dry_run_makes_no_group(office: Office, aws: Aws) -> None:
    put(office, line(DAILY), query="?dry_run=true")
    assert [one["Name"] for one in aws().list_schedule_groups()["ScheduleGroups"]] == ["default"]


def test_a_group_that_is_being_deleted_takes_no_import(office: Office) -> None:
    table = office.world.store.jobs
    table.put(ScheduleGroup("alice", "billing", 0, 0, "DELETING").to_item())
    [result] = put(office, line(DAILY))
    assert result["result"] == "refused"
    assert "is being deleted" in result["problem"]["detail"]


def test_an_import_makes_no_more_groups_than_there_may_be(office: Office) -> None:
    table = office.world.store.jobs
    for n in range(MOST_GROUPS):
        table.put(ScheduleGroup("alice", f"g{n}", 0, 0).to_item())
    other = {**DAILY, "GroupName": "default"}
    results = put(office, line(DAILY), line(other))
    assert [one["result"] for one in results] == ["refused", "created"]
    assert "schedule groups" in results[0]["problem"]["detail"]


def test_what_the_api_cannot_say_is_imported_as_a_job_and_said(office: Office) -> None:
    given = exported(DAILY)
    del given["FlexibleTimeWindow"]
    (found,) = eventbridge.read(json.dumps(given), Defaults())
    assert found.schedule is None
    assert any("will not list it: eventbridge.FlexibleTimeWindow" in note for note in found.notes)
    assert put(office, _line(found))[0]["result"] == "created"
    # With --target it is another job.
    (found,) = eventbridge.read(json.dumps(exported(DAILY)), Defaults(job(every=60)["target"]))
    assert found.schedule is None


def test_a_request_has_a_longest_length(aws: Aws) -> None:
    client = aws()

    def padded(blanks: int) -> dict[str, Any]:
        text = json.dumps({"QueueUrl": URL, "MessageBody": "x"}) + " " * blanks
        return {**DAILY, "GroupName": "default", "Target": {"Arn": SDK, "RoleArn": ROLE, "Input": text}}

    client.create_schedule(**padded(MOST_BYTES - 1_000))
    with pytest.raises(ClientError, match=r"Target\.Input: makes a schedule of") as refused:
        client.update_schedule(**padded(MOST_BYTES))
    assert refused.value.response["Error"]["Code"] == "ValidationException"
