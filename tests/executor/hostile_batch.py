"""One invocation of the executor's handler over tables in memory, in a separate process that is measured.

    python -m tests.executor.hostile_batch FILE

FILE holds the tables' items, the messages and the certificate of the endpoints. Prints peak memory, time and results.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

# Before botocore looks.
os.environ |= {f"{name.upper()}_TABLE": f"test-{name}" for name in ("jobs", "due", "tenants", "runs")}
os.environ |= {
    "EXECUTIONS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/1/q",
    "PLAIN_HTTP_TARGETS": "true",
}

from common.clock import SystemClock
from common.runs.run import Run
from common.storage import aws
from executor import calling, handler, threads
from executor.network_guard import NetworkGuard, Resolver
from executor.targets import kinds
from executor.targets.http_endpoint import HttpEndpoints
from tests.processes import peak_mb
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.stand_ins import SimulatedQueue


def main(scenario: dict[str, Any]) -> dict[str, Any]:
    dynamodb: Any = MemoryDynamoDB()
    for table, items in scenario["tables"].items():
        dynamodb.create_table(table)
        for item in items:
            dynamodb.put_item(TableName=table, Item=item)
    scenario.pop("tables")
    aws.dynamodb = lambda: dynamodb  # type: ignore[assignment]
    clock: Any = SystemClock()
    aws.sqs = lambda: SimulatedQueue(clock)  # type: ignore[assignment]
    # All are called, however slow the machine is: none waits too long for its turn or thread, and goes on later.
    vars(calling).update(TURN_S=1e6, TURN_WAIT_S=-1.0)
    vars(threads).update(MAX_THREAD_WAIT_S=1e6)
    endpoints = HttpEndpoints(
        secrets_of=lambda tenant, now: ("whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",),
        clock=SystemClock(),
        guard=NetworkGuard(Resolver(lambda host, port: ["127.0.0.1"]), lambda ip: ip.is_loopback),
        tls=lambda: ssl.create_default_context(cadata=scenario["certificate"]),
    )
    executor = replace(handler._executor(), kinds=kinds(endpoints.call))
    handler._executor = lambda: executor  # type: ignore[assignment]
    ready_mb, began, used = peak_mb(), time.monotonic(), time.process_time()
    records = [{"messageId": f"m-{n}", "body": body} for n, body in enumerate(scenario["messages"])]
    answer = handler.handle({"Records": records}, None)
    runs = [run for job in scenario["jobs"] for run in executor.runs.of_job("alice", job, limit=10)]
    return {
        "ready_mb": ready_mb,
        "peak_mb": peak_mb(),
        "seconds": time.monotonic() - began,
        "cpu_s": time.process_time() - used,
        "failed": answer["batchItemFailures"],
        "outcomes": {run.job_id: _outcome(run) for run in runs},
        "statuses": sorted(run.status for run in runs),
    }


def _outcome(run: Run) -> str:
    return (run.last_attempt.error_type if run.last_attempt else "") or run.detail


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
