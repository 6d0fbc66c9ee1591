"""Loads on a deployed Minute8, and the lateness of their runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.bare_path import Engine
from common.planning.execution import Execution
from common.timing.instants import rfc3339
from scripts.demo.witness import expected
from scripts.demo.workload import Registration

PATIENCE_S = 120
_TENANTS = 20


def warm_up(found: Engine, runs: int = 100) -> None:
    """Start processes of executor and target; cold starts on two busy cores take seconds."""
    lateness_of(found, register(found, "warm", [int(time.time()) + 10 + runs // 6] * runs))


def every_second(found: Engine, first: int, seconds: int, name: str = "steady") -> list[Execution]:
    """Ten jobs that fire every second."""
    bounds = {"start_at": rfc3339(first), "end_at": rfc3339(first + seconds)}
    definitions = {"schedule": {"cron": "* * * * * *", **bounds}, "target": found.target}
    jobs = found.stage.register(
        [Registration(f"tenant-{number}", name, definitions) for number in range(10)], lambda: None
    )
    return [execution for job in jobs for execution in expected(job, 0, first + seconds)]


def register(
    found: Engine,
    name: str,
    times: Sequence[int],
    tenant_of: Callable[[int], str] = lambda number: f"tenant-{number % _TENANTS}",
    **fields: Any,
) -> list[Execution]:
    """A one-off job for each of these seconds; `fields` are more of its definition."""
    jobs = found.stage.register(
        [
            Registration(
                tenant_of(number),
                f"{name}-{number}",
                {"schedule": {"at": rfc3339(at)}, "target": found.target, **fields},
            )
            for number, at in enumerate(times)
        ],
        lambda: None,
    )
    return [execution for job in jobs for execution in expected(job, 0, max(times) + 1)]


def lateness_of(found: Engine, executions: Sequence[Execution]) -> list[float]:
    """The lateness of these executions' runs, in their order; waits until all have started."""
    due_at = max(execution.due_at for execution in executions)
    time.sleep(max(0.0, due_at - time.time()))
    until = time.time() + PATIENCE_S
    while len(runs := found.stage.runs(executions)) < len(executions) and time.time() < until:
        time.sleep(1)
    assert len(runs) == len(executions), f"{len(runs)} of {len(executions)} ran"
    found_runs = [runs[execution.execution_id] for execution in executions]
    return [float(run["started_at"]) - float(run["due_at"]) for run in found_runs]
