"""A deployed Minute8 with a bare path beside it (a queue and a function), loads on both, and their lateness."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.config import OFF
from common.planning.execution import Execution
from common.timing.instants import rfc3339
from scripts.demo import functions
from scripts.demo.stage import Stage
from scripts.demo.witness import expected
from scripts.demo.workload import Registration
from scripts.embedded import deploy, kill, start

PATIENCE_S = 120
_TENANTS = 20
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
        self._queue = functions.until_taken(
            lambda: self._sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "60"})
        )["QueueUrl"]
        functions.create(stage.client, name, _HANDLER, timeout_s=30, actions=_POLLS)
        arn = self._sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        self._mapping = functions.until_taken(
            lambda: self._lambda.create_event_source_mapping(
                EventSourceArn=arn, FunctionName=name, BatchSize=10, ScalingConfig={"MaximumConcurrency": 10}
            )
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

    def set_concurrency(self, concurrency: int) -> None:
        """The executor's `maximumConcurrency`, without another deployment."""
        mappings = self._lambda.list_event_source_mappings(FunctionName=f"{self.stage.name}-executor:live")
        for mapping in mappings["EventSourceMappings"]:
            self._lambda.update_event_source_mapping(
                UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": concurrency}
            )

    def executor_log(self, since: float) -> list[dict[str, Any]]:
        """The executor's log events since then, with their streams."""
        return [dict(event) for event in self.stage.log_of(f"{self.stage.name}-executor", since)]


@contextmanager
def embedded_engine(*, strict: bool = False) -> Iterator[Engine]:
    """Both paths on a new embedded AWS."""
    with tempfile.TemporaryDirectory(prefix="minute8-bench-") as directory:
        try:
            started = start(Path(directory), 0, strict=strict, tied=True)
            embedded = deploy(started, stage="local", params={"canary": OFF})
            yield Engine(Stage(embedded.env(), "local"))
        finally:
            kill(Path(directory))


def warm_up(engine: Engine, runs: int = 100) -> None:
    """Start processes of executor and target; cold starts on two busy cores take seconds."""
    lateness_of(engine, register(engine, "warm", [int(time.time()) + 10 + runs // 6] * runs))


def every_second(
    engine: Engine, first: int, seconds: int, name: str = "steady", count: int = 10
) -> list[Execution]:
    """So many jobs that fire every second."""
    bounds = {"start_at": rfc3339(first), "end_at": rfc3339(first + seconds)}
    definitions = {"schedule": {"cron": "* * * * * *", **bounds}, "target": engine.target}
    jobs = engine.stage.register(
        [Registration(f"tenant-{number}", name, definitions) for number in range(count)]
    )
    return [execution for job in jobs for execution in expected(job, 0, first + seconds)]


def register(
    engine: Engine,
    name: str,
    times: Sequence[int],
    tenant_of: Callable[[int], str] = lambda number: f"tenant-{number % _TENANTS}",
    **fields: Any,
) -> list[Execution]:
    """A one-off job for each of these seconds; `fields` are more of its definition."""
    jobs = engine.stage.register(
        [
            Registration(
                tenant_of(number),
                f"{name}-{number}",
                {"schedule": {"at": rfc3339(at)}, "target": engine.target, **fields},
            )
            for number, at in enumerate(times)
        ],
    )
    return [execution for job in jobs for execution in expected(job, 0, max(times) + 1)]


def lateness_of(engine: Engine, executions: Sequence[Execution]) -> list[float]:
    """The lateness of these executions' runs, in their order; waits until all have started."""
    due_at = max(execution.due_at for execution in executions)
    time.sleep(max(0.0, due_at - time.time()))
    until = time.time() + PATIENCE_S
    while len(runs := engine.stage.runs(executions)) < len(executions) and time.time() < until:
        time.sleep(1)
    assert len(runs) == len(executions), f"{len(runs)} of {len(executions)} ran"
    started = [runs[execution.execution_id] for execution in executions]
    return [float(run["started_at"]) - float(run["due_at"]) for run in started]
