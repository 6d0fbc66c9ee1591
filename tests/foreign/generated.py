"""Expressions and windows for the differential run: drawn from a seed, the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from common.timing.instants import DAY_S
from common.timing.zones import Change, changes
from tests.foreign.facts import Fact
from tests.timing.reference import FIRST_AT, LAST_AT, distinct_zones

_HOUR_S = 3600
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["1-5", "mon-fri", "0", "7", "sat,sun", "2#1", "5#3", "L5", "*/2", "5-7", "tue", "4"]


class Draw(NamedTuple):
    """One expression and its two windows: the hours around a clock change, and an ordinary span in UTC."""

    text: str
    zone: str
    start: int
    end: int
    from_at: int

    def around(self, expected: list[int]) -> Fact:
        """All fires around the change."""
        return Fact("between", self.text, self.zone, self.start, expected, until=self.end)

    def ordinary(self, expected: list[int]) -> Fact:
        """The first fires from any time on."""
        return Fact("next", self.text, "UTC", self.from_at, expected)


def drawn(count: int, seed: int, zones: Sequence[str] = ()) -> Iterator[Draw]:
    """This many draws, of some zones or all. Changes within a minute are left out: the other projects count minutes."""
    chance = random.Random(seed)
    zone_changes = {zone: changes(zone, FIRST_AT, LAST_AT) for zone in zones} or distinct_zones()
    known = [
        (zone, change)
        for zone in sorted(zone_changes)
        for change in zone_changes[zone]
        if not (change.at % 60 or change.before % 60 or change.after % 60)
    ]
    for _ in range(count):
        zone, change = chance.choice(known)
        start, end = change.at - 6 * _HOUR_S, change.at + 6 * _HOUR_S
        from_at = chance.randrange(FIRST_AT, LAST_AT - 9 * 366 * DAY_S, 60)
        yield Draw(_expression(chance, change), zone, start, end, from_at)


def _expression(chance: random.Random, change: Change) -> str:
    """Two in three name an hour near the change; one in three restricts days."""
    hour = _field(chance, 0, 23) if chance.random() < 0.34 else _near(chance, change)
    day, month, weekday = "*", "*", "*"
    if chance.random() < 0.34:
        day = chance.choice([_field(chance, 1, 31), _field(chance, 1, 31), "*", "*/2", "L", "1-7", "*/10,15"])
        weekday = chance.choice(_WEEKDAYS) if chance.random() < 0.5 else "*"
        if day == "L" or "#" in weekday or "L" in weekday:
            day, weekday = chance.choice([("*", weekday), (day, "*")])
    if chance.random() < 0.15:
        month = chance.choice([_field(chance, 1, 12), *_MONTHS, "mar-may", "sep,oct,nov"])
    return f"{_field(chance, 0, 59)} {hour} {day} {month} {weekday}"


def _near(chance: random.Random, change: Change) -> str:
    local = (change.at + change.before) // _HOUR_S
    hours = sorted({(local + chance.randrange(-3, 3)) % 24 for _ in range(chance.randrange(1, 4))})
    kinds = [",".join(map(str, hours)), f"{hours[0]}-{hours[-1]}", f"{hours[0]},*/6", "*/2", "0-23", "*"]
    return chance.choices(kinds, [6, 3, 1, 1, 1, 2])[0]


def _field(chance: random.Random, low: int, high: int) -> str:
    first, last = sorted(chance.sample(range(low, high + 1), 2))
    step = chance.randrange(2, max(3, (high - low) // 2))
    kinds = [
        "*", str(first), f"{first},{last}", f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}",
        f"{first}/{step}", f"{last},*/{step}",
    ]  # fmt: skip
    return chance.choices(kinds, [3, 8, 3, 3, 2, 4, 1, 1])[0]
