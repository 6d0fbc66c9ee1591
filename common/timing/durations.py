"""Durations and instants as people write them: `PT90M`, `1h30m`, `2025-03-30T01:00:00Z`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from common.errors import InvalidInput
from common.timing.instants import DAY_S, rfc3339
from common.timing.zones import instant_of_local

MAX_DURATION_S: Final = 3_660 * DAY_S
_ACCEPTED: Final = (
    "whole seconds as a number, `90m`, `1h30m`, `2w`, or ISO 8601 such as `PT90M`; 1 s to 3660 days"
)
_NUMBER: Final = r"([0-9]{1,9})"
_SHORT: Final = re.compile(rf"(?:{_NUMBER}w)?(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")
_ISO: Final = re.compile(
    rf"P(?=[0-9T])(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_UNITS_S: Final = (7 * DAY_S, DAY_S, 3_600, 60, 1)

_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.0{1,9})?(Z|z|[+-][0-9]{2}:[0-9]{2})?"
)
_EARLIEST_YEAR, _LATEST_YEAR = 1970, 2199
_INSTANT: Final = (
    f"an RFC 3339 time of {_EARLIEST_YEAR}-{_LATEST_YEAR} in whole seconds, such as 2025-03-30T01:00:00Z"
)


def parse_duration(value: object, field: str = "schedule.every") -> int:
    """Seconds of a duration: an int, `90m` style, or ISO 8601 without months and years (they have no fixed length).

    Raises InvalidInput.
    """
    seconds = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str) and 0 < len(value) <= 64:
        match = _SHORT.fullmatch(value) or _ISO.fullmatch(value)
        if match:
            seconds = sum(int(n) * unit for n, unit in zip(match.groups(), _UNITS_S, strict=True) if n)
    if seconds is None:
        raise InvalidInput(field, "must be a duration", value=value, accepted=_ACCEPTED)
    if not 1 <= seconds <= MAX_DURATION_S:
        raise InvalidInput(field, "is out of range", value=value, accepted=_ACCEPTED)
    return seconds


def duration_text(seconds: int) -> str:
    """Seconds as `1d12h`, the form that `parse_duration` reads."""
    parts = []
    for unit, letter in zip(_UNITS_S[1:], "dhms", strict=True):
        count, seconds = divmod(seconds, unit)
        parts += [f"{count}{letter}"] if count else []
    return "".join(parts) or "0s"


def parse_instant(value: object, field: str, zone: str | None = None) -> int:
    """Epoch seconds of an RFC 3339 time; one without an offset is local time in `zone`, and refused if that is None.

    Local time that the clock skips means the first instant after the gap; time that it repeats means the first pass.
    Raises InvalidInput.
    """
    match = _TIME.fullmatch(value) if isinstance(value, str) and len(value) <= 64 else None
    if not match:
        raise InvalidInput(field, "must be a time", value=value, accepted=_meant(value, zone))
    day, clock, offset = match.groups()
    try:
        time = datetime.fromisoformat(f"{day}T{clock}" + ("+00:00" if offset in ("Z", "z") else offset or ""))
    except ValueError as error:
        raise InvalidInput(field, f"not a time: {error}", value=value, accepted=_INSTANT) from error
    if not _EARLIEST_YEAR <= time.year <= _LATEST_YEAR:
        raise InvalidInput(field, "has a year out of range", value=value, accepted=_INSTANT)
    if time.tzinfo:
        return int(time.timestamp())
    if zone is None:
        raise InvalidInput(field, "needs an offset from UTC", value=value, accepted=_meant(value, zone))
    return instant_of_local(zone, time)


def _meant(value: object, zone: str | None) -> str:
    hint = instant_hint(value)
    return (hint.removesuffix("Z") if zone else hint) or _INSTANT


def instant_hint(value: object) -> str:
    """The RFC 3339 time that was probably meant; empty if there is none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 7_258_118_400:
        return rfc3339(value)
    if not isinstance(value, str) or len(value) > 64:
        return ""
    text = re.sub(r"^at\(|\)$", "", value.strip(" \"'"), flags=re.I).strip()
    if re.fullmatch(r"\d{9,10}", text, re.ASCII):
        return rfc3339(int(text))
    match = re.fullmatch(
        r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*([+-]\d\d)?:?(\d\d)?[Zz]?)?",
        text,
        re.ASCII,
    )
    if not match:
        return ""
    offset = f"{match[3]}:{match[4] or '00'}" if match[3] else "Z"
    hint = f"{match[1]}T{match[2] or '00:00:00'}{offset}"
    try:
        year = datetime.fromisoformat(hint).year
    except ValueError:  # no such day
        return ""
    return hint if _EARLIEST_YEAR <= year <= _LATEST_YEAR else ""
