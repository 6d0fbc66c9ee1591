"""The planner Lambda: takes a share of a window from the planning queue, where a tick had too much for itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from common.config import config
from common.planning.shares import PlanningQueue, Shares
from common.storage import aws, deployed
from scheduler.handler import publish, scheduler
from scheduler.planner import Planner


def handle(event: Mapping[str, Any], context: object) -> None:
    """One message at a time. What it raises has the message delivered again."""
    for record in event["Records"]:
        publish(_planner().plan(record["body"]), "share")


@cache
def _planner() -> Planner:
    shares = Shares(deployed.tables(config()).due)
    queue = PlanningQueue(aws.sqs(), config().required("planning_queue_url"))
    return Planner(scheduler(), shares, queue)
