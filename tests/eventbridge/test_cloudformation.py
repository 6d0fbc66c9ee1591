"""CloudFormation's schedules at Minute8: the macro, its provider against our API, and a stack on the embedded AWS."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from clients.cloudformation import minute8_schedules as macro
from scripts.embedded import Embedded, kill, start
from scripts.embedded.deployment import client as embedded_client
from tests.api.calls import Office
from tests.eventbridge.served import served
from tests.eventbridge.synthesize import TOOLS, kept_template
from tests.worlds import ARN

Aws = Callable[..., Any]
ROLE = "arn:aws:iam::123456789012:role/r"
PROVIDER = "arn:aws:lambda:us-east-1:123456789012:function:provider"
FOLDER = Path(macro.__file__).parent
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/jobs/1"
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Billing": {
            "Type": "AWS::Scheduler::ScheduleGroup",
            "Properties": {"Name": "billing", "Tags": [{"Key": "team", "Value": "money"}]},
        },
        "Nightly": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {
                "Name": "nightly",
                "GroupName": {"Ref": "Billing"},
                "ScheduleExpression": "cron(0 3 * * ? *)",
                "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5},
                "Target": {"Arn": ARN, "RoleArn": ROLE, "RetryPolicy": {"MaximumRetryAttempts": 3}},
            },
        },
        "Topic": {"Type": "AWS::SNS::Topic"},
    },
    "Outputs": {"Nightly": {"Value": {"Fn::GetAtt": ["Nightly", "Arn"]}}},
}
NIGHTLY = {**TEMPLATE["Resources"]["Nightly"]["Properties"], "GroupName": "billing"}


def transformed(template: dict[str, Any], monkeypatch: pytest.MonkeyPatch, provider: str = PROVIDER) -> Any:
    monkeypatch.setenv("PROVIDER_ARN", provider)
    answer = macro.transform({"fragment": template, "requestId": "1"}, None)
    assert (answer["requestId"], answer["status"]) == ("1", "success")
    return answer["fragment"]


def texts(value: Any) -> Any:
    """As CloudFormation hands properties over: numbers and booleans as texts."""
    if isinstance(value, dict):
        return {name: texts(member) for name, member in value.items()}
    if isinstance(value, list):
        return [texts(member) for member in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def request(kind: str, properties: Any, operation: str = "Create", **more: Any) -> dict[str, Any]:
    return {
        "RequestType": operation,
        "RequestId": f"{operation}-{json.dumps(properties)}",
        "ResourceType": f"Custom::Minute8{kind}",
        "LogicalResourceId": "Nightly",
        "StackId": STACK,
        "ResourceProperties": texts({"ServiceToken": PROVIDER, **properties}),
        **more,
    }


def test_the_macro_changes_schedules_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    template = json.loads(json.dumps(TEMPLATE))
    template["Resources"]["Stays"] = {**TEMPLATE["Resources"]["Nightly"], "Metadata": {"Minute8": False}}
    fragment = transformed(template, monkeypatch)
    types = {name: resource["Type"] for name, resource in fragment["Resources"].items()}
    assert types == {
        "Billing": "Custom::Minute8ScheduleGroup",
        "Nightly": "Custom::Minute8Schedule",
        "Topic": "AWS::SNS::Topic",
        "Stays": "AWS::Scheduler::Schedule",
    }
    expected = TEMPLATE["Resources"]["Nightly"]["Properties"]
    assert fragment["Resources"]["Nightly"]["Properties"] == {"ServiceToken": PROVIDER, **expected}


def test_a_schedule_is_created_updated_and_deleted(office: Office, aws: Aws) -> None:
    client = aws()
    group = request("ScheduleGroup", TEMPLATE["Resources"]["Billing"]["Properties"])
    answer = macro.answer_to(group, client)
    assert answer["PhysicalResourceId"] == "billing"
    assert macro.answer_to(group, client) == answer, "Lambda may repeat an invocation"
    created = macro.answer_to(request("Schedule", NIGHTLY), client)
    assert created == {
        "Status": "SUCCESS",
        "PhysicalResourceId": "nightly",
        "Data": {"Arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/billing/nightly"},
    }
    stored = client.get_schedule(Name="nightly", GroupName="billing")
    assert stored["FlexibleTimeWindow"] == {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5}
    assert stored["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 3
    more = {"PhysicalResourceId": "nightly", "OldResourceProperties": texts(NIGHTLY)}
    later = {**NIGHTLY, "ScheduleExpression": "rate(1 day)"}
    assert macro.answer_to(request("Schedule", later, "Update", **more), client)["Status"] == "SUCCESS"
    assert client.get_schedule(Name="nightly", GroupName="billing")["ScheduleExpression"] == "rate(1 day)"
    moved = {**later, "GroupName": "default"}
    macro.answer_to(request("Schedule", moved, "Update", **more), client)
    assert [listed["GroupName"] for listed in client.list_schedules()["Schedules"]] == ["default"]
    renamed = macro.answer_to(request("Schedule", {**moved, "Name": "other"}, "Update", **more), client)
    assert renamed["PhysicalResourceId"] == "other"
    deleted = request("Schedule", moved, "Delete", **more)
    assert [macro.answer_to(deleted, client)["Status"] for _ in range(2)] == ["SUCCESS"] * 2
    assert [listed["Name"] for listed in client.list_schedules()["Schedules"]] == ["other"]
    macro.answer_to(
        request("ScheduleGroup", {}, "Delete", PhysicalResourceId="billing"), client, lambda _: None
    )


def test_the_tags_of_a_group_follow_the_template(office: Office, aws: Aws) -> None:
    client = aws()
    before = {"Name": "g", "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]}
    macro.answer_to(request("ScheduleGroup", before), client)
    after = {"Name": "g", "Tags": [{"Key": "b", "Value": "3"}]}
    more = {"PhysicalResourceId": "g", "OldResourceProperties": before}
    arn = macro.answer_to(request("ScheduleGroup", after, "Update", **more), client)["Data"]["Arn"]
    assert client.list_tags_for_resource(ResourceArn=arn)["Tags"] == after["Tags"]


def test_a_resource_without_a_name_gets_one(office: Office, aws: Aws) -> None:
    client = aws()
    unnamed = {name: value for name, value in NIGHTLY.items() if name not in ("Name", "GroupName")}
    name = macro.answer_to(request("Schedule", unnamed), client)["PhysicalResourceId"]
    assert name.startswith("jobs-Nightly-")
    more = {"PhysicalResourceId": name, "OldResourceProperties": texts(unnamed)}
    assert (
        macro.answer_to(request("Schedule", unnamed, "Update", **more), client)["PhysicalResourceId"] == name
    )


def test_a_refusal_is_the_reason_of_the_stack(
    office: Office, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = aws()
    with pytest.raises(ClientError, match="KmsKeyArn"):
        key = "arn:aws:kms:us-east-1:123456789012:key/a"
        macro.answer_to(request("Schedule", {**NIGHTLY, "GroupName": "default", "KmsKeyArn": key}), client)
    answers: list[dict[str, Any]] = []

    def urlopen(sent: Any, timeout: int) -> io.BytesIO:
        answers.append(json.loads(sent.data))
        return io.BytesIO()

    monkeypatch.setattr(macro, "scheduler", lambda: client)
    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    macro.provide({**request("Schedule", NIGHTLY), "ResponseURL": "https://s3/answer"}, None)
    assert (answers[0]["Status"], answers[0]["PhysicalResourceId"]) == ("FAILED", "minute8-was-not-made")
    assert "billing does not exist" in answers[0]["Reason"]
    undone = request("Schedule", NIGHTLY, "Delete", PhysicalResourceId="minute8-was-not-made")
    assert macro.answer_to(undone, client)["Status"] == "SUCCESS"


class _Loader(yaml.SafeLoader):
    """Reads the short forms of CloudFormation's functions."""


_Loader.add_multi_constructor(
    "!", lambda loader, tag, node: {f"Fn::{tag}" if tag != "Ref" else tag: node.value}
)


def test_the_template_is_valid_once_it_is_packaged(tmp_path: Path) -> None:
    text = (FOLDER / "template.yml").read_text()
    resources = yaml.load(text, _Loader)["Resources"]
    codes = [each["Properties"]["Code"] for each in resources.values() if "Code" in each["Properties"]]
    assert [(FOLDER / code).is_file() for code in codes] == [True, True]
    packaged = tmp_path / "template.yml"
    packaged.write_text(text.replace("Code: minute8_schedules.py", "Code: { S3Bucket: bucket, S3Key: key }"))
    lint = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([lint, packaged, "--regions", "us-east-1"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    state_dir = tmp_path / "aws"
    yield start(state_dir, 0, tied=True)
    kill(state_dir)
    shutil.rmtree(state_dir, ignore_errors=True)


@pytest.fixture
def address(office: Office) -> Iterator[str]:
    with served(office) as address:
        yield address


@pytest.fixture
def stacks(
    address: str, embedded: Embedded, pair: Aws, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Deploys a template as the stack "jobs". The embedded CloudFormation has no macros: the macro is called for it."""
    access_key_id, secret_access_key = pair()
    secret = embedded_client(embedded, "secretsmanager").create_secret(
        Name="minute8",
        SecretString=json.dumps({"access_key_id": access_key_id, "secret_access_key": secret_access_key}),
    )
    provider = embedded_client(embedded, "lambda").create_function(
        FunctionName="provider",
        Runtime="python3.11",
        Role="arn:aws:iam::000000000000:role/r",
        Handler="minute8_schedules.provide",
        Code={"ZipFile": zipped("minute8_schedules.py", (FOLDER / "minute8_schedules.py").read_text())},
        Timeout=60,
        Environment={"Variables": {"MINUTE8_URL": address, "SECRET_ARN": secret["ARN"]}},
    )["FunctionArn"]
    stacks = embedded_client(embedded, "cloudformation")

    def deploy(operation: str, template: dict[str, Any] | None = None) -> Any:
        body = {"TemplateBody": json.dumps(transformed(template, monkeypatch, provider))} if template else {}
        getattr(stacks, operation)(StackName="jobs", **body)
        waiter = stacks.get_waiter(f"stack_{operation.partition('_')[0]}_complete")
        waiter.wait(StackName="jobs", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        return stacks.describe_stacks(StackName="jobs")["Stacks"][0] if template else None

    return deploy


def zipped(name: str, text: str) -> bytes:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr(name, text)
    return package.getvalue()


def test_a_stack_of_cloudformation_makes_and_removes_schedules(
    office: Office, aws: Aws, stacks: Callable[..., Any]
) -> None:
    client = aws()
    stack = stacks("create_stack", TEMPLATE)
    answer = client.get_schedule(Name="nightly", GroupName="billing")
    assert stack["Outputs"][0]["OutputValue"] == answer["Arn"]
    changed = json.loads(json.dumps(TEMPLATE))
    changed["Resources"]["Nightly"]["Properties"]["ScheduleExpression"] = "rate(1 day)"
    stacks("update_stack", changed)
    assert client.get_schedule(Name="nightly", GroupName="billing")["ScheduleExpression"] == "rate(1 day)"
    stacks("delete_stack")
    assert client.list_schedules()["Schedules"] == []


@pytest.mark.parametrize("tool", TOOLS)
def test_a_stack_of_another_tool_makes_and_removes_its_schedule(
    office: Office, aws: Aws, embedded: Embedded, stacks: Callable[..., Any], tool: str
) -> None:
    """What CDK, SAM and Serverless make of their examples, as they left it; the embedded AWS has no packages in S3."""
    # `cdk bootstrap` makes it.
    version = {"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30", "Type": "String"}
    embedded_client(embedded, "ssm").put_parameter(**version)
    template = json.loads(kept_template(tool).read_text())
    assert "Minute8" in template.pop("Transform")
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Lambda::Function" and "S3Key" in resource["Properties"]["Code"]:
            resource["Properties"]["Code"] = {"ZipFile": "def handler(event, context):\n    return event\n"}
    stacks("create_stack", template)
    client = aws()
    (listed,) = client.list_schedules()["Schedules"]
    schedule = client.get_schedule(Name=listed["Name"], GroupName=listed["GroupName"])
    assert (schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]) == (
        "cron(0 3 * * ? *)",
        "Europe/Paris",
    )
    assert json.loads(schedule["Target"]["Input"]) == {"n": 1}
    assert schedule["Target"]["Arn"].startswith("arn:aws:lambda:us-east-1:000000000000:function:")
    stacks("delete_stack")
    assert client.list_schedules()["Schedules"] == []
    groups = [group["Name"] for group in client.list_schedule_groups()["ScheduleGroups"]]
    # CDK lets a stack leave its groups.
    assert groups == (["billing", "default"] if tool == "cdk" else ["default"])
