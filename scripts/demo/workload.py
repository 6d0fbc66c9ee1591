"""The demo's jobs: the periodic jobs of a real public platform, and a few frequent ones to watch."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.timing.durations import parse_duration
from common.timing.instants import rfc3339

REAL_WORKLOAD = Path(__file__).resolve().parents[2] / "examples" / "prow-periodics.csv"
LIVELY_TENANT = "demo"
PAUSED_JOB = "paused-and-resumed"


@dataclass(frozen=True, slots=True)
class Registration:
    """One job as a client would register it."""

    tenant: str
    job_id: str
    definition: dict[str, Any] = field(hash=False)


def real_workload(target_arn: str) -> Iterator[Registration]:
    """The jobs of `examples/prow-periodics.csv`, with durations and failures as such jobs have them.

    The file holds schedules, but not when its `every` jobs last ran: a hash of the name spreads their anchors.
    """
    with REAL_WORKLOAD.open(newline="") as file:
        for row in csv.DictReader(file):
            share = _share(row["tenant"] + row["job"])
            schedule: dict[str, Any] = {row["kind"]: row["schedule"]}
            if row["kind"] == "every":
                schedule["anchor"] = rfc3339(1_767_225_600 + int(share * parse_duration(row["schedule"])))
            payload = {"duration_s": round(0.1 + 4 * share**3, 2), "fail_rate": 0.08}
            retry = {"max_attempts": 2, "base_s": 15}
            yield Registration(
                row["tenant"],
                row["job"],
                {"schedule": schedule, "target": _target(target_arn), "payload": payload, "retry": retry},
            )


def lively_jobs(target_arn: str, now: float) -> list[Registration]:
    """Jobs that fire often enough to watch."""
    target = _target(target_arn)
    quick = {"duration_s": 0.2}
    definitions: dict[str, dict[str, Any]] = {
        "every-10-seconds": {"schedule": {"cron": "*/10 * * * * *"}, "payload": quick},
        "every-minute-in-kathmandu": {
            "schedule": {"cron": "* * * * *", "timezone": "Asia/Kathmandu"},
            "payload": {"duration_s": 1.5},
        },
        "once-in-20-seconds": {"schedule": {"at": rfc3339(int(now) + 20)}, "payload": quick},
        "fails-and-is-retried": {
            "schedule": {"every": "30s"},
            "payload": {"duration_s": 0.1, "fail_first_attempts": 1},
            "retry": {"max_attempts": 3, "base_s": 4},
        },
        "handed-over-as-event": {
            "schedule": {"cron": "5/20 * * * * *"},
            "payload": quick,
            "target": target | {"invocation": "Event"},
        },
        PAUSED_JOB: {"schedule": {"cron": "*/10 * * * * *"}, "payload": quick},
    }
    return [
        Registration(LIVELY_TENANT, job_id, {"target": target, **definition})
        for job_id, definition in definitions.items()
    ]


def _target(arn: str) -> dict[str, str]:
    return {"kind": "lambda", "arn": arn, "invocation": "RequestResponse"}


def _share(text: str) -> float:
    """A number in [0, 1) that depends only on the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**48
