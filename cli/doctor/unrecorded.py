"""Executions that ticks have found without a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cli.doctor.deployment import Deployment
from common.planning.executions_queue import ExecutionsQueue
from common.platform.findings import Finding, Repair, failed, ok
from common.platform.unrecorded import MAX_RUN, RunAgain
from common.timing.instants import rfc3339

# What one call of the doctor looks at.
_MOST: Final = 1_000


def without_record(deployment: Deployment) -> Iterator[Finding]:
    """Those that have none now."""
    found, more = deployment.unrecorded().page(limit=_MOST)
    if not found:
        yield ok("every planned execution that ticks looked for has a record")
        return
    ids = [one.execution.execution_id for one in found]
    first = min(found, key=lambda one: one.execution.due_at).execution
    command = f"minute8 unrecorded run --all --stage {deployment.stage}"
    yield failed(
        f"{'over ' if more else ''}{len(found)} executions that were due have no record,"
        f" the earliest of {rfc3339(first.due_at)}: {first.execution_id}",
        f"look at dead letters and queues first; `{command}` sends them again, and each runs once",
        Repair(command, lambda: _run(deployment, ids), order=2),
    )


def _run(deployment: Deployment, ids: list[str]) -> str:
    sqs = deployment.client("sqs")
    url = sqs.get_queue_url(QueueName=deployment.named("executions"))["QueueUrl"]
    queue = ExecutionsQueue(sqs, url, deployment.clock)
    again = RunAgain(deployment.unrecorded(), queue, deployment.tenants_table(), deployment.clock)
    sent = sum(len(again.run(ids[at : at + MAX_RUN])[0]) for at in range(0, len(ids), MAX_RUN))
    # They have their records in seconds if the executor runs.
    for _ in range(10):
        if not deployment.unrecorded().page(limit=_MOST)[0]:
            break
        deployment.clock.sleep(1)
    return f"{sent} sent again"
