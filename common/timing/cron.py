"""A cron expression as bit masks: a few integer ANDs decide whether it fires.

croniter parses and validates; its instance is read once per distinct text (about 100 µs) and never evaluated.
`common/registration/cron_text.py` reads what a tenant typed.
`common/timing/fires.py` decides what happens at clock changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from croniter import croniter

from common.timing.date_bits import (
    ALL_DAYS,
    ALL_WEEKDAYS,
    LAST,
    LAST_DAY,
    date_bits,
    day_bit,
    nearest_weekday_bit,
    weekday_bit,
    weekday_bits,
)
from common.timing.instants import DAY_S

_RUNS_FREELY: Final = re.compile(r"\*(/\d+)?|\d+/\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cron:
    """Seconds, minutes, hours, months and dates: masks with bit n for the value n; dates as in `date_bits.py`."""

    minutes: int
    hours: int
    months: int
    days: int
    weekdays: int
    either_day: bool
    """A date matches by day of month OR by day of week, as in cron when both are restricted."""
    names_hour: bool
    """The hour is not `*`, so a time that the clock skips is still owed after the gap."""
    repeats: bool
    """The minute or the hour runs freely (`*`, `*/n`, `a/n`): it follows elapsed time, in both passes of an overlap."""
    seconds: tuple[int, ...] = (0,)
    by_second: bool = False
    """Six fields."""

    def on_date(self, month: int, date: int) -> bool:
        """Whether a date (its `date_bits`) matches."""
        if not self.months & month:
            return False
        if self.either_day:
            return bool((self.days | self.weekdays) & date)
        return bool(self.days & date and self.weekdays & date)


@lru_cache(maxsize=1 << 15)
def compile_cron(expression: str) -> Cron:
    """The masks of a canonical expression: five fields, or six with the seconds first.

    Raises what croniter raises (mostly ValueError). Text from a tenant must pass `cron_text.read_cron` first.
    """
    parsed: Any = croniter(expression, 0, second_at_beginning=True)
    minute, hour, day, month, weekday, *second = parsed.expanded
    texts = expression.split()[-5:]
    return Cron(
        minutes=_mask(minute, 0, 59),
        hours=_mask(hour, 0, 23),
        months=_mask(month, 1, 12),
        days=_nearest(parsed.nearest_weekday) if parsed.nearest_weekday else _day_mask(day),
        weekdays=_weekday_mask(weekday, parsed.nth_weekday_of_month),
        either_day=day[0] != "*" and weekday[0] != "*",
        names_hour="*" not in hour,
        repeats=runs_freely(texts[0]) or runs_freely(texts[1]),
        seconds=_bits(_mask(second[0], 0, 59)) if second else (0,),
        by_second=bool(second),
    )


def runs_freely(field: str) -> bool:
    """Whether a minute or hour field follows elapsed time. Read from the text: croniter turns `0-23` into `*`."""
    return any(_RUNS_FREELY.fullmatch(item) for item in field.split(","))


def _mask(values: list[int | str], low: int, high: int) -> int:
    if "*" in values:
        return (1 << high + 1) - (1 << low)
    return sum(1 << int(value) for value in values)


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def _day_mask(values: list[int | str]) -> int:
    if "*" in values:
        return ALL_DAYS
    return sum(LAST_DAY if value == "l" else day_bit(int(value)) for value in values)


def _nearest(days: set[int]) -> int:
    return sum(nearest_weekday_bit(day) for day in days)


def _weekday_mask(values: list[int | str], nth: dict[int, set[int | str]]) -> int:
    """Date bits of weekdays: of the n-th and last (`l`) ones if there are any, else of all."""
    if nth:
        return sum(
            weekday_bit(weekday, LAST if which == "l" else int(which))
            for weekday, ns in nth.items()
            for which in ns
        )
    if "*" in values:
        return ALL_WEEKDAYS
    return sum(weekday_bits(int(value)) for value in values)


@lru_cache(maxsize=1)
def _every_kind_of_date() -> tuple[tuple[int, int], ...]:
    """The dates of 28 years, which include all fourteen kinds of year: leap or not, beginning on one of seven weekdays.

    A date that is not among them never comes in the whole 400-year cycle of the calendar.
    """
    return tuple(date_bits(day) for day in range(date(1972, 1, 1).toordinal(), date(2000, 1, 1).toordinal()))


def ever_fires(cron: Cron) -> bool:
    """Whether any date of the calendar matches (`0 0 31 2 *` never does)."""
    return _comes(cron.months, cron.days, cron.weekdays, cron.either_day)


def shortest_interval_s(cron: Cron) -> int | None:
    """The fewest seconds between two fires, without clock changes; None if it is more than a day."""
    seconds, minutes, hours = cron.seconds, _bits(cron.minutes), _bits(cron.hours)
    within_minute = seconds[-1] - seconds[0]
    within_hour = (minutes[-1] - minutes[0]) * 60 + within_minute
    within_day = (hours[-1] - hours[0]) * 3600 + within_hour
    distances = [later - earlier for earlier, later in pairwise(seconds)]
    distances += [(later - earlier) * 60 - within_minute for earlier, later in pairwise(minutes)]
    distances += [(later - earlier) * 3600 - within_hour for earlier, later in pairwise(hours)]
    if _comes_on_consecutive_dates(cron.months, cron.days, cron.weekdays, cron.either_day):
        distances.append(DAY_S - within_day)
    return min(distances, default=None)


def _matching_dates(months: int, days: int, weekdays: int, either_day: bool) -> Iterator[bool]:
    cron = Cron(0, 0, months, days, weekdays, either_day, names_hour=False, repeats=False)
    return (cron.on_date(month, bits) for month, bits in _every_kind_of_date())


@lru_cache(maxsize=4096)
def _comes(months: int, days: int, weekdays: int, either_day: bool) -> bool:
    return any(_matching_dates(months, days, weekdays, either_day))


@lru_cache(maxsize=4096)
def _comes_on_consecutive_dates(months: int, days: int, weekdays: int, either_day: bool) -> bool:
    dates = pairwise(_matching_dates(months, days, weekdays, either_day))
    return any(today and tomorrow for today, tomorrow in dates)
