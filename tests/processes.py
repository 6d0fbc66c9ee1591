"""Measurements of a test's own process."""

from __future__ import annotations

from pathlib import Path


def peak_mb() -> float:
    """The most memory that this process has had so far."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
