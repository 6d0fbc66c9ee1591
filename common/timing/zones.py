"""Time zones: when a zone's clock changes, and what its calendar shows during a span of instants.

The rules come from the pinned `tzdata` package and never from the machine, so all machines use the same rules.
Only facts are here; `common/timing/fires.py` decides what a schedule does at a clock change.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import tzdata  # type: ignore[import-untyped]

from common.errors import InvalidInput
from common.timing.date_bits import date_bits
from common.timing.instants import DAY_S, EPOCH_ORDINAL

zoneinfo.reset_tzpath(to=[])

TZDATA_VERSION: Final[str] = tzdata.IANA_VERSION
"""The IANA release whose rules decide every fire time, such as "2025b"."""

_PROBE_S: Final = 2 * DAY_S  # no zone has changed its clock twice within six days
_BLOCK_S: Final = 128 * DAY_S
_MAX_CHANGE_S: Final = 26 * 3600  # at the date line a clock moves by at most a day

_ABBREVIATED: Final = {
    "bst": "Europe/London",
    "cdt": "America/Chicago",
    "cest": "Europe/Berlin",
    "cst": "America/Chicago",
    "edt": "America/New_York",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
    "mdt": "America/Denver",
    "pdt": "America/Los_Angeles",
    "pst": "America/Los_Angeles",
}

# Names of Windows and of everyday speech.
_SPOKEN: Final = {
    "alaska": "America/Anchorage",
    "atlantic": "America/Halifax",
    "central": "America/Chicago",
    "central_europe": "Europe/Berlin",
    "central_european": "Europe/Berlin",
    "eastern": "America/New_York",
    "eastern_european": "Europe/Helsinki",
    "hawaii": "Pacific/Honolulu",
    "india": "Asia/Kolkata",
    "japan": "Asia/Tokyo",
    "tokyo": "Asia/Tokyo",
    "mountain": "America/Denver",
    "pacific": "America/Los_Angeles",
    "us_central": "America/Chicago",
    "us_eastern": "America/New_York",
    "us_mountain": "America/Denver",
    "us_pacific": "America/Los_Angeles",
    "w._europe": "Europe/Berlin",
    "western_european": "Europe/Lisbon",
    "china": "Asia/Shanghai",
}
# Zones that the tzdata has under an abbreviation and that have no summer time: where people expect to have it.
WITHOUT_SUMMER_TIME: Final = {"EST": "America/New_York", "MST": "America/Denver"}

PLAIN: Final = 0
REPEATED: Final = 1  # the second pass of a wall clock that was set back
SKIPPED: Final = 2  # wall-clock times that never came, since the clock was set forward over them


class Change(NamedTuple):
    """One clock change: the zone is `before` seconds ahead of UTC until `at`, and `after` seconds from then on."""

    at: int
    before: int
    after: int


class Span(NamedTuple):
    """Instants within one local date and one offset, or (SKIPPED) the skipped local times.

    `parts` are (hour, mask of minutes), rounded outwards to whole minutes. `month` and `date` are the bits of
    `date_bits`. `midnight_at` is the instant of the date's 0:00 at this offset. `shown_day` is the date's ordinal, and
    `day` that of the local date on which fires happen. A SKIPPED span is the minute after the gap, whose end is
    `opens_at`.
    """

    opens_at: int
    closes_at: int
    midnight_at: int
    month: int
    date: int
    shown_day: int
    day: int
    parts: tuple[tuple[int, int], ...]
    kind: int


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every zone name of the pinned tzdata."""
    return frozenset(Path(tzdata.__file__).with_name("zones").read_text("ascii").split())


def check_zone(name: object) -> str:
    """The name, if it is an IANA zone of the pinned tzdata.

    Raises InvalidInput, with the nearest name if one is near.
    """
    if isinstance(name, str) and name in zone_names():
        return name
    meant = _meant_zone(name) if isinstance(name, str) and len(name) <= 32 else ""  # the longest is 30
    accepted = "an IANA time zone name" + (
        f", perhaps {meant}" if meant else " such as 'Europe/Berlin' or 'UTC'"
    )
    raise InvalidInput("schedule.timezone", "no such time zone", value=name, accepted=accepted)


def _meant_zone(name: str) -> str:
    """What a wrong name probably means: an offset, a city, a typing error; empty if nothing is near."""
    import difflib  # only for a message: no cold start pays for it

    by_lower = {known.lower(): known for known in sorted(zone_names())}
    text = re.sub(r"[ _]+", "_", name.strip().lower())
    if offset := re.fullmatch(r"(?:utc|gmt)?([+-])0?(\d{1,2})(?::?00)?", text, re.ASCII):
        sign = "-" if offset[1] == "+" else "+"
        fixed = by_lower.get(f"etc/gmt{sign}{offset[2]}")
        return f"{fixed!r}, which is UTC{offset[1]}{offset[2]} all year" if fixed else ""
    place = text.rpartition("/")[2]
    same_place = [known for lower, known in by_lower.items() if place and lower.rpartition("/")[2] == place]
    spoken = _SPOKEN.get(re.sub(r"(_(standard|daylight|summer))?(_time)?$", "", text))
    if meant := _ABBREVIATED.get(text) or spoken or next(iter(same_place), ""):
        return repr(meant)
    near = difflib.get_close_matches(text, by_lower, n=1, cutoff=0.7)
    return repr(by_lower[near[0]]) if near else ""


def offset_at(zone: str, at: int) -> int:
    """Seconds that the zone's clock is ahead of UTC at an instant."""
    offset = datetime.fromtimestamp(at, zoneinfo.ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset.days * DAY_S + offset.seconds


def changes(zone: str, start: int, end: int) -> list[Change]:
    """The clock changes with start <= at < end, in order."""
    blocks = range(start // _BLOCK_S, (end - 1) // _BLOCK_S + 1)
    return [change for block in blocks for change in _block(zone, block) if start <= change.at < end]


@lru_cache(maxsize=8192)
def _block(zone: str, block: int) -> tuple[Change, ...]:
    if zone == "UTC":
        return ()
    clock_changes = []
    probe, end = block * _BLOCK_S - 1, (block + 1) * _BLOCK_S - 1
    before = offset_at(zone, probe)
    while probe < end:
        after = offset_at(zone, probe + _PROBE_S)
        if after != before:
            clock_changes.append(Change(_first_with(zone, probe, probe + _PROBE_S, before), before, after))
        probe, before = probe + _PROBE_S, after
    return tuple(clock_changes)


def _first_with(zone: str, low: int, high: int, before: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset_at(zone, middle) == before else (low, middle)
    return high


def instant_of_local(zone: str, local: datetime) -> int:
    """The instant at which a zone's clock shows `local` (naive, whole seconds).

    A repeated time means the first pass; a skipped one means the first instant after the gap.
    """
    wall = int(local.replace(tzinfo=UTC).timestamp())
    offset = offset_at(zone, wall - _MAX_CHANGE_S)
    for change in changes(zone, wall - _MAX_CHANGE_S, wall + _MAX_CHANGE_S):
        if wall - offset < change.at:
            break
        if wall - change.after < change.at:
            return change.at
        offset = change.after
    return wall - offset


def iso_date(day: int) -> str:
    """A date's ordinal as "2025-03-30"."""
    return date.fromordinal(day).isoformat()


_WHOLE_DAY: Final = tuple((hour, (1 << 60) - 1) for hour in range(24))


def _parts(first: int, last: int) -> tuple[tuple[int, int], ...]:
    """(hour, minutes) of the seconds [first, last) of a day, rounded outwards to minutes."""
    low, high = first // 60, -(-last // 60)
    if (low, high) == (0, 1440):
        return _WHOLE_DAY
    return tuple(
        (hour, (1 << min(high - hour * 60, 60)) - (1 << max(low - hour * 60, 0)))
        for hour in range(low // 60, (high - 1) // 60 + 1)
    )


@lru_cache(maxsize=2048)
def spans(zone: str, start: int, end: int) -> tuple[Span, ...]:
    """What a zone's calendar shows during [start, end), in order; cached, since a window is requested many times.

    A gap that ended in the minute before `start` is included: a schedule of whole minutes fires after it.
    """
    return tuple(_spans(zone, start, end))


def _spans(zone: str, start: int, end: int) -> Iterator[Span]:
    opens_at, offset, repeated_until = start, offset_at(zone, start), start
    for change in changes(zone, start - _MAX_CHANGE_S, end):
        if change.at > start:
            yield from _pass(opens_at, change.at, offset, repeated_until)
        if change.after > change.before and change.at > start - 60:
            yield from _gap(change)
        opens_at, offset = max(start, change.at), change.after
        repeated_until = change.at + max(0, change.before - change.after)
    yield from _pass(opens_at, end, offset, repeated_until)


def _pass(start: int, end: int, offset: int, repeated_until: int) -> Iterator[Span]:
    """One pass of one offset; its repeated beginning is a separate span."""
    middle = min(max(start, repeated_until), end)
    yield from _days(start, middle, offset, REPEATED)
    yield from _days(middle, end, offset, PLAIN)


def _gap(change: Change) -> Iterator[Span]:
    fires_on = (change.at + change.after) // DAY_S + EPOCH_ORDINAL
    for span in _days(change.at, change.at + change.after - change.before, change.before, SKIPPED):
        yield span._replace(opens_at=change.at, closes_at=change.at + 60, day=fires_on)


@lru_cache(maxsize=4096)
def gaps(zone: str, year: int) -> tuple[Span, ...]:
    """The local times that a zone's clock skips in a year, and within a day around it."""
    first, last = ((date(on, 1, 1).toordinal() - EPOCH_ORDINAL) * DAY_S for on in (year, year + 1))
    return tuple(
        gap
        for change in changes(zone, first - DAY_S, last + DAY_S)
        if change.after > change.before
        for gap in _gap(change)
    )


def _days(start: int, end: int, offset: int, kind: int) -> Iterator[Span]:
    while start < end:
        days, second = divmod(start + offset, DAY_S)
        midnight_at = start - second
        closes_at = min(end, midnight_at + DAY_S)
        day = days + EPOCH_ORDINAL
        month, bits = date_bits(day)
        parts = _parts(second, closes_at - midnight_at)
        yield Span(start, closes_at, midnight_at, month, bits, day, day, parts, kind)
        start = closes_at
