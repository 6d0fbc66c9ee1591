"""When in a week a group can fire at all, in ten-minute slots of UTC: where the directory lists it.

A place is a set of slots that ticks read together: `w412` is one slot of the week, `s58` one slot of each day, `h9` one
hour of each day, `t4` one ten minutes of each hour. A group is listed in places of one kind, in at most MAX_PLACES:
of the kind in which ticks read it least often. A tick reads four places for each slot of its window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, reduce
from math import gcd
from operator import or_
from typing import Final

from common.timing.date_bits import ALL_WEEKDAYS, LAST, weekday_bit, weekday_bits
from common.timing.groups import CronGroup, parsed_group
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S
from common.timing.zones import changes, offset_at

MAX_PLACES: Final = 16
# The places of a group that this version cannot read.
EVERYWHERE: Final = tuple(f"t{ten}" for ten in range(6))
_DAY: Final = DAY_S // WINDOW_S
_WEEK: Final = 7 * _DAY
_WEEK_S: Final = 7 * DAY_S
_ALL: Final = (1 << _WEEK) - 1
# A name, the places of a slot of the week, and how many slots of the week such a place has.
_KINDS: Final[tuple[tuple[str, Callable[[int], int], int], ...]] = (
    ("w", lambda slot: slot, 1),
    ("s", lambda slot: slot % _DAY, 7),
    ("h", lambda slot: slot % _DAY // 6, 42),
    ("t", lambda slot: slot % 6, 168),
)
# The clock changes that count: from 2020 to 2045. Later ones repeat them, as tests/timing/test_slots.py checks.
_CHANGES_FROM: Final = 1_577_836_800
_CHANGES_UNTIL: Final = 2_366_841_600
# 1970-01-01, at which weeks begin here, was a Thursday; Sunday is 0.
_FIRST_WEEKDAY: Final = 4


def places(group: str) -> tuple[str, ...]:
    """Where the group is listed. A one-off group is listed nowhere. Raises ValueError for text that is not a key."""
    if group.startswith("at|"):
        return ()
    return _places(_slots(group))


def places_of(start: int, end: int) -> list[str]:
    """All places in which a group may be listed that can fire in [start, end)."""
    slots = [slot % _WEEK for slot in range(start // WINDOW_S, -(-end // WINDOW_S))]
    return list(dict.fromkeys(f"{kind}{of(slot)}" for slot in slots for kind, of, _ in _KINDS))


@lru_cache(maxsize=1 << 14)
def _places(mask: int) -> tuple[str, ...]:
    slots = [slot for slot in range(_WEEK) if mask >> slot & 1]
    choices = []
    for kind, of, length in _KINDS:
        numbers = sorted({of(slot) for slot in slots})
        if len(numbers) <= MAX_PLACES:
            choices.append((len(numbers) * length, len(numbers), tuple(f"{kind}{n}" for n in numbers)))
    return min(choices)[2]


def _slots(key: str) -> int:
    """The slots of the week in which the group can fire, as bits."""
    group = parsed_group(key)
    if isinstance(group, tuple):
        return reduce(or_, map(_slots, group))
    if isinstance(group, CronGroup):
        cron = group.cron
        weekdays = ALL_WEEKDAYS if cron.either_day else cron.weekdays
        tens = sum(1 << ten for ten in range(6) if cron.minutes >> 10 * ten & 0x3FF)
        return _cron_slots(group.zone, cron.hours, tens, weekdays, cron.names_hour)
    return _elapsed_slots(group.period, group.offset, group.length)


@lru_cache(maxsize=1 << 14)
def _cron_slots(zone: str, hours: int, tens: int, weekdays: int, names_hour: bool) -> int:
    day = sum(tens << 6 * hour for hour in range(24) if hours >> hour & 1)
    local = 0
    for weekday in range(7):
        if weekdays & (weekday_bits(weekday) | weekday_bit(weekday, LAST)):
            local |= day << _DAY * ((weekday - _FIRST_WEEKDAY) % 7)
    offsets, gaps = _clock(zone)
    mask = 0
    for offset in offsets:
        mask |= _earlier(local, offset)
    if names_hour:
        for at, skipped in gaps:
            if skipped & local:
                mask |= 1 << at
    return mask


def _earlier(local: int, offset_s: int) -> int:
    """Slots of local time in UTC, each of them two where the offset is not whole slots."""
    shift, rest = divmod(offset_s, WINDOW_S)
    mask = 0
    for by in {shift, shift + bool(rest)}:
        by %= _WEEK
        mask |= (local >> by | local << _WEEK - by) & _ALL
    return mask


@lru_cache(maxsize=1024)
def _clock(zone: str) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    """A zone's offsets, and each gap as its slot and the local slots that it skips, as bits."""
    offsets, gaps = {offset_at(zone, _CHANGES_FROM)}, set()
    for change in changes(zone, _CHANGES_FROM, _CHANGES_UNTIL):
        offsets.add(change.after)
        if change.after > change.before:
            local = range((change.at + change.before) // WINDOW_S, -(-(change.at + change.after) // WINDOW_S))
            skipped = sum(1 << slot % _WEEK for slot in local)
            gaps |= {(at // WINDOW_S % _WEEK, skipped) for at in (change.at, change.at + 59)}
    return frozenset(offsets), frozenset(gaps)


@lru_cache(maxsize=1 << 14)
def _elapsed_slots(period: int, offset: int, length: int) -> int:
    if gcd(period, _WEEK_S) <= WINDOW_S:
        return _ALL
    return sum({1 << slot for slot in _elapsed(period, offset, length)})


def _elapsed(period: int, offset: int, length: int) -> Iterator[int]:
    step = gcd(period, _WEEK_S)
    for first in range(offset % step, _WEEK_S + step, step):
        for slot in range(first // WINDOW_S, (first + length - 1) // WINDOW_S + 1):
            yield slot % _WEEK
