"""EventBridge Scheduler's API, called by boto3."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from common.jobs.spec import Policies
from common.storage import keys
from minute8.eventbridge.api.operation import SchedulerRequest
from minute8.eventbridge.api.schedules import ScheduleWrite
from minute8.eventbridge.names import AwsAccount, job_id_of
from tests.api.aws_schedules import QUEUE, ROLE, Aws, advice, refusal, schedule, target, without_metadata
from tests.api.calls import Office
from tests.worlds import ARN, at, job

KNOWN_FOR_S = 1_800


def test_a_schedule_is_a_job_that_fires(office: Office, aws: Aws) -> None:
    created = aws().create_schedule(**schedule("cron(15 3 * * ? *)", Target=target(Input='{"n": 1}')))
    assert without_metadata(created) == {
        "ScheduleArn": "arn:aws:scheduler:us-east-1:123456789012:schedule/default/nightly"
    }
    job = office.alice("GET", "/v1/jobs/nightly").json
    assert job["schedule"] == {"cron": "15 3 * * *", "timezone": "UTC", "spread_s": 0}
    assert (job["payload"], job["state"]) == ('{"n": 1}', "active")
    assert job["target"]["schedule_arn"] == created["ScheduleArn"]
    office.world.run_until("2026-11-21T03:16:00Z")
    assert office.world.target.fire_times("nightly") == ["2026-11-21T03:15:00Z"]
    [run] = office.alice("GET", "/v1/jobs/nightly/runs").json["runs"]
    assert run["status"] in ("dispatched", "succeeded")


def test_get_returns_what_was_created_with_defaults(aws: Aws) -> None:
    aws().create_schedule(**schedule())
    now = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
    assert without_metadata(aws().get_schedule(Name="nightly")) == {
        "ActionAfterCompletion": "NONE",
        "Arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/default/nightly",
        "CreationDate": now,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "GroupName": "default",
        "LastModificationDate": now,
        "Name": "nightly",
        "ScheduleExpression": "rate(5 minutes)",
        "ScheduleExpressionTimezone": "UTC",
        "State": "ENABLED",
        "Target": {
            "Arn": ARN,
            "RoleArn": ROLE,
            "RetryPolicy": {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185},
        },
    }


FULL: dict[str, Any] = {
    "Name": "nightly",
    "GroupName": "billing",
    "ActionAfterCompletion": "DELETE",
    "Description": "x" * 512,
    "EndDate": datetime(2027, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC),
    "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
    "ScheduleExpression": "cron(0/15 9 ? * 2#1 *)",
    "ScheduleExpressionTimezone": "Europe/Paris",
    "StartDate": datetime(2026, 12, 1, tzinfo=UTC),
    "State": "DISABLED",
    "Target": {
        "Arn": QUEUE,
        "RoleArn": ROLE,
        "Input": '{ "at": "<aws.scheduler.scheduled-time>",\n "n": 1.50 } {{',
        "RetryPolicy": {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0},
        "SqsParameters": {"MessageGroupId": "orders"},
        "DeadLetterConfig": {"Arn": f"{QUEUE}-dead"},
    },
}


def test_get_returns_every_field(office: Office, aws: Aws) -> None:
    client = aws()
    client.create_schedule_group(Name="billing")
    client.create_schedule(**FULL)
    stored = without_metadata(client.get_schedule(Name="nightly", GroupName="billing"))
    assert {name: stored[name] for name in FULL} == FULL
    job = office.alice("GET", "/v1/jobs/billing..nightly").json
    assert job["state"] == "paused"
    assert job["after_completion"] == "delete"


def test_update_replaces_everything_but_what_only_minute8_has(office: Office, aws: Aws) -> None:
    client = aws()
    client.create_schedule(
        **schedule(
            Description="old", Target=target(RetryPolicy={"MaximumRetryAttempts": 3}), State="DISABLED"
        )
    )
    office.alice("PATCH", "/v1/jobs/nightly", {"owner": "billing", "tags": ["nightly"]})
    client.update_schedule(**schedule("rate(10 minutes)"))
    stored = client.get_schedule(Name="nightly")
    assert (stored["ScheduleExpression"], stored["State"]) == ("rate(10 minutes)", "ENABLED")
    assert "Description" not in stored
    assert stored["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 185
    job = office.alice("GET", "/v1/jobs/nightly").json
    assert (job["owner"], job["tags"], job["state"], job["name"]) == ("billing", ["nightly"], "active", "")
    assert refusal(client.update_schedule, **schedule(Name="other"))[:2] == (404, "ResourceNotFoundException")


def test_delete(office: Office, aws: Aws) -> None:
    client = aws()
    client.create_schedule(**schedule())
    client.delete_schedule(Name="nightly")
    assert office.alice("GET", "/v1/jobs/nightly").status == 404
    for call in (client.get_schedule, client.delete_schedule):
        assert refusal(call, Name="nightly")[:2] == (404, "ResourceNotFoundException")


def test_a_rate_without_a_start_fires_at_once(office: Office, aws: Aws) -> None:
    aws().create_schedule(**schedule("rate(5 minutes)"))
    office.world.run_until("2026-11-21T03:18:00Z")
    assert office.world.target.fire_times("nightly") == ["2026-11-21T03:12:01Z", "2026-11-21T03:17:01Z"]


def test_a_rate_with_a_start_counts_from_it(office: Office, aws: Aws) -> None:
    start = datetime(2026, 11, 21, 3, 14, tzinfo=UTC)
    aws().create_schedule(**schedule("rate(2 minutes)", StartDate=start))
    office.world.run_until("2026-11-21T03:17:00Z")
    assert office.world.target.fire_times("nightly") == ["2026-11-21T03:14:00Z", "2026-11-21T03:16:00Z"]


def test_a_default_spread_moves_no_schedule(office: Office, aws: Aws) -> None:
    """Only a flexible window lets a run be due after its fire time."""
    office.operator("PATCH", "/v1/tenants/alice", {"spread_s": 600})
    office.world.clock.sleep(60)
    start = datetime(2026, 11, 21, 3, 15, tzinfo=UTC)
    moved = {
        "cron": schedule("cron(15 3 * * ? *)"),
        "zone": schedule("cron(15 12 * * ? *)", ScheduleExpressionTimezone="Asia/Tokyo"),
        "theirs": schedule("cron(15 3 L-9 * ? 2026)"),
        "rate": schedule("rate(1 hour)", StartDate=start),
        "at": schedule("at(2026-11-21T03:15:00)"),
    }
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 10}
    flexible = schedule("cron(15 3 * * ? *)", FlexibleTimeWindow=window)
    for name, moved_schedule in {**moved, "flexible": flexible}.items():
        aws().create_schedule(**{**moved_schedule, "Name": name})
    office.alice("PUT", "/v1/jobs/own", job(cron="15 3 * * *"))
    office.world.run_until("2026-11-21T03:30:00Z", ticks=True)
    due = {
        name: office.alice("GET", f"/v1/jobs/{name}/runs").json["runs"][0]["due_at"]
        for name in (*moved, "flexible", "own")
    }
    assert {due[name] for name in moved} == {"2026-11-21T03:15:00Z"}
    for name in ("flexible", "own"):
        assert "2026-11-21T03:15:00Z" < due[name] <= "2026-11-21T03:25:00Z"


def test_a_start_may_be_five_minutes_ago_and_not_more(office: Office, aws: Aws) -> None:
    now = datetime.fromtimestamp(office.world.clock.now(), UTC)
    client = aws()
    client.create_schedule(**schedule(StartDate=now - timedelta(minutes=5)))
    late = schedule(StartDate=now - timedelta(minutes=5, seconds=1), Name="late")
    status, name, message = refusal(client.create_schedule, **late)
    assert (status, name) == (400, "ValidationException")
    assert message == "The StartDate you specify cannot be earlier than 5 minutes ago."


def test_dates_have_milliseconds_as_aws_json_has(office: Office, aws: Aws) -> None:
    """https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html: optional millisecond precision"""
    start, client = office.world.clock.now() + 600, aws(parameter_validation=False)
    body = {"ScheduleExpression": "rate(1 day)", "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target()}
    for sent, kept in ((1795305600.123456, 1795305600.123), (1795305600.5, 1795305600.5), (1795305600,) * 2):
        write = ScheduleWrite.read(_request("nightly", {**body, "StartDate": sent}, start))
        assert write.fields["StartDate"] == kept
    moment = datetime.fromtimestamp(start, UTC).replace(microsecond=123_456)
    client.create_schedule(**schedule("rate(1 day)", StartDate=moment))
    assert client.get_schedule(Name="nightly")["StartDate"] == moment.replace(microsecond=123_000)


def _request(name: str, body: dict[str, Any], now: float) -> SchedulerRequest:
    account = AwsAccount("us-east-1", "123456789012")
    return SchedulerRequest("CreateSchedule", "alice", now, name, {}, body, account, "signature")


def test_an_input_can_have_256_kib(office: Office, aws: Aws) -> None:
    """https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html"""
    most, client = 256 * 1024, aws()
    text = f'"{"ä" * ((most - 2) // 2)}"'
    assert len(text.encode()) == most
    message = refusal(client.create_schedule, **schedule(Target=target(Input=text)))[2]
    assert message.startswith("Target.Input: has 262144 bytes; accepted: at most 131072"), message
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"payload_bytes": most}})
    office.world.clock.sleep(60)
    client = aws()
    client.create_schedule(**schedule(Target=target(Input=text)))
    assert client.get_schedule(Name="nightly")["Target"]["Input"] == text
    longer = schedule(Target=target(Input=text[:-1] + ' "'), Name="longer")
    assert refusal(client.create_schedule, **longer)[:2] == (400, "ValidationException")


def test_a_flexible_window_does_not_include_its_end(office: Office, aws: Aws) -> None:
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 1}
    aws().create_schedule(**schedule("rate(1 day)", FlexibleTimeWindow=window))
    assert office.alice("GET", "/v1/jobs/nightly").json["schedule"]["jitter_s"] == 59
    assert aws().get_schedule(Name="nightly")["FlexibleTimeWindow"] == window


def test_another_rate_counts_from_its_update(office: Office, aws: Aws) -> None:
    """It does not fire at once, as a new schedule does."""
    aws().create_schedule(**schedule("rate(1 day)"))
    office.world.run_until("2026-11-21T03:13:30Z")
    aws().update_schedule(**schedule("rate(2 minutes)"))
    office.world.run_until("2026-11-21T03:18:00Z")
    fired = office.world.target.fire_times("nightly")
    assert fired == ["2026-11-21T03:12:01Z", "2026-11-21T03:15:30Z", "2026-11-21T03:17:30Z"]


def test_a_rate_can_be_longer_than_a_year(office: Office, aws: Aws) -> None:
    aws().create_schedule(**schedule("rate(400 days)"))
    assert office.alice("GET", "/v1/jobs/nightly").json["schedule"]["every"] == "400d"


@pytest.mark.parametrize(
    ("name", "echoed"),
    [
        *(
            (name, name)
            for name in ("a b", "a/b", "ä", "a?b", "a#b", "a+b", "日", "a\nb", "a%b", "a%41", "%", "%25")
        ),
        (".", "/"),
        ("..", "/"),
        ("x" * 65, None),
    ],
)
def test_a_name_that_is_none_is_refused_by_the_models_pattern(
    aws: Aws, name: str, echoed: str | None
) -> None:
    """The text is AWS's: it has been seen for a name."""
    client = aws(parameter_validation=False)
    constraint = (
        "satisfy regular expression pattern: ^[0-9a-zA-Z-_.]+$"
        if echoed
        else "have length less than or equal to 64"
    )
    expected = (
        f"1 validation error detected: Value '{echoed or name}' at 'name' failed to satisfy constraint: "
        f"Member must {constraint}"
    )
    for call, more in (
        (client.get_schedule, {}),
        (client.create_schedule, {**schedule(), "Name": name}),
        (client.delete_schedule, {}),
        (client.get_schedule_group, {}),
        (client.create_schedule_group, {}),
    ):
        assert refusal(call, **{"Name": name, **more}) == (400, "ValidationException", expected)


@pytest.mark.parametrize("arn", ["x", "arn:aws:scheduler:us-east-1:123456789012:schedule/default/a", "a b"])
def test_an_arn_that_no_group_has_is_refused_by_the_models_pattern(aws: Aws, arn: str) -> None:
    client = aws(parameter_validation=False)
    status, name, message = refusal(client.list_tags_for_resource, ResourceArn=arn)
    assert (status, name) == (400, "ValidationException")
    assert message.startswith(f"1 validation error detected: Value '{arn}' at 'resourceArn' failed"), message


def test_a_missing_schedule_is_answered_in_awss_words(aws: Aws) -> None:
    client = aws()
    assert refusal(client.get_schedule, Name="a") == (
        404,
        "ResourceNotFoundException",
        "Schedule a does not exist.",
    )
    missing = "Schedule group b does not exist."
    assert refusal(client.create_schedule, **schedule(GroupName="b"))[2] == missing
    client.create_schedule(**schedule())
    assert refusal(client.create_schedule, **schedule()) == (
        409,
        "ConflictException",
        "Schedule nightly already exists.",
    )
    for call in (client.list_schedules, client.list_schedule_groups):
        status, name, message = refusal(call, NextToken="x")
        assert (status, name) == (400, "ValidationException")
        assert message.startswith("NextToken: is not of this list") and "cursor" not in message


def test_an_at_in_the_past_is_accepted_and_never_fires(office: Office, aws: Aws) -> None:
    aws().create_schedule(**schedule("at(2020-01-01T00:00:00)"))
    office.world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert office.world.target.calls == []


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "cron(0 1 * * * *)",
            "rate(10 seconds)",
            "rate( 10 minutes )",
            " rate(10 minutes)",
            "rate(0 minutes)",
        ),
        *(
            "at(2027-01-01T00:00:00Z)",
            "at(2027-01-01)",
            "cron(0 1 * * ?)",
            "cron(0 1 * * ? *",
            "every day",
            "x",
        ),
        *("rate(10 minutes) ", "RATE(1 minute)", "at(2027-02-30T00:00:00)", "cron()", "cron(a b c d e f)"),
    ],
)
def test_an_invalid_expression_is_refused(aws: Aws, expression: str) -> None:
    """The message is AWS's, and the advice is ours. localstack records AWS's message in its snapshots."""
    status, name, message = refusal(aws().create_schedule, **schedule(expression))
    assert (status, name) == (400, "ValidationException")
    assert message == f"Invalid Schedule Expression {expression}."
    _, own = advice(aws().create_schedule, **schedule(expression))
    assert own.startswith("ScheduleExpression: "), own


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "KmsKeyArn": (
        {"KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/a"},
        "KmsKeyArn: is not taken",
    ),
    "another kind of target": (
        {"Target": target(Arn="arn:aws:ecs:us-east-1:123456789012:cluster/c")},
        "Target.EcsParameters.TaskDefinitionArn: is missing",
    ),
    "a universal target that no job can be": (
        {"Target": target(Arn="arn:aws:scheduler:::aws-sdk:ec2:describeInstances", Input="{}")},
        "Target.Arn: is an operation that only reads",
    ),
    "parameters of ECS": (
        {"Target": target(EcsParameters={"TaskDefinitionArn": "arn:aws:ecs:x"})},
        "Target.EcsParameters: does not belong to a target of the kind lambda",
    ),
    "another service": (
        {"Target": target(Arn="arn:aws:s3:::bucket")},
        "Target.Arn: is of no kind",
    ),
    "a universal target without its parameters": (
        {"Target": target(Arn="arn:aws:scheduler:::aws-sdk:ec2:stopInstances", Input="{}")},
        "Target.Input: Missing required parameter",
    ),
    "parameters of another kind": (
        {"Target": target(SqsParameters={"MessageGroupId": "a"})},
        "Target.SqsParameters: ",
    ),
    "a bus without its parameters": (
        {"Target": target(Arn="arn:aws:events:us-east-1:123456789012:event-bus/b")},
        "Target.EventBridgeParameters: is missing",
    ),
    "an Input that is no JSON": ({"Target": target(Input="{")}, "Target.Input: must be JSON"),
    "a FIFO queue for dead letters": (
        {"Target": target(DeadLetterConfig={"Arn": f"{QUEUE}.fifo"})},
        f"1 validation error detected: Value '{QUEUE}.fifo' at 'target.deadLetterConfig.arn' failed",
    ),
    "a window without minutes": (
        {"FlexibleTimeWindow": {"Mode": "FLEXIBLE"}},
        "FlexibleTimeWindow.MaximumWindowInMinutes: ",
    ),
    "an unknown zone of a rate": (
        {"ScheduleExpressionTimezone": "Mars/Olympus", "ScheduleExpression": "rate(1 day)"},
        "ScheduleExpressionTimezone: ",
    ),
    "an unknown zone": ({"ScheduleExpressionTimezone": "Mars/Olympus"}, "ScheduleExpressionTimezone: "),
    "an end before the start": (
        {"StartDate": datetime(2027, 1, 2, tzinfo=UTC), "EndDate": datetime(2027, 1, 1, tzinfo=UTC)},
        "EndDate: must be after StartDate",
    ),
    "a Minute8 function": (
        {"Target": target(Arn="arn:aws:lambda:us-east-1:123456789012:function:minute8-prod-api")},
        "Target.Arn: is a part of Minute8",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_field_is_refused_by_name(office: Office, aws: Aws, name: str) -> None:
    more, words = REFUSED[name]
    before = office.stored()
    request_fields = schedule("cron(0 3 * * ? *)", **more)
    client = aws(parameter_validation=False)
    before = office.stored()
    status, code, message = refusal(client.create_schedule, **request_fields)
    assert (status, code) == (400, "ValidationException")
    assert message.startswith(words), message
    assert office.stored() == before


def test_quotas_rates_and_allowed_targets_hold(office: Office, aws: Aws) -> None:
    client = aws()
    office.operator("PATCH", "/v1/tenants/alice", {"allowed_targets": [QUEUE], "quotas": {"jobs": 1}})
    office.world.clock.sleep(30)
    status, name, message = refusal(client.create_schedule, **schedule())
    assert (status, name) == (400, "ValidationException")
    assert message.startswith("Target.Arn: must be a target that the platform allows") and ARN in message
    request_fields = schedule(Target=target(Arn=QUEUE))
    client.create_schedule(**request_fields)
    assert refusal(client.create_schedule, **{**request_fields, "Name": "second"})[:2] == (
        402,
        "ServiceQuotaExceededException",
    )
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 1}})
    office.world.clock.sleep(60)
    names = {refusal(client.get_schedule, Name="x")[:2] for _ in range(3)}
    assert (429, "ThrottlingException") in names


def test_a_schedule_is_there_once(office: Office, aws: Aws) -> None:
    client = aws()
    client.create_schedule(**schedule())
    assert refusal(client.create_schedule, **schedule())[:2] == (409, "ConflictException")
    office.alice("PUT", "/v1/jobs/own", {"schedule": {"every": 60}, "target": {"kind": "lambda", "arn": ARN}})
    assert refusal(client.create_schedule, **schedule(Name="own"))[:2] == (409, "ConflictException")
    for call in (client.get_schedule, client.delete_schedule):
        assert refusal(call, Name="own")[:2] == (404, "ResourceNotFoundException")
    assert refusal(client.update_schedule, **schedule(Name="own"))[:2] == (404, "ResourceNotFoundException")


def test_the_same_request_again_changes_nothing(office: Office, aws: Aws) -> None:
    client = aws()
    first = schedule(ClientToken="one")
    assert without_metadata(client.create_schedule(**first)) == without_metadata(
        client.create_schedule(**first)
    )
    client.update_schedule(**schedule("rate(10 minutes)", ClientToken="two"))
    client.update_schedule(**schedule("rate(20 minutes)", ClientToken="three"))
    client.update_schedule(**schedule("rate(10 minutes)", ClientToken="two"))
    assert client.get_schedule(Name="nightly")["ScheduleExpression"] == "rate(20 minutes)"
    for _ in range(2):
        client.delete_schedule(Name="nightly", ClientToken="four")
    # After the deletion it is still the same request, and its schedule is not there.
    status, code, message = refusal(client.create_schedule, **first)
    assert (status, code) == (409, "ConflictException") and "it was deleted since" in message
    for call in (client.get_schedule, client.update_schedule):
        again = schedule("rate(20 minutes)", ClientToken="three") if call == client.update_schedule else {}
        assert refusal(call, **{"Name": "nightly", **again})[0] == 404
    client.create_schedule(**schedule(ClientToken="five"))
    status, code, message = refusal(client.delete_schedule, Name="nightly", ClientToken="four")
    assert (status, code) == (409, "ConflictException") and "it was made again since" in message
    assert client.get_schedule(Name="nightly")["State"] == "ENABLED"


def test_requests_are_known_after_minute8_took_the_id_meanwhile(office: Office, aws: Aws) -> None:
    client, own = aws(), {"schedule": {"every": 60}, "target": {"kind": "lambda", "arn": ARN}}
    client.create_schedule(**schedule(ClientToken="one"))
    client.delete_schedule(Name="nightly", ClientToken="two")
    office.alice("PUT", "/v1/jobs/nightly", own)
    again = schedule(ClientToken="one")
    status, code, message = refusal(client.create_schedule, **again)
    assert (status, code) == (409, "ConflictException") and "it was deleted since" in message
    assert client.list_schedules()["Schedules"] == []
    office.alice("DELETE", "/v1/jobs/nightly")
    assert "it was deleted since" in refusal(client.create_schedule, **again)[2]
    client.create_schedule(**schedule(ClientToken="three"))
    assert "it was made again since" in refusal(client.delete_schedule, Name="nightly", ClientToken="two")[2]
    client.delete_schedule(Name="nightly")
    office.world.clock.sleep(KNOWN_FOR_S)
    office.alice("PUT", "/v1/jobs/nightly", own)
    assert "imported_from" not in office.world.table("jobs").get(keys.job("alice", "nightly"))


def test_a_client_token_with_another_body_or_operation_is_another_request(aws: Aws) -> None:
    client = aws()
    client.create_schedule(**schedule(ClientToken="one"))
    other = schedule("rate(7 minutes)", ClientToken="one")
    assert refusal(client.create_schedule, **other)[:2] == (409, "ConflictException")
    client.update_schedule(**other)
    assert client.get_schedule(Name="nightly")["ScheduleExpression"] == "rate(7 minutes)"
    client.create_schedule_group(Name="nightly", ClientToken="one")
    client.delete_schedule(Name="nightly", ClientToken="one")
    client.delete_schedule_group(Name="nightly", ClientToken="one")
    for call in (client.get_schedule, client.get_schedule_group):
        assert refusal(call, Name="nightly")[0] == 404


def test_a_job_changed_by_minute8_says_so(office: Office, aws: Aws) -> None:
    client = aws()
    client.create_schedule(**schedule())
    office.alice("POST", "/v1/jobs/nightly/pause", {"note": "maintenance"})
    assert client.get_schedule(Name="nightly")["State"] == "DISABLED"
    office.alice("PATCH", "/v1/jobs/nightly", {"payload": "2", "retry": {"max_attempts": 1}})
    edited = client.get_schedule(Name="nightly")["Target"]
    assert (edited["Input"], edited["RetryPolicy"]["MaximumRetryAttempts"]) == ("2", 0)
    office.alice("PATCH", "/v1/jobs/nightly", {"schedule": {"every": "90s"}})
    status, name, message = refusal(client.get_schedule, Name="nightly")
    assert (status, name) == (409, "ConflictException")
    assert "schedule.every: a rate of AWS's is whole minutes" in message
    assert [moved_schedule["Name"] for moved_schedule in client.list_schedules()["Schedules"]] == ["nightly"]
    client.update_schedule(**schedule())
    assert client.get_schedule(Name="nightly")["State"] == "ENABLED"


RETRIES = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
EDITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another rate": ({"schedule": {"every": "9m"}}, {"ScheduleExpression": "rate(9 minutes)"}),
    "an hour": ({"schedule": {"every": "1h"}}, {"ScheduleExpression": "rate(1 hour)"}),
    "a cron": (
        {"schedule": {"every": None, "cron": "0 9 * * 1-5", "spread_s": 0}},
        {"ScheduleExpression": "cron(0 9 ? * 2-6 *)"},
    ),
    "a cron of AWS's with its zone": (
        {
            "schedule": {
                "every": None,
                "cron": "0 9 ? * 6L *",
                "dialect": "eventbridge",
                "dst": "eventbridge",
                "timezone": "Asia/Tokyo",
            }
        },
        {"ScheduleExpression": "cron(0 9 ? * 6L *)", "ScheduleExpressionTimezone": "Asia/Tokyo"},
    ),
    "a one-off": (
        {"schedule": {"every": None, "at": "2027-01-01T00:00:00", "timezone": "Europe/Paris"}},
        {"ScheduleExpression": "at(2027-01-01T00:00:00)", "ScheduleExpressionTimezone": "Europe/Paris"},
    ),
    "bounds": (
        {"schedule": {"every": "5m", "end_at": "2027-01-01T00:00:00Z"}},
        {"EndDate": datetime(2027, 1, 1, tzinfo=UTC)},
    ),
    "a window": (
        {"schedule": {"every": "5m", "jitter_s": 119}},
        {"FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 2}},
    ),
    "a name": ({"name": "Nightly"}, {"Description": "Nightly"}),
    "its end": ({"after_completion": "delete"}, {"ActionAfterCompletion": "DELETE"}),
    "dead letters": (
        {"dead_letter": QUEUE},
        {"Target": {**target(RetryPolicy=RETRIES), "DeadLetterConfig": {"Arn": QUEUE}}},
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_get_says_an_edit_of_minute8s_as_far_as_aws_can(office: Office, aws: Aws, edit: str) -> None:
    """Terraform plans what changed, and applies it: afterwards there is nothing left to change."""
    change, expected = EDITS[edit]
    client = aws()
    client.create_schedule(**schedule())
    assert office.alice("PATCH", "/v1/jobs/nightly", change).status == 200
    answer = without_metadata(client.get_schedule(Name="nightly"))
    assert {name: answer[name] for name in expected} == expected
    members = {name: value for name, value in answer.items() if name not in ("Arn", "CreationDate")}
    members.pop("LastModificationDate")
    client.update_schedule(**members)
    again = without_metadata(client.get_schedule(Name="nightly"))
    again.pop("LastModificationDate"), answer.pop("LastModificationDate")
    assert again == answer


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schedule": {"every": None, "cron": "0 3 1 * 1"}}, "schedule.cron"),
        ({"schedule": {"every": None, "cron": "30 0 3 * * *"}}, "schedule.cron"),
        ({"schedule": {"every": None, "cron": "0 3 * * *", "timezone": "Europe/Paris"}}, "schedule.dst"),
        ({"schedule": {"every": "5m", "exclude": {"dates": ["2027-01-01"]}}}, "schedule.exclude"),
        ({"schedule": {"every": "5m", "jitter_s": 90}}, "schedule.jitter_s"),
        ({"retry": {"max_age_s": 90_000}}, "retry.max_age_s"),
        ({"target": {"kind": "lambda", "arn": ARN, "invocation": "RequestResponse"}}, "target.invocation"),
    ],
)
def test_what_aws_cannot_say_is_a_conflict(
    office: Office, aws: Aws, change: dict[str, Any], field: str
) -> None:
    aws().create_schedule(**schedule())
    assert office.alice("PATCH", "/v1/jobs/nightly", change).status == 200
    status, name, message = refusal(aws().get_schedule, Name="nightly")
    assert (status, name) == (409, "ConflictException")
    assert f"({field}: " in message, message


def test_ids_are_natural_where_they_can_be() -> None:
    assert job_id_of("default", "nightly.2") == "nightly.2"
    assert job_id_of("billing", "nightly") == "billing..nightly"
    for group, name in (("default", "a..b"), ("a", ".b"), ("default", "-a"), ("a" * 64, "b" * 64)):
        assert job_id_of(group, name).startswith("eb...")


def test_times_are_epoch_numbers(office: Office, aws: Aws) -> None:
    aws().create_schedule(**schedule())
    assert office.alice("GET", "/v1/jobs/nightly").json["created_at"] == "2026-11-21T03:12:00Z"
    assert at("2026-11-21T03:12:00Z") == office.world.clock.now()


def test_an_update_keeps_what_aws_cannot_say(office: Office, aws: Aws) -> None:
    client = aws()
    invoke = {"FunctionName": ARN, "InvocationType": "RequestResponse"}
    waited = target(Arn="arn:aws:scheduler:::aws-sdk:lambda:invoke", Input=json.dumps(invoke))
    client.create_schedule(**schedule("rate(1 hour)", Target=waited))
    own = {
        "tags": ["team:money"],
        "catch_up": "all",
        "timeout_s": 120,
        "start_deadline_s": 600,
        "pause_after_failures": 5,
        "on_crash": "fail",
        "owner": "ann",
        "runbook": "https://runbooks.example/nightly",
        "overlap": "skip",
        "alert": {"no_success_for_s": 86_400},
        "concurrency": {"key": "database", "limit": 2},
    }
    of_aws = {"name", "retry", "dead_letter", "after_completion"}
    of_callbacks = {"completion", "callback_timeout_s"}
    assert own.keys() | of_aws | of_callbacks == set(Policies.__struct_fields__)
    assert office.alice("PATCH", "/v1/jobs/nightly", own).status == 200
    stored = office.alice("GET", "/v1/jobs/nightly").json
    client.update_schedule(**schedule("rate(2 hours)", Target=waited))
    updated = office.alice("GET", "/v1/jobs/nightly").json
    assert {name: updated[name] for name in own} == {name: stored[name] for name in own}
    assert client.get_schedule(Name="nightly")["ScheduleExpression"] == "rate(2 hours)"
    client.update_schedule(**schedule("rate(2 hours)"))
    of_event = office.alice("GET", "/v1/jobs/nightly").json
    assert (of_event["owner"], of_event["overlap"], of_event["alert"]) == ("ann", "allow", None)
    assert (of_event["concurrency"], of_event["runbook"]) == (None, "https://runbooks.example/nightly")
