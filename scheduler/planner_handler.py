"""The planner Lambda: takes shares of a window from the planning queue if the tick has too much work."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from common.config import config
from common.planning.shares import PlanningQueue, Shares
from common.storage import aws
from common.storage.table import Tables
from scheduler.handler import publish, scheduler, write_down
from scheduler.planner import Planner


def handle(event: Mapping[str, Any], context: object) -> None:
    """Process one message. If it raises, the queue delivers the message again."""
    for record in event["Records"]:
        summary = _planner().plan(record["body"])
        publish(summary, "share")
        write_down(summary, planners=1)


@cache
def _planner() -> Planner:
    shares = Shares(Tables.of(config()).due)
    queue = PlanningQueue(aws.sqs(), config().required("planning_queue_url"))
    return Planner(scheduler(), shares, queue)
