"""The reference for AWS's cron dialect: a local time is compared with each field's text, minute by minute.

Slow and simple on purpose, and written without the evaluator: no masks, no date bits.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

_MONTHS = [name.upper() for name in calendar.month_abbr]
_DAYS = ["", "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def matches(expression: str, local: datetime) -> bool:
    """Whether the fields name a local time."""
    minute, hour, day, month, weekday, year = expression.upper().split()
    return (
        local.minute in _numbers(minute, 0, 59)
        and local.hour in _numbers(hour, 0, 23)
        and (day == "?" or _on_day(day, local))
        and local.month in _numbers(_named(month, _MONTHS), 1, 12)
        and (weekday == "?" or _on_weekday(_named(weekday, _DAYS), local))
        and local.year in _numbers(year, 1970, 2199)
    )


def matching(expression: str, zone: str, minutes: Iterable[int], *, rule: bool = True) -> list[int]:
    """The UTC minutes at which it fires; by EventBridge's rule the second pass of a repeated time is left out."""
    fire_minutes = []
    for at in minutes:
        local = datetime.fromtimestamp(at, ZoneInfo(zone))
        if not (rule and local.fold) and matches(expression, local):
            fire_minutes.append(at)
    return fire_minutes


def dates(expression: str, years: Iterable[int]) -> list[str]:
    """The dates of some years that its date fields name."""
    fields = expression.upper().split()
    always = " ".join(["*", "*", *fields[2:]])
    return [
        f"{day:%Y-%m-%d}"
        for year in years
        for day in (
            datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(365 + calendar.isleap(year))
        )
        if matches(always, day)
    ]


def _named(field: str, names: list[str]) -> str:
    for number, name in enumerate(names):
        if name:
            field = field.replace(name, str(number))
    return field


def _numbers(field: str, low: int, high: int) -> set[int]:
    numbers = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = map(int, span.split("-"))
        else:
            first = int(span)
            last = high if step else first
        number = first
        for n in range((last - first) % (high - low + 1) + 1):
            if n % int(step or 1) == 0:
                numbers.add(number)
            number = low if number == high else number + 1
    return numbers


def _on_day(field: str, local: datetime) -> bool:
    length = calendar.monthrange(local.year, local.month)[1]
    if field == "L":
        return local.day == length
    if before := re.fullmatch(r"L-(\d+)", field):
        return local.day == length - int(before[1])
    if nearest := re.fullmatch(r"(\d+|L)W", field):
        target_day = length if nearest[1] == "L" else min(int(nearest[1]), length)
        weekdays = [day for day in range(1, length + 1) if local.replace(day=day).isoweekday() <= 5]
        return local.day == min(weekdays, key=lambda day: abs(day - target_day))
    return local.day in _numbers(field, 1, 31)


def _on_weekday(field: str, local: datetime) -> bool:
    today = local.isoweekday() % 7 + 1
    length = calendar.monthrange(local.year, local.month)[1]
    if field == "L":
        return today == 7
    if last := re.fullmatch(r"(\d)L", field):
        return today == int(last[1]) and local.day > length - 7
    if nth := re.fullmatch(r"(\d)#(\d)", field):
        return today == int(nth[1]) and (local.day - 1) // 7 + 1 == int(nth[2])
    return today in _numbers(field, 1, 7)


def _field(
    low: int, high: int, names: list[str] | None = None, *, wraps: bool = True
) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    word = value.map(lambda number: names[number]) if names else value.map(str)
    step = st.integers(1, high - low)
    pair = st.tuples(value, value).map(lambda ab: ab if wraps else tuple(sorted(ab)))
    span = pair.map(lambda ab: f"{names[ab[0]]}-{names[ab[1]]}" if names else f"{ab[0]}-{ab[1]}")
    item = st.one_of(
        word,
        span,
        st.builds("*/{}".format, step),
        st.builds("{}/{}".format, word, step),
        st.builds("{}/{}".format, span, step),
    )
    return st.one_of(st.just("*"), st.lists(item, min_size=1, max_size=3).map(",".join))


_MINUTE, _HOUR = _field(0, 59), st.one_of(_field(0, 23), _field(0, 4))
_MONTH = st.one_of(st.just("*"), _field(1, 12), _field(1, 12, _MONTHS))
_YEAR = st.one_of(
    st.just("*"), st.just("*"), _field(1970, 2199, wraps=False), _field(2020, 2040, wraps=False)
)
_DAY = st.one_of(
    _field(1, 31),
    st.sampled_from(["L", "LW"]),
    st.integers(1, 30).map("L-{}".format),
    st.integers(1, 31).map("{}W".format),
)
_WEEKDAY_WORD = st.one_of(st.integers(1, 7).map(str), st.sampled_from(_DAYS[1:]))
_WEEKDAY = st.one_of(
    _field(1, 7),
    _field(1, 7, _DAYS),
    st.just("L"),
    _WEEKDAY_WORD.map("{}L".format),
    st.builds("{}#{}".format, _WEEKDAY_WORD, st.integers(1, 5)),
)
_BOTH_DAYS = st.one_of(_DAY.map(lambda day: (day, "?")), _WEEKDAY.map(lambda day: ("?", day)))


@st.composite
def expressions(draw: st.DrawFn, *, any_date: bool = False) -> str:
    """Expressions of the dialect; `any_date` leaves the dates free, since the hour is where clocks change."""
    day, weekday = ("*", "?") if any_date else draw(_BOTH_DAYS)
    month, year = ("*", "*") if any_date else (draw(_MONTH), draw(_YEAR))
    return f"{draw(_MINUTE)} {draw(_HOUR)} {day} {month} {weekday} {year}"
