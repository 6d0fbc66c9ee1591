"""The dates of all-day events in iCalendar text (RFC 5545).

A few bytes of text can cause hours of work: a rule for the 30th of February is searched until the year 9999. So a
separate process reads the text, and is stopped after a time limit. Events that are not understood are refused.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

from dateutil.rrule import rrulestr  # type: ignore[import-untyped]
from icalendar import Calendar

from common.errors import InvalidInput
from common.limits import ICALENDAR_BYTES, ICALENDAR_EVENTS, ICALENDAR_S

# icalendar's type of a property is the union of all possible types.
Event = Any

_MAX_EVENT: Final = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class AllDayDates:
    """The dates, the number of their all-day events, and the number of ignored timed events."""

    dates: frozenset[date]
    events: int
    timed: int


def all_day_dates(text: object, first: date, last: date, timeout_s: float = ICALENDAR_S) -> AllDayDates:
    """The dates of all-day events from `first` to `last`, both included: several days, RRULE, RDATE, EXDATE.

    Raises InvalidInput and nothing else, shortly after `timeout_s` at the latest.
    """
    if (
        not isinstance(text, str)
        or len(text) > ICALENDAR_BYTES
        or len(text.encode(errors="replace")) > ICALENDAR_BYTES
    ):
        accepted = f"text of at most {ICALENDAR_BYTES // 1024} KiB"
        raise InvalidInput("icalendar", "must be text that is not too long", value=text, accepted=accepted)
    question = json.dumps([text, first.isoformat(), last.isoformat()])
    command = [sys.executable, "-P", "-m", __name__]
    try:
        done = subprocess.run(
            command,
            input=question,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=_environment(),
        )
    except subprocess.TimeoutExpired:
        accepted = f"what can be read in {timeout_s:g} s"
        raise InvalidInput("icalendar", "its rules take too long to follow", accepted=accepted) from None
    if done.returncode:
        raise InvalidInput(
            "icalendar", "must be an object of dates and calendars", accepted="iCalendar text (RFC 5545)"
        )
    answer = json.loads(done.stdout)
    if "problem" in answer:
        raise InvalidInput("icalendar", answer["problem"], accepted="iCalendar text (RFC 5545)")
    return AllDayDates(frozenset(map(date.fromisoformat, answer["dates"])), answer["events"], answer["timed"])


def _environment() -> dict[str, str]:
    """This process's environment with its import path, so that the child finds this module as this process did."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}


def main() -> None:
    """The process that reads: the request on standard input, the answer on standard output."""
    text, first, last = json.load(sys.stdin)
    try:
        all_day = read(text, date.fromisoformat(first), date.fromisoformat(last))
        answer: dict[str, Any] = {"events": all_day.events, "timed": all_day.timed}
        answer["dates"] = sorted(map(date.isoformat, all_day.dates))
    except Exception as error:  # noqa: BLE001  whatever a parser of strangers' text raises, it is said to the tenant
        answer = {"problem": f"cannot be read: {str(error)[:200] or type(error).__name__}"}
    json.dump(answer, sys.stdout)


def read(text: str, first: date, last: date) -> AllDayDates:
    """As `all_day_dates`, in this process and without a time limit. Raises ValueError and what the parsers raise."""
    events = _events(text)
    all_day = [event for event in events if not isinstance(event["DTSTART"].dt, datetime)]
    moved: dict[str, set[date]] = {}
    for event in all_day:
        if original := event.get("RECURRENCE-ID"):
            moved.setdefault(str(event.get("UID")), set()).add(_day(original.dt))
    dates: set[date] = set()
    for event in all_day:
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            continue
        replaced = set() if "RECURRENCE-ID" in event else moved.get(str(event.get("UID")), set())
        dates |= _covered(event, replaced, first, last)
    return AllDayDates(frozenset(dates), len(all_day), len(events) - len(all_day))


def _events(text: str) -> list[Event]:
    calendars = Calendar.from_ical(text, multiple=True)
    if not calendars or any(calendar.name != "VCALENDAR" for calendar in calendars):
        raise ValueError("no VCALENDAR")
    events = [event for calendar in calendars for event in calendar.walk("VEVENT")]
    if len(events) > ICALENDAR_EVENTS:
        raise ValueError(f"{len(events)} events; at most {ICALENDAR_EVENTS} are read")
    for event in events:
        if event.errors:
            _refuse(event, "{}: {}".format(*event.errors[0]))
        if "DTSTART" not in event:
            _refuse(event, "no DTSTART")
    return events


def _covered(event: Event, replaced: set[date], first: date, last: date) -> set[date]:
    length = _length(event)
    reach = first - length  # an event that begins before the first date may extend into the range
    starts = {_day(event["DTSTART"].dt), *_listed(event, "RDATE")} | set(_recurring(event, reach, last))
    starts -= {*_listed(event, "EXDATE"), *replaced}
    covered = {start + timedelta(n) for start in starts if reach <= start <= last for n in range(length.days)}
    return {day for day in covered if first <= day <= last}


def _length(event: Event) -> timedelta:
    if "DTEND" in event:
        length = _day(event["DTEND"].dt) - _day(event["DTSTART"].dt)
    else:
        length = event["DURATION"].dt if "DURATION" in event else timedelta(days=1)
    # Some programs write the start as the end, and mean one day.
    length = max(length, timedelta(days=1))
    if length > _MAX_EVENT:
        _refuse(event, f"lasts {length.days} days; at most {_MAX_EVENT.days} are read")
    return length


def _recurring(event: Event, first: date, last: date) -> Iterator[date]:
    rules = event.get("RRULE", [])
    for rule in rules if isinstance(rules, list) else [rules]:
        if rule.get("FREQ", [""])[0] not in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY"):
            _refuse(event, "recurs within the day")
        start = _midnight(event["DTSTART"].dt)
        # An UNTIL with a time is common. For an all-day event it means the date, whatever the zone.
        text = re.sub(r"(UNTIL=[0-9]+)T[0-9]+Z?", r"\1", rule.to_ical().decode())
        for occurrence in rrulestr(text, dtstart=start).between(_midnight(first), _midnight(last), inc=True):
            yield occurrence.date()


def _listed(event: Event, name: str) -> Iterable[date]:
    lists = event.get(name, [])
    for dates in lists if isinstance(lists, list) else [lists]:
        for value in dates.dts:
            if isinstance(value.dt, tuple):
                _refuse(event, f"{name} holds a period")
            yield _day(value.dt)


def _day(value: date | datetime) -> date:
    return value.date() if isinstance(value, datetime) else value


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001  a date has no zone


def _refuse(event: Event, problem: str) -> NoReturn:
    raise ValueError(f"event {str(event.get('UID', '?'))[:60]!r}: {problem}")


if __name__ == "__main__":
    main()
