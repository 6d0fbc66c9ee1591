"""The limits of tables and partitions: what requests take of them, and how each kind of request is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from common.storage.table import Table
from scripts.embedded import Embedded, kill, start
from scripts.embedded.strict.throughput import Meter, Side, Tables, Use
from tests.waiting import wait_until

KEYS: Any = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
TYPES: Any = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]


@pytest.fixture(scope="module")
def dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client that tries each request once. The tables are `small`, of one unit, and `new`, on demand."""
    state_dir: Path = tmp_path_factory.mktemp("throttling")
    embedded = start(state_dir, 0, strict=True, tied=True)
    try:
        client = _once(embedded)
        a_unit: Any = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
        client.create_table(
            TableName="small", AttributeDefinitions=TYPES, KeySchema=KEYS, ProvisionedThroughput=a_unit
        )
        client.create_table(
            TableName="new", AttributeDefinitions=TYPES, KeySchema=KEYS, BillingMode="PAY_PER_REQUEST"
        )
        yield client
    finally:
        kill(state_dir)


def _once(embedded: Embedded) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=embedded.endpoint_url,
        region_name=embedded.env()["AWS_REGION"],
        aws_access_key_id=embedded.env()["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=embedded.env()["AWS_SECRET_ACCESS_KEY"],
        config=Config(retries={"total_max_attempts": 1}),
    )


def item(pk: str, sk: int = 0, size: int = 0) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": str(sk)}, "text": {"S": "x" * size}}


def code(call: Any, **request: Any) -> str:
    """What the call is refused with; empty if it is not."""
    try:
        call(**request)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


@pytest.mark.embedded
def test_a_table_is_throttled_until_it_is_billed_on_demand(dynamodb: Any) -> None:
    put: Any = {"TableName": "small", "Item": item("one")}

    def refused() -> set[str]:
        return {
            code(dynamodb.transact_write_items, TransactItems=[{"Put": put}])
            if number % 2
            else code(dynamodb.put_item, **put)
            for number in range(12)
        }

    wait_until(
        lambda: {"ProvisionedThroughputExceededException", "TransactionCanceledException"} <= refused(),
        "nothing is throttled",
    )
    dynamodb.update_table(TableName="small", BillingMode="PAY_PER_REQUEST")
    assert refused() == {""}


@pytest.mark.embedded
def test_a_partition_of_a_table_on_demand_takes_a_thousand_units_a_second(dynamodb: Any) -> None:
    """Items of 200 KB: the sixth of a second is too much, for whatever kind of request; other partitions go on."""

    def refused() -> bool:
        codes = [code(dynamodb.put_item, TableName="new", Item=item("hot", n, 200_000)) for n in range(8)]
        assert set(codes) <= {"", "ThrottlingException"}
        return "ThrottlingException" in codes and not code(
            dynamodb.put_item, TableName="new", Item=item("cold")
        )

    wait_until(refused, "nothing is throttled")

    def refused_in_a_transaction() -> bool:
        puts = [{"Put": {"TableName": "new", "Item": item("hot", n, 200_000)}} for n in range(4)]
        try:
            for _ in range(2):
                dynamodb.transact_write_items(TransactItems=puts)
        except ClientError as error:
            reasons = {reason["Code"] for reason in error.response["CancellationReasons"]}
            return reasons == {"ThrottlingError"}
        return False

    wait_until(refused_in_a_transaction, "no transaction is throttled")

    def left_undone() -> bool:
        puts = [{"PutRequest": {"Item": item("hot", n, 200_000)}} for n in range(8)]
        answer = dynamodb.batch_write_item(
            RequestItems={"new": [*puts, {"PutRequest": {"Item": item("cold")}}]}
        )
        remaining = answer["UnprocessedItems"].get("new", [])
        assert all(part["PutRequest"]["Item"]["pk"] == {"S": "hot"} for part in remaining)
        return 0 < len(remaining) <= 3

    wait_until(left_undone, "a batch is written whole")


@pytest.mark.embedded
def test_a_partition_is_read_at_three_thousand_units_a_second(dynamodb: Any) -> None:
    for number in range(30):
        write = partial(code, dynamodb.put_item, TableName="new", Item=item("read", number, 380_000))
        wait_until(lambda write=write: not write(), "it is never written")  # type: ignore[misc]

    def left_out() -> bool:
        keys = [{name: item("read", n)[name] for name in ("pk", "sk")} for n in range(30)]
        answer = [
            dynamodb.batch_get_item(RequestItems={"new": {"Keys": keys, "ConsistentRead": True}})
            for _ in "12"
        ]
        return any(part["UnprocessedKeys"] for part in answer)

    def refused() -> bool:
        query = {
            "TableName": "new",
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": "read"}},
            "ConsistentRead": True,
        }
        return "ThrottlingException" in {code(dynamodb.query, **query) for _ in range(40)}

    wait_until(left_out, "a batch is read whole")
    wait_until(refused, "no query is throttled")


@pytest.mark.embedded
def test_minute8s_inserts_leave_out_what_a_partition_does_not_take(dynamodb: Any) -> None:
    """`insert_many` says what was not certain to be written; the rest is there."""
    table = Table(dynamodb, "new")

    def left_out() -> bool:
        sk = str(next(numbers))
        items = [{"pk": "claims", "sk": f"{sk}-{n}", "text": "x" * 300_000} for n in range(6)]
        inserted = table.insert_many(items)
        stored = [table.get({"pk": str(entry["pk"]), "sk": str(entry["sk"])}) is not None for entry in items]
        assert inserted == stored
        return any(inserted) and not all(inserted)

    numbers = iter(range(1_000))
    wait_until(left_out, "all is written")


def tables(**stored: Any) -> Tables:
    """Of the table `t`, with what is stored by partition and sort key."""
    content = {"pk_name": "pk", "sk_name": "sk", "items": stored}
    return Tables(
        SimpleNamespace(_tables={"t": content}, _extract_key_val=lambda value: (value or {}).get("S", ""))
    )


LARGE = item("p", 0, 9_000)
KEY = {name: LARGE[name] for name in ("pk", "sk")}


@pytest.mark.parametrize(
    ("action", "request_", "units"),
    [
        ("PutItem", {"Item": item("p", 1)}, [1]),
        ("PutItem", {"Item": item("p", 1, 2_500)}, [3]),
        ("PutItem", {"Item": item("p", 0)}, [9]),  # the stored one is larger
        ("UpdateItem", {"Key": KEY}, [9]),
        ("DeleteItem", {"Key": KEY}, [9]),
        ("GetItem", {"Key": KEY, "ConsistentRead": True}, [3]),
        ("GetItem", {"Key": KEY}, [1.5]),
        ("GetItem", {"Key": {"pk": {"S": "other"}, "sk": {"S": "0"}}}, [0.5]),
        ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "t", "Key": KEY}}]}, [6]),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "t", "Item": item("p", 1)}}] * 3},
            [2] * 3,
        ),
        ("BatchGetItem", {"RequestItems": {"t": {"Keys": [KEY, KEY], "ConsistentRead": True}}}, [3, 3]),
        ("BatchWriteItem", {"RequestItems": {"t": [{"DeleteRequest": {"Key": KEY}}]}}, [9]),
    ],
)
def test_what_a_request_takes(action: str, request_: dict[str, Any], units: list[float]) -> None:
    request = {"TableName": "arn:aws:dynamodb:us-east-1:1:table/t", **request_}
    assert [use.units for use in tables(p={"0": LARGE}).uses(action, request)] == units


def test_a_query_takes_the_whole_of_its_items() -> None:
    request = {
        "TableName": "t",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "p"}},
    }
    returned = {"Items": [KEY, KEY]}  # a projection
    use = tables(p={"0": LARGE}).use_of_answer(request, returned)
    assert use == Use(Side("t", False, "p"), 2.5)


def test_a_side_has_its_units_in_each_second() -> None:
    reads, writes = Side("t", False, "p"), Side("t", True, "p")
    limits = {reads: 2, reads._replace(pk=None): 3}
    meter = Meter(lambda side: limits.get(side, 1e9))
    assert meter.take([Use(reads, 1)], 7.0) == []
    assert meter.take([Use(reads, 2)], 7.5) == [], "one is left, which may be overdrawn"
    assert meter.take([Use(reads, 1)], 7.9) == [reads, reads._replace(pk=None)]
    assert meter.take([Use(Side("t", False, "q"), 1)], 7.9) == [reads._replace(pk=None)], (
        "the table's are gone"
    )
    assert meter.take([Use(writes, 1)], 7.9) == []
    assert meter.take([Use(reads, 1)], 8.0) == []
