"""The jobs of the chaos test: every kind of run that Minute8 has."""

from __future__ import annotations

import random
from typing import Any

from scripts.demo.workload import Registration

TENANTS = 12
# Well below the time between two fire times of a job.
_TIMEOUT_S = 8


def jobs(target_arn: str, count: int, every_s: int, rng: random.Random) -> list[Registration]:
    """This many jobs of five kinds, each due every `every_s` seconds, in crowded seconds: they travel in packs."""
    registrations = []
    for n in range(count):
        kind = ("plain", "retried", "event", "skip", "queue_one")[n % 5]
        target = {"kind": "lambda", "arn": target_arn, "invocation": "RequestResponse"}
        definition: dict[str, Any] = {
            "schedule": {"every": f"{every_s}s", "anchor": f"2026-01-01T00:00:{n % 12 * 5:02}Z"},
            "target": target | ({"invocation": "Event"} if kind == "event" else {}),
            "payload": {"duration_s": round(rng.uniform(0.05, 1.5), 2)},
            "timeout_s": _TIMEOUT_S,
            "retry": {"max_attempts": 5, "base_s": 2, "cap_s": 10},
            "catch_up": "all",  # so that each fire time has its own run, after however long without a tick
        }
        if kind == "retried":
            definition["payload"]["fail_first_attempts"] = 1
        if kind in ("skip", "queue_one"):
            definition["overlap"] = kind
        registrations.append(Registration(f"tenant-{n % TENANTS}", f"{kind}-{n}", definition))
    return registrations
