"""A cron expression as bit masks: a few integer ANDs decide whether it fires.

croniter parses and validates; its instance is read once per distinct text (about 100 µs) and never evaluated.
`common/registration/cron_text.py` reads what a tenant typed. `common/timing/eventbridge_cron.py` has AWS's dialect.
`common/timing/fires.py` decides what happens at clock changes.
"""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from croniter import croniter

from common.errors import InvalidInput
from common.limits import CRON_CHARS
from common.timing.date_bits import (
    ALL_DAYS,
    ALL_WEEKDAYS,
    FIRST_YEAR,
    LAST,
    LAST_DAY,
    LAST_YEAR,
    date_bits,
    day_bit,
    nearest_weekday_bit,
    weekday_bit,
    weekday_bits,
    year_bit,
)
from common.timing.instants import DAY_S, EPOCH_ORDINAL

_ALL_MONTHS: Final = (1 << 13) - 2
# A date begins up to a day earlier or later than in UTC, and one that the clock skips fires on the next.
DATE_MARGIN_S: Final = 2 * DAY_S
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
    """The hour is not `*`, so a time that the clock skips is still owed after the gap; never by EventBridge's rule."""
    repeats: bool
    """The minute or the hour runs freely (`*`, `*/n`, `a/n`): it follows elapsed time, in both passes of an overlap.
    Never by EventBridge's rule."""
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

    def stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The parts of [start, end) outside of which it cannot fire, in order."""
        yield start, end

    def comes_until(self, horizon: int) -> int:
        """The end of a search for its next fire time. `horizon`: the end for a cron without years."""
        return horizon


@dataclass(frozen=True, slots=True)
class CronInYears(Cron):
    """A cron that fires in some years only. It has its own class, so that all other crons pay nothing for the years."""

    years: int = 0
    """Bits as in `date_bits.py`."""

    def on_date(self, month: int, date: int) -> bool:
        return bool(self.years & date) and Cron.on_date(self, month, date)

    def stretches(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for first, last in _runs(self.years_listed()):
            low, high = _begins_at(first) - DATE_MARGIN_S, _begins_at(last + 1) + DATE_MARGIN_S
            if low < end and start < high:
                yield max(start, low), min(end, high)

    def comes_until(self, horizon: int) -> int:
        return max(horizon, _begins_at(self.years_listed()[-1] + 1) + DATE_MARGIN_S)

    def years_listed(self) -> list[int]:
        """Its years in order."""
        return [year for year in range(FIRST_YEAR, LAST_YEAR + 1) if self.years & year_bit(year)]


def _runs(years: list[int]) -> Iterator[tuple[int, int]]:
    first = years[0]
    for year, following in pairwise([*years, 0]):
        if following != year + 1:
            yield first, year
            first = following


def _begins_at(year: int) -> int:
    return (date(year, 1, 1).toordinal() - EPOCH_ORDINAL) * DAY_S


def refused(message: str, value: object, accepted: str, position: int | None = None) -> InvalidInput:
    """The error for an expression, or a part of one."""
    return InvalidInput("schedule.cron", message, value=value, accepted=accepted, position=position)


def checked_text(expression: object, example: str = "30 9 * * MON-FRI") -> str:
    """Upper-cased text that is safe to parse: short, printable, without huge numbers. Raises InvalidInput."""
    if not isinstance(expression, str):
        message = f"must be text, not {type(expression).__name__}"
        raise refused(message, expression, f"text such as '{example}'")
    if len(expression) > CRON_CHARS:
        raise refused(
            f"{len(expression)} characters", expression, f"at most {CRON_CHARS} characters", CRON_CHARS
        )
    strange = re.search(r"[^\t -~]", expression)
    if strange:
        raise refused(
            "a character that is not printable ASCII",
            expression,
            "printable ASCII, fields apart by blanks or tabs",
            strange.start(),
        )
    digits = re.search(r"\d{5,}", expression, re.ASCII)
    if digits:
        raise refused(
            "a number of more than 4 digits", expression, "numbers of at most 4 digits", digits.start()
        )
    return expression.upper()


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


@lru_cache(maxsize=1 << 14)
def on_any_date(cron: Cron) -> Cron:
    """The same times of the day on all dates of all years."""
    times = (cron.names_hour, cron.repeats, cron.seconds, cron.by_second)
    return Cron(cron.minutes, cron.hours, _ALL_MONTHS, ALL_DAYS, ALL_WEEKDAYS, False, *times)


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
            weekday_bit(weekday, LAST if nth_of_month == "l" else int(nth_of_month))
            for weekday, ns in nth.items()
            for nth_of_month in ns
        )
    if "*" in values:
        return ALL_WEEKDAYS
    return sum(weekday_bits(int(value)) for value in values)


# All fourteen kinds of year: leap or not, beginning on one of seven weekdays. A date that is in none of them never
# comes in the whole 400-year cycle of the calendar.
_EVERY_KIND_OF_YEAR: Final = tuple(range(1972, 2000))


@lru_cache(maxsize=len(_EVERY_KIND_OF_YEAR))
def _dates_of(year: int) -> tuple[tuple[int, int], ...]:
    return tuple(
        date_bits(day) for day in range(date(year, 1, 1).toordinal(), date(year + 1, 1, 1).toordinal())
    )


@lru_cache(maxsize=512)
def _of_the_same_kind(year: int) -> int:
    """One of _EVERY_KIND_OF_YEAR whose dates are on the same weekdays."""
    kind = isleap(year), date(year, 1, 1).weekday()
    return next(same for same in _EVERY_KIND_OF_YEAR if kind == (isleap(same), date(same, 1, 1).weekday()))


def ever_fires(cron: Cron) -> bool:
    """Whether any date of the calendar matches (`0 0 31 2 *` never does), in its years if it names some."""
    years = _EVERY_KIND_OF_YEAR
    if isinstance(cron, CronInYears):
        years = tuple(sorted(set(map(_of_the_same_kind, cron.years_listed()))))
    return _comes(cron.months, cron.days, cron.weekdays, cron.either_day, years)


def matching_days(cron: Cron, year: int) -> int:
    """The dates of a year that match, if it fires in that year: bit 0 is the first day."""
    return _matching_days(cron.months, cron.days, cron.weekdays, cron.either_day, _of_the_same_kind(year))


@lru_cache(maxsize=4096)
def _matching_days(months: int, days: int, weekdays: int, either_day: bool, year: int) -> int:
    matching = enumerate(_matching_dates(months, days, weekdays, either_day, (year,)))
    return sum(1 << day for day, matches in matching if matches)


def shortest_interval_s(cron: Cron) -> int | None:
    """The fewest seconds between two fires, without clock changes; None if it is more than a day.

    As if it fired in all years.
    """
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


def _matching_dates(
    months: int, days: int, weekdays: int, either_day: bool, years: Iterable[int] = _EVERY_KIND_OF_YEAR
) -> Iterator[bool]:
    cron = Cron(0, 0, months, days, weekdays, either_day, names_hour=False, repeats=False)
    return (cron.on_date(month, bits) for year in years for month, bits in _dates_of(year))


@lru_cache(maxsize=4096)
def _comes(months: int, days: int, weekdays: int, either_day: bool, years: tuple[int, ...]) -> bool:
    return any(_matching_dates(months, days, weekdays, either_day, years))


@lru_cache(maxsize=4096)
def _comes_on_consecutive_dates(months: int, days: int, weekdays: int, either_day: bool) -> bool:
    dates = pairwise(_matching_dates(months, days, weekdays, either_day))
    return any(today and tomorrow for today, tomorrow in dates)
