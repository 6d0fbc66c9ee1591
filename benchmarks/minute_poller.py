"""A minute poller on DynamoDB: each job's next fire time is in an index, and a poll each minute takes what is due.

For each due job it computes the next fire time with croniter, writes it under a condition, and sends a message. So it
writes for each execution, reads only what is due, and keeps no record of runs.
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
from benchmarks.naive import expanded
from benchmarks.stub_aws import QUEUE_URL, StubAws
from common.storage.wire import to_wire

# It polls this many partitions of its index each minute.
_PARTITIONS = 8
_SAMPLE = 500
_deserializer = TypeDeserializer()


class MinutePoller:
    """Ten minutes of it cost ten polls, and so much for each execution."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._aws = StubAws()
        self._aws.answers |= {
            "Query": lambda _request: self._body,
            "UpdateItem": lambda _request: b"{}",
        }
        self._body: bytes = b""
        self._dynamodb, self._sqs = self._aws.stock_client("dynamodb"), self._aws.stock_client("sqs")
        self._due = self._due_jobs()

    def per_execution_s(self) -> float:
        """Processor seconds per due job: a page that holds it, its next time, its write and its message."""
        due = random.sample(self._due, min(_SAMPLE, len(self._due)))
        self._body = _page(due)
        with self._aws.measured() as cost:
            for item in self._poll():
                self._hand_over({name: _deserializer.deserialize(value) for name, value in item.items()})
        return cost.cpu_s / len(due)

    def polls_s(self) -> float:
        """Processor seconds of ten minutes' polls that find nothing."""
        self._body = _page([])
        with self._aws.measured() as cost:
            for _ in range(10 * _PARTITIONS):
                self._poll()
        return cost.cpu_s

    def _poll(self) -> list[dict[str, Any]]:
        answer = self._dynamodb.query(
            TableName="jobs",
            IndexName="next",
            KeyConditionExpression="partition = :partition AND next_at <= :now",
            ExpressionAttributeValues={":partition": {"S": "0"}, ":now": {"N": str(self._start)}},
        )
        found: list[dict[str, Any]] = answer["Items"]
        return found

    def _hand_over(self, job: dict[str, Any]) -> None:
        fire_at = int(job["next_at"])
        self._dynamodb.update_item(
            TableName="jobs",
            Key={"pk": {"S": job["tenant"]}, "sk": {"S": job["job_id"]}},
            UpdateExpression="SET next_at = :next",
            ConditionExpression="next_at = :this",
            ExpressionAttributeValues={
                ":next": {"N": str(_next(job["schedule"], fire_at))},
                ":this": {"N": str(fire_at)},
            },
        )
        body = json.dumps({"tenant": job["tenant"], "job": job["job_id"], "at": fire_at})
        self._sqs.send_message(QueueUrl=QUEUE_URL, MessageBody=body, DelaySeconds=fire_at % 60)

    def _due_jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        number = 0
        while len(found) < _SAMPLE:
            job = workload.job(number)
            schedule = job.schedule.to_item()
            if times := expanded(schedule, self._start, self._start + 600):
                found.append({**job.to_item(), "next_at": times[0]})
            number += 1
        return found


def _next(schedule: dict[str, Any], fire_at: int) -> int:
    if "at" in schedule:
        return 0
    if "every_s" in schedule:
        return fire_at + int(schedule["every_s"])
    now = datetime.fromtimestamp(fire_at, ZoneInfo(schedule.get("timezone", "UTC")))
    return int(croniter(schedule["cron"], now, second_at_beginning=True).get_next(float))


def _page(jobs: list[dict[str, Any]]) -> bytes:
    items = [to_wire(job) for job in jobs]
    return json.dumps({"Items": items, "Count": len(items), "ScannedCount": len(items)}).encode()
