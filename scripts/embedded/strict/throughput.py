"""Throughput of tables with provisioned billing: what comes in a second after their units are used up is throttled.

An item that is put takes a unit for each KB; each other item, and a query, takes one. In a transaction it is twice as
much. Requests in PartiQL take none. AWS lets unused units be used later, and does not promise it; here they are gone.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from common.storage.wire import item_bytes
from scripts.embedded.strict.conflicts import cancelled, refused

_READS: Final = {"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"}
_WRITES: Final = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
_WRITE_UNIT_BYTES: Final = 1024
_UNITS: Final = {False: "ReadCapacityUnits", True: "WriteCapacityUnits"}


class Side(NamedTuple):
    """The reads or the writes of a table."""

    table: str
    writes: bool


class Meter:
    """What was used in the present second. `units` tells what a side has; None: no limit."""

    def __init__(self, units: Callable[[Side], int | None]) -> None:
        self._units = units
        self._second = 0
        self._used: Counter[Side] = Counter()

    def take(self, requested: Counter[Side], now: float) -> list[Side]:
        """Use these units, and more than there are if any is left. Returns the sides without any; then none is used."""
        if int(now) != self._second:
            self._second, self._used = int(now), Counter()
        limits = {side: self._units(side) for side in requested}
        empty = [side for side, limit in limits.items() if limit is not None and self._used[side] >= limit]
        if not empty:
            self._used.update({side: count for side, count in requested.items() if limits[side] is not None})
        return empty


def install(dynamodb: Any, throttled: Callable[[str, bool], None]) -> None:
    """Into the server's module ministack.services.dynamodb. `throttled` gets the table, and whether it wrote."""
    stock = dynamodb.handle_request

    def units(side: Side) -> int | None:
        table = dynamodb._tables.get(side.table) or {}
        if table.get("BillingModeSummary", {}).get("BillingMode") != "PROVISIONED":
            return None
        return int(table["ProvisionedThroughput"][_UNITS[side.writes]])

    meter = Meter(units)

    async def metered(method: str, path: str, headers: Any, body: Any, query: Any) -> Any:
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action not in _READS | _WRITES:
            return await stock(method, path, headers, body, query)
        request = json.loads(body)
        empty = meter.take(units_of(action, request), time.time())
        for side in empty:
            throttled(side.table, side.writes)
        if not empty:
            return await stock(method, path, headers, body, query)
        if action.startswith("Transact"):
            return cancelled(["ProvisionedThroughputExceeded"] * len(request["TransactItems"]))
        return refused(
            "ProvisionedThroughputExceededException", "The table's provisioned throughput is exceeded"
        )

    dynamodb.handle_request = metered


def units_of(action: str, request: dict[str, Any]) -> Counter[Side]:
    """How many units a request takes of which sides."""
    writes = action in _WRITES
    if action.startswith("Transact"):
        units: Counter[Side] = Counter()
        parts: list[Any] = [next(iter(item.values()), {}) for item in request.get("TransactItems", [])]
        for part in parts:
            units[Side(_name(part.get("TableName")), writes)] += 2 * _units(part)
        return units
    if action.startswith("Batch"):
        tables = request.get("RequestItems", {}).items()
        return Counter(
            {
                Side(_name(name), writes): sum(_units(item.get("PutRequest", {})) for item in items)
                if writes
                else len(items["Keys"])
                for name, items in tables
            }
        )
    return Counter({Side(_name(request.get("TableName")), writes): _units(request)})


def _units(request: Mapping[str, Any]) -> int:
    """Of a write that has the whole item, a unit for each KB that is begun; else one."""
    return max(1, math.ceil(item_bytes(request.get("Item", {})) / _WRITE_UNIT_BYTES))


def _name(table: object) -> str:
    return str(table).rpartition("/")[2]
