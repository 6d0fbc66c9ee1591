"""Runs that do not go on: their executor died and nobody took over, or the message of the next attempt is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from common.planning.execution import Execution, parse_execution_id
from common.runs.states import RETRYING, RUNNING
from common.storage import keys

# A message may be delivered again so long after its lease.
STUCK_AFTER_S: Final = 120
# A tick tells the truth checker so many of its stuck runs.
MAX_STUCK: Final = 100


_TEXTS: Final = ("job_id", "status")
_NUMBERS: Final = ("attempt", "lateness_s", "duration_s", "lease_until", "next_attempt_at", "skipped_count")


def check_record(record: Mapping[str, Any]) -> None:
    """Raises TypeError or KeyError if somebody has damaged what followers of runs read. Pure."""
    wrong = [name for name in _TEXTS if not isinstance(record[name], str)]
    wrong += [name for name in _NUMBERS if not isinstance(record.get(name), int | float | None)]
    if wrong:
        raise TypeError(f"of another type than they should be: {', '.join(wrong)}")


def stuck_since(record: Mapping[str, Any]) -> float | None:
    """When the run should have gone on; None: it waits for nothing but other runs. Pure."""
    name = {RUNNING: "lease_until", RETRYING: "next_attempt_at"}.get(record["status"])
    at = record.get(name) if name else None
    return None if at is None else float(at)


def is_stuck(record: Mapping[str, Any], now: float) -> bool:
    """Whether the run does not go on. Pure."""
    since = stuck_since(record)
    return since is not None and since + STUCK_AFTER_S < now


def going_on(tenant: str, execution_id: str, record: Mapping[str, Any], now: float) -> Execution:
    """The execution whose message lets a stuck run go on; if another message of it is left, one of them does. Pure.

    The age of its retries counts from now. Raises NotFound.
    """
    execution = replace(parse_execution_id(tenant, execution_id), throttles=int(record.get("throttles", 0)))
    if record["status"] == RUNNING:
        attempt, due_at = int(record["attempt"]), int(record.get("due_at", now))
    else:
        attempt, due_at = int(record["attempt"]) + 1, int(record["next_attempt_at"])
    return replace(execution, attempt=attempt, due_at=due_at, first_due_at=int(now))


def record_key(execution_id: str) -> keys.Key:
    """The key of an execution's record."""
    tenant, job_id, run_name = execution_id.split(":", 2)
    return keys.run(tenant, job_id, run_name)
