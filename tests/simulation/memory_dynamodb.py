"""DynamoDB in memory: the client calls of `common/storage/table.py`, and those with which tests read tables.

A request costs a hundredth of moto's. It also refuses what DynamoDB refuses and Minute8 could send by mistake.
`test_memory_dynamodb.py` compares its answers with moto's.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache, wraps
from math import ceil
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from common.storage.wire import item_bytes
from tests.simulation.expressions import Wire, check_placeholders, compile_condition, compile_update

PAGE_ITEMS = 500
_INSERT = re.compile(r"""INSERT INTO "(?P<table>[a-zA-Z0-9_.-]+)" VALUE \{(?P<fields>('\w+': \?(, )?)+)\}""")
_NAME = re.compile(r"'(\w+)'")
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_BYTES = 400 * 1024
MAX_TOGETHER_BYTES = 4 * 1024 * 1024


class _Exceptions:
    """`client.exceptions`: one class for each name."""

    def __getattr__(self, name: str) -> type[ClientError]:
        return _exception(name)


@cache
def _exception(name: str) -> type[ClientError]:
    return type(name, (ClientError,), {})


def _error(name: str, message: str, operation: str, **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": name, "Message": message}, **more}
    return _exception(name)(response, operation)


class _Partition:
    __slots__ = ("items", "sks")

    def __init__(self) -> None:
        self.items: dict[str, Wire] = {}
        self.sks: list[str] = []

    def put(self, item: Wire) -> None:
        sk = item["sk"]["S"]
        if sk not in self.items:
            insort(self.sks, sk)
        self.items[sk] = item

    def delete(self, sk: str) -> None:
        if self.items.pop(sk, None) is not None:
            del self.sks[bisect_left(self.sks, sk)]

    def copy(self) -> _Partition:
        """Items are replaced, never changed, so both can hold the same objects."""
        other = _Partition()
        other.items, other.sks = dict(self.items), list(self.sks)
        return other


Tables = dict[str, dict[str, _Partition]]


class Index(NamedTuple):
    """The attributes of a secondary index's key; the second is a number."""

    pk: str
    sk: str


def _request(call: Callable[..., Any]) -> Callable[..., Any]:
    """A request: `before` is called with its name; then only one request runs at a time."""

    @wraps(call)
    def alone(self: MemoryDynamoDB, ReturnConsumedCapacity: str = "NONE", **request: Any) -> Any:
        self.before(call.__name__)
        with self._lock:
            self._units = 0.0 if ReturnConsumedCapacity == "TOTAL" else None
            answer = call(self, **request)
            if self._units is not None:
                answer["ConsumedCapacity"] = [{"CapacityUnits": self._units}]
            return answer

    return alone


class MemoryDynamoDB:
    """A client, for any number of threads. `before` gets each request's name: what it raises, the caller gets."""

    exceptions = _Exceptions()

    def __init__(self) -> None:
        self.tables: Tables = {}
        self.before: Callable[[str], None] = lambda name: None
        self._indexes: dict[tuple[str, str], Index] = {}
        self._lock = threading.RLock()
        # What the present request consumes, if it asks for that: estimated, without indexes.
        self._units: float | None = None

    def create_table(
        self, TableName: str, GlobalSecondaryIndexes: Sequence[Mapping[str, Any]] = (), **_: Any
    ) -> None:
        self.tables[TableName] = {}
        for index in GlobalSecondaryIndexes:
            pk, sk = (key["AttributeName"] for key in index["KeySchema"])
            self._indexes[TableName, index["IndexName"]] = Index(pk, sk)

    def delete_table(self, TableName: str) -> None:
        del self.tables[TableName]

    def saved(self) -> Tables:
        """All tables as they are now, for `restore`."""
        return {
            name: {pk: partition.copy() for pk, partition in table.items()}
            for name, table in self.tables.items()
        }

    def restore(self, saved: Tables) -> None:
        self.tables = saved
        self.tables = self.saved()

    @_request
    def get_item(self, TableName: str, Key: Wire, ConsistentRead: bool = False) -> dict[str, Any]:
        item = self._find(TableName, Key)
        self._read([[item or {}]], ConsistentRead)
        return {"Item": item} if item else {}

    @_request
    def batch_get_item(self, RequestItems: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        responses: dict[str, list[Wire]] = {}
        for table, request in RequestItems.items():
            assert 1 <= len(request["Keys"]) <= 100
            _no_key_twice((table, key) for key in request["Keys"])
            items = [self._find(table, key) for key in request["Keys"]]
            self._read([[item or {}] for item in items], request.get("ConsistentRead", False))
            responses[table] = [item for item in items if item]
            if projection := request.get("ProjectionExpression"):
                check_placeholders((projection,), request["ExpressionAttributeNames"], {})
                paths = [path.strip().removeprefix("#") for path in projection.split(",")]
                responses[table] = [_projected(item, paths) for item in responses[table]]
        return {"Responses": responses, "UnprocessedKeys": {}}

    @_request
    def put_item(self, TableName: str, Item: Wire, **condition: Any) -> dict[str, Any]:
        self._write({"Put": {"TableName": TableName, "Item": Item, **condition}}, "PutItem")
        return {}

    @_request
    def update_item(self, TableName: str, Key: Wire, ReturnValues: str, **rest: Any) -> dict[str, Any]:
        assert ReturnValues == "ALL_NEW"
        self._write({"Update": {"TableName": TableName, "Key": Key, **rest}}, "UpdateItem")
        return {"Attributes": self._find(TableName, Key)}

    @_request
    def delete_item(self, TableName: str, Key: Wire, **condition: Any) -> dict[str, Any]:
        self._write({"Delete": {"TableName": TableName, "Key": Key, **condition}}, "DeleteItem")
        return {}

    @_request
    def batch_write_item(self, RequestItems: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        assert 1 <= sum(map(len, RequestItems.values())) <= 25
        changes: list[tuple[str, Wire, Wire | None]] = []
        for table, writes in RequestItems.items():
            for write in writes:
                if (item := write.get("PutRequest", {}).get("Item")) is not None:
                    changes.append((table, {name: item[name] for name in ("pk", "sk")}, dict(item)))
                else:
                    changes.append((table, write["DeleteRequest"]["Key"], None))
        _no_key_twice((table, key) for table, key, _ in changes)
        for table, key, item in changes:
            self._set(table, key, item)
        return {"UnprocessedItems": {}}

    @_request
    def transact_write_items(self, TransactItems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        assert 1 <= len(TransactItems) <= 100
        many = len(TransactItems) > MAX_TOGETHER_BYTES // MAX_BYTES  # fewer always fit
        if many and sum(map(_bytes_of, TransactItems)) > MAX_TOGETHER_BYTES:
            message = "The aggregate size of the items in the transaction exceeds 4 MB"
            raise _error("ValidationException", message, "TransactWriteItems")
        changes, reasons = [], []
        for write in TransactItems:
            refusal = self._refused(write)
            reasons.append(
                {"Code": "None"} if refusal is None else {"Code": "ConditionalCheckFailed", **refusal}
            )
            changes.append(self._change(write, "TransactWriteItems") if refusal is None else None)
        _no_key_twice(_target(write) for write in TransactItems)
        if any(reason["Code"] != "None" for reason in reasons):
            name = "TransactionCanceledException"
            raise _error(name, "cancelled", "TransactWriteItems", CancellationReasons=reasons)
        for change in changes:
            if change:
                self._set(*change)
        if self._units is not None:
            self._units *= 2
        return {}

    @_request
    def batch_execute_statement(self, Statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        assert 1 <= len(Statements) <= 25
        return {"Responses": [self._inserted(statement) for statement in Statements]}

    @_request
    def query(
        self,
        TableName: str,
        KeyConditionExpression: str,
        ExpressionAttributeValues: Wire,
        ConsistentRead: bool,
        ScanIndexForward: bool,
        IndexName: str = "",
        Limit: int = PAGE_ITEMS,
        FilterExpression: str = "",
        ProjectionExpression: str = "",
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExclusiveStartKey: Wire | None = None,
    ) -> dict[str, Any]:
        assert Limit >= 1
        expressions = (KeyConditionExpression, FilterExpression, ProjectionExpression)
        check_placeholders(expressions, ExpressionAttributeNames, ExpressionAttributeValues)
        index = self._indexes[TableName, IndexName] if IndexName else None
        assert not (index and ConsistentRead), "DynamoDB refuses consistent reads of an index"
        partition_key = ExpressionAttributeValues[":pk"]
        if index:
            items = self._indexed(TableName, index, partition_key)
            ranks = sorted(items)
            if KeyConditionExpression == f"{index.pk} = :pk AND {index.sk} >= :since":
                least = Decimal(ExpressionAttributeValues[":since"]["N"])
                ranks = [rank for rank in ranks if rank[0] >= least]
            else:
                assert KeyConditionExpression == f"{index.pk} = :pk", KeyConditionExpression
        else:
            partition = self._table(TableName).get(partition_key["S"], _Partition())
            items = partition.items
            ranks = _selected(partition.sks, KeyConditionExpression, ExpressionAttributeValues)
        if not ScanIndexForward:
            ranks = ranks[::-1]
        if ExclusiveStartKey:
            ranks = _behind(ranks, _rank(ExclusiveStartKey, index), ScanIndexForward)
        page = [items[rank] for rank in ranks[: min(Limit, PAGE_ITEMS)]]
        self._read([page], ConsistentRead)
        answer: dict[str, Any] = {"Items": page, "ScannedCount": len(page)}
        if len(page) < len(ranks):
            attributes = ("pk", "sk", *(index or ()))
            answer["LastEvaluatedKey"] = {name: page[-1][name] for name in attributes}
        if FilterExpression:
            passes = compile_condition(FilterExpression)
            answer["Items"] = [item for item in page if passes(item, ExpressionAttributeValues)]
        if ProjectionExpression:
            paths = [path.strip().removeprefix("#") for path in ProjectionExpression.split(",")]
            answer["Items"] = [_projected(item, paths) for item in answer["Items"]]
        return answer

    def scan(self, TableName: str, **_: Any) -> dict[str, Any]:
        """All items in one page: for tests, not for the product."""
        return {"Items": [item for p in self._table(TableName).values() for item in p.items.values()]}

    def _inserted(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        """PartiQL, only as `Table.insert_many` uses it: an item whose values are all parameters."""
        insert = _INSERT.fullmatch(statement["Statement"])
        assert insert, statement
        names, values = _NAME.findall(insert["fields"]), statement["Parameters"]
        item = dict(zip(names, values, strict=True))
        if self._find(insert["table"], item):
            return {"Error": {"Code": "DuplicateItem", "Message": "Duplicate primary key exists in table"}}
        self._set(insert["table"], item, item)
        return {"TableName": insert["table"]}

    def _table(self, name: str) -> dict[str, _Partition]:
        if name not in self.tables:
            raise _error("ResourceNotFoundException", f"no table {name}", "any")
        return self.tables[name]

    def _find(self, table: str, key: Wire) -> Wire | None:
        partition = self._table(table).get(key["pk"]["S"])
        return partition.items.get(key["sk"]["S"]) if partition else None

    def _indexed(self, table: str, index: Index, pk: Wire) -> dict[Any, Wire]:
        """The items of an index's partition; an item without the index's attributes is not in the index."""
        return {
            _rank(item, index): item
            for partition in self._table(table).values()
            for item in partition.items.values()
            if item.get(index.pk) == pk and index.sk in item
        }

    def _read(self, read_together: Iterable[Iterable[Wire]], consistent: bool) -> None:
        """Count the units of items; those that are read together are rounded up together.

        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
        """
        if self._units is not None:
            units = sum(max(1, ceil(sum(map(item_bytes, items)) / 4096)) for items in read_together)
            self._units += units if consistent else units / 2

    def _write(self, write: Mapping[str, Any], operation: str) -> None:
        refusal = self._refused(write)
        if refusal is not None:
            raise _error("ConditionalCheckFailedException", "refused", operation, **refusal)
        self._set(*self._change(write, operation))

    def _refused(self, write: Mapping[str, Any]) -> dict[str, Any] | None:
        """None if the condition holds, else the error's fields about the existing item."""
        ((_, request),) = write.items()
        condition = request.get("ConditionExpression", "")
        expressions = (condition, request.get("UpdateExpression", ""))
        values = request.get("ExpressionAttributeValues", {})
        check_placeholders(expressions, request.get("ExpressionAttributeNames"), values)
        item = self._find(*_target(write))
        if not condition or compile_condition(condition)(item or {}, values):
            return None
        tells = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        return {"Item": item} if item and tells else {}

    def _change(self, write: Mapping[str, Any], operation: str) -> tuple[str, Wire, Wire | None]:
        """Table, key and new item of a write; None: no item."""
        ((kind, request),) = write.items()
        table, key = _target(write)
        old = self._find(table, key)
        if kind == "ConditionCheck":
            return table, key, old
        if kind == "Delete":
            return table, key, None
        if kind == "Put":
            new = dict(request["Item"])
        else:
            update = compile_update(request["UpdateExpression"])
            new = update(old or dict(key), request.get("ExpressionAttributeValues", {}))
        if _is_too_large(new):
            raise _error("ValidationException", "Item size has exceeded the maximum allowed size", operation)
        return table, key, new

    def _set(self, table: str, key: Wire, item: Wire | None) -> None:
        if self._units is not None:
            larger = max(map(item_bytes, (item or {}, self._find(table, key) or {})))
            self._units += max(1, ceil(larger / 1024))
        partitions = self._table(table)
        pk, sk = key["pk"]["S"], key["sk"]["S"]
        if item is not None:
            partitions.setdefault(pk, _Partition()).put(item)
        elif pk in partitions:
            partitions[pk].delete(sk)
            if not partitions[pk].items:
                del partitions[pk]


def _target(write: Mapping[str, Any]) -> tuple[str, Wire]:
    """The table and the key of a write."""
    ((_, request),) = write.items()
    key = request.get("Key") or request["Item"]
    return request["TableName"], {"pk": key["pk"], "sk": key["sk"]}


def _no_key_twice(targets: Iterable[tuple[str, Wire]]) -> None:
    places = [(table, key["pk"]["S"], key["sk"]["S"]) for table, key in targets]
    assert len(set(places)) == len(places), f"DynamoDB refuses a key that is there twice: {places}"


def _bytes_of(write: Mapping[str, Any]) -> int:
    """The size of a part of a transaction."""
    (request,) = write.values()
    return sum(item_bytes(request.get(name, {})) for name in ("Item", "Key", "ExpressionAttributeValues"))


def _is_too_large(item: Wire) -> bool:
    """Whether DynamoDB would refuse the item. Exact counting is slow, so only large texts are counted."""
    return len(repr(item)) > MAX_BYTES // 4 and item_bytes(item) > MAX_BYTES


def _projected(item: Wire, paths: Iterable[str]) -> Wire:
    """The attributes of the paths; of `list[3]` a list of that element."""
    projected: Wire = {}
    for name, _, index in (path.partition("[") for path in paths):
        if not index and name in item:
            projected[name] = item[name]
        elif name in item and (element := item[name].get("L", [])[int(index[:-1]) :][:1]):
            projected[name] = {"L": element}
    return projected


def _rank(item: Wire, index: Index | None) -> Any:
    """The sort key of an item in its partition."""
    if index is None:
        return item["sk"]["S"]
    return Decimal(item[index.sk]["N"]), item["pk"]["S"], item["sk"]["S"]


def _selected(sks: list[str], condition: str, wire: Wire) -> list[str]:
    values = {name: value["S"] for name, value in wire.items() if "S" in value}
    if condition == "pk = :pk":
        return sks
    if condition == "pk = :pk AND begins_with(sk, :prefix)":
        first = bisect_left(sks, values[":prefix"])
        last = bisect_right(sks, values[":prefix"] + "\U0010ffff")
    else:
        assert condition == "pk = :pk AND sk BETWEEN :first AND :last", condition
        first, last = bisect_left(sks, values[":first"]), bisect_right(sks, values[":last"])
    return sks[first:last]


def _behind(ranks: list[Any], last: Any, forward: bool) -> list[Any]:
    """The ranks after the last one of the previous page."""
    return [rank for rank in ranks if (rank > last if forward else rank < last)]
