"""The tick over a stub of the due table: entries of many registered jobs are generated on request, by job number."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from itertools import count
from typing import Any

from msgspec.structs import replace

from common.clock import Clock
from common.config import Config
from common.deployment import Deployment
from common.planning.directory import FILING, SHARD_ENTRIES
from common.planning.queue import ExecutionsQueue
from common.registration.schedule_text import parse_schedule
from common.storage import keys
from common.storage.table import Table as DynamoTable
from common.storage.table import Tables
from common.timing.groups import group_can_fire, group_key
from common.timing.slots import places
from scheduler.planner import Planner
from scheduler.tick import Scheduler
from scripts.benchmarks import workload
from scripts.benchmarks.stub_aws import QUEUE_URL
from scripts.measure.rounds import track

MARK_NUMBERS = ("planned_until", "planning_until", "joined_until", "filed_until", "decided_at")
# The memory of a Python process with botocore before any work.
BARE_PROCESS_MB = 60
_PAGE_BYTES = 1_000_000  # DynamoDB's is 1 MB


class DueStub:
    """Answers the requests of a tick to the due table."""

    def __init__(self, registered: int, start: int, end: int, due: int | None = None) -> None:
        """`due`: this many jobs fire in the window, the same ones for any number of registered jobs."""
        self.progress = dict.fromkeys(MARK_NUMBERS, start)
        self.items_read = 0
        self._shards: dict[tuple[str, int], array[int]] = {}
        self._directory: dict[str, list[tuple[str, bytes]]] = {}
        self._register(registered, start, end, due)
        self._write_directory()
        self.groups = len({group for group, _ in self._shards})

    def _register(self, registered: int, start: int, end: int, due: int | None) -> None:
        filling: dict[str, int] = {}
        remaining = {True: due, False: registered - due} if due is not None else {}
        numbers = count()
        for _ in track(range(registered), f"registering {registered:,} jobs"):
            number, group = next(_jobs(numbers, remaining, start, end))
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
        ((table, requested),) = request["RequestItems"].items()
        items = []
        for key in requested["Keys"]:
            group, shard = keys.group_and_shard(key["sk"]["S"])
            jobs = {"N": str(len(self._shards[group, shard]))}
            items.append(key | {"jobs": jobs, "filed": {"S": " ".join(places(group))}})
        self.items_read += len(items)
        return json.dumps({"Responses": {table: items}, "UnprocessedKeys": {}}).encode()

    def put_item(self, request: dict[str, Any]) -> bytes:
        """What was planned; no tick here reads it."""
        return b"{}"

    def batch_write_item(self, request: dict[str, Any]) -> bytes:
        """Whole items, each as `put_item` takes it."""
        ((_, requests),) = request["RequestItems"].items()
        for each in requests:
            self.put_item(each["PutRequest"])
        return b'{"UnprocessedItems": {}}'

    def update_item(self, request: dict[str, Any]) -> bytes:
        values = request["ExpressionAttributeValues"]
        self.progress |= {
            name: int(float(values[f":{name}"]["N"])) for name in MARK_NUMBERS if f":{name}" in values
        }
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
        numbers = {name: {"N": str(value)} for name, value in self.progress.items()}
        return {"pk": {"S": "PROGRESS"}, "sk": {"S": "PROGRESS"}, "filing": {"S": FILING}, **numbers}


def _entry_item(number: int) -> bytes:
    entry = workload.entry(number)
    item = {"sk": {"S": f"{entry.tenant}#{entry.job_id}"}, "entry": {"S": entry.encode()}}
    return json.dumps(item).encode()


def _jobs(numbers: count[int], remaining: dict[bool, int], start: int, end: int) -> Iterator[tuple[int, str]]:
    """The next jobs of the mix, as many due ones and other ones as are `remaining`."""
    for number in numbers:
        group = workload.group(number)
        if remaining:
            due = group_can_fire(group, start, end)
            if not remaining[due]:
                continue
            remaining[due] -= 1
        yield number, group


class SharesStub(DueStub):
    """The mix, and `at_once` jobs that fire daily at `start`, a full hour. Stores the records of shares."""

    def __init__(self, registered: int, at_once: int, start: int) -> None:
        self._at_once = parse_schedule(
            {"cron": f"0 {start % 86_400 // 3600} * * *"}, job_key="a/job", now=workload.DAY
        )
        self._group = group_key(self._at_once)
        self._many, self._start = at_once, start
        self._recorded: dict[str, dict[str, Any]] = {}
        super().__init__(registered, start, start + 600)

    def _write_directory(self) -> None:
        first = 1 + max((shard for group, shard in self._shards if group == self._group), default=-1)
        for number in range(0, self._many, SHARD_ENTRIES):
            members = array("I", range(number, min(self._many, number + SHARD_ENTRIES)))
            self._shards[(self._group, first + number // SHARD_ENTRIES)] = members
        self._first = first
        super()._write_directory()

    def forget(self) -> None:
        """Reset to the state before the tick."""
        self.progress = dict.fromkeys(MARK_NUMBERS, self._start)
        self._recorded.clear()

    def get_item(self, request: dict[str, Any]) -> bytes:
        if request["Key"]["pk"]["S"] == keys.SHARES:
            item = self._recorded.get(request["Key"]["sk"]["S"])
            return json.dumps({"Item": item} if item else {}).encode()
        return super().get_item(request)

    def query(self, request: dict[str, Any]) -> bytes:
        values = request["ExpressionAttributeValues"]
        if values[":pk"]["S"] == keys.SHARES:
            last = values.get(":last", {"S": "~"})["S"]
            sks = [item["sk"] for sk, item in self._recorded.items() if sk <= last]
            return self._page([json.dumps({"sk": sk}).encode() for sk in sks], 0)
        return super().query(request)

    def put_item(self, request: dict[str, Any]) -> bytes:
        if request["Item"]["pk"]["S"] != keys.SHARES:
            return super().put_item(request)
        self._recorded[request["Item"]["sk"]["S"]] = request["Item"]
        return b"{}"

    def update_item(self, request: dict[str, Any]) -> bytes:
        """planned_until, which names the valid division."""
        values = request["ExpressionAttributeValues"]
        if ":division" not in values:
            return super().update_item(request)
        self.progress |= {name: int(values[f":{name}"]["N"]) for name in ("divided_until", "division")}
        return json.dumps({"Attributes": self._mark_item()}).encode()

    def delete_item(self, request: dict[str, Any]) -> bytes:
        del self._recorded[request["Key"]["sk"]["S"]]
        return b"{}"

    def _entries(self, partition: str) -> list[bytes]:
        group, shard = keys.group_and_shard(partition.removeprefix("GROUP#"))
        if group != self._group or shard < self._first:
            return super()._entries(partition)
        return [self._entry_at_once(number) for number in self._shards[(group, shard)]]

    def _entry_at_once(self, number: int) -> bytes:
        job = replace(workload.job(number), schedule=self._at_once, group=self._group)
        entry = job.due_entry()
        item = {"sk": {"S": f"{entry.tenant}#{entry.job_id}"}, "entry": {"S": entry.encode()}}
        return json.dumps(item).encode()


def scheduler_over(dynamodb: Any, sqs: Any, clock: Clock) -> Scheduler:
    """A scheduler on these clients, one stub for all of its tables."""
    tables = Tables(lambda name: DynamoTable(dynamodb, name))
    queue = ExecutionsQueue(sqs, QUEUE_URL, clock)
    deployment = Deployment(Config.from_env({}), clock=clock, tables=tables, queue=queue)
    return Scheduler(Planner.of(deployment))
