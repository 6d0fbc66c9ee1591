"""The outcomes Lambda: takes a batch of destination records, and returns the ids of those to deliver again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from common import telemetry
from common.clock import SystemClock
from common.config import config
from common.events import event_bus
from common.planning.queue import ExecutionsQueue
from common.runs.records import Runs
from common.storage import aws
from common.storage.table import Tables
from common.tenants.rules_cache import KnownTenants
from executor.completion.outcomes import Outcomes, Result
from executor.failure_store import store_of_failures
from executor.failure_streak import FailureStreak


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """SQS event → partial batch response."""
    results, failed = complete_batch(_outcomes(), event["Records"])
    metrics = telemetry.metrics()
    for result, count in results.items():
        metrics.add_metric(f"{telemetry.OUTCOMES}.{result}", "Count", count)
    if failed:
        metrics.add_metric(telemetry.MESSAGES_FAILED, "Count", len(failed))
    metrics.flush_metrics()
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def complete_batch(outcomes: Outcomes, records: list[Mapping[str, Any]]) -> tuple[Counter[Result], list[str]]:
    """Process the records one by one; a failure affects only its record. Returns reports, and ids to deliver again."""
    results: Counter[Result] = Counter()
    failed: list[str] = []
    for record in records:
        try:
            results[outcomes.complete(record["body"])] += 1
        except Exception as error:  # noqa: BLE001  the other messages continue after any error
            telemetry.logger().warning(
                "outcome failed", message_id=record["messageId"], error=repr(error), body=record["body"][:500]
            )
            failed.append(record["messageId"])
    return results, failed


@cache
def _outcomes() -> Outcomes:
    settings, clock = config(), SystemClock()
    tables = Tables.of(settings)
    # A job may be paused here, which enqueues nothing.
    queue = ExecutionsQueue(aws.on_first_use(aws.sqs), "", clock)
    store = store_of_failures(tables, queue, clock, KnownTenants(tables.tenants))
    failure_streak = FailureStreak(store, event_bus(settings.event_bus))
    return Outcomes(tables.jobs, Runs(tables.runs), failure_streak, clock)


if aws.in_lambda():
    aws.warm_up(_outcomes)
