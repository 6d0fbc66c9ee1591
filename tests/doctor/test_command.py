"""`minute8 doctor` as a command: its first line and its exit code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, NoRegionError
from typer.testing import CliRunner

from minute8.cli import session
from minute8.cli.doctor import command
from minute8.cli.main import app
from tests.doctor.stage import Patient


@pytest.fixture
def run(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(command, "connect", lambda stage, clock, url: patient.deployment)
    monkeypatch.setattr(session, "SystemClock", lambda: patient.clock)
    now = "Sat, 21 Nov 2026 03:20:00 GMT"  # moto sends today's date
    answer = {"ResponseMetadata": {"HTTPHeaders": {"date": now}}}
    patient.alter("sts", get_caller_identity=lambda: answer)
    return lambda *words: CliRunner().invoke(app, ["doctor", "--stage", "test", *words])


def test_it_answers_first_and_ends_well(run: Any) -> None:
    result = run()
    assert result.exit_code == 0
    first, _, *lines = result.stdout.splitlines()
    assert first == "minute8-test in us-east-1, account 123456789012: 1 not checked, 50 ok"
    assert lines[0].split()[:4] == ["not", "checked", "last", "hour"]
    assert any(line.startswith("ok           planned until") and "(in 10 min)" in line for line in lines)


def test_failures_come_first_with_their_remedies(run: Any, patient: Patient) -> None:
    patient["events"].disable_rule(Name="minute8-test-tick")
    result = run()
    assert result.exit_code == 1
    first, _, line, remedy, *_ = result.stdout.splitlines()
    assert first.endswith("1 failed, 1 not checked, 49 ok")
    assert line.strip().split(maxsplit=2) == [
        "failed",
        "rule",
        "minute8-test-tick is disabled: nothing is planned",
    ]
    assert remedy.strip() == "→ aws events enable-rule --name minute8-test-tick"
    assert result.stdout.endswith(
        "`minute8 doctor --stage test --fix` has 1 repair; it shows each and asks first\n"
    )


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--strict",), 1)])
def test_a_warning_fails_only_where_it_is_asked_for(
    run: Any, patient: Patient, words: tuple[str, ...], code: int
) -> None:
    patient["cloudwatch"].delete_alarms(AlarmNames=["minute8-test-no-tick"])
    assert run(*words).exit_code == code


def test_json_holds_all_findings(run: Any, patient: Patient) -> None:
    patient["events"].disable_rule(Name="minute8-test-tick")
    report = json.loads(run("--json").stdout)
    assert (report["stage"], report["region"], report["ok"]) == ("test", "us-east-1", False)
    assert report["checked_at"] == "2026-11-21T03:20:00Z"
    (rule,) = [finding for finding in report["findings"] if finding["check"] == "rule"]
    assert rule == {
        "check": "rule",
        "level": "failed",
        "found": "minute8-test-tick is disabled: nothing is planned",
        "remedy": "aws events enable-rule --name minute8-test-tick",
    }


def test_a_watch_is_quiet_when_all_is_well(run: Any) -> None:
    result = run("--watch")
    assert (result.exit_code, result.output) == (0, "")


def test_a_watch_prints_a_line_for_each_failure(run: Any, patient: Patient) -> None:
    patient["events"].disable_rule(Name="minute8-test-tick")
    patient["cloudwatch"].delete_alarms(AlarmNames=["minute8-test-no-tick"])
    result = run("--watch")
    line = "minute8-test: failed: rule: minute8-test-tick is disabled: nothing is planned"
    remedy = " → aws events enable-rule --name minute8-test-tick"
    assert (result.exit_code, result.output) == (1, f"{line}{remedy}\n")
    strict = run("--watch", "--strict")
    assert [text.split(": ")[:3] for text in strict.stdout.splitlines()] == [
        ["minute8-test", "failed", "rule"],
        ["minute8-test", "warning", "alarms"],
    ]


def test_a_watch_that_may_not_look_has_failed(run: Any, patient: Patient) -> None:
    def refuses(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "DescribeRule")

    patient.alter("events", describe_rule=refuses)
    assert run().exit_code == 0
    result = run("--watch")
    assert result.exit_code == 1
    assert "minute8-test: not checked: rule: your credentials may not DescribeRule" in result.stdout


@pytest.mark.parametrize("words", [("--fix", "--yes"), ("--json",)])
def test_a_watch_neither_repairs_nor_prints_json(run: Any, words: tuple[str, ...]) -> None:
    assert run("--watch", *words).exit_code == 2


def test_an_alarm_that_is_on_after_a_repair_is_a_warning(run: Any, patient: Patient) -> None:
    """It looks back, and goes OK minutes later."""
    patient["events"].disable_rule(Name="minute8-test-tick")
    patient["cloudwatch"].set_alarm_state(
        AlarmName="minute8-test-no-tick", StateValue="ALARM", StateReason="no ticks"
    )
    result = run("--fix", "--yes", "--json")
    levels = {finding["check"]: finding["level"] for finding in json.loads(result.stdout)["findings"]}
    assert (result.exit_code, levels["rule"], levels["alarms"]) == (0, "ok", "warning")
    assert run("--fix", "--yes").exit_code == 1, "nothing was repaired now"


@pytest.mark.parametrize(("shows_after_s", "code"), [(40, 0), (90, 1)])
def test_a_repair_may_take_a_minute_to_show(
    run: Any, patient: Patient, shows_after_s: int, code: int
) -> None:
    """As IAM's simulator on AWS after a policy was put back."""
    patient.simulator.denied.add(("sqs:SendMessage", ":minute8-test-planning"))
    began_at, sleep = patient.clock.now(), patient.clock.sleep

    def later(seconds: float) -> None:
        sleep(seconds)
        if patient.clock.now() >= began_at + shows_after_s:
            patient.simulator.denied.clear()

    patient.clock.sleep = later  # type: ignore[method-assign]
    patient.simulator.put_role_policy = lambda **_: None  # type: ignore[method-assign]
    result = run("--fix", "--yes", "--json")
    assert (result.exit_code, patient.clock.now() - began_at) == (code, min(shows_after_s, 60))


def test_a_repair_that_does_not_show_has_failed_even_of_a_warning(run: Any, patient: Patient) -> None:
    """Another policy denies it, or somebody changes it back."""
    patient["lambda"].put_function_concurrency(
        FunctionName="minute8-test-executor", ReservedConcurrentExecutions=1
    )
    patient.alter("lambda", delete_function_concurrency=lambda **_: None)
    result = run("--fix", "--yes", "--json")
    (repair,) = json.loads(result.stdout)["repairs"]
    assert repair["result"].startswith("failed: it is done, and still: its reserved concurrency is 1")
    assert result.exit_code == 1


def test_a_stage_that_is_not_there_is_one_line(run: Any, patient: Patient) -> None:
    for function in ("scheduler", "planner", "executor", "outcomes", "notifier", "api"):
        patient["lambda"].delete_function(FunctionName=f"minute8-test-{function}")
    result = run()
    assert result.exit_code == 1
    assert result.stdout.count("failed") == 2
    assert "no Minute8 of stage 'test' in us-east-1 of account 123456789012" in result.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NoCredentialsError(), 5),
        (ClientError({"Error": {"Code": "ExpiredToken", "Message": "it is over"}}, "GetCallerIdentity"), 5),
        (ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "Query"), 3),
        (ClientError({"Error": {"Code": "InternalError", "Message": ""}}, "Query"), 1),
        (NoRegionError(), 2),
        (EndpointConnectionError(endpoint_url="https://nowhere"), 6),
    ],
)
def test_without_aws_it_says_why(
    run: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    def connect(stage: str, clock: object, url: str | None) -> None:
        raise error

    monkeypatch.setattr(command, "connect", connect)
    result = run()
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(f"minute8: {error}")
