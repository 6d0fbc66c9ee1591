"""Reading an expression as another project reads it: a small second parser, written for comparison only.

It takes more than we do, and notes what it took beyond that (`beyond`): each note is a class of disagreement in
`manners.py`. A disagreement counts as explained only if this reading gives exactly the answer of the other project.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

Dates = Callable[[date], bool]
_MONTHS = {name.upper(): n for n, name in enumerate(calendar.month_abbr) if name}
_WEEKDAYS = {name: n for n, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}
_OUR_MACROS = {
    "@HOURLY": "0 0 * * * *",
    "@DAILY": "0 0 0 * * *",
    "@MIDNIGHT": "0 0 0 * * *",
    "@WEEKLY": "0 0 0 * * 0",
    "@MONTHLY": "0 0 0 1 * *",
    "@YEARLY": "0 0 0 1 1 *",
    "@ANNUALLY": "0 0 0 1 1 *",
}
_THEIR_MACROS = {
    "@EVERY_SECOND": "* * * * * *",
    "@SECONDLY": "* * * * * *",
    "@EVERY_MINUTE": "0 * * * * *",
    "@MINUTELY": "0 * * * * *",
}
_RANGE = re.compile(r"(\*|\?|[0-9A-Z]+)(?:-([0-9A-Z]+))?(?:/(\d+))?")


class Unreadable(ValueError):
    """Not an expression of this dialect either."""


@dataclass(frozen=True)
class Dialect:
    """How a project reads a text. `days`: "or", "and", or "star" (AND if either begins with `*`)."""

    seconds_sixth: bool = False
    sunday: int = 0
    days: str = "or"
    wraps: bool = True
    equal_is_all: bool = False
    nearest_stays_in_month: bool = False
    special_days_and: bool = False
    """`W` or `#` narrows the other day field."""


@dataclass
class Read:
    """An expression as sets of values, a test of dates, and the syntax that we lack."""

    seconds: set[int]
    minutes: set[int]
    hours: set[int]
    on_date: Dates
    texts: tuple[str, ...]
    """The six fields, seconds first."""
    by_second: bool
    beyond: set[str] = field(default_factory=set)


def read(text: str, dialect: Dialect) -> Read:
    """Raises Unreadable."""
    beyond: set[str] = set()
    columns, years = _columns(text, dialect, beyond)
    by_second = len(columns) == 6
    columns = columns if by_second else ["0", *columns]
    values = _Values(dialect, beyond)
    seconds = values.numbers(columns[0], 0, 59, "second")
    minutes = values.numbers(columns[1], 0, 59, "minute")
    hours = values.numbers(columns[2], 0, 23, "hour")
    months = values.numbers(columns[4], 1, 12, "month", _MONTHS)
    of_years = values.numbers(years, 1970, 2199, "year")
    days = _either(
        columns[3], columns[5], values.days(columns[3]), values.weekdays(columns[5]), dialect, beyond
    )

    def on_date(when: date) -> bool:
        return when.month in months and (years == "*" or when.year in of_years) and days(when)

    return Read(seconds, minutes, hours, on_date, tuple(columns), by_second, beyond)


def _columns(text: str, dialect: Dialect, beyond: set[str]) -> tuple[list[str], str]:
    """Five fields or six with the seconds first, and the years."""
    upper = text.strip().upper()
    if upper in _THEIR_MACROS:
        beyond.add("macro")
    if text.strip(" \t") != text.strip() or "\n" in text.strip():
        beyond.add("line break")
    columns = (_OUR_MACROS | _THEIR_MACROS).get(upper, upper).split()
    if not 5 <= len(columns) <= 7:
        raise Unreadable(f"{len(columns)} fields")
    years = "*"
    if len(columns) == 7:
        beyond.add("year")
        years = columns.pop()
    if len(columns) == 6 and dialect.seconds_sixth and not upper.startswith("@"):
        beyond.add("seconds sixth")
        columns = [columns[5], *columns[:5]]
    return columns, years


def _either(
    day: str, weekday: str, by_day: Dates, by_weekday: Dates, dialect: Dialect, beyond: set[str]
) -> Dates:
    def both(when: date) -> bool:
        return by_day(when) and by_weekday(when)

    if day in "*?" or weekday in "*?":
        return both
    if re.search(r"W|L-", day) or re.search(r"#|L", weekday):
        beyond.add("W or # with the other day field")
        if dialect.special_days_and:
            return both
    if dialect.days == "and" or (dialect.days == "star" and "*" in (day[0], weekday[0])):
        beyond.add("both days" if dialect.days == "and" else "both days after a star")
        return both
    return lambda when: by_day(when) or by_weekday(when)


@dataclass
class _Values:
    dialect: Dialect
    beyond: set[str]

    def numbers(
        self, text: str, low: int, high: int, name: str, names: dict[str, int] | None = None
    ) -> set[int]:
        return {value for item in text.split(",") for value in self.range(item, low, high, name, names or {})}

    def range(self, item: str, low: int, high: int, name: str, names: dict[str, int]) -> set[int]:
        match = _RANGE.fullmatch(item)
        if not match or (match[3] and not int(match[3])):
            raise Unreadable(item)
        first, last, stride, size = match[1], match[2], int(match[3] or 1), high - low + 1
        if stride >= size and not last:
            self.beyond.add("step out of range")
        if first in "*?":
            if first == "?" and name not in ("day", "weekday"):
                self.beyond.add("? in any field")
            return set(range(low, high + 1, stride))
        start = self._value(first, low, high, names, name)
        if not last:
            return set(range(start, high + 1, stride)) if match[3] else {start}
        end = self._value(last, low, high, names, name)
        if start == end and self.dialect.equal_is_all:
            self.beyond.add("5-5 is all")
            return set(range(low, high + 1, stride))
        if start > end:
            if not self.dialect.wraps:
                raise Unreadable(item)
            if stride > 1:
                self.beyond.add("wrapping range with a step")
            end += size
        return {(value - low) % size + low for value in range(start, end + 1, stride)}

    def _value(self, text: str, low: int, high: int, names: dict[str, int], name: str) -> int:
        if text in names:
            return names[text]
        if name == "day" and text == "L":
            return high
        if not text.isdigit():
            raise Unreadable(text)
        value = int(text)
        if name == "weekday" and self.dialect.sunday:
            value -= self.dialect.sunday
            self.beyond.add("weekdays from 1")
        elif name == "weekday" and value == 7 and high < 7:
            value = 0
        if not low <= value <= high:
            raise Unreadable(text)
        return value

    def days(self, text: str) -> Dates:
        return _any([self._day(item, "," in text) for item in text.split(",")])

    def _day(self, item: str, listed: bool) -> Dates:
        if listed and re.search(r"L.|W", item):
            self.beyond.add("list with # or W")
        if match := re.fullmatch(r"L(?:-(\d+))?(W)?(?:/\d+)?", item):
            back, nearest = int(match[1] or 0), bool(match[2])
            if item != "L":
                self.beyond.add("L-n" if match[1] else "LW" if nearest else "L with a step")
            return lambda when: _counted_back(when, back, nearest)
        if match := re.fullmatch(r"(\d+)W|W(\d+)", item):
            target_day = int(match[1] or match[2])
            if not 1 <= target_day <= 31:
                raise Unreadable(item)
            return lambda when: self._nearest(when, target_day)
        if item == "W":
            self.beyond.add("W alone")
            return lambda when: when.isoweekday() < 6
        values = self.range(item, 1, 31, "day", {})
        return lambda when: when.day in values

    def _nearest(self, when: date, target_day: int) -> bool:
        if target_day > _length(when) and self.dialect.nearest_stays_in_month:
            self.beyond.add("31W where there is no 31st")
            return False
        return when == nearest_weekday(when.replace(day=min(target_day, _length(when))))

    def weekdays(self, text: str) -> Dates:
        items = text.split(",")
        special = sum(1 for item in items if re.search(r"#|\dL|[A-Z]{3}L|^L", item))
        if 0 < special < len(items):
            self.beyond.add("list with # or W")
        return _any([self._weekday(item) for item in items])

    def _weekday(self, item: str) -> Dates:
        if item == "L":
            self.beyond.add("L alone as a weekday")
            return lambda when: when.isoweekday() % 7 == (6 if self.dialect.sunday else 0)
        if match := re.fullmatch(r"([0-9A-Z]+?)L|L([0-7])", item):
            if match[1]:
                self.beyond.add("5L")
            last = self._value(match[1] or match[2], 0, 6, _WEEKDAYS, "weekday")
            return lambda when: when.isoweekday() % 7 == last and when.day + 7 > _length(when)
        if match := re.fullmatch(r"([^#]+)#(-?)(\d+)", item):
            nth, weekdays = int(match[3]), self.range(match[1], 0, 6, "weekday", _WEEKDAYS)
            if not 1 <= nth <= 5:
                raise Unreadable(item)
            if match[2]:
                self.beyond.add("#-n")
                return lambda when: (
                    when.isoweekday() % 7 in weekdays and (_length(when) - when.day) // 7 + 1 == nth
                )
            return lambda when: when.isoweekday() % 7 in weekdays and (when.day + 6) // 7 == nth
        values = {value % 7 for value in self._plain_weekdays(item)}
        return lambda when: when.isoweekday() % 7 in values

    def _plain_weekdays(self, item: str) -> set[int]:
        """Up to 7, which is Sunday again, so that FRI-SUN and 5-7 do not wrap."""
        if not self.dialect.sunday and re.fullmatch(r"(?!0|7|SUN)[^-/*?]+-(7|0|SUN)(/\d+)?", item):
            return self.range(re.sub(r"-(0|SUN)", "-7", item), 0, 7, "weekday", _WEEKDAYS)
        return self.range(item, 0, 6, "weekday", _WEEKDAYS)


def _any(tests: list[Dates]) -> Dates:
    return tests[0] if len(tests) == 1 else lambda when: any(test(when) for test in tests)


def _length(when: date) -> int:
    return calendar.monthrange(when.year, when.month)[1]


def nearest_weekday(when: date) -> date:
    """The weekday nearest to a date, within its month."""
    steps = {6: (-1, 2), 7: (1, -2)}.get(when.isoweekday(), (0,))
    return next(near for step in steps if (near := when + timedelta(days=step)).month == when.month)


def _counted_back(when: date, back: int, nearest: bool) -> bool:
    day = _length(when) - back
    if day < 1:
        return False
    target_date = when.replace(day=day)
    return when == (nearest_weekday(target_date) if nearest else target_date)


def dates(on_date: Dates, first: date, days: int) -> Iterator[date]:
    """The matching dates among this many from the first."""
    return (when for when in (first + timedelta(days=n) for n in range(days)) if on_date(when))
