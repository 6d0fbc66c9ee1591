"""The dates on which a schedule does not fire: its own ones, and those of the calendars that it names.

A cron can move its times from excluded dates: to the next or previous date that is not excluded, at the same time of
the day, at most MAX_MOVE_DAYS away. Else a date is left out. Dates that meet fire once. The policy for clock changes is
that of the date on which it fires.

A search over decades looks at the excluded dates of a whole year at once, as the bits of one number. A window of ten
minutes looks for its one date in each calendar.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Final

from common.timing.date_bits import year_days

if TYPE_CHECKING:
    from common.timing.schedule import Schedule
    from common.timing.zones import Span


from dataclasses import dataclass

from common.timing.cron import Cron, CronInYears, matching_days
from common.timing.date_bits import FIRST_YEAR, LAST_YEAR, year_bit
from common.timing.date_interval import DateInterval
from common.timing.instants import DAY_S
from common.timing.schedule import NEXT, SKIP
from common.timing.zones import Span


class Dates:
    """Some dates in four bytes each; a set of texts would need a hundred."""

    __slots__ = ("_days",)

    def __init__(self, iso_dates: Iterable[str]) -> None:
        self._days = array("I", sorted({date.fromisoformat(text).toordinal() for text in iso_dates}))

    def __len__(self) -> int:
        return len(self._days)

    def __contains__(self, iso_date: object) -> bool:
        assert isinstance(iso_date, str)
        return self.has(date.fromisoformat(iso_date).toordinal())

    def has(self, day: int) -> bool:
        """Whether the date with this ordinal is one of them."""
        position = bisect_left(self._days, day)
        return position < len(self._days) and self._days[position] == day

    def between(self, first: int, end: int) -> array[int]:
        """The ordinals in [first, end), ascending."""
        return self._days[bisect_left(self._days, first) : bisect_left(self._days, end)]


class ExcludedDays:
    """The dates of several calendars. The bits of a year are merged once, when a long search first needs them."""

    __slots__ = ("_calendars", "_years")

    def __init__(self, calendars: Iterable[Dates] = ()) -> None:
        self._calendars = tuple(dates for dates in calendars if dates)
        self._years: dict[int, int] = {}

    @classmethod
    def of(cls, iso_dates: Iterable[str]) -> ExcludedDays:
        """These dates as one calendar."""
        return cls((Dates(iso_dates),))

    def __bool__(self) -> bool:
        return bool(self._calendars)

    def __contains__(self, iso_date: object) -> bool:
        assert isinstance(iso_date, str)
        return self.has(date.fromisoformat(iso_date).toordinal())

    def __add__(self, other: ExcludedDays) -> ExcludedDays:
        if not self or not other:
            return self or other
        return _Sum(self, other)

    def leaves_out(self, span: Span) -> bool:
        """Whether nothing fires in a span, because of the date on which it would."""
        return self.has(span.day)

    def has(self, day: int) -> bool:
        """Whether the date with this ordinal is excluded."""
        return any(dates.has(day) for dates in self._calendars)

    def of_year(self, year: int) -> int:
        """The excluded dates of a year: bit 0 is its first day."""
        bits = self._years.get(year)
        if bits is None:
            first, end = year_days(year)
            days: set[int] = set()
            for dates in self._calendars:
                days.update(dates.between(first, end))
            bits = self._years[year] = sum(1 << day - first for day in days)
        return bits

    def first_outside(self, day: int, last: int) -> int:
        """The ordinal of the first date from `day` on that is not excluded; one after `last` if there is none."""
        while day <= last:
            first, end = year_days(date.fromordinal(day).year)
            following = self.of_year(date.fromordinal(day).year) >> day - first
            day += (~following & following + 1).bit_length() - 1
            if day < end:
                break
        return day


class WeekdayDays(ExcludedDays):
    """These days of each week; Monday is 0."""

    __slots__ = ("_weekdays",)

    def __init__(self, weekdays: Iterable[int]) -> None:
        super().__init__()
        self._weekdays = frozenset(weekdays)

    def __bool__(self) -> bool:
        return bool(self._weekdays)

    def has(self, day: int) -> bool:
        return (day - 1) % 7 in self._weekdays

    def of_year(self, year: int) -> int:
        first, end = year_days(year)
        return sum(1 << day - first for day in range(first, end) if (day - 1) % 7 in self._weekdays)


class OutsideDays(ExcludedDays):
    """All dates that are in none of the calendars."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True

    def has(self, day: int) -> bool:
        return not super().has(day)

    def of_year(self, year: int) -> int:
        first, end = year_days(year)
        return ((1 << end - first) - 1) & ~super().of_year(year)


def calendar_days(schedule: Schedule, dates_of: Callable[[str], Dates]) -> ExcludedDays | DaysOfEach:
    """What the calendars exclude that a schedule names, or each of several ones."""
    return days_of(schedule, lambda part: single_days(part, dates_of))


def single_days(schedule: Schedule, dates_of: Callable[[str], Dates]) -> ExcludedDays:
    """What the calendars exclude that a single schedule names."""
    excluded = ExcludedDays(map(dates_of, schedule.calendars))
    if not schedule.include_calendars:
        return excluded
    return excluded + OutsideDays(map(dates_of, schedule.include_calendars))


class _Sum(ExcludedDays):
    """The dates of two others. It shares the years that these have merged."""

    __slots__ = ("_calendar_days", "_own_days")

    def __init__(self, calendar_days: ExcludedDays, own_days: ExcludedDays) -> None:
        super().__init__()
        self._calendar_days, self._own_days = calendar_days, own_days

    def __bool__(self) -> bool:
        return True

    def has(self, day: int) -> bool:
        return self._calendar_days.has(day) or self._own_days.has(day)

    def of_year(self, year: int) -> int:
        return self._calendar_days.of_year(year) | self._own_days.of_year(year)


class DaysOfEach:
    """What the calendars exclude of each of several schedules, in their order."""

    __slots__ = ("each",)

    def __init__(self, each: Iterable[ExcludedDays]) -> None:
        self.each = tuple(each)

    def __bool__(self) -> bool:
        return any(self.each)


def days_of(schedule: Schedule, excluded: Callable[[Schedule], ExcludedDays]) -> ExcludedDays | DaysOfEach:
    """What is excluded of a schedule, or of each of several ones."""
    return (
        DaysOfEach(map(excluded, schedule.parts)) if len(schedule.parts) > 1 else excluded(schedule.parts[0])
    )


# As a schedule excludes them.
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NO_DAYS: Final = ExcludedDays()
# What searches take: merged days, or ISO dates that are merged for one search; of several schedules those of each.
Excluded = ExcludedDays | DaysOfEach | Collection[str]
SimpleExcluded = ExcludedDays | Collection[str]


def of_parts(schedule: Schedule, excluded: Excluded) -> Iterator[tuple[Schedule, SimpleExcluded]]:
    """Each of several schedules with what is excluded of it; dates without a schedule are excluded of all."""
    if isinstance(excluded, DaysOfEach):
        return zip(schedule.parts, excluded.each, strict=True)
    return zip(schedule.parts, repeat(excluded))


@lru_cache(maxsize=1024)
def own_days(iso_dates: tuple[str, ...], weekdays: tuple[str, ...]) -> ExcludedDays:
    """What a schedule excludes itself; a tick asks for the same in each window."""
    return ExcludedDays.of(iso_dates) + WeekdayDays(map(WEEKDAYS.index, weekdays))


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
