"""The embedded AWS starts, keeps its state over a kill, and leaves no processes behind."""

import io
import json
import os
import queue
import signal
import socket
import threading
import zipfile
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from scripts.embedded import Embedded, EmbeddedError, deploy, find, kill, start, stop
from scripts.embedded.deployment import client, make_deployable
from scripts.embedded.patches import MARK, up_to_mark
from scripts.embedded.process import ROOT, _processes
from tests.waiting import wait_for_snapshots, wait_until

pytestmark = pytest.mark.embedded

TABLES = [
    "minute8-test-audit",
    "minute8-test-due",
    "minute8-test-jobs",
    "minute8-test-runs",
    "minute8-test-tenants",
]
ITEM = {"pk": {"S": "kept"}, "sk": {"S": "over a restart"}}


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    kill(tmp_path)


def test_a_deployment_leaves_all_tables_with_their_time_to_live(deployed: Embedded) -> None:
    dynamodb = client(deployed, "dynamodb")
    assert dynamodb.list_tables()["TableNames"] == TABLES
    for table in TABLES:
        time_to_live = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert (time_to_live["TimeToLiveStatus"], time_to_live["AttributeName"]) == ("ENABLED", "expires_at")


def test_a_deployment_leaves_the_executor_its_loop(deployed: Embedded) -> None:
    functions = client(deployed, "lambda")
    config = functions.get_function_recursion_config(FunctionName="minute8-test-executor")
    assert config["RecursiveLoop"] == "Allow"


def test_deploying_the_same_again_does_nothing(deployed: Embedded) -> None:
    messages: list[str] = []
    deploy(deployed, stage="test", report=messages.append)
    assert messages == ["stage test is deployed and unchanged"]


def test_a_killed_instance_comes_back_with_what_it_had(state_dir: Path) -> None:
    first = start(state_dir, 0, tied=True)
    _make_table_with_item(first)
    queue = client(first, "sqs").create_queue(QueueName="delayed")["QueueUrl"]
    client(first, "sqs").send_message(QueueUrl=queue, MessageBody="later", DelaySeconds=900)
    wait_for_snapshots(first)

    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: find(state_dir) is None, "it still runs")
    second = start(state_dir, 0, tied=True)

    assert second.port == first.port
    assert client(second, "dynamodb").get_item(TableName="things", Key=ITEM)["Item"] == ITEM
    name = "ApproximateNumberOfMessagesDelayed"
    counted = client(second, "sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=[name])
    assert counted["Attributes"][name] == "1"


def test_a_deployment_that_a_kill_cut_off_can_be_done_again(state_dir: Path) -> None:
    """Otherwise the stack would stay in progress and refuse every deployment."""
    first = start(state_dir, 0, tied=True)
    cloudformation = client(first, "cloudformation")
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "early"}}
    cloudformation.create_stack(StackName="minute8-test", TemplateBody=_template(Early=queue))
    make_deployable(first, "test", print)
    never = {"Handle": {"Ref": "Handle"}, "Timeout": "600"}
    wait = {"Type": "AWS::CloudFormation::WaitCondition", "DependsOn": ["Late"], "Properties": never}
    handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    late = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "late"}}
    queues = {"Early": queue, "Late": late}
    template = _template(Handle=handle, Wait=wait, **queues)
    cloudformation.update_stack(StackName="minute8-test", TemplateBody=template)
    with pytest.raises(EmbeddedError, match="stays UPDATE_IN_PROGRESS; `make down` ends"):
        make_deployable(first, "test", print, 0)
    wait_for_snapshots(first)

    kill(state_dir)
    second = start(state_dir, 0, tied=True)
    make_deployable(second, "test", print)
    client(second, "cloudformation").update_stack(StackName="minute8-test", TemplateBody=_template(**queues))
    make_deployable(second, "test", print)

    [stack] = client(second, "cloudformation").describe_stacks(StackName="minute8-test")["Stacks"]
    assert stack["StackStatus"] == "UPDATE_COMPLETE"
    urls = client(second, "sqs").list_queues()["QueueUrls"]
    assert sorted(url.rpartition("/")[2] for url in urls) == ["early", "late"]


def test_resources_of_a_failed_first_deployment_are_deleted(state_dir: Path) -> None:
    instance = start(state_dir, 0, tied=True)
    cloudformation = client(instance, "cloudformation")
    broken = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "broken", "VisibilityTimeout": "soon"}}
    cloudformation.create_stack(StackName="minute8-test", TemplateBody=_template(Broken=broken))
    messages: list[str] = []
    wait_until(lambda: _status(cloudformation) == "ROLLBACK_COMPLETE", lambda: _status(cloudformation))
    make_deployable(instance, "test", messages.append)
    assert messages == ["stack minute8-test is ROLLBACK_COMPLETE: deleting what was left of it …"]
    with pytest.raises(ClientError, match="does not exist"):
        _status(cloudformation)


def test_a_stopped_instance_comes_back_with_its_last_write(state_dir: Path) -> None:
    first = start(state_dir, 0, tied=True)
    _make_table_with_item(first)
    assert stop(state_dir)
    second = start(state_dir, 0, tied=True)
    assert client(second, "dynamodb").get_item(TableName="things", Key=ITEM)["Item"] == ITEM


def test_a_deployment_takes_over_resources_without_a_stack(state_dir: Path) -> None:
    """An interruption can lose the stack, and keep its resources. They are neither refused nor emptied."""
    first = start(state_dir, 0, tied=True)
    template = _template(
        Bus={"Type": "AWS::Events::EventBus", "Properties": {"Name": "minute8-test"}},
        Queue={"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "kept"}},
        Table={
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "TableName": "things",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "sk", "AttributeType": "S"},
                ],
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
            },
        },
        Api={
            "Type": "AWS::ApiGatewayV2::Api",
            "Properties": {"Name": "api", "ProtocolType": "HTTP", "Tags": {"ms-custom-id": "8c0ffee9"}},
        },
    )
    _create_stack(first, template)
    client(first, "dynamodb").put_item(TableName="things", Item=ITEM)
    queue = client(first, "sqs").get_queue_url(QueueName="kept")["QueueUrl"]
    client(first, "sqs").send_message(QueueUrl=queue, MessageBody="kept")
    stop(state_dir)
    (state_dir / "aws" / "current" / "cloudformation.json").unlink()

    second = start(state_dir, 0, tied=True)
    _create_stack(second, template)
    assert client(second, "dynamodb").get_item(TableName="things", Key=ITEM)["Item"] == ITEM
    assert [
        message["Body"] for message in client(second, "sqs").receive_message(QueueUrl=queue)["Messages"]
    ] == ["kept"]


def test_queues_follow_to_another_port(state_dir: Path) -> None:
    first = start(state_dir, 0, tied=True)
    client(first, "sqs").create_queue(QueueName="executions")
    stop(state_dir)
    with socket.socket() as other:
        # Closed connections of the first server may still hold the port.
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", first.port))
        other.listen()
        second = start(state_dir, 0, tied=True)
    sqs = client(second, "sqs")
    assert second.port != first.port
    assert sqs.list_queues()["QueueUrls"] == [f"{second.endpoint_url}/000000000000/executions"]
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="executions")["QueueUrl"], MessageBody="arrives")


def test_a_number_that_a_template_writes_as_text_bounds_the_polls(state_dir: Path) -> None:
    """A parameter is text. In stock ministack such a mapping polls nothing."""
    instance = start(state_dir, 0, tied=True)
    _create_function(instance, "def handle(event, context): pass")
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "executions", "VisibilityTimeout": 90}}
    mapping = {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {
            "FunctionName": "target",
            "EventSourceArn": {"Fn::GetAtt": ["Queue", "Arn"]},
            "ScalingConfig": {"MaximumConcurrency": "20"},
        },
    }
    _create_stack(instance, _template(Queue=queue, Mapping=mapping))
    sqs = client(instance, "sqs")
    url = sqs.get_queue_url(QueueName="executions")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="polled")
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def is_empty() -> bool:
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return set(counts.values()) == {"0"}

    wait_until(is_empty, "the message was not polled")
    [described] = client(instance, "lambda").list_event_source_mappings()["EventSourceMappings"]
    assert described["ScalingConfig"] == {"MaximumConcurrency": 20}


def test_a_start_that_was_cut_off_before_its_record_is_done_again(state_dir: Path) -> None:
    """Its server holds the directory's lock, and no record names it."""
    unrecorded = start(state_dir, 0, tied=True)
    (state_dir / "embedded.json").unlink()
    again = start(state_dir, 0, tied=True)
    assert again.pid != unrecorded.pid
    assert _group(unrecorded) == []


def test_starting_again_reuses_what_runs(state_dir: Path) -> None:
    assert start(state_dir, 0, tied=True) == start(state_dir, 0, tied=True)


def test_a_taken_port_is_left_alone(state_dir: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        used_port = other.getsockname()[1]
        assert start(state_dir, used_port, tied=True).port != used_port


def test_a_record_without_a_process_is_not_taken_for_an_instance(state_dir: Path) -> None:
    instance = start(state_dir, 0, tied=True)
    kill(state_dir)
    assert (state_dir / "embedded.json").exists()
    assert find(state_dir) is None
    assert start(state_dir, 0, tied=True).pid != instance.pid


def test_killing_leaves_no_process_behind_not_even_a_lambda_at_work(state_dir: Path) -> None:
    instance = start(state_dir, 0, tied=True)
    _invoke_sample_target(instance, {"payload": {"duration_s": 60}}, "Event")
    wait_until(lambda: any("_worker" in command for command in _group(instance)), lambda: _group(instance))
    kill(state_dir)
    wait_until(lambda: _group(instance) == [], lambda: _group(instance))


def test_the_sample_target_runs_as_a_lambda(state_dir: Path) -> None:
    instance = start(state_dir, 0, tied=True)
    event: dict[str, Any] = {
        "payload": {"duration_s": 0, "fail_first_attempts": 1},
        "minute8": {"job_id": "j", "execution_id": "e", "attempt": 2},
    }
    answer = json.loads(_invoke_sample_target(instance, event, "RequestResponse"))
    assert (answer["attempt"], answer["items"] > 0) == (2, True)
    event["minute8"]["attempt"] = 1
    assert "fail_first_attempts" in json.loads(_invoke(instance, event, "RequestResponse"))["errorMessage"]


def test_a_late_log_is_awaited_up_to_its_mark() -> None:
    """As on a busy machine. What follows is the log of the next invocation."""
    lines: queue.Queue[str] = queue.Queue()

    def write() -> None:
        for line in ("a", f"b{MARK}", "next"):
            lines.put(line)

    late = threading.Timer(0.4, write)
    late.start()
    assert up_to_mark(lines, lambda: True) == "a\nb"
    late.join()
    assert up_to_mark(lines, lambda: False) == "next", "the worker has died"


def test_each_invocation_has_its_own_log(state_dir: Path) -> None:
    instance = start(state_dir, 0, tied=True)
    source = """
def handle(event, context):
    for number in range(event["lines"]):
        print(event["name"], number)
    if event["name"] == "third":
        raise RuntimeError(event["name"])
"""
    _create_function(instance, source)
    for name, lines in (("first", 5_000), ("second", 2), ("third", 5_000)):
        answer = client(instance, "lambda").invoke(
            FunctionName="target", LogType="Tail", Payload=json.dumps({"name": name, "lines": lines})
        )
        printed = [
            line for line in b64decode(answer["LogResult"]).decode().splitlines() if line[-1:].isdigit()
        ]
        assert printed[-1] == f"{name} {lines - 1}"
        assert {line.split()[0] for line in printed[1:]} == {name}


def test_the_server_listens_on_the_loopback_alone(deployed: Embedded) -> None:
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.2", deployed.port))


def _template(**resources: Any) -> str:
    return json.dumps({"Resources": resources})


def _create_stack(instance: Embedded, template: str) -> None:
    cloudformation = client(instance, "cloudformation")
    cloudformation.create_stack(StackName="minute8-test", TemplateBody=template)
    wait_until(lambda: _status(cloudformation) == "CREATE_COMPLETE", lambda: _status(cloudformation))


def _status(cloudformation: Any) -> str:
    return str(cloudformation.describe_stacks(StackName="minute8-test")["Stacks"][0]["StackStatus"])


def _make_table_with_item(instance: Embedded) -> None:
    dynamodb = client(instance, "dynamodb")
    dynamodb.create_table(
        TableName="things",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
    )
    dynamodb.put_item(TableName="things", Item=ITEM)


def _invoke_sample_target(instance: Embedded, event: dict[str, Any], invocation: str) -> bytes:
    _create_function(instance, (ROOT / "examples" / "target" / "handler.py").read_text())
    return _invoke(instance, event, invocation)


def _create_function(instance: Embedded, source: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("handler.py", source)
    client(instance, "lambda").create_function(
        FunctionName="target",
        Runtime="python3.13",
        Handler="handler.handle",
        Role="arn:aws:iam::000000000000:role/target",
        Code={"ZipFile": archive.getvalue()},
        Timeout=90,
    )


def _invoke(instance: Embedded, event: dict[str, Any], invocation: str) -> bytes:
    answer = client(instance, "lambda").invoke(
        FunctionName="target", InvocationType=invocation, Payload=json.dumps(event)
    )
    return bytes(answer["Payload"].read())


def _group(instance: Embedded) -> list[str]:
    """The command lines of all that runs in the instance's process group; a process that has ended has none."""
    return [command for _, group, command in _processes() if group == instance.pid and command]
