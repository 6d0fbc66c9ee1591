"""Both day fields of a cron expression: in some crons both must match, and in Minute8 either.

In Vixie cron, and in cronie, Debian's and FreeBSD's, both must match if one of the fields begins with `*`.
https://github.com/cronie-crond/cronie/blob/master/src/entry.c (DOM_STAR, DOW_STAR)
In Kubernetes' cron a `*` with a step over 1 does not count as one.
https://github.com/robfig/cron/blob/v3/parser.go (starBit)
"""

from __future__ import annotations

import re
from typing import Final

from cli.sources.found import NotHere

_ALL_DAYS: Final = set(range(1, 32))
_ITEM: Final = re.compile(r"(?:(?P<free>[*?])|(?P<low>\d+)(?:-(?P<high>\d+))?)(?:/(?P<step>\d+))?", re.ASCII)
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WEEKS: Final = [set(range(first, min(first + 7, 32))) for first in range(1, 32, 7)]


def vixie(cron: str) -> str:
    """A crontab's expression for Minute8. Raises NotHere."""
    return _with_both_days(cron, re.compile(r"\*"))


def kubernetes(cron: str) -> str:
    """A CronJob's expression for Minute8. Raises NotHere."""
    return _with_both_days(cron, re.compile(r"(?:.*,)?[*?](?:/1)?(?:,|$)"))


def _with_both_days(cron: str, starred: re.Pattern[str]) -> str:
    fields = cron.split()
    if len(fields) != 5:
        return cron
    minute, hour, day, month, weekday = fields
    if {day, weekday} & {"*", "?"} or not (starred.match(day) or starred.match(weekday)):
        return cron  # either field matches, in both
    for number, name in enumerate(_WEEKDAYS):
        weekday = re.sub(name, str(number), weekday, flags=re.IGNORECASE)
    month_days, week_days = _numbers(day, 1, 31), {number % 7 for number in _numbers(weekday, 0, 7)}
    if not month_days or not week_days:
        return cron  # the API refuses it with the reason
    if month_days == _ALL_DAYS:
        return f"{minute} {hour} * {month} {fields[4]}"
    if len(week_days) == 7:
        return f"{minute} {hour} {day} {month} *"
    weeks = [number for number, week in enumerate(_WEEKS, 1) if week <= month_days]
    if set().union(*(_WEEKS[number - 1] for number in weeks)) != month_days:
        raise NotHere(
            f"{cron!r}: its day of month and its day of week both have to match there, since one begins with `*`; "
            "here either is enough. Accepted: `*` in one of the two, or days of whole weeks such as 1-7"
        )
    nth = ",".join(f"{number}#{week}" for week in weeks for number in sorted(week_days))
    return f"{minute} {hour} * {month} {nth}"


def _numbers(field: str, low: int, high: int) -> set[int]:
    """The numbers of a field; empty if cron cannot read it."""
    found: set[int] = set()
    for item in map(_ITEM.fullmatch, field.split(",")):
        step = int(item["step"] or 1) if item else 0
        if not item or not 0 < step <= high:
            return set()
        first = low if item["free"] else int(item["low"])
        last = high if item["free"] or (item["step"] and not item["high"]) else int(item["high"] or first)
        if not low <= first <= last <= high:
            return set()
        found.update(range(first, last + 1, step))
    return found
