"""`make deploy`: what it refuses before it creates anything, where it deploys, and what it does after a success."""

from __future__ import annotations

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
from botocore.loaders import Loader
from moto import mock_aws

from cli.doctor import inventory
from common.storage import aws
from scripts import build_layer, console, deploy, parameters, stack
from tests.worlds import TABLES, make_tables


def problems(stage: str = "prod", **overrides: str) -> list[str]:
    return parameters.problems(stage, parameters.read(stage, overrides))


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
        ({"alarmTopicArn": "pager"}, "ARN of an SNS topic"),
        ({"runsExport": "s3://history"}, "the name of a bucket of S3, or off"),
        ({"outcomeSenders": "210987654321,*"}, "outcomeSenders: '*' is not valid"),
        ({"outcomeSenders": "acme"}, "account ids and ARNs of roles"),
        ({"deletionPolicy": "Keep"}, "RetainExceptOnCreate, Retain, Delete"),
        ({"plainHttpTargets": "loopback"}, "plainHttpTargets=loopback is not valid; accepted: true, off"),
        ({"maximumConcurrency": "none"}, "a whole number from 2 to 1000, or off"),
        ({"canary": ""}, "canary= is not valid; accepted: true, off"),
        ({"alarmTopicArn": ""}, "alarmTopicArn is empty; accepted: a value, or off"),
        ({"jwtTenantClaim": ""}, "jwtTenantClaim is empty; accepted: a value"),
    ],
)
def test_a_bad_parameter_is_refused_with_what_is_accepted(params: dict[str, str], reason: str) -> None:
    (problem,) = problems(**params)
    assert reason in problem


def test_bounds_are_accepted() -> None:
    assert problems(outcomeSenders="210987654321,arn:aws:iam::123456789012:role/acme/functions") == []
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
    monkeypatch.setattr(build_layer, "build_all", lambda platform: [])
    monkeypatch.setattr(build_layer, "compile_code", lambda: None)
    monkeypatch.setattr(console, "build", lambda: None)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    return ran


def test_nothing_is_run_with_a_bad_parameter(
    commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert deploy.main(["--stage", "prod", "--region", "eu-central-1", "--param=logRetentionInDays=31"]) == 2
    assert commands == []
    assert "logRetentionInDays=31" in capsys.readouterr().err


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
    command, canary = commands
    assert canary == ["-m", "scripts.canary", "--stage", "prod"]
    assert command[command.index("--region") + 1] == "eu-central-1"
    out = capsys.readouterr().out
    assert "stage prod in eu-central-1, at https://abc.example" in out
    assert "minute8 tenants create acme --stage prod" in out


def deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables, and the stack's outputs. moto's CloudFormation would need many more packages."""
    make_tables(boto3.client("dynamodb", region_name="eu-central-1"), "minute8-prod")
    outputs = {f"{name.title()}TableName": f"minute8-prod-{name}" for name in TABLES}
    monkeypatch.setattr(
        deploy, "outputs_of", lambda session, stage, region: {**outputs, "ApiUrl": "https://abc.example"}
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


def test_a_rollback_and_a_removal_go_to_the_region_of_the_deployment(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setattr(stack, "deployments", lambda session, stage, region: ("8", {"7", "8"}))
    assert stack.main(["rollback", "--stage", "prod"]) == 0
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
    place = ["--stage", "prod", "--region", "eu-central-1"]
    assert (deploy.main(place), stack.main(["remove", "--yes", *place])) == (2, 2)
    assert commands == []
    assert capsys.readouterr().err.count("no AWS credentials") == 2


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
    assert stack.main(["rollback", "--stage", "prod", "--region", "eu-central-1"]) == 1
    assert commands == []


def test_the_sdk_is_the_one_that_the_tests_run_with_and_the_doctor_expects() -> None:
    assert f"botocore=={inventory.SDK}\n" in (build_layer.ROOT / "requirements.txt").read_text()
    assert aws.sdk_version() == inventory.SDK


def test_the_layer_keeps_each_service_that_a_function_calls(tmp_path: Path) -> None:
    created = re.compile(r'(?:_create_client|before_any_call|\bclient)\(\s*"(\w+)"')
    code = [
        path.read_text()
        for name in ("common", "executor", "api", "eventbridge", "notifier", "scheduler")
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


def test_without_its_compiler_nothing_is_deployed(
    commands: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(build_layer, "_COMPILER", tmp_path)
    with mock_aws():
        assert deploy.main(["--stage", "prod", "--region", "eu-central-1"]) == 2
    assert "is not installed: run `make install`" in capsys.readouterr().err
    assert commands == []


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
