"""Every so many days or months of the local calendar, counted from a date in both directions.

A month that is too short for the day has it on its last day: monthly from the 31st fires on the 28th of February.
"""

from __future__ import annotations

import calendar
import re
from datetime import date
from typing import Annotated, Final

from msgspec import Meta, Struct, field

from common.timing.date_bits import year_days
from common.timing.instants import DAY_S

_TEXT: Final = re.compile(r"(?:([0-9]{1,4})(d|w|mo|y)|P([0-9]{1,4})([DWMY]))")
_UNITS: Final = {"d": (1, 0), "w": (7, 0), "mo": (0, 1), "m": (0, 1), "y": (0, 12)}
# As long as the longest `every`, and ten years.
MAX_DAYS: Final = 3_660
MAX_MONTHS: Final = 120


class DateInterval(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The dates in steps of `days`, or else of `months`, from a date."""

    days: Annotated[int, Meta(ge=0)] = 0
    months: Annotated[int, Meta(ge=0)] = 0
    from_date: date = field(name="from")

    def __post_init__(self) -> None:
        if not self.days and not self.months:
            raise ValueError("the interval has no steps")

    @property
    def text(self) -> str:
        """The steps, as `steps_of` reads them."""
        return f"{self.days}d" if self.days else f"{self.months}mo"

    @property
    def shortest_s(self) -> int:
        """The fewest seconds between two dates, without clock changes."""
        return (self.days or 28 * self.months) * DAY_S

    def named_days(self, year: int) -> int:
        """The dates of a year that are in the steps: bit 0 is the first day."""
        first, end = year_days(year)
        if self.days:
            steps = range((self.from_date.toordinal() - first) % self.days, end - first, self.days)
            return sum(1 << day for day in steps)
        start = self.from_date
        months = (start.year - year) * 12 + start.month - 1
        return sum(
            1 << _day_of(year, month + 1, start.day) - first
            for month in range(12)
            if (month - months) % self.months == 0
        )


def _day_of(year: int, month: int, day: int) -> int:
    """The ordinal of a day of a month, or of the month's last day if it has fewer."""
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(day, last)).toordinal()


def steps_of(text: object) -> tuple[int, int] | None:
    """The days and months of `2w`, `10d`, `3mo`, `1y`, `P2W`, `P3M`; None if it is something else."""
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if not match:
        return None
    days, months = _UNITS[(match[2] or match[4]).lower()]
    count = int(match[1] or match[3])
    return count * days, count * months
