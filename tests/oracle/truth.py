"""When a schedule fires, from what a tenant writes: the other implementation, with no code of `common/`.

croniter matches naive dates and times, stdlib zoneinfo turns them into instants; see `calendar_reference.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.timing import calendar_reference

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
DAYS_AND_MONTHS = {"d": (1, 0), "w": (7, 0), "mo": (0, 1), "y": (0, 12)}
# The dates of each calendar, as ISO texts.
Calendars = Mapping[str, Collection[str]]


def fire_times(
    schedule: Mapping[str, Any], calendars: Calendars, start: int, end: int, most: int | None = None
) -> dict[int, int]:
    """The fire times in [start, end), each with the place of the first of several schedules that fires.

    `start` is when the job takes effect; it has `most` fire times left, by its `max_runs`.
    """
    places: dict[int, int] = {}
    for place, part in enumerate(parts_of(schedule)):
        for at in _within(part, _times(part, calendars, start, end)):
            if start <= at < end:
                places.setdefault(at, place)
    return {at: places[at] for at in sorted(_within(schedule, places))[:most]}


def parts_of(schedule: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Its schedules; itself if it is a single one."""
    return schedule.get("schedules") or [schedule]


def local_date(schedule: Mapping[str, Any], place: int, at: int) -> str:
    """The date of a fire time in the zone of the schedule that fired."""
    zone = parts_of(schedule)[place].get("timezone", "UTC")
    return datetime.fromtimestamp(at, ZoneInfo(zone)).date().isoformat()


def instant_of(text: str, zone: str | None = None) -> int:
    """The instant of an RFC 3339 text, or of a local time in a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo:
        return int(moment.timestamp())
    assert zone
    return calendar_reference.instant_of(moment, ZoneInfo(zone))


def _within(schedule: Mapping[str, Any], instants: Iterable[int]) -> Iterator[int]:
    first, end = (instant_of(schedule[key]) if key in schedule else None for key in ("start_at", "end_at"))
    return (at for at in instants if (first is None or at >= first) and (end is None or at < end))


def _times(part: Mapping[str, Any], calendars: Calendars, start: int, end: int) -> Iterable[int]:
    allowed, zone = _allowed(part, calendars), part.get("timezone")
    if "cron" in part:
        return calendar_reference.fire_times(part["cron"], zone or "UTC", allowed, start, end)
    if "at" in part:
        return _on_utc_dates([instant_of(part["at"], zone)], allowed)
    number, unit = _interval(part["every"])
    anchor = instant_of(part["anchor"], zone)
    if zone is None:
        every_s = number * SECONDS[unit]
        return _on_utc_dates(range(start + (anchor - start) % every_s, end, every_s), allowed)
    local = datetime.fromtimestamp(anchor, ZoneInfo(zone))
    days, months = (number * each for each in DAYS_AND_MONTHS[unit])
    names = calendar_reference.in_steps(local.date(), days, months)
    cron = f"{local.minute} {local.hour} * * *"
    return calendar_reference.fire_times(cron, zone, allowed, start, end, names)


def _interval(text: str) -> tuple[int, str]:
    match = re.fullmatch(r"([0-9]+)([a-z]+)", text)
    assert match
    return int(match[1]), match[2]


def _allowed(part: Mapping[str, Any], calendars: Calendars) -> calendar_reference.Calendars:
    exclude = part.get("exclude", {})
    excluded = set(exclude.get("dates", ())).union(
        *(calendars[name] for name in exclude.get("calendars", ()))
    )
    names = part.get("include_calendars")
    included = set().union(*(calendars[name] for name in names)) if names else None
    return calendar_reference.Calendars(
        frozenset(map(date.fromisoformat, excluded)),
        None if included is None else frozenset(map(date.fromisoformat, included)),
        part.get("on_excluded", "skip"),
    )


def _on_utc_dates(instants: Iterable[int], allowed: calendar_reference.Calendars) -> Iterator[int]:
    return (at for at in instants if allowed.allow(datetime.fromtimestamp(at, UTC).date()))
