"""A long comparison, outside CI: every clock change of every zone from 1970 to 2037 against croniter.match.

    python -m tests.timing.sweep            one generated expression per change, about two minutes
    python -m tests.timing.sweep 20 7       twenty expressions per change, from seed 7

It first checks that every change that tzdata states is found. Prints its counts, and each disagreement with what is
needed to repeat it; exits with 1 if there is one.
"""

from __future__ import annotations

import random
import sys

from common.timing.cron import compile_cron
from common.timing.fires import fires
from common.timing.zones import TZDATA_VERSION, Change, changes, zone_names
from tests.timing.reference import (
    FIRST_AT,
    HOUR_S,
    LAST_AT,
    cron,
    distinct_zones,
    matching,
    stated_changes,
    telling_minutes,
)


def main(rounds: int, seed: int) -> int:
    missed = [
        (zone, at)
        for zone in sorted(zone_names())
        for at in set(stated_changes(zone)) - {change.at for change in changes(zone, FIRST_AT, LAST_AT)}
    ]
    zones = distinct_zones()
    chance = random.Random(seed)
    compared = wrong = 0
    texts = set()
    for zone, zone_changes in zones.items():
        for change in zone_changes:
            for _ in range(rounds):
                text = _expression(chance, change)
                texts.add(text)
                minutes, actual, expected = _compared(zone, change, text)
                compared += minutes
                if actual != expected:
                    wrong += 1
                    print(f"{zone} {change} {text!r}: ours {actual}, croniter {expected}")
    count = sum(map(len, zones.values()))
    print(f"tzdata {TZDATA_VERSION}: {len(zone_names())} zones, {len(zones)} distinct with {count} changes")
    print(
        f"{len(texts)} expressions, {compared} minutes compared, {wrong} disagreements, {len(missed)} changes missed"
    )
    return 1 if wrong or missed else 0


def _compared(zone: str, change: Change, text: str) -> tuple[int, list[int], list[int]]:
    start, end = change.at - 6 * HOUR_S, change.at + 6 * HOUR_S
    fire_times = list(fires(cron(text, zone), start, end))
    minutes = [at for at in telling_minutes(change, fire_times) if start <= at < end]
    fire_seconds = set(fire_times)
    return len(minutes), [at for at in minutes if at in fire_seconds], matching(text, zone, minutes)


def _expression(chance: random.Random, change: Change) -> str:
    """One in two names the hours of the change; for a skipped day only expressions that croniter answers in time."""
    hours = chance.choice(
        ["*", "0-23", "*/2", "1/2", "0-3", "22-2", "0", "1", "2", "3", "0,23", "2-23/24", "*/5", "H"]
    )
    minutes = chance.choice(
        ["*", "*/15", "7/20", "0", "30", "10-50/10", "0,15,30,45", "0-59", "50-10", "H", "H"]
    )
    days = chance.choice(
        ["* * *"] * 6 + ["L * *", "15W * *", "1-20 * 1-5", "* * L0", "* * 0#1", "* * 0#5", "*/2 * 6"]
    )
    if abs(change.after - change.before) > 12 * HOUR_S:
        hours, minutes, days = chance.choice(["0", "6", "12,18", "23"]), chance.choice(["0", "30"]), "* * *"
    hours = str(chance.randrange(24)) if hours == "H" else hours
    minutes = str(chance.randrange(60)) if minutes == "H" else minutes
    text = f"{minutes} {hours} {days}"
    compile_cron(text)
    return text


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in [*sys.argv[1:], "1", "1"][:2])))
