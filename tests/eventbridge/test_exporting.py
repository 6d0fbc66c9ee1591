"""`minute8 export eventbridge`: what AWS can say is written, and reading it gives the same jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from common.registration.definition import JobDefinition, same_json
from minute8.cli.sources.source_job import Defaults
from minute8.eventbridge.import_lines import check_schedule
from minute8.eventbridge.mapping import definition_of
from minute8.eventbridge.moving import exporting, importing, written
from minute8.eventbridge.moving.exporting import Exported, creatable, exported
from minute8.eventbridge.unmapping import with_changes
from tests.api.calls import Office
from tests.eventbridge.test_import import SCHEDULES, Aws
from tests.worlds import ARN, at, job

ROLE = "arn:aws:iam::123456789012:role/r"
OFF = {"Mode": "OFF"}
ACCOUNT = "us-east-1:123456789012"

ECS = {
    "Arn": f"arn:aws:ecs:{ACCOUNT}:cluster/c",
    "RoleArn": ROLE,
    "EcsParameters": {
        "TaskDefinitionArn": f"arn:aws:ecs:{ACCOUNT}:task-definition/t",
        "TaskCount": 2,
        "LaunchType": "FARGATE",
        "EnableECSManagedTags": True,
        "NetworkConfiguration": {
            "awsvpcConfiguration": {
                "Subnets": ["subnet-00000001", "subnet-00000002"],
                "AssignPublicIp": "ENABLED",
            }
        },
        "PlacementConstraints": [{"type": "memberOf", "expression": "attribute:x == 1"}],
        "PlacementStrategy": [{"type": "spread", "field": "instanceId"}, {"type": "random"}],
        "Tags": [{"key": "team", "value": "money"}],
    },
}
PIPELINE = {
    "Arn": f"arn:aws:sagemaker:{ACCOUNT}:pipeline/p",
    "RoleArn": ROLE,
    "SageMakerPipelineParameters": {
        "PipelineParameterList": [{"Name": "a", "Value": "1"}, {"Name": "b", "Value": "2"}]
    },
}
STREAM = {
    "Arn": f"arn:aws:kinesis:{ACCOUNT}:stream/s",
    "RoleArn": ROLE,
    "Input": "x",
    "KinesisParameters": {"PartitionKey": "k"},
}
BUS = {
    "Arn": f"arn:aws:events:{ACCOUNT}:event-bus/b",
    "RoleArn": ROLE,
    "Input": "{}",
    "EventBridgeParameters": {"Source": "orders", "DetailType": "due"},
}
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
TARGETS = st.one_of(
    st.fixed_dictionaries(
        {
            "Arn": st.just(f"arn:aws:sqs:{ACCOUNT}:orders.fifo"),
            "RoleArn": st.just(ROLE),
            "Input": TEXTS,
            "SqsParameters": st.just({"MessageGroupId": "g"}),
        }
    ),
    st.fixed_dictionaries(
        {"Arn": st.just(ARN), "RoleArn": st.just(ROLE)}, optional={"Input": TEXTS.map(json.dumps)}
    ),
    st.sampled_from([ECS, PIPELINE, STREAM, BUS]),
)
REQUESTS = st.fixed_dictionaries(
    {
        "Name": st.from_regex(r"[0-9a-zA-Z-_][0-9a-zA-Z-_.]{0,20}", fullmatch=True),
        "ScheduleExpression": st.sampled_from(
            ["cron(0 3 * * ? *)", "cron(0 3 L-2 * ? 2027-2030)", "rate(5 minutes)", "at(2030-01-01T00:00:00)"]
        ),
        "FlexibleTimeWindow": st.one_of(
            st.just(OFF),
            st.integers(1, 1_440).map(lambda n: {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": n}),
        ),
        "Target": TARGETS.flatmap(
            lambda target: st.fixed_dictionaries(
                {name: st.just(value) for name, value in target.items()},
                optional={
                    "RetryPolicy": st.fixed_dictionaries(
                        {},
                        optional={
                            "MaximumRetryAttempts": st.integers(0, 185),
                            "MaximumEventAgeInSeconds": st.integers(60, 86_400),
                        },
                    ),
                    "DeadLetterConfig": st.just({"Arn": f"arn:aws:sqs:{ACCOUNT}:dead"}),
                },
            )
        ),
    },
    optional={
        "GroupName": st.sampled_from(["default", "billing", "a.b"]),
        "Description": TEXTS,
        "ScheduleExpressionTimezone": st.sampled_from(["UTC", "Europe/Paris"]),
        "State": st.sampled_from(["ENABLED", "DISABLED"]),
        "ActionAfterCompletion": st.sampled_from(["NONE", "DELETE"]),
        "StartDate": st.integers(1_800_000_000, 1_900_000_000) | st.just(1_800_000_000.5),
        "EndDate": st.integers(1_900_000_001, 1_990_000_000),
    },
)


def only(line: dict[str, Any], role: str | None = ROLE) -> Exported:
    (export,) = exported([line], role)
    return export


@settings(max_examples=200, deadline=None)
@given(REQUESTS)
def test_what_is_exported_is_imported_as_the_same_schedule(request: dict[str, Any]) -> None:
    check_schedule(request)
    job = only({"job_id": "any", "eventbridge": request, "target": {}})
    assert not job.refusal
    (back,) = importing.read(written.lines([], [job.schedule]), Defaults())
    assert same_json(back.schedule, request)
    arn = f"arn:aws:scheduler:{ACCOUNT}:schedule/{request.get('GroupName', 'default')}/{request['Name']}"
    assert same_json(back.definition, definition_of(request, arn))
    assert back.suspended == (request.get("State") == "DISABLED")


def test_all_schedules_come_back_from_an_export(office: Office, aws: Aws) -> None:
    client = aws()
    client.create_schedule_group(Name="billing", Tags=[{"Key": "team", "Value": "money"}])
    for request in SCHEDULES:
        client.create_schedule(**request)
    lines = office.alice("GET", "/v1/jobs/_export?eventbridge=true").text.splitlines()
    refused = [export for export in exported(map(json.loads, lines), None) if export.refusal]
    assert not refused
    exports = {export.schedule["Name"]: export.schedule for export in exported(map(json.loads, lines), None)}
    assert exports.keys() == {request["Name"] for request in SCHEDULES}
    for request in SCHEDULES:
        # What is created has no ARN yet; a universal target names no account from which it could be made.
        arn = f"arn:aws:scheduler:us-east-1:123456789012:schedule/default/{request['Name']}"
        (back,) = importing.read(json.dumps({**exports[request["Name"]], "Arn": arn}), Defaults())
        for name, value in request.items():
            assert back.schedule is not None
            assert back.schedule[name] == value, name
    plain = office.alice("GET", "/v1/jobs/_export").text
    assert '"eventbridge":' not in plain


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ({**job(every=90), "job_id": "a"}, "schedule.every"),
        ({**job(every=60), "job_id": "a"}, "target.invocation"),
        (
            {**job(every=60), "job_id": "a", "target": {"kind": "http", "url": "https://x.example.com"}},
            "target.kind",
        ),
        ({**job(every=60), "job_id": "a" * 65, "target": {"kind": "sns", "arn": ARN}}, "target.envelope"),
        ({**job(every=60), "job_id": f"eb...{'0' * 16}.{'0' * 32}"}, "job_id: is a hash"),
    ],
)
def test_what_aws_cannot_say_is_named(definition: dict[str, Any], why: str) -> None:
    assert why in only(definition).refusal


def test_a_job_of_minute8_becomes_a_schedule() -> None:
    line = {
        "job_id": "billing..nightly",
        "schedule": {"cron": "0 3 * * MON-FRI"},
        "target": {"kind": "lambda", "invocation": "Event", "arn": ARN, "envelope": False},
        "payload": {"n": 1},
        "retry": {"max_attempts": 3, "base_s": 5, "max_age_s": 600},
        "owner": "ann",
        "overlap": "skip",
        "state": "paused",
    }
    job = only(line)
    assert job.schedule == {
        "Name": "nightly",
        "GroupName": "billing",
        "ScheduleExpression": "cron(0 3 ? * 2-6 *)",
        "FlexibleTimeWindow": OFF,
        "ActionAfterCompletion": "NONE",
        "Target": {
            "Arn": ARN,
            "RoleArn": ROLE,
            "Input": '{"n": 1}',
            "RetryPolicy": {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 600},
        },
        "State": "DISABLED",
    }
    assert [note.partition(" ")[0] for note in job.notes] == ["overlap", "owner", "the"]
    assert "--role-arn" in only(line, None).refusal
    long_name = only({**line, "job_id": "a" * 65})
    assert "Name" in long_name.refusal


def test_each_field_of_a_job_is_said_or_named() -> None:
    defaults = {field.name: field.default for field in structs.fields(JobDefinition)} | {"tags": []}
    own = {name: default for name, default in defaults.items() if name not in exporting._SAID}
    line = {"job_id": "a", "eventbridge": SCHEDULES[0], "target": {}}
    assert only({**line, **own}).notes == ()
    changed = dict.fromkeys(own, "changed") | {"future": 1}
    assert only({**line, **changed}).notes == tuple(
        f"{name} is left out: AWS's schedules have no such field" for name in sorted(changed)
    )


GROUPS: list[dict[str, Any]] = [
    {"Name": "billing", "Tags": [{"Key": "team", "Value": 'a "b" ${c} %{d} $${e} \\n'}]},
    {"Name": "a.b"},
]
MANY: list[dict[str, Any]] = [
    {
        "Name": f"{n}-schedule",
        "GroupName": ["billing", "default"][n % 2],
        "ScheduleExpression": "rate(1 day)",
        "StartDate": "2030-01-01T00:00:00Z",
        "Description": "${x} %{y}\b\f\n\t\\b \x7f ü",
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5},
        "Target": {
            **target,
            "RetryPolicy": {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60},
            "DeadLetterConfig": {"Arn": f"arn:aws:sqs:{ACCOUNT}:dead"},
        },
    }
    for n, target in enumerate([ECS, PIPELINE, STREAM, BUS, {"Arn": ARN, "RoleArn": ROLE}])
]


def write(tool: str, folder: Path, schedules: list[dict[str, Any]] = MANY) -> list[Path]:
    paths = []
    for name, text in written.FORMATS[tool](GROUPS, schedules):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
        paths.append(folder / name)
    return paths


def test_cloudformation_templates_are_valid(tmp_path: Path) -> None:
    paths = write("cloudformation", tmp_path)
    assert [path.name for path in paths] == ["groups-1.template.json", "schedules-1.template.json"]
    lint = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([lint, *paths, "--regions", "us-east-1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_template_has_at_most_500_resources_and_1_mb(tmp_path: Path) -> None:
    many = [{**MANY[2], "Name": f"s{n}"} for n in range(1_001)]
    sizes = [
        len(json.loads(path.read_text())["Resources"]) for path in write("cloudformation", tmp_path, many)[1:]
    ]
    assert sizes == [500, 500, 1]
    large = {**MANY[2], "Target": {**STREAM, "Input": "x" * 200_000}}
    paths = write("cloudformation", tmp_path, [{**large, "Name": f"l{n}"} for n in range(9)])[1:]
    assert [path.stat().st_size <= 1_000_000 for path in paths] == [True] * 3


def test_the_requests_of_the_cli_are_files(tmp_path: Path) -> None:
    paths = write("cli", tmp_path)
    assert paths[0] == tmp_path / "create-schedule-group/billing.json"
    assert json.loads((tmp_path / "create-schedule/billing/0-schedule.json").read_text()) == MANY[0]


def test_two_schedules_never_share_a_name_in_terraform(tmp_path: Path) -> None:
    names = ["a.b", "a_b", "a b"]
    text = dict(written.terraform([], [{**MANY[4], "Name": name, "GroupName": "default"} for name in names]))
    labels = [line.split('"')[3] for line in text["schedules.tf"].splitlines() if line.startswith("resource")]
    assert labels == ["a_b", "a_b_2", "a_b_3"]


def test_a_templated_target_that_minute8_changed_is_the_operation_with_all_its_parameters() -> None:
    request = {"Name": "a", "ScheduleExpression": "rate(1 day)", "FlexibleTimeWindow": OFF, "Target": STREAM}
    definition = definition_of(request, f"arn:aws:scheduler:{ACCOUNT}:schedule/default/a")
    spec = {"schedule": definition["schedule"], "target": definition["target"]}
    changed = json.loads(definition["payload"]) | {"PartitionKey": "other"}
    fields = with_changes(request, ("payload",), spec, json.dumps(json.dumps(changed)))
    assert fields["Target"] == {
        "Arn": "arn:aws:scheduler:::aws-sdk:kinesis:putRecord",
        "RoleArn": ROLE,
        "Input": json.dumps(changed),
    }


@pytest.mark.parametrize(
    ("start", "expression", "is_left_out"),
    [
        ("2026-11-21T03:11:59Z", "cron(0 3 * * ? *)", True),
        ("2026-11-21T03:11:59Z", "rate(1 day)", True),
        ("2026-11-21T03:12:00Z", "rate(1 day)", False),
        ("2026-11-21T03:11:59Z", "at(2030-01-01T00:00:00)", False),
    ],
)
def test_a_start_that_is_past_is_left_out_with_a_note(start: str, expression: str, is_left_out: bool) -> None:
    """AWS creates no schedule whose StartDate is over five minutes ago."""
    schedule = {"Name": "a", "ScheduleExpression": expression, "StartDate": start}
    kept, note = creatable(schedule, at("2026-11-21T03:12:00Z"))
    assert ("StartDate" not in kept, "StartDate" in note) == (is_left_out, is_left_out)
    assert ("counts from the creation" in note) == (is_left_out and expression.startswith("rate"))
