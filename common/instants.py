"""Instants as people and other programs read them."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(at: float) -> str:
    """2026-11-21T03:18:00Z; with milliseconds where there are any."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds" if at % 1 else "seconds").replace("+00:00", "Z")
