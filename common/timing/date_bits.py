"""Dates as bits: everything that a cron expression can ask about a date.

Bit 0 is the last day of its month, 1 to 31 the day, 32 + n "the weekday nearest to the n-th" (`nW`).
Bit 64 + 6w is the month's last weekday w (Sunday is 0), 64 + 6w + n its n-th one.
Bit 105 + n is n days before the month's last day (`L-n`), 140 + n the year 1970 + n.
"""

from __future__ import annotations

import calendar
from datetime import date
from functools import lru_cache
from typing import Final

LAST_DAY: Final = 1
ALL_DAYS: Final = (1 << 32) - 2
ALL_WEEKDAYS: Final = ((1 << 42) - 1) << 64
# Used as n: the month's last one.
LAST: Final = 0
# A month has at most five of each weekday.
NTHS: Final = range(1, 6)
_EACH_NTH: Final = 0b111110
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
_BEFORE_LAST: Final = 105
_YEARS: Final = 140


@lru_cache(maxsize=512)
def year_days(year: int) -> tuple[int, int]:
    """The ordinal of a year's first day, and that of the day after its last one."""
    first = date(year, 1, 1).toordinal()
    return first, date(year, 12, 31).toordinal() + 1


def day_bit(day: int) -> int:
    """The day of the month, 1 to 31."""
    return 1 << day


def nearest_weekday_bit(day: int) -> int:
    """The weekday nearest to a day of the month (`15W`)."""
    return 1 << 32 + day


def weekday_bit(weekday: int, nth: int) -> int:
    """The month's n-th such weekday, or its LAST one; Sunday is 0."""
    return 1 << 64 + 6 * weekday + nth


def weekday_bits(weekday: int) -> int:
    """Each such weekday of a month."""
    return _EACH_NTH << 64 + 6 * weekday


def before_last_bit(days: int) -> int:
    """The bit of the day that is `days` (1 to 30) before the last day of the month (`L-3`)."""
    return 1 << _BEFORE_LAST + days


def year_bit(year: int) -> int:
    """A year from FIRST_YEAR to LAST_YEAR."""
    return 1 << _YEARS + year - FIRST_YEAR


def with_days_for_before_last(days: int) -> int:
    """The same bits, with each day that an `L-n` can be in its place."""
    for before in range(1, 31):
        if days & before_last_bit(before):
            days ^= before_last_bit(before)
            days |= sum(day_bit(length - before) for length in range(28, 32) if length > before)
    return days


@lru_cache(maxsize=8192)
def date_bits(day: int) -> tuple[int, int]:
    """(month bit, date bits) of a date's ordinal."""
    when = date.fromordinal(day)
    weekday = when.isoweekday() % 7
    length = calendar.monthrange(when.year, when.month)[1]
    bits = day_bit(when.day) | weekday_bit(weekday, (when.day + 6) // 7)
    bits |= LAST_DAY if when.day == length else before_last_bit(length - when.day)
    if FIRST_YEAR <= when.year <= LAST_YEAR:
        bits |= year_bit(when.year)
    if when.day + 7 > length:
        bits |= weekday_bit(weekday, LAST)
    for day in _nearest_to(when.day, weekday, length):
        bits |= nearest_weekday_bit(day)
    return 1 << when.month, bits


def _nearest_to(day: int, weekday: int, length: int) -> set[int]:
    """All n whose "nW" means this day: Saturday moves to Friday, Sunday to Monday, never out of the month."""
    if weekday in (0, 6):
        return set()
    days = {day}
    if weekday == 5:
        days |= {day + 1} if day < length else set()
        days |= {day + 2} if day + 2 == length else set()
    if weekday == 1:
        days |= {day - 1} if day > 1 else set()
        days |= {day - 2} if day == 3 else set()
    if length in days:
        days |= set(range(length, 32))
    return days
