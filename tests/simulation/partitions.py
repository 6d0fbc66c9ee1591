"""A DynamoDB whose partitions can be throttled, as a client of botocore's sees it: a joint request leaves items out.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from botocore.exceptions import ClientError

from common.storage.wire import item_bytes

READ_UNITS: Final = 3_000
WRITE_UNITS: Final = 1_000
_JOINT_BYTES: Final = 16 * 1024 * 1024
_JOINT_BYTES_OF_PARTITION: Final = 1024 * 1024
_REQUEST_TRIES: Final = 4


class Partition(NamedTuple):
    """The items of one partition key; `table` is without its stage."""

    table: str
    pk: str


class Conditions(Protocol):
    """What requests meet."""

    def begin(self) -> None:
        """A request begins: takes the time that it takes."""

    def admits(self, partition: Partition, units: float, is_write: bool) -> bool:
        """Whether the partition takes these units now; then they are used."""

    def pause(self, nth: int) -> None:
        """Wait after the `nth` refusal of a request, from 0."""


class PartitionedDynamoDB:
    """In front of another client. A refused request is tried four times, and one time with `once`."""

    def __init__(self, client: Any, conditions: Conditions, tries: int = _REQUEST_TRIES) -> None:
        self._client, self._conditions, self._tries = client, conditions, tries

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    @property
    def once(self) -> PartitionedDynamoDB:
        return PartitionedDynamoDB(self._client, self._conditions, tries=1)

    def get_item(self, **request: Any) -> Any:
        answer = self._client.get_item(**request)
        units = _read_units(answer.get("Item"), request["ConsistentRead"])
        self._wait_for(_partition(request["TableName"], request["Key"]), units, is_write=False)
        return answer

    def query(self, **request: Any) -> Any:
        answer = self._client.query(**request)
        if "IndexName" not in request:
            pk = {"pk": request["ExpressionAttributeValues"][":pk"]}
            size = sum(map(item_bytes, answer["Items"]))
            units = max(1, math.ceil(size / 4096)) * (1 if request["ConsistentRead"] else 0.5)
            self._wait_for(_partition(request["TableName"], pk), units, is_write=False)
        return answer

    def put_item(self, **request: Any) -> Any:
        return self._written(self._client.put_item, request, request["Item"])

    def update_item(self, **request: Any) -> Any:
        return self._written(self._client.update_item, request, request["Key"])

    def delete_item(self, **request: Any) -> Any:
        return self._written(self._client.delete_item, request, request["Key"])

    def batch_get_item(self, RequestItems: Mapping[str, Any]) -> Any:
        ((table, request),) = RequestItems.items()
        for nth in range(self._tries):
            self._conditions.begin()
            brought, left_out = self._brought(table, request)
            if brought or not left_out:
                break
            if nth + 1 == self._tries:
                raise _throttled("BatchGetItem")
            self._conditions.pause(nth)
        answer: Any = {"Responses": {table: []}}
        if brought:
            answer = self._client.batch_get_item(RequestItems={table: {**request, "Keys": brought}})
        unprocessed = {table: {**request, "Keys": left_out}} if left_out else {}
        return {**answer, "UnprocessedKeys": unprocessed}

    def _brought(self, table: str, request: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        brought, left_out = [], []
        of_partition: Counter[Partition] = Counter()
        for key in request["Keys"]:
            item = self._client.get_item(TableName=table, Key=key).get("Item")
            partition, size = _partition(table, key), item_bytes(item) if item else 0
            fits = (
                of_partition[partition] + size <= _JOINT_BYTES_OF_PARTITION
                and of_partition.total() + size <= _JOINT_BYTES
            )
            if fits and self._conditions.admits(
                partition, _read_units(item, request["ConsistentRead"]), False
            ):
                of_partition[partition] += size
                brought.append(key)
            else:
                left_out.append(key)
        return brought, left_out

    def batch_execute_statement(self, Statements: list[Any]) -> Any:
        self._conditions.begin()
        responses = []
        for statement in Statements:
            table = statement["Statement"].split('"')[1]
            pk = {"pk": statement["Parameters"][0]}
            if self._conditions.admits(_partition(table, pk), 1, True):
                responses += self._client.batch_execute_statement(Statements=[statement])["Responses"]
            else:
                responses.append({"Error": {"Code": "ThrottlingError", "Message": "throttled"}})
        return {"Responses": responses}

    def _written(self, call: Callable[..., Any], request: Mapping[str, Any], key: Mapping[str, Any]) -> Any:
        table, wire_key = request["TableName"], {name: key[name] for name in ("pk", "sk")}
        stored = self._client.get_item(TableName=table, Key=wire_key).get("Item", {})
        units = max(1, math.ceil(max(item_bytes(stored), item_bytes(key)) / 1024))
        self._wait_for(_partition(table, wire_key), units, is_write=True)
        return call(**request)

    def _wait_for(self, partition: Partition, units: float, *, is_write: bool) -> None:
        for nth in range(self._tries):
            self._conditions.begin()
            if self._conditions.admits(partition, units, is_write):
                return
            if nth + 1 < self._tries:
                self._conditions.pause(nth)
        raise _throttled("PutItem" if is_write else "GetItem")


class Throughput:
    """The units of each partition in each second. What comes while some are left is admitted."""

    def __init__(self) -> None:
        self._used: Counter[tuple[Partition, bool, int]] = Counter()
        self.refused = 0

    def admits(self, partition: Partition, units: float, is_write: bool, now: float) -> bool:
        """Whether the partition has units left in this second; then these are used."""
        second = partition, is_write, int(now)
        if self._used[second] >= (WRITE_UNITS if is_write else READ_UNITS):
            self.refused += 1
            return False
        self._used[second] += math.ceil(units)
        return True


def _partition(table: str, key: Mapping[str, Any]) -> Partition:
    return Partition(table.rpartition("-")[2], key["pk"]["S"])


def _read_units(item: Any, is_consistent: bool) -> float:
    units = max(1, math.ceil(item_bytes(item) / 4096)) if item else 1
    return units if is_consistent else units / 2


def _throttled(operation: str) -> ClientError:
    code = "ProvisionedThroughputExceededException"
    return ClientError({"Error": {"Code": code, "Message": "throttled"}}, operation)
