"""The due table of many registered jobs and of one schedule that very many jobs share, for divided windows."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from typing import Any

from benchmarks import workload
from benchmarks.due_stub import MARK_NUMBERS, DueStub
from common.planning.directory import SHARD_ENTRIES
from common.registration.schedule_text import parse_schedule
from common.storage import keys
from common.timing.groups import group_key


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
        self.mark = dict.fromkeys(MARK_NUMBERS, self._start)
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
        """The mark, which names the valid division."""
        values = request["ExpressionAttributeValues"]
        if ":division" not in values:
            return super().update_item(request)
        self.mark |= {"divided_until": int(values[":end"]["N"]), "division": int(values[":division"]["N"])}
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
