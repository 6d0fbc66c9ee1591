"""Tests' own processes: what a handler is told by its environment, and how much memory one takes."""

from __future__ import annotations

from pathlib import Path

# Of a stage-one function, with the tables of tests.worlds.
ENVIRONMENT = {f"{name.upper()}_TABLE": f"test-{name}" for name in ("jobs", "due", "tenants", "runs")} | {
    "EXECUTIONS_QUEUE_URL": "executions",
    "PLANNING_QUEUE_URL": "planning",
    "AWS_REGION": "us-east-1",
}


def peak_mb() -> float:
    """The most memory that this process has had so far."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
