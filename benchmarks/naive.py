"""The baseline of planning: read the definitions, make a croniter of each, send the due ones in full batches.

With boto3's defaults.
"""

from __future__ import annotations

import json
import random
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from boto3.dynamodb.types import TypeDeserializer
from croniter import croniter

from benchmarks import workload
from benchmarks.stub_aws import QUEUE_URL, StubAws
from common.storage.wire import to_wire

# Its cost is proportional to the definitions, so it is measured on this many at a time.
SAMPLE = 2_000
_deserializer = TypeDeserializer()


class Naive:
    """One planner without groups."""

    def __init__(self, start: int, sample: int = SAMPLE) -> None:
        self._sample = sample
        self._start = start
        self._aws = StubAws()
        self._aws.answers["Query"] = lambda _request: self._body
        self._body = b""
        self.bytes_a_job = 0.0

    def per_job_s(self) -> float:
        """Processor seconds for each definition, over another sample of the mix each time."""
        first = random.randrange(10**6)
        wires = [to_wire(workload.job(number).to_item()) for number in range(first, first + self._sample)]
        self._body = json.dumps(
            {"Items": wires, "Count": self._sample, "ScannedCount": self._sample}
        ).encode()
        self.bytes_a_job = len(self._body) / self._sample
        dynamodb, sqs = self._aws.stock_client("dynamodb"), self._aws.stock_client("sqs")
        with self._aws.measured() as cost:
            answer = dynamodb.query(
                TableName="jobs",
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": "x"}},
            )
            due = [message for wire in answer["Items"] for message in self._due(_read(wire))]
            for first in range(0, len(due), 10):
                sqs.send_message_batch(QueueUrl=QUEUE_URL, Entries=due[first : first + 10])
        return cost.cpu_s / self._sample

    def _due(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"Id": str(fire_at), "MessageBody": json.dumps({"job": job["job_id"], "at": fire_at})}
            for fire_at in expanded(job["schedule"], self._start, self._start + 600)
        ]


def _read(wire: dict[str, Any]) -> dict[str, Any]:
    return {name: _deserializer.deserialize(value) for name, value in wire.items()}


def expanded(schedule: dict[str, Any], start: int, end: int) -> list[int]:
    """A schedule's fire times in the window, by croniter alone."""
    if "at" in schedule:
        return [int(schedule["at"])] if start <= schedule["at"] < end else []
    if "every_s" in schedule:
        every_s = int(schedule["every_s"])
        return list(range(start + (int(schedule["anchor_at"]) - start) % every_s, end, every_s))
    zone = ZoneInfo(schedule.get("timezone", "UTC"))
    times = croniter(schedule["cron"], datetime.fromtimestamp(start - 1, zone), second_at_beginning=True)
    found = []
    while (at := times.get_next(datetime).timestamp()) < end:
        found.append(int(at))
    return found
