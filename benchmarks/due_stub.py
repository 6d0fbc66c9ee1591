"""The due table of many registered jobs for the stub: entries are generated on request, by job number."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from itertools import count
from typing import Any

from benchmarks import workload
from benchmarks.measure import track
from common.planning.directory import FILING, SHARD_ENTRIES
from common.storage import keys
from common.timing.groups import group_can_fire
from common.timing.slots import places

MARK_NUMBERS = ("planned_until", "planning_until", "filed_until", "decided_at")
_PAGE_BYTES = 1_000_000  # DynamoDB's is 1 MB


class DueStub:
    """Answers the requests of a tick to the due table."""

    def __init__(self, registered: int, start: int, end: int, due: int | None = None) -> None:
        """`due`: this many jobs fire in the window, the same ones for any number of registered jobs."""
        self.mark = dict.fromkeys(MARK_NUMBERS, start)
        self.items_read = 0
        self._shards: dict[tuple[str, int], array[int]] = {}
        self._directory: dict[str, list[tuple[str, bytes]]] = {}
        self._register(registered, start, end, due)
        self._write_directory()
        self.groups = len({group for group, _ in self._shards})

    def _register(self, registered: int, start: int, end: int, due: int | None) -> None:
        filling: dict[str, int] = {}
        left = {True: due, False: registered - due} if due is not None else {}
        numbers = count()
        for _ in track(range(registered), f"registering {registered:,} jobs"):
            number, group = next(_wanted(numbers, left, start, end))
            shard = filling.get(group, 0)
            members = self._shards.setdefault((group, shard), array("I"))
            members.append(number)
            if len(members) == SHARD_ENTRIES:
                filling[group] = shard + 1

    def _write_directory(self) -> None:
        for (group, shard), members in self._shards.items():
            key, where = keys.directory(group, shard), places(group)
            item = {"sk": {"S": key["sk"]}, "jobs": {"N": str(len(members))}, "filed": {"S": " ".join(where)}}
            self._directory.setdefault(key["pk"], []).append((key["sk"], json.dumps(item).encode()))
            for place in where:
                line = json.dumps({"sk": {"S": key["sk"]}}).encode()
                self._directory.setdefault(keys.listings(place), []).append((key["sk"], line))
        for listing in self._directory.values():
            listing.sort()

    def get_item(self, request: dict[str, Any]) -> bytes:
        return json.dumps({"Item": self._mark_item()}).encode()

    def batch_get_item(self, request: dict[str, Any]) -> bytes:
        """Directory items, with their keys."""
        ((table, asked),) = request["RequestItems"].items()
        found = []
        for key in asked["Keys"]:
            group, shard = keys.group_and_shard(key["sk"]["S"])
            jobs = {"N": str(len(self._shards[group, shard]))}
            found.append(key | {"jobs": jobs, "filed": {"S": " ".join(places(group))}})
        self.items_read += len(found)
        return json.dumps({"Responses": {table: found}, "UnprocessedKeys": {}}).encode()

    def put_item(self, request: dict[str, Any]) -> bytes:
        """What was planned; no tick here reads it."""
        return b"{}"

    def update_item(self, request: dict[str, Any]) -> bytes:
        end = int(request["ExpressionAttributeValues"][":end"]["N"])
        moved = "planned_until" if "SET #planned_until" in request["UpdateExpression"] else "planning_until"
        self.mark |= {moved: end, "filed_until": end}
        return json.dumps({"Attributes": self._mark_item()}).encode()

    def query(self, request: dict[str, Any]) -> bytes:
        values = request["ExpressionAttributeValues"]
        partition = values[":pk"]["S"]
        if partition.startswith("GROUP#"):
            items = self._entries(partition)
        else:
            first, last = values.get(":first", {"S": ""})["S"], values.get(":last", {"S": "~"})["S"]
            items = [item for sk, item in self._directory.get(partition, []) if first <= sk <= last]
        return self._page(items, int(request.get("ExclusiveStartKey", {"sk": {"S": "0"}})["sk"]["S"]))

    def _entries(self, partition: str) -> list[bytes]:
        group, shard = keys.group_and_shard(partition.removeprefix("GROUP#"))
        return [_entry_item(number) for number in self._shards[(group, shard)]]

    def _page(self, items: list[bytes], first: int) -> bytes:
        size, last = 0, first
        while last < len(items) and size < _PAGE_BYTES:
            size += len(items[last])
            last += 1
        self.items_read += last - first
        more = f',"LastEvaluatedKey":{{"pk":{{"S":"-"}},"sk":{{"S":"{last}"}}}}' if last < len(items) else ""
        read, body = last - first, b",".join(items[first:last])
        return b'{"Items":[%b],"Count":%d,"ScannedCount":%d%b}' % (body, read, read, more.encode())

    def _mark_item(self) -> dict[str, Any]:
        numbers = {name: {"N": str(value)} for name, value in self.mark.items()}
        return {"pk": {"S": "MARK"}, "sk": {"S": "MARK"}, "filing": {"S": FILING}, **numbers}


def _entry_item(number: int) -> bytes:
    entry = workload.entry(number)
    item = {"sk": {"S": f"{entry.tenant}#{entry.job_id}"}, "entry": {"S": entry.encode()}}
    return json.dumps(item).encode()


def _wanted(numbers: count[int], left: dict[bool, int], start: int, end: int) -> Iterator[tuple[int, str]]:
    """The next jobs of the mix, as many due ones and other ones as are `left`."""
    for number in numbers:
        group = workload.group(number)
        if left:
            due = group_can_fire(group, start, end)
            if not left[due]:
                continue
            left[due] -= 1
        yield number, group
