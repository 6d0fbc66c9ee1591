"""Operations of AWS's services, delivered: the embedded AWS assumes the role, does them, and shows what they did.

Services that it does not have are in test_aws_operation.py, against botocore's stubber.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aws_durable_execution_sdk_python
import pytest
from msgspec import structs

from common.clock import SystemClock
from common.planning.execution import Execution
from common.runs.run import Durable, Run
from common.storage import aws
from common.timing.schedule import EveryTiming, Schedule
from executor.started import Ended, GoesOn, Started, name_of
from executor.targets import aws_services, clients
from minute8.eventbridge.mapping import definition_of
from scripts.embedded import Embedded, kill, start
from scripts.embedded.deployment import client
from scripts.embedded.process import ROOT
from tests.executor.contexts import call_function, event
from tests.stand_ins import AnyTenant
from tests.waiting import wait_until
from tests.worlds import plain_job

pytestmark = pytest.mark.embedded

ACCOUNT = "us-east-1:000000000000"
SCHEDULE = f"arn:aws:scheduler:{ACCOUNT}:schedule/default/nightly"
ROLE = "arn:aws:iam::000000000000:role/scheduler"
EVENT = {"tenant": "alice", "job_id": "nightly", "execution_id": "e"}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    state_dir: Path = tmp_path_factory.mktemp("aws")
    instance = start(state_dir, 0, tied=True)
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:ExternalId": "minute8:alice"}},
            }
        ],
    }
    client(instance, "iam").create_role(RoleName="scheduler", AssumeRolePolicyDocument=json.dumps(trust))
    yield instance
    kill(state_dir)


@pytest.fixture(autouse=True)
def at_the_embedded_aws(embedded: Embedded, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process's clients of AWS call the instance, and are made anew."""
    for name, value in embedded.env().items():
        monkeypatch.setenv(name, value)
    caches = [each for each in vars(aws).values() if hasattr(each, "cache_clear")]
    monkeypatch.setattr(clients, "_clients", type(clients._clients)(16))
    monkeypatch.setattr(clients, "_assumed_roles", clients.AssumedRoles())
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def deliver(arn: str, text: str | None = None, **parameters: Any) -> None:
    """Call the target of a schedule once, as the executor does."""
    target = {"Arn": arn, "RoleArn": ROLE, **({"Input": text} if text else {}), **parameters}
    definition = definition_of({"ScheduleExpression": "rate(1 day)", "Target": target}, SCHEDULE)
    assert definition["target"]["kind"] == "aws_operation"
    outcome = aws_services.call_operation(
        definition["target"], {"payload": definition["payload"], "minute8": EVENT}, 5
    )
    assert outcome.ok, outcome


def test_a_stream_has_the_record(embedded: Embedded) -> None:
    kinesis = client(embedded, "kinesis")
    kinesis.create_stream(StreamName="s", ShardCount=1)
    arn = f"arn:aws:kinesis:{ACCOUNT}:stream/s"
    deliver(arn, "a text", KinesisParameters={"PartitionKey": "p"})
    shard = kinesis.list_shards(StreamName="s")["Shards"][0]["ShardId"]
    begin = kinesis.get_shard_iterator(StreamName="s", ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    records = kinesis.get_records(ShardIterator=begin["ShardIterator"])["Records"]
    assert [(record["Data"], record["PartitionKey"]) for record in records] == [(b"a text", "p")]


def test_a_delivery_stream_writes_the_record(embedded: Embedded) -> None:
    storage = client(embedded, "s3")
    storage.create_bucket(Bucket="deliveries")
    client(embedded, "firehose").create_delivery_stream(
        DeliveryStreamName="d",
        ExtendedS3DestinationConfiguration={"RoleARN": ROLE, "BucketARN": "arn:aws:s3:::deliveries"},
    )
    deliver(f"arn:aws:firehose:{ACCOUNT}:deliverystream/d", "a text")
    keys = [each["Key"] for each in storage.list_objects_v2(Bucket="deliveries").get("Contents", [])]
    assert [storage.get_object(Bucket="deliveries", Key=key)["Body"].read().strip() for key in keys] == [
        b"a text"
    ]


def test_a_build_has_begun(embedded: Embedded) -> None:
    builds = client(embedded, "codebuild")
    builds.create_project(
        name="build",
        source={"type": "NO_SOURCE", "buildspec": "version: 0.2"},
        artifacts={"type": "NO_ARTIFACTS"},
        environment={"type": "LINUX_CONTAINER", "image": "x", "computeType": "BUILD_GENERAL1_SMALL"},
        serviceRole=ROLE,
    )
    deliver(f"arn:aws:codebuild:{ACCOUNT}:project/build", '{"sourceVersion": "v"}')
    assert len(builds.list_builds_for_project(projectName="build")["ids"]) == 1


def test_a_task_runs(embedded: Embedded) -> None:
    tasks = client(embedded, "ecs")
    tasks.create_cluster(clusterName="c")
    definition = tasks.register_task_definition(
        family="t", containerDefinitions=[{"name": "a", "image": "b"}]
    )
    arn = definition["taskDefinition"]["taskDefinitionArn"]
    deliver(f"arn:aws:ecs:{ACCOUNT}:cluster/c", EcsParameters={"TaskDefinitionArn": arn, "TaskCount": 2})
    assert len(tasks.list_tasks(cluster="c")["taskArns"]) == 2


SDK = "arn:aws:scheduler:::aws-sdk"


def test_universal_targets_do_what_they_say(embedded: Embedded) -> None:
    tables = client(embedded, "dynamodb")
    tables.create_table(
        TableName="items",
        KeySchema=[{"AttributeName": "a", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "a", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    item = {"TableName": "items", "Item": {"a": {"S": "b"}}}
    deliver(f"{SDK}:dynamodb:putItem", json.dumps(item))
    assert tables.scan(TableName="items")["Items"] == [{"a": {"S": "b"}}]
    parameter = {"Name": "/p", "Value": "v", "Type": "String"}
    deliver(f"{SDK}:ssm:putParameter", json.dumps(parameter))
    assert client(embedded, "ssm").get_parameter(Name="/p")["Parameter"]["Value"] == "v"
    url = client(embedded, "sqs").create_queue(QueueName="q")["QueueUrl"]
    # DelaySeconds is no field of Minute8's own kind.
    message = {
        "QueueUrl": f"https://sqs.us-east-1.amazonaws.com/000000000000/{url.rpartition('/')[2]}",
        "MessageBody": "hello",
        "DelaySeconds": 0,
    }
    deliver(f"{SDK}:sqs:sendMessage", json.dumps(message))
    received = client(embedded, "sqs").receive_message(QueueUrl=url)["Messages"]
    assert [each["Body"] for each in received] == ["hello"]


def test_a_function_that_isolates_tenants_has_a_process_for_each(embedded: Embedded) -> None:
    """The example's function, which returns for whom and how often its process was called."""
    functions, code = client(embedded, "lambda"), io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.write(ROOT / "examples" / "isolated" / "handler.py", "handler.py")
    functions.create_function(
        FunctionName="isolated", Runtime="python3.11", Handler="handler.handle", Role=ROLE,
        Code={"ZipFile": code.getvalue()}, TenancyConfig={"TenantIsolationMode": "PER_TENANT"},
    )  # fmt: skip
    target = {
        "kind": "lambda", "arn": f"arn:aws:lambda:{ACCOUNT}:function:isolated",
        "invocation": "RequestResponse", "tenant_isolation": True,
    }  # fmt: skip
    results = []
    for tenant in ("ann", "ann", "bob", "ann"):
        answer = functions.invoke(
            FunctionName="isolated", TenantId=tenant, Payload=json.dumps(event(tenant=tenant))
        )
        results.append(json.load(answer["Payload"]))
    assert [(result["tenant"], result["reports"]) for result in results] == [
        ("ann", 1), ("ann", 2), ("bob", 1), ("ann", 3),
    ]  # fmt: skip
    assert call_function(target, event(tenant="bob"), 20).ok
    refused = call_function(target | {"tenant_isolation": False}, event(tenant="ann"), 20)
    assert (refused.permanent, refused.error.partition(" (")[0]) == (
        True,
        "the function isolates its tenants: tenant_isolation of the target must be true",
    )


@pytest.fixture
def durable_target(embedded: Embedded) -> dict[str, Any]:
    """The alias of the example's function, with AWS's own SDK in its package."""
    functions, code = client(embedded, "lambda"), io.BytesIO()
    sdk, name = Path(aws_durable_execution_sdk_python.__file__).parent, f"durable-{uuid4().hex[:6]}"
    with zipfile.ZipFile(code, "w") as archive:
        archive.write(ROOT / "examples" / "durable" / "handler.py", "handler.py")
        for path in sdk.rglob("*.py"):
            archive.write(path, path.relative_to(sdk.parent))
    functions.create_function(
        FunctionName=name, Runtime="python3.11", Handler="handler.handle", Role=ROLE, Publish=True,
        Code={"ZipFile": code.getvalue()}, DurableConfig={"ExecutionTimeout": 600, "RetentionPeriodInDays": 1},
    )  # fmt: skip
    functions.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
    arn = f"arn:aws:lambda:{ACCOUNT}:function:{name}:live"
    return {"kind": "lambda", "arn": arn, "invocation": "Event", "durable": True}


FIRE: Final = Execution("alice", "report", 0, 0, 1)
# A look ends a durable execution that began longer ago than Lambda lets any go on.
NOW_AT: Final = int(SystemClock().now())
NAME: Final = name_of("test", FIRE)
MINUTELY: Final = Schedule.of(EveryTiming(60, 0))


def durable_event(wait_s: int) -> dict[str, Any]:
    plain = event(payload={"wait_s": wait_s})
    return {**plain, "minute8": plain["minute8"] | {"durable_name": NAME}}


def run_of(target: dict[str, Any], started: tuple[str, ...]) -> Run:
    durable = Durable.of(1, NAME, target)
    return Run.of(FIRE, "running", attempt=1, started_at=NOW_AT, durable=durable, started_arns=started)


def test_a_durable_function_is_started_once_and_followed_to_its_end(durable_target: dict[str, Any]) -> None:
    """It waits in between, and goes on in a second invocation."""
    job = plain_job("alice", "report", MINUTELY, target=durable_target)
    outcomes = [call_function(durable_target, durable_event(2), 20) for _ in range(3)]
    (started,) = {outcome.started for outcome in outcomes}
    assert ("/durable-execution/" in started[0], outcomes[2].accepted) == (True, True)
    durables = Started(AnyTenant(), SystemClock())
    record = run_of(durable_target, started)
    assert durables.look(job, FIRE, record) == GoesOn()
    by_name = structs.replace(record, started_arns=())
    wait_until(lambda: durables.look(job, FIRE, by_name) != GoesOn(), "it goes on")
    end = durables.look(job, FIRE, record)
    assert isinstance(end, Ended)
    assert (end.outcome.ok, json.loads(end.outcome.log_tail)["order"][:21]) == (True, "order of alice:report")
    edited = call_function(durable_target, durable_event(3), 20)
    assert (edited.ok, edited.accepted, edited.started) == (True, True, ())


def test_a_durable_execution_is_stopped(durable_target: dict[str, Any]) -> None:
    job = plain_job("alice", "report", MINUTELY, target=durable_target)
    started = call_function(durable_target, durable_event(3_600), 20).started
    record = run_of(durable_target, started)
    durables = Started(AnyTenant(), SystemClock())
    assert durables.stop(job, FIRE, record) == ""
    end = durables.look(job, FIRE, record)
    assert isinstance(end, Ended)
    assert (end.outcome.permanent, end.outcome.error_type) == (True, "Stopped")
    assert durables.stop(job, FIRE, record) == "the durable execution had ended before: STOPPED"
