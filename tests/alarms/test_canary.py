"""The canary: its function's metric, and its registration, which can be repeated."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator

import boto3
import pytest
from moto import mock_aws

from common.clock import SystemClock
from common.config import LIVE
from common.errors import NotFound
from common.platform.findings import Finding, Level
from common.platform.tenants import Tenants
from common.storage.table import Table
from minute8.canary import handler
from minute8.cli.doctor import canary
from minute8.cli.doctor.deployment import Deployment
from scripts import canary as command
from scripts.cloudwatch.metrics import Metric, samples_in
from scripts.demo.stage import Stage
from tests.worlds import at, make_tables

FUNCTION = "canary-minute8-prod"
RUN = {"tenant": handler.TENANT, "job_id": handler.JOB_ID, "due_at": "2026-11-21T03:12:00Z"}


def test_its_metric_is_how_late_it_was_called() -> None:
    line = handler.line("prod", RUN["due_at"], at("2026-11-21T03:12:00Z") + 0.25)
    metric = Metric.of("Minute8", "CanaryLatenessSeconds", service="minute8", stage="prod")
    assert samples_in(line) == [(metric, at("2026-11-21T03:12:00Z") + 0.25, 0.25)]


def test_a_clock_that_is_behind_is_no_negative_lateness() -> None:
    assert json.loads(handler.line("prod", RUN["due_at"], 0.0))["CanaryLatenessSeconds"] == 0


def test_only_its_own_run_leaves_a_metric(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STAGE", "prod")
    for event in ({}, {"minute8": {**RUN, "tenant": "alice"}}, {"minute8": {**RUN, "job_id": "other"}}):
        handler.handle(event, None)
    assert capsys.readouterr().out == ""
    handler.handle({"minute8": RUN, "payload": None}, None)
    assert len(samples_in(capsys.readouterr().out)) == 1


@pytest.fixture
def stage() -> Iterator[Stage]:
    with mock_aws():
        make_tables(boto3.client("dynamodb"), "minute8-prod")
        boto3.client("sqs").create_queue(QueueName="minute8-prod-executions")
        for name in ("minute8-prod-executor", FUNCTION):
            create_function(name)
        yield Stage({}, "prod")


def registered() -> str:
    return canary.register(deployment())


def deployment() -> Deployment:
    return Deployment("prod", "aws", "us-east-1", "123456789012", boto3.client, SystemClock())


def tenants(stage: Stage) -> Tenants:
    return Tenants(Table(stage.client("dynamodb"), "minute8-prod-tenants"))


def finding_of_canary() -> Finding:
    (finding,) = canary.canary(deployment())
    return finding


def create_function(name: str) -> None:
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    role = boto3.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("handler.py", "")
    boto3.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler="handler.x",
        Code={"ZipFile": code.getvalue()},
    )
    boto3.client("lambda").create_alias(FunctionName=name, Name=LIVE, FunctionVersion="$LATEST")


def test_the_canary_is_registered_once(stage: Stage) -> None:
    assert "registered, and due each minute" in registered()
    first = stage.store.get(handler.TENANT, handler.JOB_ID)
    assert registered() == "registered already"
    assert stage.store.get(handler.TENANT, handler.JOB_ID) == first
    assert first.spec.target["arn"].endswith(f":function:{FUNCTION}")
    tenant = tenants(stage).get(handler.TENANT)
    assert tenant.allowed_targets == [first.spec.target["arn"]]
    assert "canary" in tenant.name


def test_a_paused_one_runs_again(stage: Stage) -> None:
    registered()
    stage.store.pause(handler.TENANT, handler.JOB_ID)
    registered()
    assert stage.store.get(handler.TENANT, handler.JOB_ID).state == "active"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda stage: stage.store.delete(handler.TENANT, handler.JOB_ID), "is not registered"),
        (lambda stage: stage.store.pause(handler.TENANT, handler.JOB_ID), "its job is paused"),
        (
            lambda stage: stage.registry.patch(
                handler.TENANT, handler.JOB_ID, {"schedule": {"cron": "0 * * * *"}}
            ),
            "another schedule",
        ),
        (lambda stage: tenants(stage).edit(handler.TENANT, {"allowed_targets": []}, 0), "something else"),
        (lambda stage: boto3.client("lambda").delete_function(FunctionName=FUNCTION), "is left"),
    ],
)
def test_the_doctor_names_what_stops_it_and_repairs_it(
    stage: Stage, damage: Callable[[Stage], object], words: str
) -> None:
    registered()
    assert (finding_of_canary().level, finding_of_canary().repair) == (Level.OK, None)
    damage(stage)
    finding = finding_of_canary()
    assert finding.level == Level.FAILED
    assert words in finding.message
    assert finding.repair
    finding.repair.do()
    assert (finding_of_canary().level, finding_of_canary().repair) == (Level.OK, None)


def test_a_suspended_tenant_is_left_to_a_person(stage: Stage) -> None:
    registered()
    tenants(stage).suspend(handler.TENANT, "", 0)
    finding = finding_of_canary()
    assert (finding.level, finding.message, finding.repair) == (
        Level.FAILED,
        "its tenant is suspended",
        None,
    )


def test_a_stage_without_its_function_has_no_job(stage: Stage) -> None:
    registered()
    boto3.client("lambda").delete_function(FunctionName=FUNCTION)
    assert registered() == "off: its job is deleted"
    with pytest.raises(NotFound):
        stage.store.get(handler.TENANT, handler.JOB_ID)
    assert registered() == "off"


def test_the_command_says_what_it_did(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--stage", "prod"]) == 0
    assert "minute8-canary/canary" in capsys.readouterr().out
    assert command.main(["--stage", "other"]) == 1
    assert "canary: " in capsys.readouterr().err
