"""`make deploy`: what it refuses before it creates anything, where it deploys, and what it does after a success."""

from __future__ import annotations

import fcntl
import io
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    UnauthorizedSSOTokenError,
)
from botocore.loaders import Loader
from moto import mock_aws

from common.platform.findings import Level, failed
from common.storage import aws
from minute8.cli.doctor import inventory
from scripts import (
    build_layer,
    build_package,
    deploy,
    deployment_plan,
    kept_tables,
    parameters,
    precheck,
    stack,
)
from scripts.session import caller_problem, exit_status
from tests.worlds import TABLES, make_tables


def template(version: str = "1.0.0", memory: Any = 512, topic: Any = "off", **more: Any) -> dict[str, Any]:
    """A packaged template, as far as a plan reads it."""
    environment = {"Variables": {"VERSION": version}}
    return {
        "Conditions": {"HasTopic": {"Fn::Not": [{"Fn::Equals": [topic, "off"]}]}},
        "Resources": {
            "ExecutorLambdaFunction": {
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    "MemorySize": memory,
                    "Environment": environment,
                    "Code": {"S3Key": f"{version}/{memory}.zip"},
                },
            },
            "Alarm": {
                "Type": "AWS::CloudWatch::Alarm",
                "Properties": {"AlarmActions": {"Fn::If": ["HasTopic", [topic], {"Ref": "AWS::NoValue"}]}},
            },
            "Topical": {"Type": "AWS::SNS::Subscription", "Condition": "HasTopic", "Properties": {}},
            **more,
        },
    }


TEMPLATE = template()


def problems(stage: str = "prod", **overrides: str) -> list[str]:
    return parameters.problems(stage, parameters.read(stage, overrides))


ISSUER = {"jwtIssuer": "https://issuer", "jwtAudience": "acme"}


@pytest.mark.parametrize("stage", ["dev", "prod", "acme-eu-2"])
def test_the_defaults_are_right(stage: str) -> None:
    assert problems(stage) == []


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"logRetentionInDays": "31"}, "accepted: 1, 3, 5, 7, 14, 30"),
        (
            {"executorTimeoutS": "901"},
            "executorTimeoutS=901 is not valid; accepted: a whole number from 5 to 900",
        ),
        ({"executorTimeoutS": "5m"}, "executorTimeoutS=5m"),
        ({"executorTimeoutS": ""}, "executorTimeoutS="),
        ({"executorMemoryMb": "100"}, "from 128 to 10240"),
        ({"maximumConcurrency": "1"}, "from 2 to 1000"),
        ({"minimumPollers": "5"}, "give both or none"),
        ({"minimumPollers": "50", "maximumPollers": "20"}, "is more than maximumPollers"),
        ({"leastUnits": "5"}, "leastUnits and mostUnits: give both or none"),
        ({"leastUnits": "50", "mostUnits": "20"}, "leastUnits=50 is more than mostUnits=20"),
        ({"platformLogLevel": "ERROR"}, "platformLogLevel=ERROR is not valid; accepted: DEBUG, INFO, WARN"),
        ({"apiAccessLog": "false"}, "apiAccessLog=false is not valid; accepted: true, off"),
        ({"apiThrottleRate": "0"}, "from 1 to 10000"),
        ({"warmReads": "45000"}, "from 12000 to 40000"),
        ({"visibilityTimeoutS": "400"}, "there is no such parameter"),
        ({"jwtIssuer": "https://issuer"}, "jwtAudience"),
        ({"jwtIssuer": "http://issuer", "jwtAudience": "a"}, "https://"),
        ({"jwtConsoleClient": "console"}, "jwtIssuer: it must be given with jwtConsoleClient"),
        ({"alarmTopicArn": "pager"}, "ARN of an SNS topic"),
        ({"runsExport": "s3://history"}, "the name of a bucket of S3, or off"),
        (
            {"dailyReportTopicArn": "arn:aws:sns:eu-west-1:123456789012:a.fifo"},
            "a standard SNS topic, or off",
        ),
        ({"dailyReportHour": "24"}, "from 0 to 23"),
        ({"auditExport": "s3://audit"}, "the name of a bucket of S3, or off"),
        ({"outcomeSenders": "210987654321,*"}, "outcomeSenders: '*' is not valid"),
        ({"registrationRules": "minute8-acme"}, "registrationRules: 'minute8-acme' is not valid"),
        ({"kmsKeyArn": "alias/minute8"}, "kmsKeyArn=alias/minute8 is not valid"),
        ({"otlpEndpoint": "http://otlp.acme.example"}, "an address that begins with https://"),
        ({"otlpEndpoint": "http://localhost.acme.example"}, "an address that begins with https://"),
        ({"otlpEndpoint": "https://key@otlp.acme.example"}, "an address that begins with https://"),
        ({"otlpHeaders": "api-key=secret"}, "the name of a parameter of SSM"),
        ({"otlpRatio": "1.5"}, "otlpRatio=1.5 is not valid; accepted: a number from 0 to 1"),
        ({"outcomeSenders": "acme"}, "account ids and ARNs of roles"),
        ({"deletionPolicy": "Keep"}, "RetainExceptOnCreate, Retain, Delete"),
        ({"plainHttpTargets": "loopback"}, "plainHttpTargets=loopback is not valid; accepted: true, off"),
        ({"maximumConcurrency": "none"}, "a whole number from 2 to 1000, or off"),
        ({"canary": ""}, "canary= is not valid; accepted: true, off"),
        ({"alarmTopicArn": ""}, "alarmTopicArn= is not valid; accepted: the ARN of an SNS topic, or off"),
        ({"jwtTenantClaim": ""}, "jwtTenantClaim= is not valid; accepted: a value"),
        ({"jwtAudience": "acme"}, "jwtIssuer: it must be given with jwtAudience"),
        (
            ISSUER | {"jwtAlgorithms": "HS256"},
            "jwtAlgorithms: 'HS256' is not valid; accepted: RS256",
        ),
        (ISSUER | {"jwtRoles": "admins=root"}, "with the roles read, write, admin"),
        (ISSUER | {"jwtDefaultRole": "operator"}, "accepted: none, read, write, admin"),
        ({"targetArns": "acme-*"}, "targetArns: 'acme-*' is not valid; accepted: ARNs"),
        ({"targetArns": "arn:aws:lambda:*:*:function:a,"}, "targetArns: '' is not valid"),
        ({"alarmTopicArn": "arn:aws:sns:eu-west-1:pager"}, "the ARN of an SNS topic, or off"),
        (
            {"runsExport": "none"},
            "runsExport=none is not valid; accepted: the name of a bucket of S3, or off",
        ),
        ({"apiPathPrefix": "False"}, "apiPathPrefix=False is not valid; accepted: a value, or off"),
    ],
)
def test_a_bad_parameter_is_refused_with_what_is_accepted(params: dict[str, str], reason: str) -> None:
    (problem,) = problems(**params)
    assert reason in problem


def test_each_parameter_is_declared_and_says_what_it_does() -> None:
    assert parameters.read("", {}).keys() == parameters.PARAMETERS.keys()
    assert [name for name, parameter in parameters.PARAMETERS.items() if not parameter.meaning] == []


def test_a_pattern_of_numbers_accepts_those_that_its_words_say() -> None:
    words = {name: parameter.accepted for name, parameter in parameters.PARAMETERS.items()}
    bounds = {
        name: re.fullmatch(r"a whole number from (\d+) to (\d+), or off", text)
        for name, text in words.items()
    }
    of_numbers = {name: (int(match[1]), int(match[2])) for name, match in bounds.items() if match}
    assert len(of_numbers) == 9
    for name, (least, most) in of_numbers.items():
        near = {number + more for number in (least, most, 10, 100, 1_000, 10_000) for more in (-1, 0, 1)}
        accepted = {n for n in near if parameters.PARAMETERS[name].refusal(name, str(n)) is None}
        assert accepted == {n for n in near if least <= n <= most}, name


def test_bounds_are_accepted() -> None:
    assert problems(outcomeSenders="210987654321,arn:aws:iam::123456789012:role/acme/functions") == []
    functions = (
        "arn:aws:lambda:*:*:function:acme-*,arn:aws:sqs:eu-west-1:123456789012:acme-work,arn:aws:s3:::acme"
    )
    assert problems(targetArns=functions, **ISSUER, jwtDefaultRole="none") == []
    assert problems(otlpEndpoint="http://localhost:4318", otlpHeaders="/a.b/c-d_e", otlpRatio="0") == []
    assert problems(executorTimeoutS="900", warmReads="40000", minimumPollers="2", maximumPollers="2") == []


@pytest.mark.parametrize("stage", ["local", "test", "Prod", "a_b", "x" * 21, ""])
def test_a_stage_that_cannot_go_to_an_account_is_refused(stage: str) -> None:
    assert len(problems(stage)) == 1


def test_parameters_are_read_as_osls_takes_them() -> None:
    params = parameters.given_in(
        ["--verbose", "--param=a=1", "--param", "b=x=y", '--param="c=off"', "--force"]
    )
    assert params == {"a": "1", "b": "x=y", "c": "off"}


def test_an_empty_value_is_refused_before_osls_refuses_it() -> None:
    (refusal,) = parameters.refusals("prod", ["--param=canary="])
    assert "canary=off" in refusal


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Runs in place of osls and pip."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: Any) -> Any:
        ran.append(command[1:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(precheck, "of_deployment", lambda *_: [])
    monkeypatch.setattr(stack, "_exists", lambda *_: True)
    for module in (deploy, stack):
        monkeypatch.setattr(module, "caller_problem", lambda *_: None)
    monkeypatch.setattr(deploy.Deployment, "template", lambda _: TEMPLATE)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    return ran


def test_nothing_is_run_with_a_bad_parameter(
    commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert deploy.main(["--stage", "prod", "--region", "eu-central-1", "--param=logRetentionInDays=31"]) == 2
    assert commands == []
    assert "logRetentionInDays=31" in capsys.readouterr().err


def test_ctrl_c_says_what_goes_on_and_prints_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> int:
        raise KeyboardInterrupt

    assert exit_status(stopped, deploy._STOPPED) == 130
    printed = capsys.readouterr().err
    assert "goes on without this command; run it again" in printed
    assert "Traceback" not in printed


def test_without_any_region_nothing_is_run(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    assert deploy.main(["--stage", "prod"]) == 2
    assert commands == []


@pytest.mark.parametrize("where", ["option", "AWS_REGION", "AWS_DEFAULT_REGION", "profile", "AWS_PROFILE"])
def test_the_region_is_the_one_that_the_command_uses(
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    where: str,
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "[profile work]\nregion = eu-central-1\naws_access_key_id = a\naws_secret_access_key = b\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    arguments = ["--stage", "prod"]
    if where.startswith("AWS_"):
        monkeypatch.setenv(where, "work" if where == "AWS_PROFILE" else "eu-central-1")
    else:
        arguments += {"option": ["--region", "eu-central-1"], "profile": ["--aws-profile", "work"]}[where]
    with mock_aws():
        deployed(monkeypatch)
        assert deploy.main(arguments) == 0
        client = boto3.client("dynamodb", region_name="eu-central-1")
        for name in TABLES:
            table = client.describe_table(TableName=f"minute8-prod-{name}")["Table"]
            assert table["DeletionProtectionEnabled"] is True
    package, command, canary, doctor = commands
    assert canary == ["-m", "scripts.canary", "--stage", "prod"]
    assert doctor == ["-m", "minute8", "--url", "https://abc.example", "doctor", "--stage", "prod"]
    assert (package[0], command[0]) == ("package", "deploy")
    assert package[1:] == command[1:]
    assert command[command.index("--region") + 1] == "eu-central-1"
    out = capsys.readouterr().out
    assert "stage prod in eu-central-1, at https://abc.example" in out
    assert "minute8 tenants create acme --stage prod" in out


def deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables, and the stack's outputs. moto's CloudFormation would need many more packages."""
    make_tables(boto3.client("dynamodb", region_name="eu-central-1"), "minute8-prod")
    outputs = {f"{name.title()}TableName": f"minute8-prod-{name}" for name in TABLES}
    monkeypatch.setattr(
        deploy,
        "outputs_of",
        lambda session, stage, region: {**outputs, "ApiUrl": "https://abc.example", "Deployment": "abc"},
    )


def test_a_rollback_goes_to_the_newest_deployment_before_the_one_that_runs() -> None:
    kept = stack.timestamps(
        f"serverless/minute8/prod/{ms}-2026-11-21T03:12:00.000Z/{file}"
        for ms in (1763694720000, 963694720000, 1763694729999)
        for file in ("minute8.zip", "serverless-state.json")
    )
    assert kept == {"1763694720000", "963694720000", "1763694729999"}
    assert stack.previous("1763694729999", kept) == "1763694720000"
    assert stack.previous("1763694720000", kept) == "963694720000"  # by number, not by text
    with pytest.raises(LookupError):
        stack.previous("963694720000", kept)


def test_a_rollback_keeps_the_tables_that_the_earlier_deployment_did_not_have() -> None:
    """CloudFormation would delete the audit, or leave its table in the way of the next deployment."""
    jobs = {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "minute8-prod-jobs"}}
    audit = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {"WarmThroughput": {"Fn::If": ["HasWarmReads", {}, {"Ref": "AWS::NoValue"}]}},
    }
    older = {
        "Resources": {"JobsTable": {**jobs, "Old": True}},
        "Conditions": {"Both": "old"},
        "Parameters": {"logLevel": {"Default": "DEBUG"}},
    }
    running = {
        "Resources": {"JobsTable": jobs, "AuditTable": audit, "NewQueue": {"Type": "AWS::SQS::Queue"}},
        "Conditions": {"Both": "new", "HasWarmReads": {}},
        "Parameters": {"logLevel": {"Default": "INFO"}, "warmReads": {"Default": "off"}},
    }
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="deployments")
        key = f"serverless/minute8/prod/7-2026/{kept_tables.TEMPLATE}"
        s3.put_object(Bucket="deployments", Key=key, Body=json.dumps(older))
        assert kept_tables.keep_tables(s3, "deployments", key, running) == ["AuditTable"]
        assert json.loads(s3.get_object(Bucket="deployments", Key=key)["Body"].read()) == {
            "Resources": {"JobsTable": {**jobs, "Old": True}, "AuditTable": audit},
            "Conditions": {"Both": "old", "HasWarmReads": {}},
            "Parameters": {"logLevel": {"Default": "DEBUG"}, "warmReads": {"Default": "off"}},
        }
        assert kept_tables.keep_tables(s3, "deployments", key, running) == []


def test_a_table_outside_the_stack_is_found_before_the_deployment_would_fail() -> None:
    class Stack:
        def get_paginator(self, name: str) -> Stack:
            assert name == "list_stack_resources"
            return self

        def paginate(self, StackName: str) -> list[dict[str, Any]]:
            tables = [f"{StackName}-{name}" for name in TABLES if name != "audit"]
            return [{"StackResourceSummaries": [{"PhysicalResourceId": name} for name in tables]}]

    with mock_aws():
        dynamodb = boto3.client("dynamodb", region_name="eu-central-1")
        make_tables(dynamodb, "minute8-prod")
        (finding,) = precheck.tables_outside(Stack(), dynamodb, "prod")
        assert (finding.level, "minute8-prod-audit" in finding.message) == (Level.FAILED, True)
        dynamodb.delete_table(TableName="minute8-prod-audit")
        assert list(precheck.tables_outside(Stack(), dynamodb, "prod")) == []


def test_a_rollback_and_a_removal_go_to_the_region_of_the_deployment(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setattr(stack, "deployments", lambda session, stage, region: ("8", {"7", "8"}))
    monkeypatch.setattr(stack, "keep_tables", lambda session, stage, region, timestamp: [])
    assert stack.main(["rollback", "--stage", "prod", "--timestamp", "before"]) == 0
    assert stack.main(["remove", "--stage", "prod", "--verbose", "--yes"]) == 0
    place = ["--stage", "prod", "--region", "eu-central-1"]
    assert commands == [["rollback", *place, "--timestamp", "7"], ["remove", *place, "--verbose"]]


@pytest.mark.parametrize(
    ("stage", "typed", "removed"), [("prod", "prod", 1), ("prod", "dev", 0), ("dev", "", 1)]
)
def test_a_stage_with_data_is_removed_only_if_its_name_is_typed(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, stage: str, typed: str, removed: int
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: typed)
    stack.main(["remove", "--stage", stage, "--region", "eu-central-1"])
    assert len(commands) == removed


def test_a_removal_without_a_terminal_does_not_ask(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert stack.main(["remove", "--stage", "prod", "--region", "eu-central-1"]) == 2
    assert commands == []


@pytest.mark.parametrize("stage", ["", "prod old", "Prod"])
def test_an_invalid_stage_is_neither_removed_nor_rolled_back(commands: list[list[str]], stage: str) -> None:
    for verb in ("remove", "rollback"):
        assert stack.main([verb, "--stage", stage, "--region", "eu-central-1", "--yes"]) == 2
    assert commands == []


def test_a_stage_that_is_not_there_is_named_with_its_region(
    on_moto: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second removal, a slip of the pen, or another region."""
    for verb in ("remove", "rollback"):
        assert stack.main([verb, "--stage", "prod", "--region", "eu-central-1", "--yes"]) == 1
        assert capsys.readouterr().err == f"{verb}: there is no stage prod in eu-central-1\n"


def test_without_credentials_nothing_is_run(
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for module in (deploy, stack):
        monkeypatch.setattr(module, "caller_problem", caller_problem)
    place = ["--stage", "prod", "--region", "eu-central-1"]
    assert (deploy.main(place), stack.main(["remove", "--yes", *place])) == (2, 2)
    assert commands == []
    assert capsys.readouterr().err.count("no AWS credentials") == 2


def failing(error: Exception) -> Any:
    """A client of STS whose only operation raises this."""

    class Sts:
        def get_caller_identity(self) -> None:
            raise error

    return Sts()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NoCredentialsError(), "no AWS credentials: `aws configure`"),
        (
            EndpointConnectionError(endpoint_url="https://sts.eu-zentral-1.amazonaws.com/"),
            "Is this the name of a region",
        ),
        (
            ClientError({"Error": {"Code": "ExpiredToken", "Message": "it is expired"}}, "GetCallerIdentity"),
            "it is expired. If they have expired, sign in again",
        ),
        (UnauthorizedSSOTokenError(), "sign in again (`aws sso login`"),
    ],
)
def test_a_caller_or_a_region_that_aws_does_not_know_is_told_first(error: Exception, words: str) -> None:
    assert words in str(caller_problem(lambda: failing(error), "eu-zentral-1"))
    assert "eu-zentral-1" in str(caller_problem(lambda: failing(error), "eu-zentral-1")) or "no AWS" in words


def test_what_is_no_region_or_no_profile_is_said_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    place = ["--stage", "prod", "--region"]
    for main in (deploy.main, stack.main):
        verb = [] if main is deploy.main else ["remove", "--yes"]
        assert main([*verb, *place, "eu central"]) == 2
        unknown = [*verb, *place, "eu-central-1", "--aws-profile", "nobody"]
        assert exit_status(lambda main=main, unknown=unknown: main(unknown), "stopped") == 2  # type: ignore[misc]
    printed = capsys.readouterr().err
    assert (printed.count("eu central"), printed.count("(nobody)")) == (2, 2)


def test_make_passes_the_stage_on_as_one_word() -> None:
    """Else `make remove STAGE="prod old"` would remove prod."""
    recipes = (build_layer.ROOT / "Makefile").read_text()
    assert recipes.count("--stage") == recipes.count('--stage "$(STAGE)"') == 5


def test_without_a_region_or_an_earlier_deployment_nothing_is_removed_or_rolled_back(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    assert stack.main(["remove", "--stage", "prod", "--yes"]) == 2
    monkeypatch.setattr(stack, "deployments", lambda session, stage, region: ("8", {"8"}))
    to_prod = ["rollback", "--stage", "prod", "--region", "eu-central-1"]
    with mock_aws():
        assert stack.main(to_prod) == 1
    assert stack.main([*to_prod, "--timestamp", "before"]) == 1
    assert commands == []


def test_the_sdk_is_the_one_that_the_tests_run_with_and_the_doctor_expects() -> None:
    assert f"botocore=={inventory.SDK}\n" in (build_layer.ROOT / "requirements/lambda.in").read_text()
    assert aws.sdk_version() == inventory.SDK


def test_the_layer_keeps_each_service_that_a_function_calls(tmp_path: Path) -> None:
    created = re.compile(r'(?:_create_client|before_any_call|\bclient)\(\s*"(\w+)"')
    code = [
        path.read_text()
        for name in (
            "common",
            "executor",
            "scheduler",
            "minute8/api",
            "minute8/eventbridge",
            "minute8/notifier",
        )
        for path in (build_layer.ROOT / name).rglob("*.py")
    ]
    called = {service for text in code for service in created.findall(text)}
    assert called == build_layer.SERVICES
    for name in ("dynamodb", "polly"):
        (tmp_path / "botocore" / "data" / name).mkdir(parents=True)
    build_layer._strip(tmp_path)
    assert [path.name for path in (tmp_path / "botocore" / "data").iterdir()] == ["dynamodb"]


def test_the_layer_keeps_what_clients_read_of_botocores_data(tmp_path: Path) -> None:
    """They read no documentation, and no endpoints of other services."""
    installed, stripped = Path(botocore.__file__).parent / "data", tmp_path / "botocore" / "data"
    for name in build_layer.SERVICES:
        shutil.copytree(installed / name, stripped / name)
    for path in installed.glob("*.json"):
        shutil.copy(path, stripped)
    build_layer._strip(tmp_path)
    assert (stripped / "endpoints.json").stat().st_size < 100_000
    clients = zip(_clients_with(stripped), _clients_with(installed), strict=True)
    for client, reference in clients:
        assert client.meta.endpoint_url == reference.meta.endpoint_url
        assert _shapes(client) == _shapes(reference)


def _clients_with(data: Path) -> Iterator[Any]:
    session = botocore.session.get_session()
    loader = Loader(extra_search_paths=[str(data)], include_default_search_paths=False)
    session.register_component("data_loader", loader)
    for service in sorted(build_layer.SERVICES):
        for region in ("eu-central-1", "cn-north-1"):
            yield session.create_client(service, region, aws_access_key_id="k", aws_secret_access_key="s")


def _shapes(client: Any) -> dict[str, Any]:
    model = client.meta.service_model
    shapes = {name: model.shape_for(name) for name in model.shape_names}
    return {
        name: (shape.type_name, shape.metadata, shape.serialization, list(getattr(shape, "members", ())))
        for name, shape in shapes.items()
    }


def test_without_its_compiler_nothing_is_packaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_layer, "_COMPILER", tmp_path)
    monkeypatch.setattr(build_layer, "_build", lambda *_: False)
    assert build_package.main(["arm64", "jwtIssuer=off", "otlpEndpoint=off"]) == 1
    assert "is not installed: run `make install`" in capsys.readouterr().err


def test_a_module_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def")
    for platform in ("local", "arm64"):
        with pytest.raises(RuntimeError, match=r"wrong\.py"):
            build_layer._compile(platform, "checked-hash", [tmp_path])


def test_a_layers_stamp_names_its_compiler() -> None:
    version = json.loads((build_layer.ROOT / "package.json").read_text())["dependencies"]["pyodide"]
    stamp = build_layer._fingerprint("arm64", build_layer.LAYERS["layer"])
    assert f"pyodide {version} " in stamp


def test_a_layer_is_built_once_if_two_ask_for_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fresh clone several test runners begin with a deployment."""
    installed: list[Path] = []
    another = threading.Event()

    def pip(_platform: str, _requirements: Path, target: Path) -> None:
        installed.append(target)
        target.mkdir(parents=True)
        if len(installed) == 1:
            second_builds.append(pool.submit(build_layer.build, "local", "layer", tmp_path))
            another.wait(0.5)
        else:
            another.set()

    monkeypatch.setattr(build_layer, "_pip_install", pip)
    second_builds: list[Future[tuple[Path, bool]]] = []
    with ThreadPoolExecutor() as pool:
        assert build_layer.build("local", "layer", tmp_path)[1]
        assert not second_builds[0].result()[1]
    assert len(installed) == 1


PARAMS = parameters.read("prod", {})
_PAGE = (build_layer.ROOT / "docs" / "idle-cost.md").read_text()
IDLE = float(re.findall(r"\*\*all\*\* \| \| \*\*([\d.]+)", _PAGE)[0])


def test_a_first_deployment_says_what_it_creates_and_costs() -> None:
    created, idle, million = deployment_plan.lines(TEMPLATE, None, PARAMS)
    assert created == "creates 1 functions, 1 alarms"
    assert f"${IDLE:.2f} a month" in idle
    page = (build_layer.ROOT / "docs" / "performance.md").read_text()
    (packed,) = re.findall(
        r"^\| 1 \| [\d,]+ \| [\d,]+ to [\d,]+ \| ([\d.]+ to [\d.]+) \|", page, re.MULTILINE
    )
    assert f"${packed}" in million


def test_a_later_deployment_says_what_changes() -> None:
    queue = {"Type": "AWS::SQS::Queue", "Properties": {}}
    deployed = template("0.9.0", 256, Former=queue)
    plan = deployment_plan.lines(template(topic="arn:pager", New=queue), deployed, PARAMS)
    assert plan[:4] == [
        "adds New, Topical",
        "removes Former",
        "changes Alarm (AlarmActions), ExecutorLambdaFunction (Environment, MemorySize)",
        "uploads code and layers of version 1.0.0; version 0.9.0 runs now",
    ]


def test_a_changed_parameter_is_named_with_what_it_changes() -> None:
    declared = {"topic": {"Type": "String", "Default": "off"}, "memory": {"Type": "Number", "Default": 512}}
    packaged = template(memory={"Ref": "memory"}, topic={"Ref": "topic"}) | {"Parameters": declared}
    now = deployment_plan.with_values(packaged, {})
    before = deployment_plan.with_values(packaged, {"memory": "256", "topic": "arn:pager"})
    assert deployment_plan.lines(now, before, PARAMS)[:4] == [
        "memory=512, which was 256",
        "topic=off, which was arn:pager",
        "removes Topical",
        "changes Alarm (AlarmActions), ExecutorLambdaFunction (MemorySize)",
    ]


def digest_of(memory: str, unread: str = "0") -> str:
    """What deploy/live.js makes of a template with a function of this memory."""
    script = """
        const Live = require("./deploy/live.js");
        const live = Object.create(Live.prototype);
        live.functions = () => ["api"];
        live.archiveOf = () => "package.json";
        live.service = { layers: {} };
        live.provider = { naming: { getLambdaLogicalId: () => "ApiLambdaFunction" } };
        console.log(live.digest(JSON.parse(process.argv[1])));
    """
    packaged = {
        "Parameters": {"memory": {"Default": memory}, "unread": {"Default": unread}},
        "Conditions": {},
        "Resources": {"ApiLambdaFunction": {"Properties": {"MemorySize": {"Ref": "memory"}}}},
    }
    command = ["node", "-e", script, json.dumps(packaged)]
    return subprocess.run(command, cwd=build_layer.ROOT, capture_output=True, text=True, check=True).stdout


def test_a_version_is_new_when_a_parameter_of_a_function_changes() -> None:
    assert digest_of("512") != digest_of("640")
    assert digest_of("512") == digest_of("512", unread="1")


def test_the_same_again_changes_nothing_but_the_place_of_the_archives() -> None:
    plan = deployment_plan.lines(template(memory=512), TEMPLATE, PARAMS)
    assert plan[0] == "uploads code and layers of version 1.0.0"


def test_an_idle_month_costs_what_is_on() -> None:
    bare = deployment_plan.idle_dollars(parameters.read("prod", {"dashboards": "off"}))
    assert bare == pytest.approx(IDLE - 6.00, abs=0.01)
    dev = deployment_plan.idle_dollars(parameters.read("dev", {}))
    assert dev == pytest.approx(IDLE - 6.00, abs=0.01)


def test_a_dry_run_ends_before_the_deployment(commands: list[list[str]]) -> None:
    with mock_aws():
        assert deploy.main(["--stage", "prod", "--region", "eu-central-1", "--dry-run"]) == 0
    assert [command[0] for command in commands] == ["package"]


def test_two_stages_of_a_checkout_are_not_packaged_at_once(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """osls writes both into one folder."""
    lock = build_layer.ROOT / "build" / "osls.lock"

    def run(command: list[str], **_: Any) -> Any:
        with lock.open("w") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        commands.append(command[1:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    with mock_aws():
        assert deploy.main(["--stage", "prod", "--region", "eu-central-1", "--dry-run"]) == 0
    assert [command[0] for command in commands] == ["package"]


def test_what_a_precheck_finds_ends_it_before_anything_is_built(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = [failed("the account reserves too much", "ask AWS")]
    monkeypatch.setattr(precheck, "of_deployment", lambda *_: findings)
    assert deploy.main(["--stage", "prod", "--region", "eu-central-1"]) == 2
    assert commands == []
    assert "failed: the account reserves too much\n        ask AWS\n" in capsys.readouterr().out


class Functions:
    """Lambda's account, and what its functions have reserved."""

    def __init__(self, quota: int, **reserved: int) -> None:
        self._quota, self._reserved = quota, reserved

    def get_account_settings(self) -> dict[str, Any]:
        common = self._quota - sum(self._reserved.values())
        return {
            "AccountLimit": {"ConcurrentExecutions": self._quota, "UnreservedConcurrentExecutions": common}
        }

    def get_function_concurrency(self, FunctionName: str) -> dict[str, int]:
        name = FunctionName.rpartition("-")[2]
        return {"ReservedConcurrentExecutions": self._reserved[name]} if name in self._reserved else {}


@pytest.mark.parametrize(
    ("functions", "params", "level"),
    [
        (Functions(1_000), {}, "ok"),
        (Functions(10), {}, "warning"),
        (Functions(10), {"executorReservedConcurrency": "5"}, "failed"),
        (Functions(1_000), {"executorReservedConcurrency": "900"}, "ok"),
        (Functions(1_000), {"executorReservedConcurrency": "800", "apiReservedConcurrency": "101"}, "failed"),
        # What it has already counts once.
        (Functions(1_000, executor=900), {"executorReservedConcurrency": "900"}, "ok"),
        (Functions(1_000, other=500), {"executorReservedConcurrency": "401"}, "failed"),
    ],
)
def test_a_quota_that_cloudformation_would_fail_at_is_found_first(
    functions: Functions, params: dict[str, str], level: str
) -> None:
    (finding,) = precheck.concurrency(functions, "prod", params)
    assert finding.level == level


class Simulator:
    """IAM's, of a user who may do all but one action."""

    def __init__(self, user: str, denied: str = "") -> None:
        self._user, self._denied = user, denied

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": self._user, "Account": "123456789012"}

    def get_role(self, RoleName: str) -> dict[str, Any]:
        return {"Role": {"Arn": f"arn:aws:iam::123456789012:role/path/{RoleName}"}}

    def simulate_principal_policy(self, PolicySourceArn: str, ActionNames: list[str], **_: Any) -> Any:
        assert ":assumed-role/" not in PolicySourceArn
        decisions = {
            action: "implicitDeny" if action == self._denied else "allowed" for action in ActionNames
        }
        return {
            "EvaluationResults": [
                {"EvalActionName": name, "EvalDecision": decision} for name, decision in decisions.items()
            ]
        }


@pytest.mark.parametrize(
    ("user", "denied", "level"),
    [
        ("arn:aws:iam::123456789012:root", "iam:PassRole", "ok"),
        ("arn:aws:iam::123456789012:user/deployer", "", "ok"),
        ("arn:aws:iam::123456789012:user/deployer", "iam:PassRole", "failed"),
        ("arn:aws:sts::123456789012:assumed-role/deployer/session", "iam:PassRole", "failed"),
    ],
)
def test_permissions_are_asked_of_the_simulator(user: str, denied: str, level: str) -> None:
    iam = Simulator(user, denied)
    (finding,) = precheck.permissions(iam, iam, "prod", "eu-west-1", list(precheck.NEEDED.items()))
    assert finding.level == level
    assert level == "ok" or "iam:PassRole on arn:aws:iam::123456789012:role/minute8-prod-" in finding.message


@pytest.mark.parametrize(
    ("status", "level"),
    [
        ("UPDATE_COMPLETE", "ok"),
        ("ROLLBACK_COMPLETE", "failed"),
        ("UPDATE_IN_PROGRESS", "failed"),
        ("UPDATE_ROLLBACK_COMPLETE", "ok"),
    ],
)
def test_a_stack_that_takes_no_deployment_is_found_first(status: str, level: str) -> None:
    class Stacks:
        def describe_stacks(self, **_: Any) -> Any:
            return {"Stacks": [{"StackStatus": status}]}

    (finding,) = precheck.stack_state(Stacks(), "prod")
    assert finding.level == level


def test_the_first_failure_of_cloudformation_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def event(kind: str, status: str, reason: str = "") -> dict[str, str]:
        return {"ResourceType": kind, "ResourceStatus": status, "ResourceStatusReason": reason}

    class Stacks:
        def describe_stack_events(self, **_: Any) -> Any:
            return {
                "StackEvents": [
                    event("AWS::SQS::Queue", "CREATE_FAILED", "Resource creation cancelled"),
                    event(
                        "AWS::Lambda::EventSourceMapping", "CREATE_FAILED", "role does not have permissions"
                    ),
                    event("AWS::CloudFormation::Stack", "CREATE_IN_PROGRESS"),
                    event("AWS::SQS::Queue", "CREATE_FAILED", "of an earlier attempt"),
                ]
            }

    deployment = deploy.Deployment(botocore.session.Session(), "prod", "eu-west-1", None, ())
    monkeypatch.setattr(deploy.Deployment, "client", lambda *_: Stacks())
    assert deployment.reasons() == [
        "role does not have permissions",
        "IAM was late with a new role: run it again",
    ]
