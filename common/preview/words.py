"""A schedule in words. Cron expressions with the same words differ at clock changes at most. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Final

from msgspec.structs import replace

from common.timing.compiled import in_all_clocks
from common.timing.cron import Cron, CronInYears
from common.timing.date_bits import (
    ALL_DAYS,
    ALL_WEEKDAYS,
    LAST,
    LAST_DAY,
    NTHS,
    before_last_bit,
    nearest_weekday_bit,
    weekday_bit,
    weekday_bits,
)
from common.timing.durations import duration_text
from common.timing.excluded_days import WEEKDAYS
from common.timing.instants import rfc3339
from common.timing.schedule import EVENTBRIDGE, SKIP, AtTiming, CronTiming, EveryTiming, ManyTiming, Schedule


def describe(schedule: Schedule, max_runs: object = None) -> str:
    """Such as "At 09:30, Monday through Friday, in Europe/Berlin". Pure."""
    sentence = _timing_words(schedule)
    if isinstance(schedule.timing, ManyTiming) and _has_more(schedule, max_runs):
        sentence += "; all together"
    if max_runs is not None:
        sentence += f", {'once' if max_runs == 1 else f'{max_runs} times'} in all"
    sentence += _limits(schedule)
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


def _timing_words(schedule: Schedule) -> str:
    """When it fires, without its bounds and delays."""
    match schedule.timing:
        case ManyTiming(schedules):
            first, *more_words = map(describe, schedules)
            return "; and ".join([first, *(words[0].lower() + words[1:] for words in more_words)])
        case CronTiming(timezone=timezone, dst=dst) as timing:
            sentence = f"{cron_words(in_all_clocks(timing))}, in {timezone}"
            if interval := schedule.interval:
                step = f"every {interval.days} days" if interval.days else f"every {interval.months} months"
                sentence += f", {step} from {interval.from_date} on"
            if dst == EVENTBRIDGE and timezone != "UTC":
                sentence += ", skipping times that the clock skips and repeating none"
            return sentence
        case EveryTiming(interval_s, anchor_at):
            return f"Every {duration_text(interval_s)} of elapsed time, in step with {rfc3339(anchor_at)}"
        case AtTiming(at):
            return f"Once, at {rfc3339(at)}"


def _has_more(schedule: Schedule, max_runs: object) -> bool:
    """Whether several schedules have something in common that is to be said."""
    return max_runs is not None or replace(schedule, schedules=()) != Schedule(schedules=())


def _limits(schedule: Schedule) -> str:
    """Its bounds, and the dates on which it does not fire."""
    sentence = ""
    if schedule.start_at is not None:
        sentence += f", from {rfc3339(schedule.start_at)}"
    if schedule.end_at is not None:
        sentence += f", before {rfc3339(schedule.end_at)}"
    if schedule.exclude_dates:
        dates = len(schedule.exclude_dates)
        sentence += f", except on {dates} date" + ("s" if dates > 1 else "")
    if schedule.exclude_weekdays:
        names = (
            _WEEKDAYS[_MONDAY_FIRST[WEEKDAYS.index(weekday)]] + "s" for weekday in schedule.exclude_weekdays
        )
        sentence += f", except on {' and '.join(names)}"
    if schedule.calendars:
        sentence += f", except on the dates of {' and '.join(schedule.calendars)}"
    if schedule.include_calendars:
        sentence += f", only on dates of {' or '.join(schedule.include_calendars)}"
    if schedule.on_excluded != SKIP:
        sentence += f"; on the {schedule.on_excluded} date that is not excluded, instead of an excluded one"
    return sentence


_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONDAY_FIRST: Final = (1, 2, 3, 4, 5, 6, 0)
_DAYS: Final = range(1, 32)
_NTH: Final = ("last", "first", "second", "third", "fourth", "fifth")
_SIZES: Final = {"second": 60, "minute": 60, "hour": 24}
# More times of a day are not listed one by one.
_MAX_LISTED_TIMES: Final = 6


def cron_words(cron: Cron) -> str:
    """Such as "At 09:30, Monday through Friday", without the zone."""
    seconds, minutes, hours = cron.seconds, _bits(cron.minutes), _bits(cron.hours)
    times = _times_of_day(seconds, minutes, hours) or _by_units(seconds, minutes, hours)
    parts = [times[0].upper() + times[1:], _dates(cron), _months(_bits(cron.months))]
    if isinstance(cron, CronInYears):
        parts.append(f"in {_units('the year', cron.years_listed())}")
    return ", ".join(filter(None, parts))


def _times_of_day(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> str:
    """`at 09:00 and 17:00`, `every hour from 09:30 through 17:30`; empty if other words are better."""
    once_an_hour = len(minutes) == len(seconds) == 1
    if not once_an_hour and len(hours) * len(minutes) * len(seconds) > _MAX_LISTED_TIMES:
        return ""
    times = [
        f"{hour:02}:{minute:02}" + (f":{second:02}" if seconds != (0,) else "")
        for hour, minute, second in product(hours, minutes, seconds)
    ]
    cycle = _cycle(hours, _SIZES["hour"])
    if cycle and once_an_hour and times[0] == "00:00":
        return f"every {_counted(cycle, 'hour')}"
    if len(times) <= _MAX_LISTED_TIMES:
        return f"at {_and(times)}"
    if cycle:
        return ""
    if run := _run(hours, _SIZES["hour"]):
        return f"every hour from {times[hours.index(run[0])]} through {times[hours.index(run[1])]}"
    step = _step(hours)
    return f"every {step} hours from {times[0]} through {times[-1]}" if step else f"at {_and(times)}"


def _by_units(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> str:
    """From the finest unit to the hours: `every 5 minutes, between 09:00 and 17:59`, `at minute 5 of every hour`."""
    units = [("second", seconds), ("minute", minutes), ("hour", hours)]
    (unit, values), *coarser = units[1:] if seconds == (0,) else units
    cycle = _cycle(values, _SIZES[unit])
    words = (
        f"every {_counted(cycle, unit)}"
        if cycle
        else _every_nth(unit, values) or f"at {_units(unit, values)}"
    )
    for unit, values in coarser:
        listed, cycle = cycle is None, _cycle(values, _SIZES[unit])
        run = _run(values, _SIZES[unit]) if unit == "hour" else None
        if cycle == 1:
            words += f" of every {unit}" if listed else ""
        elif cycle:
            words += f" of every {_ordinal(cycle)} {unit}"
        elif run:
            words += f", between {run[0]:02}:00 and {run[1]:02}:59"
        else:
            words += f" of {_units(unit, values)}"
    return words


def _dates(cron: Cron) -> str:
    """`on day 1 of the month`, `Monday through Friday`, or both; empty for every day."""
    by_day = "" if cron.days == ALL_DAYS and not cron.either_day else _days(cron.days)
    by_weekday = "" if cron.weekdays == ALL_WEEKDAYS and not cron.either_day else _weekdays(cron.weekdays)
    return " or ".join(filter(None, (by_day, by_weekday)))


def _days(days: int) -> str:
    named = [day for day in _bits(days) if day in _DAYS]
    words = [_units("day", named)] if named else []
    if days >= nearest_weekday_bit(1):  # few name more than days
        words += [
            "the last weekday" if day == 31 else f"the weekday nearest day {day}"
            for day in _DAYS
            if days & nearest_weekday_bit(day)
        ]
        words += [
            f"the {_ordinal(before)} day before the last day"
            for before in _DAYS[:-1]
            if days & before_last_bit(before)
        ]
    words += ["the last day"] if days & LAST_DAY else []
    return f"on {_and(words)} of the month"


def _weekdays(weekdays: int) -> str:
    full_weekdays = [day for day in _MONDAY_FIRST if weekdays & weekday_bits(day) == weekday_bits(day)]
    if len(full_weekdays) > 2 and _step([_MONDAY_FIRST.index(day) for day in full_weekdays]) == 1:
        return f"{_WEEKDAYS[full_weekdays[0]]} through {_WEEKDAYS[full_weekdays[-1]]}"
    nths = [
        f"the {_NTH[nth]} {_WEEKDAYS[day]}"
        for day in _MONDAY_FIRST
        for nth in (*NTHS, LAST)
        if weekdays & weekday_bit(day, nth) and day not in full_weekdays
    ]
    return f"on {_and([*(_WEEKDAYS[day] for day in full_weekdays), *nths])}{' of the month' if nths else ''}"


def _months(months: Sequence[int]) -> str:
    return "" if len(months) == len(_MONTHS) else f"in {_listed(months, lambda month: _MONTHS[month - 1])}"


def _units(unit: str, values: Sequence[int]) -> str:
    """`hour 5`, `hours 5, 12 and 13`, `every 7th hour from 2 through 23`."""
    step = _step(values)
    if step and step > 1 and len(values) > 3:
        return f"every {_ordinal(step)} {unit.removeprefix('the ')} from {values[0]} through {values[-1]}"
    return f"{unit}{'s' if len(values) > 1 else ''} {_listed(values, str)}"


def _every_nth(unit: str, values: Sequence[int]) -> str:
    """`every 5 minutes from minute 1 through 56`; empty if other words are better."""
    step = _step(values)
    if not step or step == 1 or len(values) <= 3:
        return ""
    return f"every {step} {unit}s from {unit} {values[0]} through {values[-1]}"


def _listed(values: Sequence[int], named: Callable[[int], str]) -> str:
    """`0 through 5, 20 and 25`."""
    runs = [[values[0]]]
    for before, value in pairwise(values):
        if value == before + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words = []
    for run in runs:
        words += (
            [f"{named(run[0])} through {named(run[-1])}"] if len(run) > 2 else [named(value) for value in run]
        )
    return _and(words)


def _and(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _counted(number: int, unit: str) -> str:
    return unit if number == 1 else f"{number} {unit}s"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number < 20 else ending}"


def _cycle(values: Sequence[int], size: int) -> int | None:
    """n if they are all multiples of n, and n divides the unit: 1 for all."""
    step = size // len(values)
    return (
        step if len(values) > 1 and list(values) == list(range(0, size, step)) and size % step == 0 else None
    )


def _step(values: Sequence[int]) -> int | None:
    """The distance between them, if it is the same of at least three."""
    steps = {later - earlier for earlier, later in pairwise(values)}
    return steps.pop() if len(values) > 2 and len(steps) == 1 else None


def _run(values: Sequence[int], size: int) -> tuple[int, int] | None:
    """The first and the last if they follow each other, also past the end of the unit."""
    first = next((value for value in values if (value - 1) % size not in values), values[0])
    last = (first + len(values) - 1) % size
    return (first, last) if {(first + n) % size for n in range(len(values))} == set(values) else None


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
