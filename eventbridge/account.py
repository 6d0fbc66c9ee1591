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

# Written before a group's name in place of a file; without a name it means all groups.
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
    listed = [(one["GroupName"], one["Name"]) for page in pages for one in page["Schedules"]]

    def whole(of: tuple[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = scheduler.get_schedule(GroupName=of[0], Name=of[1])
        found.pop("ResponseMetadata", None)
        return found

    with (
        Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        schedules = list(progress.track(pool.map(whole, listed), len(listed), description="reading"))
    return json.dumps(schedules, default=_instant)


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"no JSON for {value!r}")
