"""However a verification ends, nothing is left of it, or its report names each resource and the command against it.

On moto. The deployment and the trials are stand-ins; everything else is the harness as it is. Each call that creates or
removes something is refused, interrupted by a signal, or the last one of a process that dies.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import botocore.client
import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

from common.config import LIVE
from minute8.cli.doctor.inventory import FUNCTIONS, TABLES
from scripts import deploy as aws_deploy
from scripts import precheck, signing_masters
from scripts.demo.stage import Stage
from scripts.verify import __main__ as command
from scripts.verify import account, made
from tests.runbook.aws import request

REGION, STAGE = "us-east-1", "trial"
LOOKS = ("Get", "List", "Describe", "Filter", "Head")
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


class Died(BaseException):
    """The process is gone: nothing of it runs after this."""


def named(word: str) -> str:
    return f"minute8-{STAGE}-{word}"


def template() -> str:
    """The names of a stage, in the smallest stack that has one resource of most kinds."""
    key = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    types = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    resources: dict[str, Any] = {
        "ServerlessDeploymentBucket": {
            "Type": "AWS::S3::Bucket",
            "Properties": {"BucketName": named("serverlessdeploymentbucket-1abc")},
        },
        "ExecutorRole": {
            "Type": "AWS::IAM::Role",
            "Properties": {"RoleName": named("ExecutorRole-1abc"), "AssumeRolePolicyDocument": TRUST},
        },
        "ExecutionsQueue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": named("executions")}},
        "ExecutorLogGroup": {
            "Type": "AWS::Logs::LogGroup",
            "Properties": {"LogGroupName": f"/aws/lambda/{named('executor')}"},
        },
    }
    for name in TABLES:
        resources[f"{name.title()}Table"] = {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "TableName": named(name),
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": key,
                "AttributeDefinitions": types,
            },
        }
    for name in FUNCTIONS:
        resources[f"{name.title()}LambdaFunction"] = {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": named(name),
                "Runtime": "python3.13",
                "Handler": "index.handle",
                "Role": {"Fn::GetAtt": ["ExecutorRole", "Arn"]},
                "Code": {"ZipFile": "def handle(event, context): ..."},
            },
        }
    return json.dumps({"Resources": resources})


def make_aliases() -> None:
    """The stack's alias of each function, which moto's CloudFormation does not know."""
    functions = get_backend("lambda")[DEFAULT_ACCOUNT_ID][REGION]
    for name in FUNCTIONS:
        functions.create_alias(LIVE, named(name), "$LATEST", "", "")


def deploy(_arguments: list[str]) -> int:
    """In place of the deployment tool: a stack, an archive in its bucket, and the masters."""
    boto3.client("cloudformation").create_stack(
        StackName=f"minute8-{STAGE}", TemplateBody=template(), Capabilities=["CAPABILITY_NAMED_IAM"]
    )
    make_aliases()
    archive = io.BytesIO()
    zipfile.ZipFile(archive, "w").close()
    bucket = named("serverlessdeploymentbucket-1abc")
    boto3.client("s3").put_object(Bucket=bucket, Key="serverless/minute8.zip", Body=archive.getvalue())
    signing_masters.change(boto3.client("ssm"), STAGE, "make")
    return 0


class Fault:
    """Happens at the calls of one operation, and counts the operations that create or remove."""

    def __init__(self) -> None:
        self.operation, self.happen = "", self._nothing
        self.seen: list[str] = []

    def _nothing(self, call: Callable[[], Any]) -> Any:
        return call()


@pytest.fixture
def fault(on_moto: None, monkeypatch: pytest.MonkeyPatch) -> Fault:
    """Where the fault of a test goes. Nothing waits."""
    injected, call = Fault(), botocore.client.BaseClient._make_api_call

    def make_call(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
        name = f"{client.meta.service_model.service_name}:{operation}"
        if not operation.startswith(LOOKS):
            injected.seen.append(name)
        if name == injected.operation:
            return injected.happen(lambda: call(client, operation, arguments))
        return call(client, operation, arguments)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", make_call)
    monkeypatch.setattr(account.time, "sleep", lambda _s: None)
    monkeypatch.setattr(aws_deploy, "main", deploy)
    for missing in ("permissions", "concurrency"):  # moto has no simulator of IAM, and no quota of Lambda
        monkeypatch.setattr(precheck, missing, lambda *_: iter(()))
    monkeypatch.setattr(aws_deploy, "outputs_of", lambda *_: {"ApiUrl": "https://api.example"})

    clients: dict[tuple[str, str | None], Any] = {}
    make = boto3.client

    def kept(service: str, region_name: str | None = None) -> Any:
        if (service, region_name) not in clients:
            clients[service, region_name] = make(service, region_name)  # type: ignore[call-overload]
        return clients[service, region_name]

    monkeypatch.setattr(boto3, "client", kept)
    monkeypatch.setattr(Stage, "allow", lambda *_: None)

    class NoTrials:
        def __init__(self, *_: object) -> None: ...

        def all(self) -> list[Any]:
            return []

    monkeypatch.setattr(command, "Trials", NoTrials)
    monkeypatch.setattr(command, "_FIGURES_AFTER_S", 0)
    return injected


def verify(output: Path, *more: str) -> int:
    return command.main(
        ["--stage", STAGE, "--region", REGION, "--yes", "--small", "--output", str(output), *more]
    )


def resources_of() -> list[str]:
    resources, unknown = made.resources_of(STAGE, REGION)
    assert unknown == []
    return [str(resource) for resource in resources]


def page(output: Path) -> str:
    return (output / f"verify-{STAGE}.md").read_text()


def run(line: str) -> None:
    """A command of the report, as a person runs it."""
    for part in line.split(" && "):
        _, _, region, service, operation, *words = shlex.split(part)
        assert region == REGION
        if service == "s3":
            do = made.remove_bucket if operation == "rb" else made.empty_bucket
            do(words[0].removeprefix("s3://"))
            continue
        client: Any = boto3.client(service, REGION)  # type: ignore[call-overload]
        _, _, members = request(client.meta.service_model, operation, words)
        getattr(client, operation.replace("-", "_"))(**members)


# Each operation that creates or removes something in a verification that goes well, in this order.
CREATES = (
    *(
        "cloudformation:CreateStack",
        "s3:PutObject",
        "ssm:PutParameter",
        "iam:CreateRole",
        "iam:PutRolePolicy",
    ),
    *("lambda:CreateFunction", "sqs:CreateQueue", "lambda:CreateEventSourceMapping"),
)
REMOVES = (
    *(
        "s3:DeleteObjects",
        "cloudformation:DeleteStack",
        "lambda:DeleteEventSourceMapping",
        "lambda:DeleteFunction",
    ),
    *("iam:DeleteRolePolicy", "iam:DeleteRole", "sqs:DeleteQueue", "ssm:DeleteParameter"),
)
# The first and the last of each; the others are tried before a release.
OPERATIONS = [
    pytest.param(name, marks=() if name in (*CREATES[::7], *REMOVES[::7]) else pytest.mark.release)
    for name in CREATES + REMOVES
]


def test_a_verification_that_goes_well_removes_all(fault: Fault, tmp_path: Path) -> None:
    assert verify(tmp_path) == 0
    assert resources_of() == []
    assert tuple(dict.fromkeys(fault.seen)) == CREATES + REMOVES


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_a_denied_call_leaves_is_named_with_the_command_that_removes_it(
    fault: Fault, tmp_path: Path, operation: str
) -> None:
    def refuse(_call: Callable[[], Any]) -> Any:
        error = {"Code": "AccessDeniedException", "Message": f"not authorized to perform {operation}"}
        raise ClientError({"Error": error}, operation)  # type: ignore[typeddict-item]

    fault.operation, fault.happen = operation, refuse
    assert verify(tmp_path) == 1
    remaining = resources_of()
    assert all(resource in page(tmp_path) for resource in remaining)
    assert bool(remaining) == (operation in REMOVES)
    assert operation in page(tmp_path)
    fault.operation = ""
    for command_line in re.findall(r"^- .*: `(aws .*)`$", page(tmp_path), re.MULTILINE):
        run(command_line)
    assert resources_of() == []


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_signal_at_any_call_leaves_nothing(fault: Fault, tmp_path: Path, operation: str) -> None:
    def interrupt(call: Callable[[], Any]) -> Any:
        result = call()
        signal.raise_signal(signal.SIGINT)
        return result

    fault.operation, fault.happen = operation, interrupt
    assert verify(tmp_path) == (130 if operation in CREATES else 0)
    assert resources_of() == []
    assert "Left behind: nothing." in page(tmp_path)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_a_dead_process_leaves_is_removed_by_the_command_of_its_report(
    fault: Fault, tmp_path: Path, operation: str
) -> None:
    def die(call: Callable[[], Any]) -> Any:
        call()
        raise Died

    fault.operation, fault.happen = operation, die
    with pytest.raises(Died):
        verify(tmp_path)
    assert f"make verify STAGE={STAGE} ARGS='--remove --region {REGION}'" in page(tmp_path)
    fault.operation = ""
    assert verify(tmp_path, "--remove") == 0
    assert resources_of() == []


def test_a_second_verification_begins_only_when_the_first_ones_things_are_gone(
    fault: Fault, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    boto3.client("sqs", REGION).create_queue(QueueName=f"verify-{STAGE}-bare")
    before = len(fault.seen)
    assert verify(tmp_path) == 2
    assert len(fault.seen) == before
    assert "aws --region us-east-1 sqs delete-queue --queue-url" in capsys.readouterr().out


def test_only_what_a_verification_made_is_removed(fault: Fault, tmp_path: Path) -> None:
    deploy([])
    assert verify(tmp_path, "--remove") == 2  # no report says that a verification made it
    assert f"stack minute8-{STAGE}" in resources_of()[0]


def test_another_stage_whose_name_begins_so_is_not_touched(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr("tests.verify.test_removal.STAGE", f"{STAGE}-2")
        deploy([])
        remaining = resources_of()
    assert verify(tmp_path) == 0
    monkeypatch.setattr("tests.verify.test_removal.STAGE", f"{STAGE}-2")
    assert resources_of() == remaining


def test_a_removal_waits_for_a_slow_cloudformation(fault: Fault, tmp_path: Path) -> None:
    """The stack is in progress for a while, both before it is deleted and meanwhile."""
    describe, looks = account.Account._status, [0]

    def slow(self: account.Account) -> str:
        looks[0] += 1
        return "DELETE_IN_PROGRESS" if looks[0] % 3 else describe(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account.Account, "_status", slow)
        assert verify(tmp_path) == 0
    assert resources_of() == []
    assert looks[0] == 6


def test_a_cloudformation_that_does_not_end_is_reported(fault: Fault, tmp_path: Path) -> None:
    clock = iter(range(0, 10_000_000, 600))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account.Account, "_status", lambda _: "CREATE_IN_PROGRESS")
        patch.setattr(account.time, "monotonic", lambda: next(clock))
        assert verify(tmp_path) == 1
    assert "it is CREATE_IN_PROGRESS for more than 1800 s" in page(tmp_path)
    assert f"cloudformation delete-stack --stack-name minute8-{STAGE}`" in page(tmp_path)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("lambda:CreateFunction", "The role defined for the function cannot be assumed by Lambda."),
        (
            "lambda:CreateEventSourceMapping",
            "The function execution role does not have permissions to call ReceiveMessage on SQS",
        ),
        ("sqs:CreateQueue", "You must wait 60 seconds after deleting a queue before you can create another"),
    ],
)
def test_what_aws_refuses_only_at_first_is_tried_again(
    fault: Fault, tmp_path: Path, operation: str, message: str
) -> None:
    refusals = iter(range(3))

    def refuse(call: Callable[[], Any]) -> Any:
        if next(refusals, None) is None:
            return call()
        raise ClientError({"Error": {"Code": "Refused", "Message": message}}, operation)

    fault.operation, fault.happen = operation, refuse
    assert verify(tmp_path) == 0, page(tmp_path)
    assert resources_of() == []
