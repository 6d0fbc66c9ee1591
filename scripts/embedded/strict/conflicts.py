"""Transaction conflicts: while a transaction holds an item, other writes of it are refused.

Here a transaction takes as long as one on AWS; stock, it is over at once, so that nothing can meet it.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html#transaction-conflict-handling
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

HELD_S: Final = 0.01
CONFLICT: Final = "TransactionConflict"
_REASONS: Final = {
    CONFLICT: "Transaction is ongoing for the item",
    "ProvisionedThroughputExceeded": "There is insufficient provisioned capacity for the transaction",
    "ThrottlingError": "Throughput exceeds the current capacity of your table or index",
}
_SINGLE = {"PutItem", "UpdateItem", "DeleteItem"}
Key = tuple[str, str]


def install(dynamodb: Any) -> None:
    """Into the server's module ministack.services.dynamodb."""
    stock = dynamodb.handle_request
    held: set[Key] = set()

    async def with_conflicts(method: str, path: str, headers: Any, body: Any, query: Any) -> Any:
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action not in _SINGLE | {"TransactWriteItems"}:
            return await stock(method, path, headers, body, query)
        request = json.loads(body)
        if action in _SINGLE:
            if key_of(dynamodb, request) in held:
                return refused("TransactionConflictException", _REASONS[CONFLICT])
            return await stock(method, path, headers, body, query)
        keys = [key_of(dynamodb, part) for part in _parts(request)]
        if any(key in held for key in keys):
            return cancelled([CONFLICT if key in held else "None" for key in keys])
        held.update(keys)
        try:
            await asyncio.sleep(HELD_S)
            return await stock(method, path, headers, body, query)
        finally:
            held.difference_update(keys)

    dynamodb.handle_request = with_conflicts


def key_of(dynamodb: Any, request: dict[str, Any]) -> Key:
    """The table and the key of the item that a write, or a part of a transaction, is about."""
    name = str(request.get("TableName", "")).rpartition("/")[2]
    if (key := request.get("Key")) is None:
        table = dynamodb._tables.get(name) or {}
        names = (table.get("pk_name"), table.get("sk_name"))
        key = {attribute: value for attribute, value in request.get("Item", {}).items() if attribute in names}
    return name, json.dumps(key, sort_keys=True)


def _parts(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in request.get("TransactItems", []):
        yield next(iter(item.values()), {})


def refused(code: str, message: str) -> tuple[int, dict[str, str], bytes]:
    """DynamoDB's answer to a request that it refuses."""
    return _error(code, Message=message)


def cancelled(codes: list[str]) -> tuple[int, dict[str, str], bytes]:
    """Its answer to a transaction; a code for each part, `None` for one that is not the reason."""
    message = (
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{', '.join(codes)}]"
    )
    reasons = [{"Code": code} | ({"Message": _REASONS[code]} if code in _REASONS else {}) for code in codes]
    return _error("TransactionCanceledException", Message=message, CancellationReasons=reasons)


def _error(code: str, **fields: Any) -> tuple[int, dict[str, str], bytes]:
    body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", **fields}).encode()
    return 400, {"Content-Type": "application/x-amz-json-1.0"}, body
