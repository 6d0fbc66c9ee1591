"""Ranges of time in requests, by `from_at` and `until_at`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from common.errors import InvalidInput
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, rfc3339

# The schema of an instant in a query.
INSTANT: Final = {"type": "string", "format": "date-time"}


def bounds(given: Mapping[str, str]) -> dict[str, int]:
    """Those of `from_at` and `until_at` that are given, in epoch seconds. Raises InvalidInput."""
    return {name: parse_instant(given[name], name) for name in ("from_at", "until_at") if name in given}


def check_range(given: Mapping[str, str]) -> None:
    """Refuse a range that ends before it begins. Raises InvalidInput."""
    if not {"from_at", "until_at"} <= given.keys():
        return
    found = bounds(given)
    if found["until_at"] < found["from_at"]:
        after = f"{given['from_at']} or later"
        raise InvalidInput("until_at", "is before from_at", value=given["until_at"], accepted=after)


def check_length(from_at: int, until_at: int, most_days: int) -> None:
    """Refuse a range of more than `most_days`. Raises InvalidInput."""
    if until_at - from_at > most_days * DAY_S:
        raise InvalidInput(
            "from_at",
            "is too far from until_at",
            value=rfc3339(from_at),
            accepted=f"a range of up to {most_days} days",
        )
