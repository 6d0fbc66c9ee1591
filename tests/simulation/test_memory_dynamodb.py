"""The DynamoDB in memory answers like moto: each request of a busy flow goes to both, and both answer the same."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from common.errors import ItemTooLarge
from common.registration.calendar_store import CalendarStore
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.transactions import TooManyWrites, Transaction
from common.storage.wire import Expression, item_bytes
from tests.simulation.memory_dynamodb import MAX_TOGETHER_BYTES, PAGE_ITEMS, MemoryDynamoDB
from tests.worlds import World, at, job, make_tables, make_world

MAX_TRANSACTION_BYTES = 4_000_000

CALLS = (
    "get_item",
    "put_item",
    "update_item",
    "delete_item",
    "query",
    "transact_write_items",
    "batch_write_item",
    "batch_get_item",
)


class Both:
    """A client that asks moto and the DynamoDB in memory, and fails if they differ."""

    def __init__(self, moto: Any) -> None:
        self.moto, self.memory = moto, MemoryDynamoDB()
        self.exceptions = moto.exceptions
        self.asked: Counter[str] = Counter()

    def create_table(self, **request: Any) -> None:
        self.moto.create_table(**request)
        self.memory.create_table(**request)

    def __getattr__(self, name: str) -> Any:
        assert name in CALLS, name

        def ask(**request: Any) -> Any:
            self.asked[name] += 1
            moto_outcome = _outcome(getattr(self.moto, name), request)
            memory_outcome = _outcome(getattr(self.memory, name), request)
            assert _comparable(memory_outcome) == _comparable(moto_outcome), (name, request)
            if isinstance(moto_outcome, ClientError):
                raise moto_outcome
            return moto_outcome

        return ask


def _outcome(call: Any, request: Mapping[str, Any]) -> Any:
    try:
        return call(**copy.deepcopy(dict(request)))
    except ClientError as error:
        return error


def _comparable(outcome: Any) -> Any:
    if isinstance(outcome, ClientError):
        reasons: Any = outcome.response.get("CancellationReasons", [])
        # DynamoDB returns the items of a refused transaction; moto does not.
        return (outcome.response["Error"]["Code"], outcome.response.get("Item"), [r["Code"] for r in reasons])
    names = ("Item", "Items", "Attributes", "UnprocessedItems", "Responses", "LastEvaluatedKey")
    return {name: outcome.get(name) for name in names}


@pytest.fixture
def both() -> Iterator[Both]:
    with mock_aws():
        yield Both(boto3.client("dynamodb", region_name="us-east-1"))


def test_a_busy_half_hour_asks_both_and_they_agree(both: Both) -> None:
    world: World = make_world(both, "2026-11-21T03:12:00Z")
    CalendarStore(world.table("jobs"), world.store.audited).put(
        "alice", "feasts", {"dates": ["2026-11-22"]}, at("2026-11-21T03:12:00Z")
    )
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["attempt"] % 2 == 0, error="odd")
    excluded = {"calendars": ["feasts"]}
    world.registry.create("alice", "minutely", job(cron="* * * * *", exclude=excluded, retry={"base_s": 5}))
    world.registry.create("alice", "event", job(every="3m", invocation="Event"))
    world.registry.create("alice", "none", job(cron="*/2 * * * *", overlap="queue_one", catch_up="none"))
    world.registry.create("bob", "once", job(at="2026-11-21T03:25:00Z"))
    world.run_until("2026-11-21T03:20:30Z", ticks=True)
    world.store.pause("alice", "event")
    world.registry.put("alice", "none", job(cron="1-59/2 * * * *"))
    world.store.delete("bob", "once")
    world.store.resume("alice", "event")
    world.run_until("2026-11-21T03:24:30Z", ticks=True)
    world.clock.move_to(at("2026-11-21T04:08:00Z"))
    world.scheduler.tick()
    world.run_until("2026-11-21T04:12:30Z", ticks=True)
    assert [stored.job_id for stored in world.store.list_jobs("alice")] == ["event", "minutely", "none"]
    assert all(both.asked[name] > 5 for name in CALLS if not name.startswith("batch")), both.asked


@pytest.fixture
def table(both: Both) -> Table:
    both.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
    )
    return Table(both, "t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "blocks"),
    [
        ("#n = :three", True),
        ("#n <> :three", False),
        ("#missing <> :three", True),
        ("#missing < :three", False),
        ("#n <= :three AND #s = :text", True),
        ("#n > :three OR (#s = :text AND #n IN (:two, :three))", True),
        ("NOT #n >= :three", False),
        ("attribute_exists(#n) AND attribute_not_exists(#missing)", True),
        ("begins_with(#s, :text)", True),
    ],
)
def test_conditions_hold_where_motos_hold(table: Table, condition: str, blocks: bool) -> None:
    key: Any = {"pk": "a", "sk": "b"}
    table.put({**key, "n": 3, "s": "text"})
    values = {":three": 3, ":two": 2, ":text": "text"}
    used = {name: value for name, value in values.items() if name in condition}
    try:
        table.update(key, Expression("SET #seen = :yes", {":yes": True}), Expression(condition, used))
    except ConditionFailed as failed:
        assert not blocks
        assert failed.existing == {**key, "n": 3, "s": "text"}
    else:
        assert blocks


def test_updates_and_transactions_change_what_motos_change(table: Table) -> None:
    key: Any = {"pk": "a", "sk": "b"}
    words = (
        "SET #l = list_append(if_not_exists(#l, :none), :more), #m = if_not_exists(#m, :more)"
        " REMOVE #gone ADD #n :one"
    )
    for _ in range(2):
        item = table.update(key, Expression(words, {":none": [], ":more": ["x"], ":one": 1}))
    assert item == {**key, "l": ["x", "x"], "m": ["x"], "n": 2}
    # An index beyond the end appends, and the first element goes.
    item = table.update(key, Expression("SET #l[2] = :y REMOVE #l[0]", {":y": "y"}))
    assert item == {**key, "l": ["x", "y"], "m": ["x"], "n": 2}
    tx = Transaction(table.client)
    tx.delete(table, key)
    tx.put(table, {"pk": "a", "sk": "c"}, Expression("attribute_exists(pk)", {}))
    with pytest.raises(ConditionFailed):
        tx.commit()
    assert table.get(key) == item


def test_deleting_many_leaves_what_motos_leaves(table: Table) -> None:
    for n in range(30):
        table.put({"pk": "a" if n % 2 else "b", "sk": f"{n:02}"})
    assert table.delete_many([{"pk": "a", "sk": f"{n:02}"} for n in range(28)]) == 28
    assert [item["sk"] for item in table.query(Query("a"))] == ["29"]
    assert len(list(table.query(Query("b")))) == 15


def test_many_are_read_as_moto_reads_them(table: Table) -> None:
    for n in range(5):
        table.put({"pk": "a", "sk": str(n), "n": n})
    requested_keys: list[keys.Key] = [{"pk": "a", "sk": str(n)} for n in range(3, 8)]
    assert [item["sk"] for item in table.get_many(requested_keys)] == ["3", "4"]
    assert list(table.get_many(requested_keys, attributes=("n", "missing"))) == [{"n": 3}, {"n": 4}]


def test_an_index_has_what_motos_has_and_in_its_order(both: Both) -> None:
    make_tables(both)
    runs = Table(both, "test-runs")  # type: ignore[arg-type]
    for n, at_s in enumerate((5, 30, 200, 30, 7, None)):
        tenant = "bob" if n == 4 else "alice"
        runs.put({"pk": f"{tenant}#job", "sk": str(n), "failed_tenant": tenant, "failed_at": at_s})
    runs.put({"pk": "alice#job", "sk": "succeeded"})
    for newest_first, expected in ((False, ["0", "1", "3", "2"]), (True, ["2", "3", "1", "0"])):
        items = list(runs.query(Query("alice", index=keys.FAILURES, newest_first=newest_first, page=2)))
        assert [item["sk"] for item in items] == expected
        place = {name: items[1][name] for name in ("pk", "sk", "failed_tenant", "failed_at")}
        after = runs.query(
            Query("alice", index=keys.FAILURES, newest_first=newest_first, after=place, page=1)
        )
        assert [item["sk"] for item in after] == expected[2:]


def test_requests_that_dynamodb_refuses_are_refused() -> None:
    memory = MemoryDynamoDB()
    make_tables(memory)
    table = Table(memory, "test-jobs")  # type: ignore[arg-type]
    key: Any = {"pk": "a", "sk": "b"}
    table.put(key)
    with pytest.raises(ItemTooLarge):
        table.update(key, Expression("SET #text = :text", {":text": "x" * 410_000}))
    for change in (
        Expression("SET #n = :one", {":one": 1, ":unused": 2}),
        Expression("SET #n = :missing", {}),
        Expression("SET #n = status", {}),
    ):
        with pytest.raises(AssertionError):
            table.update(key, change)
    tx = Transaction(memory)  # type: ignore[arg-type]
    tx.delete(table, key)
    tx.put(table, key)
    with pytest.raises(AssertionError, match="there twice"):
        tx.commit()
    with pytest.raises(AssertionError, match="consistent"):
        memory.query(
            TableName="test-runs",
            IndexName="failures",
            KeyConditionExpression="failed_tenant = :pk",
            ExpressionAttributeValues={":pk": {"S": "a"}},
            ConsistentRead=True,
            ScanIndexForward=True,
        )
    with pytest.raises(memory.exceptions.ResourceNotFoundException):
        Table(memory, "no-such-table").get(key)  # type: ignore[arg-type]
    assert table.get(key) == key


def test_a_transaction_of_more_than_4_mb_is_refused() -> None:
    memory = MemoryDynamoDB()
    memory.create_table("t")

    def write(size: int) -> None:
        """11 items, of this size together."""
        items = [{"pk": {"S": "a"}, "sk": {"S": f"{n:02}"}} for n in range(11)]
        texts = [380_000] * 10 + [size - 10 * 380_000]
        for item, length in zip(items, texts, strict=True):
            item["text"] = {"S": "x" * (length - item_bytes(item) - len("text"))}
        memory.transact_write_items(
            TransactItems=[{"Put": {"TableName": "t", "Item": item}} for item in items]
        )

    write(MAX_TOGETHER_BYTES)
    with pytest.raises(ClientError, match=r"ValidationException.*4 MB"):
        write(MAX_TOGETHER_BYTES + 1)


def test_a_transaction_that_dynamodb_refuses_for_its_size_is_not_sent() -> None:
    memory = MemoryDynamoDB()
    memory.create_table("t")
    table = Table(memory, "t")  # type: ignore[arg-type]

    def transaction(size: int) -> Transaction:
        """15 items, whose JSON has this size together."""
        tx = Transaction(memory)  # type: ignore[arg-type]
        for n in range(14):
            tx.put(table, {"pk": "a", "sk": f"{n:02}", "text": "é" * 45_000})
        rest = size - len(json.dumps(tx._writes))
        last = {"pk": "a", "sk": "14", "text": ""}
        bare = Transaction(memory)  # type: ignore[arg-type]
        bare.put(table, last)
        tx.put(table, last | {"text": "x" * (rest - len(json.dumps(bare._writes)))})
        return tx

    transaction(MAX_TRANSACTION_BYTES).commit()
    assert len(list(table.query(Query("a")))) == 15
    table.delete({"pk": "a", "sk": "00"})
    with pytest.raises(TooManyWrites, match=f"{MAX_TRANSACTION_BYTES + 1} bytes"):
        transaction(MAX_TRANSACTION_BYTES + 1).commit()
    assert len(list(table.query(Query("a")))) == 14


def test_long_partitions_come_in_pages_and_whole() -> None:
    memory = MemoryDynamoDB()
    memory.create_table("t")
    table = Table(memory, "t")  # type: ignore[arg-type]
    sks = [f"{n:05}" for n in range(PAGE_ITEMS * 2 + 7)]
    for sk in reversed(sks):
        table.put({"pk": "a", "sk": sk, "even": int(sk) % 2 == 0})
    assert [item["sk"] for item in table.query(Query("a"))] == sks
    assert [item["sk"] for item in table.query(Query("a", newest_first=True))] == sks[::-1]
    assert [item["sk"] for item in table.query(Query("a", sk_between=("00498", "00502")))] == sks[498:503]
    assert [item["sk"] for item in table.query(Query("a", sk_prefix="0000", limit=3))] == sks[:3]
    even = Expression("#even = :true", {":true": True})
    assert [item["sk"] for item in table.query(Query("a", where=even, limit=600))] == sks[::2]
    after = {"pk": "a", "sk": "00498"}
    assert [item["sk"] for item in table.query(Query("a", after=after, limit=5))] == sks[499:504]
