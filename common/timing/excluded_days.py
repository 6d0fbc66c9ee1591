"""The dates on which a schedule does not fire: its own ones, and those of the calendars that it names.

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
