"""A schedule as a sentence for a person."""

from __future__ import annotations

import re

from common.registration.eventbridge_text import as_minute8
from common.timing.durations import duration_text
from common.timing.instants import rfc3339
from common.timing.schedule import EVENTBRIDGE, MINUTE8, AtTiming, CronTiming, EveryTiming, Schedule

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def describe(schedule: Schedule) -> str:
    """Such as "At 09:30, Monday through Friday, in Europe/Berlin". Pure; cron_descriptor describes cron expressions."""
    match schedule.timing:
        case CronTiming(expression, timezone, dialect, dst):
            words = _cron_words(expression) if dialect == MINUTE8 else _eventbridge_words(expression)
            sentence = f"{words}, in {timezone}"
            if dst == EVENTBRIDGE and timezone != "UTC":
                sentence += ", skipping times that the clock skips and repeating none"
        case EveryTiming(interval_s, anchor_at):
            sentence = f"Every {duration_text(interval_s)} of elapsed time, in step with {rfc3339(anchor_at)}"
        case AtTiming(at):
            sentence = f"Once, at {rfc3339(at)}"
    if schedule.start_at is not None:
        sentence += f", from {rfc3339(schedule.start_at)}"
    if schedule.end_at is not None:
        sentence += f", before {rfc3339(schedule.end_at)}"
    if schedule.exclude_dates:
        sentence += f", except on {len(schedule.exclude_dates)} dates"
    if schedule.calendars:
        sentence += f", except on the dates of {' and '.join(schedule.calendars)}"
    if schedule.spread_s:
        sentence += f", always the same 0 to {schedule.spread_s} s later"
    if schedule.jitter_s:
        sentence += f", each up to {schedule.jitter_s} s later"
    if pace := schedule.pace:
        shared = f"jobs with the key {pace.key}" if pace.key else "jobs with its target"
        sentence += (
            f", at most {pace.per_second} a second of all {shared}, and so up to {pace.tolerance_s} s later"
        )
    return sentence


def _cron_words(expression: str) -> str:
    *front, weekday = expression.split(" ")
    plain = " ".join(
        [_untaken_steps_dropped(field) for field in front] + ["*" if _special(weekday) else weekday]
    )
    try:
        # Imported here: the Lambda packages do not contain it; only people need descriptions.
        from cron_descriptor import Options, get_description  # type: ignore[import-untyped]
    except ImportError:
        return f"cron {expression}"
    options = Options()
    options.use_24hour_time_format = True
    try:
        words = str(get_description(plain, options))
    except Exception:  # noqa: BLE001  it knows fewer forms than croniter; the text itself is never wrong
        return f"cron {expression}"
    return words + (f", on {_special_words(weekday)} of the month" if _special(weekday) else "")


def _eventbridge_words(expression: str) -> str:
    """Its year and `L-3` beside the words for the rest of it."""
    minute, hour, day, month, weekday, year = expression.split(" ")
    before_last = re.fullmatch(r"L-(\d+)", day)
    known = as_minute8(" ".join((minute, hour, "*" if before_last else day, month, weekday, "*")))
    if known is None:
        return f"cron({expression})"
    words = _cron_words(known)
    if before_last:
        days = int(before_last[1])
        words += f", {days} day{'s' if days > 1 else ''} before the last day of the month"
    return words if year == "*" else f"{words}, in {_years_words(year)}"


def _years_words(year: str) -> str:
    listed = year.replace("/1", "") if year.startswith("*") else year
    return "the years " + listed.replace(",", ", ") if re.search("[-,/*]", listed) else listed


def _untaken_steps_dropped(field: str) -> str:
    """`2-23/24` as `2`, which means the same; the library would say "every 24 hours, between 02:00 and 23:59"."""
    match = re.fullmatch(r"(\d+)-(\d+)/(\d+)", field)
    return match[1] if match and int(match[1]) + int(match[3]) > int(match[2]) else field


def _special(weekday: str) -> bool:
    return "#" in weekday or "L" in weekday


def _special_words(weekday: str) -> str:
    """Lists of `1#2` and `L5` in words; cron_descriptor cannot read them."""
    words = []
    for item in weekday.split(","):
        day, *nth = (int(number) for number in re.findall(r"\d", item))
        words.append(f"the {_ORDINALS[nth[0] - 1] if nth else 'last'} {_WEEKDAYS[day]}")
    return " and ".join(words)
