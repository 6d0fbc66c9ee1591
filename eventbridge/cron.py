"""AWS's cron expressions in Minute8's own dialect, where there is such an expression."""

from __future__ import annotations

import re
from functools import lru_cache

from common.errors import InvalidInput
from common.registration.cron_text import read_cron
from common.timing.compiled import in_all_clocks
from common.timing.eventbridge_cron import WEEKDAYS, compile_eventbridge, read_eventbridge
from common.timing.schedule import CronTiming


@lru_cache(maxsize=1 << 12)
def as_minute8(expression: str) -> str | None:
    """An expression with the same fires at the same times; None if there is none (a year, `L-3`, a range like 23-3/2).

    Raises InvalidInput if it is no expression of AWS's.
    """
    text = read_eventbridge(expression)
    minute, hour, day, month, weekday, year = text.split(" ")
    day = "31W" if day == "LW" else _any(day)
    candidate = " ".join((minute, hour, day, month, _any(_weekday(weekday))))
    try:
        read = read_cron(candidate, job_key="")
    except InvalidInput:
        return None
    same = in_all_clocks(CronTiming(read, "UTC")) == compile_eventbridge(text)
    return candidate if same and year == "*" else None


def _any(field: str) -> str:
    return "*" if field == "?" else field


def _weekday(field: str) -> str:
    """1-7 from Sunday become 0-6, also in 2-6, 2/2 and 2#1; 6L, the last Friday, is L5; L alone is Saturday."""
    return ",".join(_weekday_item(item) for item in field.split(","))


def _weekday_item(item: str) -> str:
    if item == "L":
        return "6"
    if last := re.fullmatch(r"([A-Z]+|[1-7])L", item):
        return f"L{WEEKDAYS.index(last[1]) if last[1] in WEEKDAYS else int(last[1]) - 1}"
    days, mark, rest = re.fullmatch(r"([^#/]*)([#/]?)(.*)", item, re.DOTALL).groups()  # type: ignore[union-attr]
    return re.sub(r"[0-9]+", lambda day: str(int(day[0]) - 1), days) + mark + rest
