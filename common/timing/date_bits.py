"""Dates as bits: everything that a cron expression can ask about a date.

Bit 0 is the last day of its month, 1 to 31 the day, 32 + n "the weekday nearest to the n-th" (`nW`).
Bit 64 + 6w is the month's last weekday w (Sunday is 0), 64 + 6w + n its n-th one.
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


@lru_cache(maxsize=8192)
def date_bits(day: int) -> tuple[int, int]:
    """(month bit, date bits) of a date's ordinal."""
    when = date.fromordinal(day)
    weekday = when.isoweekday() % 7
    length = calendar.monthrange(when.year, when.month)[1]
    bits = day_bit(when.day) | weekday_bit(weekday, (when.day + 6) // 7)
    if when.day == length:
        bits |= LAST_DAY
    if when.day + 7 > length:
        bits |= weekday_bit(weekday, LAST)
    for wanted in _nearest_to(when.day, weekday, length):
        bits |= nearest_weekday_bit(wanted)
    return 1 << when.month, bits


def _nearest_to(day: int, weekday: int, length: int) -> set[int]:
    """All n whose "nW" means this day: Saturday moves to Friday, Sunday to Monday, never out of the month."""
    if weekday in (0, 6):
        return set()
    wanted = {day}
    if weekday == 5:
        wanted |= {day + 1} if day < length else set()
        wanted |= {day + 2} if day + 2 == length else set()
    if weekday == 1:
        wanted |= {day - 1} if day > 1 else set()
        wanted |= {day - 2} if day == 3 else set()
    if length in wanted:
        wanted |= set(range(length, 32))
    return wanted
