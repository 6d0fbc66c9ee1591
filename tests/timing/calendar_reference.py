"""A slow second implementation of calendars and moved fire times: local dates, one by one, with stdlib zoneinfo.

It shares no code with `common/timing`: croniter matches naive dates and times, and zoneinfo turns them into instants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from croniter import croniter

DAY = timedelta(days=1)
MINUTE_S = 60


@dataclass(frozen=True)
class Calendars:
    """Dates that are excluded, and the only ones that are included; None includes all."""

    excluded: frozenset[date]
    included: frozenset[date] | None
    on_excluded: str

    def allow(self, day: date) -> bool:
        return day not in self.excluded and (self.included is None or day in self.included)

    def moved(self, day: date) -> date | None:
        """Where the fire times of a date go; None if they are left out."""
        if self.allow(day) or self.on_excluded == "skip":
            return day if self.allow(day) else None
        step = DAY if self.on_excluded == "next" else -DAY
        return next((to for n in range(1, 32) if self.allow(to := day + n * step)), None)


def in_steps(anchor: date, days: int, months: int) -> Callable[[date], bool]:
    """Whether a date is in steps of days, or else of months, from the anchor: months are walked one by one."""
    if days:
        return lambda day: (day - anchor).days % days == 0

    def is_in_month(day: date) -> bool:
        last = (day.replace(day=28) + timedelta(days=4)).replace(day=1) - DAY
        distance, at = 0, day.replace(day=1)
        while at != anchor.replace(day=1):
            at = (at - DAY).replace(day=1) if at > anchor else (at + timedelta(days=31)).replace(day=1)
            distance += 1
        return distance % months == 0 and day.day == min(anchor.day, last.day)

    return is_in_month


def fire_times(
    expression: str,
    zone: str,
    calendars: Calendars,
    start: int,
    end: int,
    names: Callable[[date], bool] = lambda day: True,
) -> list[int]:
    """Of five fields, of which the hour is `*`, `*/n`, or names hours; only on dates that `names` takes."""
    minute, hour, *days = expression.split(" ")
    times = _times_of_day(minute, hour)
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (start, end))
    dates: set[date] = set()
    for n in range(-35, (last - first).days + 36):
        day = first + n * DAY
        if names(day) and croniter.match(
            f"0 0 {' '.join(days)}", datetime(day.year, day.month, day.day, tzinfo=UTC)
        ):
            dates |= {to} if (to := calendars.moved(day)) else set()
    free = any("*" in item or ("/" in item and "-" not in item) for item in f"{minute},{hour}".split(","))
    instants: set[int] = set()
    for day in dates:
        for time in times:
            local = datetime.combine(day, time.time())
            instants.update(_instants(local, ZoneInfo(zone), calendars, free, hour != "*"))
    return sorted(at for at in instants if start <= at < end)


def instant_of(local: datetime, zone: ZoneInfo) -> int:
    """A local time: in its first pass if the clock repeats it, and after the gap if the clock skips it."""
    return next(_instants(local, zone, Calendars(frozenset(), None, "skip"), free=False, names_hour=True))


@cache
def _times_of_day(minute: str, hour: str) -> list[datetime]:
    all_times = (datetime(2001, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(1440))
    return [time for time in all_times if croniter.match(f"{minute} {hour} * * *", time)]


def _instants(
    local: datetime, zone: ZoneInfo, calendars: Calendars, free: bool, names_hour: bool
) -> Iterator[int]:
    passes = [int(local.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1)]
    real = sorted({at for at in passes if _shown(at, zone) == local})
    if real:
        yield from real if free else real[:1]
    elif names_hour:
        at = passes[0]
        while _offset(at - MINUTE_S, zone) == _offset(at, zone):
            at -= MINUTE_S
        if calendars.allow(_shown(at, zone).date()):
            yield at


def _shown(at: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)


def _offset(at: int, zone: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()
