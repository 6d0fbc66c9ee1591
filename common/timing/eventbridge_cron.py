"""AWS's cron dialect, as EventBridge Scheduler has it: `minutes hours day-of-month month day-of-week year`.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
What AWS does not say is taken from Quartz, which has the same characters: a range may wrap (`FRI-MON`, `22-2`), also
with a step, but not one of years; `L-3` is three days before the last day, `LW` the last weekday from Monday to Friday.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count
from typing import Final, NamedTuple

from common.errors import InvalidInput
from common.timing.cron import Cron, CronInYears, checked_text, refused, runs_freely
from common.timing.date_bits import (
    ALL_DAYS,
    ALL_WEEKDAYS,
    FIRST_YEAR,
    LAST,
    LAST_DAY,
    LAST_YEAR,
    before_last_bit,
    day_bit,
    nearest_weekday_bit,
    weekday_bit,
    weekday_bits,
    year_bit,
)

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
EXAMPLE: Final = "0 9 ? * MON-FRI *"
_LISTED: Final = "`*`, `n`, `a-b`, `a/n`, `a-b/n`, `*/n` or a list of these with commas"


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: dict[str, int]
    accepted: str


_FIELDS: Final = (
    _Field("minutes", 0, 59, {}, f"0-59; {_LISTED}"),
    _Field("hours", 0, 23, {}, f"0-23; {_LISTED}"),
    _Field("day-of-month", 1, 31, {}, f"1-31; {_LISTED}; or alone one of `?`, `L`, `L-3`, `LW`, `15W`"),
    _Field("month", 1, 12, dict(zip(_MONTHS, count(1), strict=False)), f"1-12 or JAN-DEC; {_LISTED}"),
    _Field(
        "day-of-week", 1, 7, dict(zip(WEEKDAYS, count(1), strict=False)),
        f"1-7 from Sunday, or SUN-SAT; {_LISTED}; or alone one of `?`, `L`, `6L`, `3#2`",
    ),
    _Field("year", FIRST_YEAR, LAST_YEAR, {}, f"{FIRST_YEAR}-{LAST_YEAR}; {_LISTED}"),
)  # fmt: skip
_DAY, _WEEKDAY, _YEAR = _FIELDS[2], _FIELDS[4], _FIELDS[5]

_VALUE: Final = r"[0-9]+|[A-Z]+"
_RANGE: Final = re.compile(rf"(?P<low>\*|{_VALUE})(?:-(?P<high>{_VALUE}))?(?:/(?P<step>[0-9]+))?")
_BEFORE_LAST: Final = re.compile(r"L-([0-9]+)")
_NEAREST: Final = re.compile(r"([0-9]+)W")
_LAST_OF_MONTH: Final = re.compile(rf"({'|'.join(WEEKDAYS)}|[0-9]+)L")
_NTH: Final = re.compile(rf"({_VALUE})#([0-9]+)")


class _Item(NamedTuple):
    """One item of a field's list, and where it begins in the expression."""

    text: str
    position: int
    field: _Field

    def refuse(self, message: str, accepted: str = "") -> InvalidInput:
        named = f"{self.field.name}: {message}"
        return refused(named, self.text, accepted or self.field.accepted, self.position)


def read_eventbridge(expression: object) -> str:
    """The canonical text of an expression: upper case, one blank between two fields.

    Raises InvalidInput and nothing else, for any value.
    """
    text = checked_text(expression, EXAMPLE)
    if called := re.fullmatch(r"\s*CRON\((.*)\)\s*", text):
        raise refused("begins with `cron(`", expression, f"without it: {called[1]}")
    columns = [(match.group(), match.start()) for match in re.finditer(r"[^ \t]+", text)]
    if len(columns) != len(_FIELDS):
        raise refused(
            f"has {len(columns)} field{'s' if len(columns) != 1 else ''}",
            expression,
            f"6 fields: {' '.join(field.name for field in _FIELDS)}; such as {EXAMPLE}",
            0,
        )
    _masks(columns)
    return " ".join(column for column, _ in columns)


@lru_cache(maxsize=1 << 15)
def compile_eventbridge(expression: str) -> Cron:
    """The masks of a canonical text. Raises InvalidInput, or ValueError for a wrong number of fields."""
    fields = expression.split(" ")
    minutes, hours, days, months, weekdays, years = _masks([(field, 0) for field in fields])
    masks = minutes, hours, months, days, weekdays
    names_hour, repeats = hours != (1 << 24) - 1, runs_freely(fields[0]) or runs_freely(fields[1])
    if fields[5] == "*":
        return Cron(*masks, either_day=False, names_hour=names_hour, repeats=repeats)
    return CronInYears(*masks, either_day=False, names_hour=names_hour, repeats=repeats, years=years)


def _masks(columns: list[tuple[str, int]]) -> list[int]:
    """The masks of the six fields, each with its position."""
    day, weekday = columns[2], columns[4]
    if (day[0] == "?") == (weekday[0] == "?"):
        raise _Item(day[0], day[1], _DAY).refuse(
            "exactly one of day-of-month and day-of-week must be `?`", f"such as {EXAMPLE} or 0 9 1 * ? *"
        )
    return [_mask(field, text, position) for field, (text, position) in zip(_FIELDS, columns, strict=True)]


def _mask(field: _Field, text: str, position: int) -> int:
    if text == "?":
        if field not in (_DAY, _WEEKDAY):
            raise _Item(text, position, field).refuse("`?` stands for a day only", "`*`")
        return ALL_DAYS if field is _DAY else ALL_WEEKDAYS
    if special := _special(_Item(text, position, field)):
        return special
    mask = 0
    for item in text.split(","):
        mask |= _of_range(_Item(item, position, field))
        position += len(item) + 1
    return mask


def _special(item: _Item) -> int:
    """The bits of a field with `L`, `W` or `#`, which takes no list; 0 for any other."""
    if item.field is _DAY:
        return _special_day(item)
    if item.field is not _WEEKDAY:
        return 0
    if item.text == "L":
        return weekday_bits(6)
    if last := _LAST_OF_MONTH.fullmatch(item.text):
        return weekday_bit(_number(item, last[1]) - 1, LAST)
    if nth := _NTH.fullmatch(item.text):
        if not 1 <= int(nth[2]) <= 5:
            raise item.refuse("a month has no such week", "`3#1` to `3#5`, or `3L` for the last")
        return weekday_bit(_number(item, nth[1]) - 1, int(nth[2]))
    return 0


def _special_day(item: _Item) -> int:
    if item.text == "L":
        return LAST_DAY
    if item.text == "LW":
        return nearest_weekday_bit(31)
    if before := _BEFORE_LAST.fullmatch(item.text):
        if not 1 <= int(before[1]) <= 30:
            raise item.refuse(f"{int(before[1])} days before the last one is in no month", "`L-1` to `L-30`")
        return before_last_bit(int(before[1]))
    if nearest := _NEAREST.fullmatch(item.text):
        return nearest_weekday_bit(_number(item, nearest[1]))
    return 0


def _of_range(item: _Item) -> int:
    match = _RANGE.fullmatch(item.text)
    if not match:
        raise item.refuse("cannot be read" if item.text else "an empty item")
    field, step = item.field, int(match["step"] or 1)
    size = field.high - field.low + 1
    if not 1 <= step < size:
        raise item.refuse(f"the step {step} is out of range", f"a step from 1 to {size - 1}")
    if match["low"] == "*":
        if match["high"]:
            raise item.refuse("`*` cannot begin a range")
        low, high = field.low, field.high
    else:
        low = _number(item, match["low"])
        high = _number(item, match["high"]) if match["high"] else field.high if match["step"] else low
    if high < low:
        if field is _YEAR:
            raise item.refuse("the range falls", "a range of years that rises")
        high += size
    return sum(
        {_bit(field, field.low + (number - field.low) % size) for number in range(low, high + 1, step)}
    )


def _number(item: _Item, text: str) -> int:
    if text in item.field.names:
        return item.field.names[text]
    if not text.isdigit():
        raise item.refuse(f"{text!r} is not a name of this field")
    if item.field.low <= int(text) <= item.field.high:
        return int(text)
    raise item.refuse(f"{int(text)} is out of range")


def _bit(field: _Field, number: int) -> int:
    if field is _DAY:
        return day_bit(number)
    if field is _WEEKDAY:
        return weekday_bits(number - 1)
    return year_bit(number) if field is _YEAR else 1 << number
