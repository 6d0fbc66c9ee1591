"""Throughput of tables and of their partitions: what comes in a second after the units are used up is throttled.

A partition takes 3,000 read and 1,000 write units a second; here each partition key has one of its own. A new table on
demand takes 12,000 and 4,000, a table with provisioned billing what it was given. A write takes a unit for each KB of
the larger of the stored item and the new one, a read for each 4 KB, half without strong consistency, and in a
transaction each takes twice as much. Queries take what they return. AWS lets unused units be used later, without a
promise, and raises a table's units within 30 minutes of a new peak; neither happens here. Indexes are not limited.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from common.storage.wire import item_bytes

READS: Final = {"GetItem", "Query", "BatchGetItem", "TransactGetItems"}
WRITES: Final = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
# False is of reads, True of writes.
_UNIT_BYTES: Final = {False: 4096, True: 1024}
_OF_PARTITION: Final = {False: 3_000, True: 1_000}
_OF_NEW_TABLE: Final = {False: 12_000, True: 4_000}
_PROVISIONED: Final = {False: "ReadCapacityUnits", True: "WriteCapacityUnits"}
_KEY: Final = re.compile(r"#?\w+ = (:\w+)")


class Side(NamedTuple):
    """The reads or the writes of a table, or of one of its partition keys."""

    table: str
    writes: bool
    pk: str | None = None


class Use(NamedTuple):
    """What one item of a request takes."""

    side: Side
    units: float


class Meter:
    """What was used in the present second. `units` tells what a side has."""

    def __init__(self, units: Callable[[Side], float]) -> None:
        self._units = units
        self._second = 0
        self._used: defaultdict[Side, float] = defaultdict(float)

    def take(self, uses: list[Use], now: float) -> list[Side]:
        """Use these units, and more than there are if any is left. Returns the sides without any; then none is used."""
        if int(now) != self._second:
            self._second, self._used = int(now), defaultdict(float)
        requested: defaultdict[Side, float] = defaultdict(float)
        for side, units in uses:
            for part in (side, side._replace(pk=None)):
                requested[part] += units
        empty = [side for side in requested if self._used[side] >= self._units(side)]
        if not empty:
            for side, units in requested.items():
                self._used[side] += units
        return empty


class Tables:
    """The server's module ministack.services.dynamodb: what requests to its tables take, and what there is."""

    def __init__(self, dynamodb: Any) -> None:
        self._dynamodb = dynamodb

    def units(self, side: Side) -> float:
        """What the side has in a second."""
        if side.pk is not None:
            return _OF_PARTITION[side.writes]
        if self.is_provisioned(side.table):
            throughput = self._dynamodb._tables[side.table]["ProvisionedThroughput"]
            return float(throughput[_PROVISIONED[side.writes]])
        return _OF_NEW_TABLE[side.writes]

    def is_provisioned(self, name: str) -> bool:
        table = self._dynamodb._tables.get(name) or {}
        return bool(table.get("BillingModeSummary", {}).get("BillingMode") == "PROVISIONED")

    def uses(self, action: str, request: Mapping[str, Any]) -> list[Use]:
        """What a request takes, item by item. What a query takes is known from its answer alone."""
        if action.startswith("Transact"):
            parts: list[dict[str, Any]] = [
                next(iter(part.values()), {}) for part in request.get("TransactItems", [])
            ]
            return [self._use(part.get("TableName"), part, action in WRITES, times=2) for part in parts]
        if action.startswith("Batch"):
            return [use for _, use, _ in self.uses_of_batch(action, request)]
        if action == "Query":
            return [Use(self._partition(request), 0)]
        return [self._use(request.get("TableName"), request, action in WRITES, times=_times(action, request))]

    def uses_of_batch(self, action: str, request: Mapping[str, Any]) -> list[tuple[str, Use, Any]]:
        """The table of each key or write of a batch, what it takes, and that key or write."""
        uses: list[tuple[str, Use, Any]] = []
        for name, content in request.get("RequestItems", {}).items():
            if action in WRITES:
                uses += [(name, self._use(name, next(iter(part.values())), True), part) for part in content]
            else:
                times = _times(action, content)
                uses += [(name, self._use(name, {"Key": key}, False, times), key) for key in content["Keys"]]
        return uses

    def use_of_answer(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> Use:
        """What a query took: all that its items are, even if it returned a part of them."""
        size = 0
        for item in answer.get("Items", ()):
            _, stored = self._stored(request.get("TableName"), item)
            size += max(item_bytes(item), stored)
        times = _times("Query", request)
        return Use(self._partition(request), times * max(1, math.ceil(size / _UNIT_BYTES[False])))

    def use_of_insert(self, name: str, item: Mapping[str, Any]) -> Use:
        """What an INSERT of PartiQL takes."""
        return self._use(name, {"Item": item}, True)

    def _use(self, table: object, content: Mapping[str, Any], writes: bool, times: float = 1) -> Use:
        """Of what has an `Item`, or the `Key` of one."""
        new = content.get("Item") or {}
        pk, stored = self._stored(table, new or content.get("Key", {}))
        units = max(1, math.ceil(max(stored, item_bytes(new)) / _UNIT_BYTES[writes]))
        return Use(Side(_name(table), writes, pk), times * units)

    def _stored(self, name: object, item: Mapping[str, Any]) -> tuple[str, int]:
        """An item's partition key, and the size of the stored item with its key."""
        table = self._dynamodb._tables.get(_name(name))
        if table is None:
            return "", 0
        pk = self._dynamodb._extract_key_val(item.get(table["pk_name"]))
        sk = (
            self._dynamodb._extract_key_val(item.get(table["sk_name"])) if table["sk_name"] else "__no_sort__"
        )
        return str(pk), item_bytes(table["items"].get(pk, {}).get(sk, {}))

    def _partition(self, request: Mapping[str, Any]) -> Side:
        """That of a query. An index's are its own."""
        key = _KEY.match(request.get("KeyConditionExpression", ""))
        pk = self._dynamodb._extract_key_val(request["ExpressionAttributeValues"][key[1]]) if key else ""
        index = f"/{request['IndexName']}" if "IndexName" in request else ""
        return Side(_name(request.get("TableName")) + index, False, str(pk))


def _name(table: object) -> str:
    """Of a table's name or ARN."""
    return str(table).rpartition("/")[2]


def _times(action: str, request: Mapping[str, Any]) -> float:
    """A read without strong consistency takes half."""
    return 1 if action in WRITES or request.get("ConsistentRead") else 0.5
