"""A deployment's tables and executions queue, for commands with AWS credentials."""

from __future__ import annotations

import os
from typing import Any, Literal

from common.clock import Clock
from common.planning.executions_queue import ExecutionsQueue
from common.storage import aws
from common.storage.table import Table


def table(kind: Literal["tenants", "jobs", "runs", "due"], stage: str) -> Table:
    """The stage's table, or the one that TENANTS_TABLE, JOBS_TABLE and so on name."""
    return Table(aws.dynamodb(), os.environ.get(f"{kind.upper()}_TABLE") or f"minute8-{stage}-{kind}")


class _QueueByName:
    """SQS for the stage's executions queue. Its address is looked up when it is needed: most commands send nothing."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __getattr__(self, operation: str) -> Any:
        def call(QueueUrl: str, **request: Any) -> Any:
            sqs = aws.sqs()
            name = f"minute8-{self._stage}-executions"
            url = os.environ.get("EXECUTIONS_QUEUE_URL") or sqs.get_queue_url(QueueName=name)["QueueUrl"]
            return getattr(sqs, operation)(QueueUrl=url, **request)

        return call


def executions_queue(stage: str, clock: Clock) -> ExecutionsQueue:
    """The stage's executions queue, or the one that EXECUTIONS_QUEUE_URL names."""
    client: Any = _QueueByName(stage)
    return ExecutionsQueue(client, "", clock)
