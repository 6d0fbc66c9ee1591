"""The scheduler Lambda: EventBridge calls it at minute 8, 18, 28…; it needs nothing of the event."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

from common import aws, telemetry
from common.calendars import Calendars
from common.clock import SystemClock
from common.config import config
from common.due_index import DueIndex
from common.events import event_bus
from common.executions_queue import ExecutionsQueue
from common.runs import Runs
from common.tables import Table
from scheduler.tick import Scheduler, Summary


def handle(event: object, context: object) -> dict[str, Any]:
    """Tick. Returns the summary, so that whoever calls it by hand sees what it did."""
    summary = _scheduler().tick()
    _tell(summary)
    return asdict(summary)


def _tell(summary: Summary) -> None:
    logger, metrics = telemetry.logger(), telemetry.metrics()
    for bad in summary.bad:
        logger.error("bad due entry", tenant=bad.tenant, job_id=bad.job_id, problem=bad.problem)
    logger.info("tick", **{name: value for name, value in asdict(summary).items() if name != "bad"})
    metrics.add_metric(telemetry.EXECUTIONS_PLANNED, "Count", summary.planned)
    metrics.add_metric(telemetry.EXECUTIONS_MISSED, "Count", summary.missed)
    metrics.add_metric(telemetry.BAD_ENTRIES, "Count", len(summary.bad))
    metrics.add_metric(telemetry.MARK_LAG_S, "Seconds", max(0.0, summary.now - summary.start))
    metrics.flush_metrics()


@cache
def _scheduler() -> Scheduler:
    clock = SystemClock()
    settings = config()
    return Scheduler(
        index=DueIndex(Table(aws.dynamodb(), settings.due_table)),
        runs=Runs(Table(aws.dynamodb(), settings.runs_table)),
        queue=ExecutionsQueue(aws.sqs(), settings.executions_queue_url, clock),
        clock=clock,
        calendars=Calendars(Table(aws.dynamodb(), settings.jobs_table)),
        events=event_bus(settings.event_bus),
    )
