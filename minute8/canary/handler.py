"""The canary's target: writes how late it was called as a metric into its own log.

It needs no queue, no table and no library, so it does not share a fault with what it watches. docs/service-levels.md.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

TENANT = "minute8-canary"
JOB_ID = "canary"
METRIC = "CanaryLatenessSeconds"


def handle(event: Mapping[str, Any], context: object) -> None:
    """The event of a run -> one line in the log. What is not the canary's own run leaves no metric."""
    run = event.get("minute8", {})
    if (run.get("tenant"), run.get("job_id")) == (TENANT, JOB_ID):
        print(line(os.environ["STAGE"], run["due_at"], time.time()), flush=True)


def line(stage: str, due_at: str, now: float) -> str:
    """The metric in CloudWatch's embedded format; `due_at` is RFC 3339. Pure."""
    metric = {
        "Namespace": "Minute8",
        "Dimensions": [["service", "stage"]],
        "Metrics": [{"Name": METRIC, "Unit": "Seconds"}],
    }
    late_s = max(0.0, now - datetime.fromisoformat(due_at).timestamp())
    about = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [metric]}
    return json.dumps({"_aws": about, "service": "minute8", "stage": stage, METRIC: round(late_s, 3)})
