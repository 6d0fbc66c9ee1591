"""The executor Lambda: a batch of messages in, the ids of those to be delivered again out."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from common import telemetry
from common.clock import SystemClock
from common.config import config
from common.events import event_bus
from common.jobs.backfill import Backfills
from common.jobs.ledger import TenantLedger
from common.jobs.store import JobStore
from common.planning.due_index import DueIndex
from common.planning.executions_queue import ExecutionsQueue
from common.runs.changes import RunChanges
from common.runs.records import Runs
from common.storage import aws
from common.storage.tables import Table
from common.tenants.audit import ITSELF
from common.tenants.rules_cache import KnownTenants
from common.tenants.webhook_secrets import WebhookSecrets
from executor.batch import execute_batch
from executor.due_jobs import DueJobs
from executor.failure_streak import FailureStreak
from executor.locks import Locks, OverlapPolicy
from executor.pipeline import Executor, Message
from executor.recorder import Recorder, Report
from executor.redelivery import Redelivery
from executor.targets import kinds
from executor.targets.http_endpoint import HttpEndpoints


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """SQS event → partial batch response.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """
    messages = [_message(record) for record in event["Records"]]
    reports, failed = execute_batch(_executor(), messages, _redelivery())
    _log_and_count(reports, len(failed))
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _message(record: Mapping[str, Any]) -> Message:
    receives = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return Message(record["messageId"], record["body"], record.get("receiptHandle", ""), receives)


def _log_and_count(reports: list[Report], failed: int) -> None:
    logger, metrics = telemetry.logger(), telemetry.metrics()
    for report in reports:
        if report.result in ("failed", "skipped"):
            logger.info(report.result, execution=report.execution.execution_id, detail=report.detail)
        if report.result in ("succeeded", "dispatched", "failed", "retrying"):
            metrics.add_metric(telemetry.LATENESS_S, "Seconds", report.lateness_s)
    for result, count in Counter(report.result for report in reports).items():
        metrics.add_metric(f"{telemetry.RUNS}.{result}", "Count", count)
    if failed:
        metrics.add_metric(telemetry.MESSAGES_FAILED, "Count", failed)
    metrics.flush_metrics()


@cache
def _executor() -> Executor:
    clock = SystemClock()
    settings = config()
    jobs, runs = Table(aws.dynamodb(), settings.jobs_table), Table(aws.dynamodb(), settings.runs_table)
    tenants = Table(aws.dynamodb(), settings.tenants_table)
    known = KnownTenants(tenants)
    queue = ExecutionsQueue(aws.on_first_use(aws.sqs), settings.executions_queue_url, clock)
    store = JobStore(
        jobs,
        DueIndex(Table(aws.dynamodb(), settings.due_table)),
        queue,
        clock,
        random.Random(),
        ledger=TenantLedger(tenants, known),
        by=ITSELF,
    )
    records, events = Runs(runs), event_bus(settings.event_bus)
    overlap = OverlapPolicy(Locks(runs), records)
    recorder = Recorder(
        runs=records,
        changes=RunChanges(runs),
        overlap=overlap,
        failure_streak=FailureStreak(store, events),
        backfills=Backfills(jobs, runs),
        events=events,
        queue=queue,
        clock=clock,
    )
    return Executor(
        due_jobs=DueJobs(jobs, queue, clock),
        runs=records,
        overlap=overlap,
        recorder=recorder,
        clock=clock,
        kinds=kinds(HttpEndpoints(_webhook_secrets().signing, clock, settings.plain_http_targets)),
        tenants=known,
    )


@cache
def _redelivery() -> Redelivery:
    return Redelivery(aws.on_first_use(aws.sqs), config().executions_queue_url, SystemClock())


@cache
def _webhook_secrets() -> WebhookSecrets:
    return WebhookSecrets(Table(aws.dynamodb(), config().tenants_table))
