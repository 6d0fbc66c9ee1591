"""The strict layer's rules on an embedded AWS: recursion through a queue, transaction conflicts, duplicates, sizes."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.storage import transactions
from common.storage.wire import item_bytes
from scripts.demo.functions import until_taken
from scripts.embedded import Embedded, kill, start
from scripts.embedded.deployment import client
from scripts.embedded.strict import layer
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

_HANDLER = """
import boto3, json, os, time
def handle(event, context):
    for record in event["Records"]:
        body = json.loads(record["body"])
        boto3.client("dynamodb").put_item(TableName="seen", Item={
            "pk": {"S": body["chain"]}, "sk": {"S": f"{body['hop']:03}#" + context.aws_request_id},
            "receives": {"N": record["attributes"]["ApproximateReceiveCount"]}})
        if body["chain"] == "slow":
            time.sleep(1)
        if body["chain"] not in ("plain", "slow") and body["hop"] < 25:
            body["hop"] += 1
            boto3.client("sqs").send_message(QueueUrl=os.environ["QUEUE"], MessageBody=json.dumps(body))
"""
_TRUST = {
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]
}
_ALL = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """An instance with the table `seen`, and a function that sends to its own queue."""
    state_dir: Path = tmp_path_factory.mktemp("strict")
    embedded = start(state_dir, 0, strict=True, tied=True)
    try:
        _make(embedded)
        yield embedded
    finally:
        kill(state_dir)


def _make(embedded: Embedded, visibility_s: int = 60) -> None:
    iam, sqs, functions = (client(embedded, name) for name in ("iam", "sqs", "lambda"))
    client(embedded, "dynamodb").create_table(
        TableName="seen",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
    )
    role = iam.create_role(RoleName="loop", AssumeRolePolicyDocument=json.dumps(_TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName="loop", PolicyName="all", PolicyDocument=json.dumps(_ALL))
    queue = sqs.create_queue(QueueName="loop", Attributes={"VisibilityTimeout": str(visibility_s)})[
        "QueueUrl"
    ]
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("loop.py", _HANDLER)
    create = partial(
        functions.create_function,
        FunctionName="loop",
        Runtime="python3.13",
        Handler="loop.handle",
        Role=role,
        Timeout=30,
        Environment={"Variables": {"QUEUE": queue}},
        Code={"ZipFile": package.getvalue()},
    )
    until_taken(create)
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    until_taken(
        lambda: functions.create_event_source_mapping(EventSourceArn=arn, FunctionName="loop", BatchSize=1)
    )


def _sent(embedded: Embedded, *bodies: dict[str, Any]) -> None:
    sqs = client(embedded, "sqs")
    for body in bodies:
        sqs.send_message(
            QueueUrl=sqs.get_queue_url(QueueName="loop")["QueueUrl"], MessageBody=json.dumps(body)
        )


def _seen(embedded: Embedded, chain: str) -> list[str]:
    """The hops of a chain; a hop that was delivered twice is there twice."""
    items = client(embedded, "dynamodb").query(
        TableName="seen",
        KeyConditionExpression="pk = :chain",
        ExpressionAttributeValues={":chain": {"S": chain}},
    )["Items"]
    return [item["sk"]["S"].partition("#")[0] for item in items]


def _seen_at_rest(embedded: Embedded, chain: str, least: int) -> list[str]:
    """The hops, once there are `least` and no more come for two seconds."""
    wait_until(lambda: len(set(_seen(embedded, chain))) >= least, lambda: _seen(embedded, chain))
    before: list[str] = []
    while (now := _seen(embedded, chain)) != before:
        before = now
        time.sleep(2)
    return now


@pytest.mark.parametrize(("loop", "hops"), [("Terminate", 16), ("Allow", 26)])
def test_a_chain_through_its_own_queue_ends_after_16_rounds_unless_it_is_allowed(
    aws: Embedded, loop: str, hops: int
) -> None:
    client(aws, "lambda").put_function_recursion_config(FunctionName="loop", RecursiveLoop=loop)
    _sent(aws, {"chain": loop, "hop": 0})
    assert len(set(_seen_at_rest(aws, loop, hops))) == hops


def test_every_tenth_message_comes_twice(aws: Embedded) -> None:
    _sent(aws, *({"chain": "plain", "hop": number} for number in range(2 * layer.MESSAGES_PER_DUPLICATE)))

    def twice() -> set[str]:
        return {hop for hop, times in Counter(_seen(aws, "plain")).items() if times > 1}

    wait_until(twice, "no message came twice")
    assert (
        len(set(_seen_at_rest(aws, "plain", 2 * layer.MESSAGES_PER_DUPLICATE)))
        == 2 * layer.MESSAGES_PER_DUPLICATE
    )


def test_in_a_small_account_polls_are_throttled_and_count_as_receives(tmp_path: Path) -> None:
    embedded = start(tmp_path, 0, strict=True, tied=True, concurrency=1)
    try:
        _make(embedded, visibility_s=2)
        _sent(embedded, *({"chain": "slow", "hop": number} for number in range(4)))
        assert len(set(_seen_at_rest(embedded, "slow", 4))) == 4
        items = client(embedded, "dynamodb").scan(TableName="seen")["Items"]
    finally:
        kill(tmp_path)
    assert max(int(item["receives"]["N"]) for item in items) > 1


@pytest.mark.parametrize("delay_s", [-1, 901])
def test_a_delay_beyond_fifteen_minutes_is_refused(aws: Embedded, delay_s: int) -> None:
    sqs = client(aws, "sqs")
    url = sqs.get_queue_url(QueueName="loop")["QueueUrl"]
    message: dict[str, Any] = {"MessageBody": "{}", "DelaySeconds": delay_s}
    with pytest.raises(ClientError, match="DelaySeconds"):
        sqs.send_message(QueueUrl=url, **message)
    answer = sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", **message}])
    assert [entry["Code"] for entry in answer["Failed"]] == ["InvalidParameterValue"]


def test_every_second_short_poll_finds_nothing(aws: Embedded) -> None:
    sqs = client(aws, "sqs")
    url = sqs.create_queue(QueueName="polled", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="here")

    def received(wait_s: int) -> int:
        return len(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=wait_s).get("Messages", []))

    assert sorted(received(0) for _ in range(4)) == [0, 0, 1, 1]
    assert [received(1) for _ in range(4)] == [1, 1, 1, 1]


def test_a_write_meets_a_transaction_that_holds_its_item(aws: Embedded) -> None:
    item = {"pk": {"S": "contended"}, "sk": {"S": "one"}}
    key = {"TableName": "seen", "Item": item}

    def write(number: int) -> str:
        dynamodb = client(aws, "dynamodb")
        try:
            if number % 2:
                dynamodb.transact_write_items(TransactItems=[{"Put": key}])
            else:
                dynamodb.put_item(**key)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return ""

    with ThreadPoolExecutor(8) as threads:
        refused = set(threads.map(write, range(80)))
    assert {"TransactionConflictException", "TransactionCanceledException"} & refused
    assert refused <= {"", "TransactionConflictException", "TransactionCanceledException"}
    assert write(0) == write(1) == ""


def test_a_rule_with_a_schedule_invokes_its_function_twice() -> None:
    invoked: list[str] = []
    events = SimpleNamespace(_dispatch_to_lambda=lambda arn, payload: invoked.append(payload))
    layer.fire_rules_twice(events)
    scheduled, other = (json.dumps({"detail-type": kind}) for kind in ("Scheduled Event", "Run Failed"))
    for payload in (scheduled, other):
        events._dispatch_to_lambda("arn", payload)
    assert invoked == [scheduled, scheduled, other]


@pytest.mark.parametrize(
    "value",
    [{"S": "x" * 400 * 1024}, {"N": "1E127"}, {"L": [json.loads('{"L": [' * 32 + '{"S": ""}' + "]}" * 32)]}],
    ids=["400 KB", "a number", "nesting"],
)
def test_an_item_that_dynamodb_cannot_hold_is_refused(aws: Embedded, value: dict[str, Any]) -> None:
    item = {"pk": {"S": "large"}, "sk": {"S": "one"}, "value": value}
    with pytest.raises(ClientError, match="ValidationException"):
        client(aws, "dynamodb").put_item(TableName="seen", Item=item)


def test_a_transaction_of_more_than_4_mb_is_refused(aws: Embedded) -> None:
    def write(size: int) -> None:
        """Items of this size together."""
        items = [{"pk": {"S": "together"}, "sk": {"S": f"{n:02}"}} for n in range(11)]
        texts = [380_000] * 10 + [size - 10 * 380_000]
        for item, length in zip(items, texts, strict=True):
            item["text"] = {"S": "x" * (length - item_bytes(item) - len("text"))}
        puts: Any = [{"Put": {"TableName": "seen", "Item": item}} for item in items]
        client(aws, "dynamodb").transact_write_items(TransactItems=puts)

    def refusal() -> str:
        """Of one that is too large; empty while the partition is throttled."""
        with pytest.raises(ClientError) as raised:
            write(4 * 1024 * 1024 + 1)
        return "" if "Throttling" in str(raised.value) else str(raised.value)

    write(transactions.MAX_TRANSACTION_BYTES)
    assert re.search(r"ValidationException.*4MB", wait_until(refusal, "it stays throttled"))
