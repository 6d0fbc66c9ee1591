"""IAM in the strict layer: its delay, and what CloudFormation creates for whom."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from scripts.demo import functions
from scripts.embedded import Embedded, kill, start
from scripts.embedded.as_account import credentials
from scripts.embedded.deployment import client
from scripts.embedded.strict.iam_delay import DELAY_S, Changes
from tests.waiting import wait_until

_TRUST = {
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]
}
_SOURCE = """
import boto3
def handle(event, context):
    return boto3.client("sqs").list_queues().get("QueueUrls", [])
"""
_QUEUE = {"Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    state_dir: Path = tmp_path_factory.mktemp("iam-delay")
    embedded = start(state_dir, 0, strict=True, tied=True)
    try:
        yield embedded
    finally:
        kill(state_dir)


def template(policy_of_its_own: bool) -> str:
    """A queue, a function and their mapping; the policy is a part of the role, or comes just before the mapping."""
    policy = {"PolicyName": "queue", "PolicyDocument": _QUEUE}
    role = {"RoleName": "template", "AssumeRolePolicyDocument": _TRUST}
    resources: dict[str, Any] = {
        "Queue": {"Type": "AWS::SQS::Queue"},
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": role if policy_of_its_own else {**role, "Policies": [policy]},
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "index.handle",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Code": {"ZipFile": _SOURCE},
            },
        },
        "Mapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]},
                "FunctionName": {"Ref": "Function"},
            },
            **({"DependsOn": "Policy"} if policy_of_its_own else {}),
        },
    }
    if policy_of_its_own:
        resources["Policy"] = {
            "Type": "AWS::IAM::Policy",
            "DependsOn": "Function",
            "Properties": {**policy, "Roles": [{"Ref": "Role"}]},
        }
    return json.dumps({"Resources": resources})


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("policy_of_its_own", "status"), [(False, "CREATE_COMPLETE"), (True, "ROLLBACK_COMPLETE")]
)
def test_a_template_whose_mapping_comes_before_its_policy_counts_is_refused(
    aws: Embedded, policy_of_its_own: bool, status: str
) -> None:
    cloudformation = client(aws, "cloudformation")
    name = "late" if policy_of_its_own else "whole"
    cloudformation.create_stack(
        StackName=name, TemplateBody=template(policy_of_its_own), Capabilities=["CAPABILITY_NAMED_IAM"]
    )
    status_at_end = ended(cloudformation, name)
    reasons = [
        event.get("ResourceStatusReason", "")
        for event in cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    ]
    assert status_at_end == status, reasons
    cloudformation.delete_stack(StackName=name)
    assert any("permissions to call ReceiveMessage" in reason for reason in reasons) == policy_of_its_own


@pytest.mark.embedded
def test_a_role_is_refused_at_first_and_its_policy_counts_later(aws: Embedded) -> None:
    lambdas, iam = client(aws, "lambda"), client(aws, "iam")
    iam.create_role(RoleName="new", AssumeRolePolicyDocument=json.dumps(_TRUST))
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("index.py", _SOURCE)
    function: dict[str, Any] = {
        "FunctionName": "new",
        "Runtime": "python3.13",
        "Handler": "index.handle",
        "Role": iam.get_role(RoleName="new")["Role"]["Arn"],
        "Code": {"ZipFile": package.getvalue()},
        "Timeout": 30,
    }
    with pytest.raises(ClientError, match="cannot be assumed by Lambda"):
        lambdas.create_function(**function)
    functions.until_taken(lambda: lambdas.create_function(**function))

    def is_allowed() -> bool:
        return "FunctionError" not in lambdas.invoke(FunctionName="new")

    assert not is_allowed()
    queue = client(aws, "sqs").create_queue(QueueName="new")["QueueUrl"]
    iam.put_role_policy(RoleName="new", PolicyName="queue", PolicyDocument=json.dumps(_QUEUE))
    mapping = {
        "FunctionName": "new",
        "EventSourceArn": f"arn:aws:sqs:us-east-1:000000000000:{queue.rpartition('/')[2]}",
    }
    with pytest.raises(ClientError, match="does not have permissions to call ReceiveMessage on SQS"):
        lambdas.create_event_source_mapping(**mapping)
    functions.until_taken(lambda: lambdas.create_event_source_mapping(**mapping))
    assert is_allowed()


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("queue", "status"), [("minute8-own", "CREATE_COMPLETE"), ("other", "ROLLBACK_COMPLETE")]
)
def test_a_stack_creates_what_its_user_may_create(
    aws: Embedded, tmp_path: Path, queue: str, status: str
) -> None:
    everywhere = {"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"}
    own = {"Effect": "Allow", "Action": "sqs:*", "Resource": "arn:aws:sqs:*:*:minute8-*"}
    policy = tmp_path / f"of-{queue}.json"
    policy.write_text(json.dumps({"Version": "2012-10-17", "Statement": [everywhere, own]}))
    environment = credentials(aws, f"user-{queue}", [policy])
    cloudformation = boto3.client(
        "cloudformation",
        endpoint_url=aws.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    resources = {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": queue}}}
    cloudformation.create_stack(StackName=queue, TemplateBody=json.dumps({"Resources": resources}))
    assert ended(cloudformation, queue) == status
    reasons = [
        event.get("ResourceStatusReason", "")
        for event in cloudformation.describe_stack_events(StackName=queue)["StackEvents"]
    ]
    refusal = (
        f"not authorized to perform: sqs:CreateQueue on resource: arn:aws:sqs:us-east-1:000000000000:{queue}"
    )
    assert any(refusal in reason for reason in reasons) == (queue == "other")


@pytest.mark.embedded
def test_a_statement_needs_the_permission_of_its_insertion(aws: Embedded, tmp_path: Path) -> None:
    insert = {
        "Effect": "Allow",
        "Action": "dynamodb:PartiQLInsert",
        "Resource": "arn:aws:dynamodb:*:*:table/own",
    }
    policy = tmp_path / "insert.json"
    policy.write_text(json.dumps({"Version": "2012-10-17", "Statement": [insert]}))
    environment = credentials(aws, "inserter", [policy])
    dynamodb = boto3.client(
        "dynamodb",
        endpoint_url=aws.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    for table in ("own", "other"):
        client(aws, "dynamodb").create_table(
            TableName=table,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def insert_into(*tables: str) -> list[Any]:
        statements = [f"INSERT INTO \"{table}\" VALUE {{'pk': 'a'}}" for table in tables]
        answer = dynamodb.batch_execute_statement(Statements=[{"Statement": text} for text in statements])
        return [response.get("Error") for response in answer["Responses"]]

    assert insert_into("own") == [None]
    with pytest.raises(ClientError, match="not authorized to perform: dynamodb:PartiQLInsert"):
        insert_into("own", "other")
    with pytest.raises(ClientError, match="not authorized"):
        dynamodb.execute_statement(Statement='SELECT * FROM "own"')


def ended(cloudformation: Any, stack: str) -> str:
    """The stack's status at the end of what is in progress."""

    def look() -> str:
        status = str(cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])
        return "" if status.endswith("PROGRESS") else status

    return str(wait_until(look, "it does not end"))


def test_a_role_is_what_it_was_until_the_delay_is_over() -> None:
    changes = Changes()
    first, second, third = {"name": "first"}, {"name": "second"}, {"name": "third"}
    assert changes.effective("role", None, 0.0) is None
    changes.note("role", None, 10.0)
    assert changes.effective("role", first, 10.0 + DELAY_S / 2) is None
    assert changes.effective("role", first, 10.0 + DELAY_S) == first
    changes.note("role", first, 20.0)
    changes.note("role", second, 20.5)
    assert changes.effective("role", third, 20.6) == first
    assert changes.effective("role", third, 20.1 + DELAY_S) == second
    assert changes.effective("role", third, 20.5 + DELAY_S) == third
    assert changes.effective("another", third, 20.6) == third
