"""The published design's form of planning: definitions in S3 with the schedule in the key, one message at a time.

Every ten minutes it lists all keys, 1,000 a request, makes a croniter of each key's schedule, and sends a message for
each fire time. No object is read, and nothing is recorded.
"""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote, unquote

from benchmarks import workload
from benchmarks.naive import expanded
from benchmarks.stub_aws import QUEUE_URL, StubAws

# The most keys of one request.
_KEYS = 1_000


class Published:
    """A planner that lists the schedules of all jobs."""

    def __init__(self, start: int, sample: int = _KEYS) -> None:
        self._start, self._sample = start, sample
        self._aws = StubAws()
        self._aws.answers["ListObjectsV2"] = lambda _request: self._body
        self._body = b""
        self._s3, self._sqs = self._aws.stock_client("s3"), self._aws.stock_client("sqs")
        self.bytes_a_job = 0.0

    def per_job_s(self) -> float:
        """Processor seconds per definition, over another sample of the mix each time."""
        first = random.randrange(10**6)
        self._body = _listing([_key(number) for number in range(first, first + self._sample)])
        self.bytes_a_job = len(self._body) / self._sample
        with self._aws.measured() as cost:
            answer = self._s3.list_objects_v2(Bucket="minute8-jobs", MaxKeys=_KEYS)
            for item in answer["Contents"]:
                self._send(item["Key"])
        return cost.cpu_s / self._sample

    def _send(self, key: str) -> None:
        tenant, job_id, schedule = key.split("/", 2)
        for fire_at in expanded(json.loads(unquote(schedule)), self._start, self._start + 600):
            body = json.dumps({"tenant": tenant, "job": job_id, "at": fire_at})
            self._sqs.send_message(
                QueueUrl=QUEUE_URL, MessageBody=body, DelaySeconds=min(900, fire_at - self._start + 120)
            )


def _key(number: int) -> str:
    job = workload.job(number)
    schedule: dict[str, Any] = job.schedule.to_item()
    return f"{job.tenant}/{job.job_id}/{quote(json.dumps(schedule), safe='')}"


def _listing(keys: list[str]) -> bytes:
    contents = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-11-21T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>0</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for key in keys
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>minute8-jobs</Name>'
        f"<KeyCount>{len(keys)}</KeyCount><MaxKeys>{_KEYS}</MaxKeys><IsTruncated>false</IsTruncated>{contents}"
        "</ListBucketResult>"
    ).encode()
