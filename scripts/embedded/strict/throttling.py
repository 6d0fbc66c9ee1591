"""Requests to DynamoDB that meet the limits of throughput.py are refused, or a batch leaves a part of them undone.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-diagnosing.html
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

from scripts.embedded.strict.conflicts import cancelled, refused
from scripts.embedded.strict.throughput import READS, WRITES, Meter, Tables, Use

_MESSAGES: Final = {
    "ProvisionedThroughputExceeded": "The table's provisioned throughput is exceeded",
    "Throttling": "Throughput exceeds the current capacity of your table or index",
}
# What the parts of a transaction and the statements of a batch are told.
_OF_PART: Final = {
    "ProvisionedThroughputExceeded": "ProvisionedThroughputExceeded",
    "Throttling": "ThrottlingError",
}


def install(dynamodb: Any, throttled: Callable[[str, bool], None]) -> None:
    """Into the server's module ministack.services.dynamodb. `throttled` gets the table, and whether it wrote."""
    throttle = _Throttle(dynamodb, throttled)
    dynamodb.handle_request, dynamodb._partiql_insert = throttle.handle, throttle.insert


class _Throttle:
    def __init__(self, dynamodb: Any, throttled: Callable[[str, bool], None]) -> None:
        self._handle, self._insert = dynamodb.handle_request, dynamodb._partiql_insert
        self._throttled = throttled
        self._tables = Tables(dynamodb)
        self._meter = Meter(self._tables.units)

    async def handle(self, method: str, path: str, headers: Any, body: Any, query: Any) -> Any:
        """The server's answer, or a refusal."""
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action not in READS | WRITES:
            return await self._handle(method, path, headers, body, query)
        request = json.loads(body)
        uses = self._tables.uses(action, request)
        undone: dict[str, Any] = {}
        if action.startswith("Batch"):
            request, undone = self._divided(action, request)
            body = json.dumps(request).encode()
            is_refused = bool(undone) and not request["RequestItems"]
        else:
            is_refused = not self._takes(uses)
        if is_refused:
            return self._refusal(action, uses)
        status, answer_headers, answer = await self._handle(method, path, headers, body, query)
        if action == "Query" and status == 200:
            self._meter.take([self._tables.use_of_answer(request, json.loads(answer))], time.time())
        if undone and status == 200:
            content = json.loads(answer)
            content["UnprocessedItems" if action in WRITES else "UnprocessedKeys"] |= undone
            # The checksum is of the other answer.
            answer_headers.pop("x-amz-crc32", None)
            return status, answer_headers, json.dumps(content).encode()
        return status, answer_headers, answer

    def insert(self, table: Any, parsed: Any) -> Any:
        """The server's answer to an INSERT, or a refusal."""
        item = parsed.get("item", {})
        use = self._tables.use_of_insert(table["TableName"], item.get("M", item))
        if self._takes([use]):
            return self._insert(table, parsed)
        code = self._code([use])
        return refused(_OF_PART[code], _MESSAGES[code])

    def _takes(self, uses: list[Use]) -> bool:
        empty = self._meter.take(uses, time.time())
        for table, writes in {(side.table.partition("/")[0], side.writes) for side in empty}:
            self._throttled(table, writes)
        return not empty

    def _divided(self, action: str, request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """A batch of what is taken now, and the request's items that are left undone."""
        sides: tuple[dict[str, Any], dict[str, Any]] = {}, {}
        for name, use, part in self._tables.uses_of_batch(action, request):
            side = sides[not self._takes([use])]
            if action in WRITES:
                side.setdefault(name, []).append(part)
            else:
                options = {**request["RequestItems"][name], "Keys": []}
                side.setdefault(name, options)["Keys"].append(part)
        return {**request, "RequestItems": sides[0]}, sides[1]

    def _code(self, uses: list[Use]) -> str:
        is_provisioned = any(self._tables.is_provisioned(use.side.table) for use in uses)
        return "ProvisionedThroughputExceeded" if is_provisioned else "Throttling"

    def _refusal(self, action: str, uses: list[Use]) -> Any:
        code = self._code(uses)
        if action.startswith("Transact"):
            return cancelled([_OF_PART[code]] * len(uses))
        return refused(f"{code}Exception", _MESSAGES[code])
