"""An embedded AWS with Minute8, and next to it a minimal path: a queue and a Lambda function."""

from __future__ import annotations

import io
import json
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.demo.stage import Stage
from scripts.embedded import deploy, kill, start
from scripts.embedded.deployment import client

_HANDLER = """
import json, time
def handle(event, context):
    now = time.time()
    for record in event["Records"]:
        print("late", now - json.loads(record["body"])["visible_at"])
"""
_NAME = "bare"


class Engine:
    """Both, on one embedded AWS."""

    def __init__(self, embedded: Any) -> None:
        self.stage = Stage(embedded.env(), "local")
        self.target = {"kind": "lambda", "arn": self.stage.deploy_target(), "invocation": "Event"}
        self.stage.allow((f"tenant-{number}" for number in range(50)), self.target["arn"])
        self._lambda, self._sqs = client(embedded, "lambda"), client(embedded, "sqs")
        self._logs = client(embedded, "logs")
        self._queue = self._sqs.create_queue(QueueName=_NAME, Attributes={"VisibilityTimeout": "60"})[
            "QueueUrl"
        ]
        self._make_bare(self.stage._target_role())

    def _make_bare(self, role: str) -> None:
        package = io.BytesIO()
        with zipfile.ZipFile(package, "w") as archive:
            archive.writestr("bare.py", _HANDLER)
        self._lambda.create_function(
            FunctionName=_NAME,
            Runtime="python3.13",
            Handler="bare.handle",
            Role=role,
            Timeout=30,
            Code={"ZipFile": package.getvalue()},
        )
        arn = self._sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        self._lambda.create_event_source_mapping(
            EventSourceArn=arn, FunctionName=_NAME, BatchSize=10, ScalingConfig={"MaximumConcurrency": 10}
        )

    def send_bare(self, seconds: list[int]) -> None:
        """A message for each of these seconds, out when SQS lets it out."""
        for first in range(0, len(seconds), 10):
            now = time.time()
            entries = []
            for number, at in enumerate(seconds[first : first + 10]):
                delay_s = max(0, int(at - now))
                body = json.dumps({"visible_at": now + delay_s})
                entries.append({"Id": str(number), "MessageBody": body, "DelaySeconds": delay_s})
            self._sqs.send_message_batch(QueueUrl=self._queue, Entries=entries)

    def bare_lateness(self, since: float) -> list[float]:
        """Of the bare path's messages since then."""
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=f"/aws/lambda/{_NAME}", startTime=int(since * 1000)
        )
        lines = [event["message"] for page in pages for event in page["events"]]
        return [float(line.split()[1]) for line in lines if line.startswith("late ")]

    def set_concurrency(self, most: int) -> None:
        """The executor's `maximumConcurrency`, without another deployment."""
        mappings = self._lambda.list_event_source_mappings(FunctionName="minute8-local-executor")
        for mapping in mappings["EventSourceMappings"]:
            self._lambda.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": most}
            )

    def executor_log(self, since: float) -> list[dict[str, Any]]:
        """The executor's log events since then, with their streams."""
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName="/aws/lambda/minute8-local-executor", startTime=int(since * 1000)
        )
        return [dict(event) for page in pages for event in page["events"]]


@contextmanager
def engine() -> Iterator[Engine]:
    """An embedded AWS of its own, with both paths warm."""
    with tempfile.TemporaryDirectory(prefix="minute8-bench-") as directory:
        try:
            made = Engine(deploy(start(Path(directory), 0, tied=True), stage="local"))
            yield made
        finally:
            kill(Path(directory))
