"""An embedded AWS with Minute8, and next to it a minimal path: a queue and a Lambda function."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.demo import functions
from scripts.demo.stage import Stage
from scripts.embedded import deploy, kill, start

_HANDLER = """
import json, time
def handle(event, context):
    now = time.time()
    for record in event["Records"]:
        print("late", now - json.loads(record["body"])["visible_at"])
"""
_POLLS = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")


class Engine:
    """Both, in one account."""

    def __init__(self, stage: Stage, name: str = "bare") -> None:
        self.stage = stage
        self.target = {"kind": "lambda", "arn": self.stage.deploy_target(), "invocation": "Event"}
        self.stage.allow((f"tenant-{number}" for number in range(50)), self.target["arn"])
        self._lambda, self._sqs, self._logs = (stage.client(service) for service in ("lambda", "sqs", "logs"))
        self._name = name
        self._queue = self._sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "60"})[
            "QueueUrl"
        ]
        functions.create(stage.client, name, _HANDLER, timeout_s=30, actions=_POLLS)
        arn = self._sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        self._mapping = self._lambda.create_event_source_mapping(
            EventSourceArn=arn, FunctionName=name, BatchSize=10, ScalingConfig={"MaximumConcurrency": 10}
        )["UUID"]

    def remove_bare(self) -> None:
        """Remove the bare path."""
        self._lambda.delete_event_source_mapping(UUID=self._mapping)
        functions.remove(self.stage.client, self._name)
        self._sqs.delete_queue(QueueUrl=self._queue)

    def send_bare(self, seconds: list[int]) -> None:
        """A message for each of these seconds, delayed by SQS."""
        for first in range(0, len(seconds), 10):
            now = time.time()
            entries = []
            for number, at in enumerate(seconds[first : first + 10]):
                delay_s = max(0, int(at - now))
                body = json.dumps({"visible_at": now + delay_s})
                entries.append({"Id": str(number), "MessageBody": body, "DelaySeconds": delay_s})
            self._sqs.send_message_batch(QueueUrl=self._queue, Entries=entries)

    def bare_lateness(self, since: float) -> list[float]:
        """The lateness of the bare path's messages since then."""
        lines = [event["message"] for event in self.stage.log_of(self._name, since)]
        return [float(line.split()[1]) for line in lines if line.startswith("late ")]

    def set_concurrency(self, most: int) -> None:
        """The executor's `maximumConcurrency`, without another deployment."""
        mappings = self._lambda.list_event_source_mappings(FunctionName=f"{self.stage.name}-executor")
        for mapping in mappings["EventSourceMappings"]:
            self._lambda.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": most}
            )

    def executor_log(self, since: float) -> list[dict[str, Any]]:
        """The executor's log events since then, with their streams."""
        return [dict(event) for event in self.stage.log_of(f"{self.stage.name}-executor", since)]


@contextmanager
def engine() -> Iterator[Engine]:
    """A new embedded AWS, with both paths warm."""
    with tempfile.TemporaryDirectory(prefix="minute8-bench-") as directory:
        try:
            embedded = deploy(start(Path(directory), 0, tied=True), stage="local")
            yield Engine(Stage(embedded.env(), "local"))
        finally:
            kill(Path(directory))
