"""Fire times of a cron that move from excluded dates to allowed ones, at the same time of the day.

A date that the cron names is moved to the next or previous date that is not excluded, at most MAX_MOVE_DAYS away; else
it is left out. Dates that meet fire once. The policy for clock changes is that of the date on which it fires.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

from common.timing.cron import Cron, CronInYears, matching_days
from common.timing.date_bits import FIRST_YEAR, LAST_YEAR, year_bit, year_days
from common.timing.date_interval import DateInterval
from common.timing.excluded_days import ExcludedDays
from common.timing.instants import DAY_S
from common.timing.schedule import NEXT, SKIP
from common.timing.zones import Span

MAX_MOVE_DAYS: Final = 31
MAX_MOVE_S: Final = (MAX_MOVE_DAYS + 2) * DAY_S


class DaysWithoutFire(ExcludedDays):
    """The dates on which a schedule does not fire: excluded ones, and those that it neither names nor moves to."""

    __slots__ = ("_excluded", "_known_years", "_named", "_on_excluded")

    def __init__(self, named: NamedDays | DateInterval, excluded: ExcludedDays, on_excluded: str) -> None:
        super().__init__()
        self._named, self._excluded, self._on_excluded = named, excluded, on_excluded
        self._known_years: dict[int, int] = {}

    def __bool__(self) -> bool:
        return True

    def has(self, day: int) -> bool:
        year = date.fromordinal(day).year
        return bool(self.of_year(year) >> day - year_days(year)[0] & 1)

    def leaves_out(self, span: Span) -> bool:
        """By the date that the clock shows; a time that it skips may fire on the next, which may be excluded."""
        return self.has(span.shown_day) or (span.day != span.shown_day and self._excluded.has(span.day))

    def of_year(self, year: int) -> int:
        without = self._known_years.get(year)
        if without is None:
            without = self._known_years[year] = self._days_without_fire(year)
        return without

    def _days_without_fire(self, year: int) -> int:
        """As bits: each step moves all excluded dates that it names by one day, until they meet allowed ones."""
        years = (year - 1, year, year + 1)
        begins = year_days(years[0])[0]
        named = excluded = 0
        for each in years:
            shift = year_days(each)[0] - begins
            named |= self._named.named_days(each) << shift
            excluded |= self._excluded.of_year(each) << shift
        fires, moving = named & ~excluded, 0 if self._on_excluded == SKIP else named & excluded
        for _ in range(MAX_MOVE_DAYS):
            if not moving:
                break
            moving = moving << 1 if self._on_excluded == NEXT else moving >> 1
            fires |= moving & ~excluded
            moving &= excluded
        first, end = year_days(year)
        return ((1 << end - first) - 1) & ~(fires >> first - begins)


@dataclass(frozen=True, slots=True)
class NamedDays:
    """The dates that a cron names."""

    cron: Cron

    def named_days(self, year: int) -> int:
        """Those of a year: bit 0 is the first day."""
        if isinstance(self.cron, CronInYears):
            is_known = FIRST_YEAR <= year <= LAST_YEAR
            if not (is_known and self.cron.years & year_bit(year)):
                return 0
        return matching_days(self.cron, year)
