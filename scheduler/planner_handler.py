"""The planner Lambda: takes a share of a window from the planning queue, where a tick had too much for itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from common.config import config
from common.planning.shares import Shares
from common.storage import deployed
from scheduler.handler import publish, scheduler
from scheduler.planner import Planner


def handle(event: Mapping[str, Any], context: object) -> None:
    """One message at a time. What it raises has the message delivered again."""
    for record in event["Records"]:
        publish(_planner().plan(record["body"]), "share")


@cache
def _planner() -> Planner:
    return Planner(scheduler(), Shares(deployed.tables(config()).due))
