"""Texts of instants, for people and for other programs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

DAY_S = 86_400
# What `date.toordinal` returns for 1970-01-01.
EPOCH_ORDINAL = 719_163
# The first and the last second that have a text: of the years 1 and 9999.
_FIRST_AT = -62_135_596_800
LAST_AT = 253_402_300_799
_UNITS = ((DAY_S, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_COMPACT = re.compile(r"\d{8}T\d{6}Z", re.ASCII)


def has_ended(until: object, now: float, bound_s: float) -> bool:
    """Whether a lease, position or deadline is over. No number, or further away than its bound: damaged, and over."""
    return not isinstance(until, int | float) or not now <= until <= now + bound_s


# The executions of a batch share their seconds.
@lru_cache(maxsize=256)
def rfc3339(at: float) -> str:
    """2026-11-21T03:18:00Z; with milliseconds if there are any. What no calendar has is shown as its first or last."""
    moment = datetime.fromtimestamp(min(max(at, _FIRST_AT), LAST_AT), UTC)
    return moment.isoformat(timespec="milliseconds" if at % 1 else "seconds").replace("+00:00", "Z")


@lru_cache(maxsize=256)
def compact_time(at: int) -> str:
    """20261121T031800Z: sorts as time does, and needs no escaping in a URL or a file name."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")


# A look parses the names of tens of thousands of runs, most of which share their seconds.
@lru_cache(maxsize=4_096)
def parse_compact(text: str) -> int | None:
    """The inverse of `compact_time`; None for other text."""
    if not _COMPACT.fullmatch(text):
        return None
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None


def relative(at: str | int | None, now: float) -> str:
    """in 3 min, 2 h ago, now; `-` without a time."""
    if at is None:
        return "-"
    away = (at if isinstance(at, int) else datetime.fromisoformat(at).timestamp()) - now
    size = abs(away)
    for unit_s, letter in _UNITS:
        if size >= unit_s:
            text = f"{int(size // unit_s)} {letter}"
            return f"in {text}" if away > 0 else f"{text} ago"
    return "now"


def when(at: str | int | None, now: float) -> str:
    """2026-11-21T03:30:00Z (in 18 min)"""
    if at is None:
        return "-"
    return f"{rfc3339(at) if isinstance(at, int) else at} ({relative(at, now)})"
