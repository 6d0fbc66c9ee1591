"""DynamoDB in memory, for a year of ticks: the client calls that `common/storage/tables.py` makes, and no others.

moto copies whole tables in a transaction. What this answers is held against moto by `test_memory_dynamodb.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from tests.simulation.expressions import Wire, compile_condition, compile_update

PAGE_ITEMS = 500


class TransactionCanceledException(ClientError):
    """Some condition of a transaction did not hold."""


class TransactionInProgressException(ClientError):
    """Never raised here; `common/storage/tables.py` asks for it by name."""


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


class MemoryDynamoDB:
    """A client. `before` is told each call's name before it is done: whatever it raises befalls the caller."""

    exceptions = SimpleNamespace(
        TransactionCanceledException=TransactionCanceledException,
        TransactionInProgressException=TransactionInProgressException,
    )

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, _Partition]] = {}
        self.before: Callable[[str], None] = lambda name: None

    def create_table(self, TableName: str, **_: Any) -> None:
        self.tables[TableName] = {}

    def get_item(self, TableName: str, Key: Wire, ConsistentRead: bool) -> dict[str, Any]:
        self.before("get_item")
        item = self._find(TableName, Key)
        return {"Item": item} if item else {}

    def put_item(self, TableName: str, Item: Wire, **condition: Any) -> dict[str, Any]:
        self.before("put_item")
        self._write({"Put": {"TableName": TableName, "Item": Item, **condition}}, "PutItem")
        return {}

    def update_item(self, TableName: str, Key: Wire, ReturnValues: str, **rest: Any) -> dict[str, Any]:
        self.before("update_item")
        assert ReturnValues == "ALL_NEW"
        self._write({"Update": {"TableName": TableName, "Key": Key, **rest}}, "UpdateItem")
        return {"Attributes": self._find(TableName, Key)}

    def delete_item(self, TableName: str, Key: Wire, **condition: Any) -> dict[str, Any]:
        self.before("delete_item")
        self._write({"Delete": {"TableName": TableName, "Key": Key, **condition}}, "DeleteItem")
        return {}

    def batch_write_item(self, RequestItems: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        self.before("batch_write_item")
        assert 1 <= sum(map(len, RequestItems.values())) <= 25
        for table, writes in RequestItems.items():
            for write in writes:
                self._apply({"Delete": {"TableName": table, **write["DeleteRequest"]}})
        return {"UnprocessedItems": {}}

    def transact_write_items(self, TransactItems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self.before("transact_write_items")
        assert len(TransactItems) <= 100
        reasons: list[dict[str, Any]] = []
        for write in TransactItems:
            found = self._refused(write)
            reasons.append({"Code": "None"} if found is None else {"Code": "ConditionalCheckFailed", **found})
        if any(reason["Code"] != "None" for reason in reasons):
            response: Any = {
                "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
                "CancellationReasons": reasons,
            }
            raise TransactionCanceledException(response, "TransactWriteItems")
        for write in TransactItems:
            self._apply(write)
        return {}

    def query(
        self,
        TableName: str,
        KeyConditionExpression: str,
        ExpressionAttributeValues: Wire,
        ConsistentRead: bool,
        ScanIndexForward: bool,
        Limit: int = PAGE_ITEMS,
        FilterExpression: str = "",
        ProjectionExpression: str = "",
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExclusiveStartKey: Wire | None = None,
    ) -> dict[str, Any]:
        self.before("query")
        values = {name: value["S"] for name, value in ExpressionAttributeValues.items() if "S" in value}
        partition = self.tables[TableName].get(values[":pk"])
        if partition is None:
            return {"Items": []}
        sks = _selected(partition.sks, KeyConditionExpression, values)
        if not ScanIndexForward:
            sks = sks[::-1]
        if ExclusiveStartKey:
            sks = _behind(sks, ExclusiveStartKey["sk"]["S"], ScanIndexForward)
        page = sks[: min(Limit, PAGE_ITEMS)]
        items = [partition.items[sk] for sk in page]
        if FilterExpression:
            passes = compile_condition(FilterExpression)
            items = [item for item in items if passes(item, ExpressionAttributeValues)]
        if ProjectionExpression:
            wanted = {name.strip().removeprefix("#") for name in ProjectionExpression.split(",")}
            items = [{name: item[name] for name in item.keys() & wanted} for item in items]
        answer: dict[str, Any] = {"Items": items}
        if len(page) < len(sks):
            answer["LastEvaluatedKey"] = {"pk": ExpressionAttributeValues[":pk"], "sk": {"S": page[-1]}}
        return answer

    def scan(self, TableName: str, **_: Any) -> dict[str, Any]:
        """Everything at once: for tests that look, not for the product."""
        return {"Items": [item for p in self.tables[TableName].values() for item in p.items.values()]}

    def _find(self, table: str, key: Wire) -> Wire | None:
        partition = self.tables[table].get(key["pk"]["S"])
        return partition.items.get(key["sk"]["S"]) if partition else None

    def _write(self, write: Mapping[str, Any], operation: str) -> None:
        found = self._refused(write)
        if found is not None:
            error: Any = {"Error": {"Code": "ConditionalCheckFailedException", "Message": "refused"}, **found}
            raise ClientError(error, operation)
        self._apply(write)

    def _refused(self, write: Mapping[str, Any]) -> dict[str, Any] | None:
        """None if the condition holds, else what an error tells of the item that is there."""
        ((_, what),) = write.items()
        condition = what.get("ConditionExpression")
        if condition is None:
            return None
        item = self._find(what["TableName"], what.get("Key") or what["Item"])
        if compile_condition(condition)(item or {}, what.get("ExpressionAttributeValues", {})):
            return None
        tells = what.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        return {"Item": item} if item and tells else {}

    def _apply(self, write: Mapping[str, Any]) -> None:
        ((kind, what),) = write.items()
        if kind == "ConditionCheck":
            return
        key = what.get("Key") or what["Item"]
        partitions = self.tables[what["TableName"]]
        pk, sk = key["pk"]["S"], key["sk"]["S"]
        if kind == "Delete":
            if pk in partitions:
                partitions[pk].delete(sk)
                if not partitions[pk].items:
                    del partitions[pk]
            return
        if kind == "Put":
            item = dict(what["Item"])
        else:
            old = self._find(what["TableName"], key) or dict(key)
            item = compile_update(what["UpdateExpression"])(old, what.get("ExpressionAttributeValues", {}))
        if pk not in partitions:
            partitions[pk] = _Partition()
        partitions[pk].put(item)


def _selected(sks: list[str], condition: str, values: Mapping[str, str]) -> list[str]:
    if condition == "pk = :pk":
        return sks
    if condition == "pk = :pk AND begins_with(sk, :prefix)":
        first = bisect_left(sks, values[":prefix"])
        last = bisect_right(sks, values[":prefix"] + "\U0010ffff")
    else:
        assert condition == "pk = :pk AND sk BETWEEN :first AND :last", condition
        first, last = bisect_left(sks, values[":first"]), bisect_right(sks, values[":last"])
    return sks[first:last]


def _behind(sks: list[str], sk: str, forward: bool) -> list[str]:
    return [other for other in sks if (other > sk if forward else other < sk)]
