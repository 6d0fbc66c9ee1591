"""The schedules of EventBridge Scheduler in an AWS account, as text for `eventbridge.read`.

https://docs.aws.amazon.com/scheduler/latest/APIReference/API_GetSchedule.html
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress

from common.storage.aws import new_session

# Before the name of a group, in place of a file. Without a name: all groups.
PREFIX: Final = "eventbridge:"
# AWS accepts some tens of requests a second per account; botocore slows down if AWS throttles.
_THREADS: Final = 8


def client() -> Any:
    """The client for the account and region of the AWS credentials. Raises botocore's errors."""
    from botocore.config import Config

    config = Config(retries={"mode": "adaptive", "total_max_attempts": 10}, max_pool_connections=_THREADS)
    return new_session().create_client("scheduler", config=config)


def fetch(scheduler: Any, group: str) -> str:
    """All schedules of a group, or of all groups, with a progress bar on a terminal.

    Raises botocore's errors: if an account cannot be read completely, nothing is imported.
    """
    pages = scheduler.get_paginator("list_schedules").paginate(**({"GroupName": group} if group else {}))
    names = [(schedule["GroupName"], schedule["Name"]) for page in pages for schedule in page["Schedules"]]

    def get(group_and_name: tuple[str, str]) -> dict[str, Any]:
        group, name = group_and_name
        schedule: dict[str, Any] = scheduler.get_schedule(GroupName=group, Name=name)
        schedule.pop("ResponseMetadata", None)
        return schedule

    with (
        Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        schedules = list(progress.track(pool.map(get, names), len(names), description="reading"))
    return json.dumps(schedules, default=_instant)


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"no JSON for {value!r}")
