"""Groups: schedules that can fire only in the same ten-minute windows share one key. The tick checks each key once.

A key is readable text:
- `cron|America/New_York|0-9,30-39 3 * * *`: minutes widened to tens, seconds dropped, so that a million jobs spread
  with `H` share few groups. `|repeats` after it: the minute runs freely and the hour does not (it matters in autumn).
  A number at the end: its entries fire up to so often in ten minutes, where that is more than each minute;
- `every|7200|4`: the interval, and the ten minutes in it that the phase falls in. Short intervals and odd ones share
  the groups of ten round intervals up to ten minutes, which are due in every window;
- `at|1763694600`: the beginning of the window;
- `many|` and the keys of several schedules. Above 900 characters the group is due in every window.

Bounds, exclusions, jitter and years are not in the key, nor is EventBridge's rule for clock changes, by which less
fires. `L-3` is the days that it can be, and a schedule whose excluded fires move names all dates. So a group may be due
when a member is not, but never the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from sys import intern
from typing import Final

from common.timing.compiled import in_all_clocks
from common.timing.cron import Cron, on_any_date
from common.timing.date_bits import (
    ALL_DAYS,
    ALL_WEEKDAYS,
    LAST,
    LAST_DAY,
    NTHS,
    nearest_weekday_bit,
    weekday_bit,
    weekday_bits,
    with_days_for_before_last,
)
from common.timing.fires import can_fire
from common.timing.schedule import SKIP, AtTiming, CronTiming, EveryTiming, ManyTiming, Schedule
from common.timing.windows import WINDOW_S, window_start
from common.timing.zones import spans

_TENS: Final = (1 << 10) - 1
# How often entries with seconds fire in ten minutes, rounded up to one of these: it is a part of the key.
_RATES: Final = (20, 60, 200, 600)
# Shorter intervals share the group of the next one down: distinct intervals open no groups that are always due.
_SHORT_S: Final = (600, 300, 120, 60, 30, 20, 10, 5, 2, 1)
# Other intervals than multiples of this are rare, and their ten minutes drift through the windows: a group of each
# would be due twice as often as its entries are, and cost a query. Up to a third of a day, entries read in vain with
# others cost less than that.
_ROUND_S: Final = 300
_ODD_SHARE_S: Final = 8 * 3600
_ALL_MONTHS: Final = (1 << 13) - 2
# Between the keys of several schedules. No zone and no expression has it. A sort key holds 1,024 bytes.
_SEPARATOR: Final = ";"
_MAX_CHARS: Final = 900


def group_key(schedule: Schedule) -> str:
    """The group that a schedule belongs to."""
    match schedule.timing:
        case CronTiming() as timing:
            cron = in_all_clocks(timing)
            if schedule.on_excluded != SKIP:
                cron = on_any_date(cron)
            return f"cron|{timing.timezone}|{_widened(cron)}"
        case EveryTiming(interval_s, anchor_at):
            if interval_s <= WINDOW_S or (interval_s % _ROUND_S and interval_s <= _ODD_SHARE_S):
                return f"every|{next(short for short in _SHORT_S if short <= interval_s)}|0"
            return f"every|{interval_s}|{anchor_at % interval_s // WINDOW_S}"
        case AtTiming(at):
            return f"at|{window_start(at)}"
        case ManyTiming(schedules):
            return _joined(sorted(set(map(group_key, schedules))))


def _joined(keys: Sequence[str]) -> str:
    """The key of several; if it were too long for a sort key, a short interval's that plans as many executions."""
    key = f"many|{_SEPARATOR.join(keys)}"
    if len(key) <= _MAX_CHARS:
        return key
    most_s = max(1, 60 // entry_weight(key, WINDOW_S))
    return f"every|{next(short for short in _SHORT_S if short <= most_s)}|0"


def group_can_fire(key: str, start: int, end: int) -> bool:
    """Whether a schedule of the group may fire in [start, end); True whenever one does.

    Exact for whole aligned ten minutes, where the zone's offset is whole hours and an interval whole ten minutes: then
    True means that every member without bounds or exclusions fires there. Raises ValueError for text that is not a key.
    """
    if start >= end:
        return False
    group = parsed_group(key)
    if isinstance(group, tuple):
        return any(group_can_fire(part, start, end) for part in group)
    if isinstance(group, CronGroup):
        for span in spans(group.zone, start, end):  # noqa: SIM110  as in can_fire
            if can_fire(group.cron, span):
                return True
        return False
    return group.due(start, end)


def entry_weight(key: str, span_s: int) -> int:
    """What planning an entry of the group for so long a time costs: 1, and more from a fire a minute on.

    A cron group's rate is in its key.
    """
    kind, _, rest = key.partition("|")
    if kind == "many":
        return sum(entry_weight(part, span_s) for part in rest.split(_SEPARATOR))
    interval, _, last = rest.rpartition("|")
    if kind == "every" and interval.isdecimal():
        return max(1, span_s // (10 * max(1, int(interval))))
    if kind == "cron" and last.isdecimal():
        return max(1, span_s * int(last) // (10 * WINDOW_S))
    return 1


class CronGroup:
    """An expression in a zone, whose minutes are whole tens."""

    __slots__ = ("cron", "zone")

    def __init__(self, zone: str, cron: Cron) -> None:
        self.zone = zone
        self.cron = cron


class Stretch:
    """Fires lie in [offset, offset + length) of every period; a period of 0 means once."""

    __slots__ = ("length", "offset", "period")

    def __init__(self, offset: int, length: int, period: int) -> None:
        self.offset = offset
        self.length = length
        self.period = period

    def due(self, start: int, end: int) -> bool:
        """Whether fires may lie in [start, end)."""
        if not self.period:
            return self.offset < end and start < self.offset + self.length
        since = (start - self.offset) % self.period
        return since < self.length or start + self.period - since < end


def parsed_group(key: str) -> CronGroup | Stretch | tuple[str, ...]:
    """When the members of a group can fire; of several schedules their keys. Raises ValueError for other text."""
    if key.startswith("many|"):  # not kept: its keys are, and a tenant can write any number of long ones
        return tuple(key.removeprefix("many|").split(_SEPARATOR))
    return _parsed_alone(key)


# A tick may read 100,000 groups. Tenants who change theirs fill it: tests/timing/test_caches.py counts the bytes.
@lru_cache(maxsize=1 << 17)
def _parsed_alone(key: str) -> CronGroup | Stretch:
    kind, _, rest = key.partition("|")
    if kind == "cron":
        zone, _, text = rest.partition("|")
        return CronGroup(intern(zone), _read(text))
    if kind == "every":
        interval_s, bucket = map(int, rest.split("|"))
        if interval_s <= WINDOW_S:
            return Stretch(0, interval_s, interval_s)
        offset = bucket * WINDOW_S
        return Stretch(offset, min(WINDOW_S, interval_s - offset), interval_s)
    if kind == "at":
        return Stretch(int(rest), WINDOW_S, 0)
    raise ValueError(f"not a group key: {key!r}")


def _widened(cron: Cron) -> str:
    """The text of a cron group, written from the masks, so that `*/12` and `0,12` have the same key."""
    tens = [ten for ten in range(0, 60, 10) if cron.minutes >> ten & _TENS]
    minute = "*" if len(tens) == 6 else ",".join(f"{ten}-{ten + 9}" for ten in tens)
    free_hour = "*" if cron.repeats else "0-23"
    hour = _numbers(cron.hours) if cron.names_hour else free_hour
    months = _numbers(cron.months) if cron.months != _ALL_MONTHS else "*"
    text = f"{minute} {hour} {_days_text(cron)} {months} {_weekdays_text(cron)}"
    if cron.names_hour and cron.repeats:
        text += "|repeats"
    rate = len(cron.seconds) * max((cron.minutes >> ten & _TENS).bit_count() for ten in tens)
    return text if rate <= 10 else f"{text}|{next(rounded for rounded in _RATES if rounded >= rate)}"


def _numbers(mask: int) -> str:
    """The numbers of a mask as a list of ranges: "1-5,7"."""
    runs: list[list[int]] = []
    for number in range(mask.bit_length()):
        if mask >> number & 1:
            if runs and runs[-1][-1] == number - 1:
                runs[-1].append(number)
            else:
                runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _days_text(cron: Cron) -> str:
    if cron.days == ALL_DAYS and not cron.either_day:
        return "*"
    days = with_days_for_before_last(cron.days)
    texts = [_numbers(days & ALL_DAYS)] if days & ALL_DAYS else []
    texts += ["L"] if days & LAST_DAY else []
    texts += [f"{day}W" for day in range(1, 32) if days & nearest_weekday_bit(day)]
    return ",".join(texts)


def _weekdays_text(cron: Cron) -> str:
    if cron.weekdays == ALL_WEEKDAYS and not cron.either_day:
        return "*"
    every_week = [day for day in range(7) if cron.weekdays & weekday_bits(day) == weekday_bits(day)]
    texts = [_numbers(sum(1 << day for day in every_week))] if every_week else []
    for day in range(7):
        if day not in every_week:
            texts += [f"{day}#{nth}" for nth in NTHS if cron.weekdays & weekday_bit(day, nth)]
        if cron.weekdays & weekday_bit(day, LAST):
            texts.append(f"L{day}")
    return ",".join(texts)


def _read(text: str) -> Cron:
    """The masks of a group's text. Without croniter: a cold tick reads 100,000 of these, and all are canonical."""
    fields, *marks = text.split("|")
    minute, hour, day, month, weekday = fields.split(" ")
    return Cron(
        minutes=_mask(minute, 0, 59),
        hours=_mask(hour, 0, 23),
        months=_mask(month, 1, 12),
        days=_mask(day, 1, 31),
        weekdays=_weekday_mask(weekday),
        either_day=day != "*" and weekday != "*",
        names_hour=hour not in ("*", "0-23"),
        repeats=hour == "*" or "repeats" in marks,
    )


@lru_cache(maxsize=1 << 14)
def _mask(field: str, low: int, high: int) -> int:
    if field == "*":
        return (1 << high + 1) - (1 << low)
    mask = 0
    for item in field.split(","):
        if item == "L":
            mask |= LAST_DAY
        elif item.endswith("W"):
            mask |= nearest_weekday_bit(int(item[:-1]))
        else:
            first, _, last = item.partition("-")
            mask |= (1 << int(last or first) + 1) - (1 << int(first))
    return mask


@lru_cache(maxsize=1 << 12)
def _weekday_mask(field: str) -> int:
    if field == "*":
        return ALL_WEEKDAYS
    mask = 0
    for item in field.split(","):
        if item.startswith("L"):
            mask |= weekday_bit(int(item[1:]), LAST)
            continue
        days, _, nth = item.partition("#")
        first, _, last = days.partition("-")
        for weekday in range(int(first), int(last or first) + 1):
            mask |= weekday_bit(weekday, int(nth)) if nth else weekday_bits(weekday)
    return mask
