"""What `minute8 import` makes of schedules is the same as what EventBridge Scheduler's API makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.jobs.store import JobStore
from common.storage import keys, transactions
from common.storage.table import Query
from common.storage.wire import item_bytes, to_wire
from common.tenants.tenant import Quotas
from minute8.cli.commands.transfer import _line
from minute8.cli.sources.source_job import Defaults
from minute8.eventbridge.groups import ScheduleGroup, ScheduleGroups
from minute8.eventbridge.moving import importing
from tests.api.calls import Office
from tests.worlds import ARN, job

MAX_AT_ONCE = 14
MAX_BYTES = 278_528
MAX_EXCLUDED_DATES = 400
MAX_GROUPS = 500

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
    (source_job,) = importing.read(json.dumps(exported(schedule)), Defaults())
    assert not source_job.refusal
    return {**_line(source_job), **changes}


def put(office: Office, *lines: dict[str, Any], query: str = "") -> list[dict[str, Any]]:
    answer = office.alice("POST", f"/v1/jobs/_bulk{query}", lines)
    assert answer.status == 200, answer
    results: list[dict[str, Any]] = answer.json["results"]
    return results


def all_schedules(client: Any) -> dict[tuple[str, str], Any]:
    """The API's answers about all schedules, by group and name."""
    pages = client.get_paginator("list_schedules").paginate()
    names = [(schedule["GroupName"], schedule["Name"]) for page in pages for schedule in page["Schedules"]]
    answers = {(group, name): client.get_schedule(GroupName=group, Name=name) for group, name in names}
    for answer in answers.values():
        del answer["ResponseMetadata"]
    return answers


def test_an_imported_schedule_is_the_one_that_the_api_makes(office: Office, aws: Aws) -> None:
    """alice imports; bob calls CreateSchedule."""
    bob = aws("bob")
    bob.create_schedule_group(Name="billing")
    for schedule in SCHEDULES:
        bob.create_schedule(**schedule)
    assert {result["result"] for result in put(office, *map(line, SCHEDULES))} == {"created"}
    assert all_schedules(aws("alice")) == all_schedules(bob)
    assert len(all_schedules(bob)) == len(SCHEDULES)
    alices, bobs = (caller("GET", "/v1/jobs?limit=100").json["jobs"] for caller in (office.alice, office.bob))
    assert alices == bobs
    assert {result["result"] for result in put(office, *map(line, SCHEDULES))} == {"unchanged"}


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
    assert all_schedules(aws()) == {}
    [result] = put(office, {**before, "eventbridge": schedule})
    assert (result["result"], result["changed"]) == ("replaced", ["eventbridge"])
    assert list(all_schedules(aws())) == [("billing", "daily")]
    # Its definition alone, such as from an export, leaves it a schedule.
    [result] = put(office, before)
    assert result["result"] == "unchanged"
    assert list(all_schedules(aws())) == [("billing", "daily")]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another job": ({"job_id": "other"}, "job_id"),
    "another payload": ({"payload": "{}"}, "eventbridge"),
    "another time": ({"schedule": {"cron": "0 3 * * *", "timezone": "UTC", "spread_s": 0}}, "eventbridge"),
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


def test_a_field_that_schedules_do_not_have_stays_the_jobs(office: Office) -> None:
    [result] = put(office, line(DAILY, owner="billing"))
    assert result["result"] == "created"
    exported = map(json.loads, office.alice("GET", "/v1/jobs/_export?eventbridge=true").text.splitlines())
    assert put(office, *exported)[0]["result"] == "unchanged"


def test_a_dry_run_makes_no_group(office: Office, aws: Aws) -> None:
    put(office, line(DAILY), query="?dry_run=true")
    assert [group["Name"] for group in aws().list_schedule_groups()["ScheduleGroups"]] == ["default"]


def test_a_group_that_is_being_deleted_takes_no_import(office: Office) -> None:
    table = office.world.store.jobs
    table.put(ScheduleGroup("alice", "billing", 0, 0, "DELETING").to_item())
    for query in ("?dry_run=true", ""):
        [result] = put(office, line(DAILY), query=query)
        assert result["result"] == "refused"
        assert "is being deleted" in result["problem"]["detail"]


def test_an_import_makes_no_more_groups_than_there_may_be(office: Office) -> None:
    table = office.world.store.jobs
    for n in range(MAX_GROUPS):
        table.put(ScheduleGroup("alice", f"g{n}", 0, 0).to_item())
    other = {**DAILY, "GroupName": "default"}
    for query in ("?dry_run=true", ""):
        results = put(office, line(DAILY), line(other), query=query)
        assert [result["result"] for result in results] == ["refused", "created"]
        assert "schedule groups" in results[0]["problem"]["detail"]


@pytest.mark.parametrize("query", ["?dry_run=true", ""])
def test_no_group_is_made_beyond_the_last_allowed_one(office: Office, query: str) -> None:
    table = office.world.store.jobs
    for n in range(MAX_GROUPS - 1):
        table.put(ScheduleGroup("alice", f"g{n}", 0, 0).to_item())
    lines = [
        line({**DAILY, "GroupName": group, "Name": name})
        for name in ("a", "b")
        for group in ("last", "more", "g1")
    ]
    requests: list[str] = []
    office.world.dynamodb.before = requests.append
    results = [result["result"] for result in put(office, *lines, query=query)]
    assert results == ["created", "refused", "created"] * 2
    # The groups are counted once. To make a group, they are counted again; a shard is looked for, and found empty.
    assert requests.count("query") == (1 if query else 4)


def test_a_request_makes_each_group_once_however_often_it_is_divided(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 20}})
    office.world.clock.sleep(60)
    ensured: list[str] = []
    ensure, write = ScheduleGroups.ensure, JobStore._commit

    def counted(groups: ScheduleGroups, tenant: str, name: str, *rest: Any) -> None:
        ensured.append(name)
        ensure(groups, tenant, name, *rest)

    def beside_others(*arguments: Any) -> Any:
        monkeypatch.setattr(JobStore, "_commit", write)
        for n in range(10):
            assert office.alice("PUT", f"/v1/jobs/other-{n}", job(cron="0 3 * * *")).status == 201
        return write(*arguments)

    monkeypatch.setattr(ScheduleGroups, "ensure", counted)
    monkeypatch.setattr(JobStore, "_commit", beside_others)
    results = put(office, *(line({**DAILY, "Name": f"n{n:02}"}) for n in range(20)))
    assert [result["result"] for result in results] == ["created"] * 10 + ["refused"] * 10
    assert ensured == ["billing"]


def test_a_schedule_that_the_api_cannot_say_is_imported_as_a_job_with_a_note(office: Office) -> None:
    schedule = exported(DAILY)
    del schedule["FlexibleTimeWindow"]
    (source_job,) = importing.read(json.dumps(schedule), Defaults())
    assert source_job.schedule is None
    assert any("will not list it: eventbridge.FlexibleTimeWindow" in note for note in source_job.notes)
    assert put(office, _line(source_job))[0]["result"] == "created"
    # With --target it is another job.
    (source_job,) = importing.read(json.dumps(exported(DAILY)), Defaults(job(every=60)["target"]))
    assert source_job.schedule is None


def test_a_request_has_a_longest_length(aws: Aws) -> None:
    client = aws()

    def padded(blanks: int) -> dict[str, Any]:
        text = json.dumps({"QueueUrl": URL, "MessageBody": "x"}) + " " * blanks
        return {**DAILY, "GroupName": "default", "Target": {"Arn": SDK, "RoleArn": ROLE, "Input": text}}

    client.create_schedule(**padded(MAX_BYTES - 1_000))
    with pytest.raises(ClientError, match=r"Target\.Input: makes a schedule of") as refused:
        client.update_schedule(**padded(MAX_BYTES))
    assert refused.value.response["Error"]["Code"] == "ValidationException"


def test_jobs_that_are_too_much_for_one_transaction_are_stored_in_several(office: Office, aws: Aws) -> None:
    """Each has the longest payload, headers and schedule of AWS, and many dates: 14 have more than 4 MB."""
    client = aws()
    # The Input of a universal target is stored beside the job's payload.
    text = json.dumps({"QueueUrl": URL, "MessageBody": "x"}) + " " * (MAX_BYTES - 1_000)
    target = {"Arn": SDK, "RoleArn": ROLE, "Input": text}
    names = [f"n{n:02}" for n in range(MAX_AT_ONCE)]
    for name in names:
        client.create_schedule(**{**DAILY, "Name": name, "GroupName": "default", "Target": target})
    days = [str(date(2027, 1, 1) + timedelta(days=n)) for n in range(MAX_EXCLUDED_DATES)]
    fields = job(cron="15 3 * * *", exclude={"dates": days}, payload="y" * (Quotas().payload_bytes - 2))
    headers = {f"h{n}": "v" * 1024 for n in range(20)}
    fields["target"] = {"kind": "http", "url": "https://example.com/", "headers": headers}
    results = put(office, *({"job_id": name, **fields} for name in names))
    assert {result["result"] for result in results} == {"replaced"}, results[0]
    jobs = office.world.table("jobs")
    stored = [jobs.get(keys.job("alice", name)) or {} for name in names]
    # The longest payload, and the Input that it replaced.
    texts = [item for name in names for item in jobs.query(Query(keys.texts_of_job("alice", name)))]
    assert len(texts) == 2 * len(names)
    assert sum(item_bytes(to_wire(item)) for item in (*stored, *texts)) > transactions.MAX_TRANSACTION_BYTES
