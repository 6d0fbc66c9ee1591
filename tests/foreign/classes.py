"""Explanations of a disagreement with another project.

A disagreement is explained by reading the expression as the other project does (`dialects.py`) and, where that is not
enough, by its rule for clock changes (`manners.py`). Only if this gives exactly its answer does the disagreement have a
class; a suite's few `rules` cover what cannot be computed here, such as another project's hash.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import combinations, islice
from typing import Any

from common.timing.cron import Cron
from common.timing.date_bits import ALL_DAYS, ALL_WEEKDAYS
from common.timing.fires import cron_fires
from common.timing.instants import DAY_S
from common.timing.zones import instant_of_local, offset_at
from tests.foreign.dialects import Dialect, Read, Unreadable, dates, read
from tests.foreign.facts import Fact, agrees, refusal
from tests.foreign.manners import MANNERS, Manner, our_clock


def reason(suite: str, fact: Fact) -> str:
    """The class of a disagreement, or several joined by " + "; "" if nothing explains it."""
    manner = MANNERS[suite]
    dialect = manner.dialect
    if "both days" in fact.note:
        dialect = replace(dialect, days="and")
    if "cron bug" in fact.note:
        dialect = replace(dialect, days="star")
    if "seconds first" in fact.note:
        dialect = replace(dialect, seconds_sixth=False)
    explained = _explained(fact, dialect, manner)
    if explained:
        return " + ".join(sorted(explained))
    second = datetime.fromtimestamp(fact.at, UTC).strftime("%H:%M:%S") if fact.kind == "at" else ""
    text = f"{fact.kind}\t{fact.cron}\t{fact.note}\t{second}"
    return next((name for name, pattern in manner.rules.items() if re.match(pattern, text, re.DOTALL)), "")


def _explained(fact: Fact, dialect: Dialect, manner: Manner) -> set[str]:
    try:
        seen = _read(fact.cron, dialect)
    except Unreadable:
        return _refused_there(fact, dialect)
    match fact.kind:
        case "same" | "differs":
            return _compared(fact, seen, dialect)
        case "refused":
            return (
                {"seconds sixth, refused there"} if _never(seen) and "seconds sixth" in seen.beyond else set()
            )
        case "never":
            return set(seen.beyond) if _never(seen) else set()
        case "accepted":
            return set(seen.beyond) or ({"never fires"} if "never fires" in refusal(fact.cron) else set())
    return _timed(fact, seen, manner)


@lru_cache(maxsize=4096)
def _read(cron: str, dialect: Dialect) -> Read:
    seen = read(cron, dialect)
    for _ in dates(seen.on_date, date(2016, 1, 1), 400):  # some notes are made when dates are asked
        pass
    return seen


def _refused_there(fact: Fact, dialect: Dialect) -> set[str]:
    if fact.kind == "refused":
        for name, change in (
            ("wrapping range", {"wraps": True}),
            ("seconds sixth, refused there", {"seconds_sixth": False}),
        ):
            try:
                _read(fact.cron, replace(dialect, **change))
            except Unreadable:
                continue
            return {name}
    return set()


def _compared(fact: Fact, seen: Read, dialect: Dialect) -> set[str]:
    other = _read(fact.expected, dialect)
    return (
        seen.beyond | other.beyond if (_meaning(seen) == _meaning(other)) == (fact.kind == "same") else set()
    )


def _meaning(seen: Read) -> tuple[object, ...]:
    return seen.seconds, seen.minutes, seen.hours, tuple(filter(seen.on_date, _every_kind_of_date()))


def _never(seen: Read) -> bool:
    return not any(map(seen.on_date, _every_kind_of_date()))


@lru_cache(maxsize=1)
def _every_kind_of_date() -> tuple[date, ...]:
    """The dates of fourteen years: leap or not, beginning on each weekday."""
    years = {(calendar.isleap(year), date(year, 1, 1).weekday()): year for year in range(1972, 2000)}
    return tuple(
        when
        for year, days in ((year, 365 + calendar.isleap(year)) for year in years.values())
        for when in dates(lambda when: True, date(year, 1, 1), days)
    )


def _timed(fact: Fact, seen: Read, manner: Manner) -> set[str]:
    """The fewest differences of the clock rule that give the other project's answer."""
    differences = set(seen.beyond)
    if fact.kind == "between" and len(set(fact.expected)) < len(fact.expected):
        differences.add("gap: every skipped time there")
        fact = replace(fact, expected=sorted(set(fact.expected)))
    our_rule, their_rule = our_clock(seen), manner.clock(seen)
    differing = [flag for flag in their_rule if their_rule[flag] != our_rule[flag]]
    for count in range(len(differing) + 1):
        for flags in combinations(differing, count):
            if agrees(fact, _fires_under(fact, seen, our_rule | {flag: their_rule[flag] for flag in flags})):
                return differences | {manner.named[flag, their_rule[flag]] for flag in flags}
    for name, clock in manner.otherwise:
        if agrees(fact, _fires_under(fact, seen, our_rule | clock(seen))):
            return differences | {name}
    return set()


def _fires_under(fact: Fact, seen: Read, clock: dict[str, bool]) -> Any:
    """The fires of a fact's expression under another reading."""
    match fact.kind:
        case "at":
            return any(at == fact.at for at in _fires(fact, seen, clock, fact.at, 2))
        case "next":
            fire_times = _fires(fact, seen, clock, fact.at, 200 * 366)
            return list(islice(fire_times, max(1, len(fact.expected))))
        case "between":
            return sorted({at for at in _fires(fact, seen, clock, fact.at, 4) if at < fact.until})
    start = fact.at - 9000 * DAY_S if fact.expected is None else fact.expected
    before = [at for at in _fires(fact, seen, clock, start, 9001) if at < fact.at]
    return before[-1] if before else None


def _fires(fact: Fact, seen: Read, clock: dict[str, bool], start: int, days: int) -> Iterator[int]:
    """The fires at or after `start` on the matching local dates from the day before on."""
    cron = Cron(
        minutes=sum(1 << n for n in seen.minutes),
        hours=sum(1 << n for n in seen.hours),
        months=(1 << 13) - 2,
        days=ALL_DAYS,
        weekdays=ALL_WEEKDAYS,
        either_day=False,
        seconds=tuple(sorted(seen.seconds)),
        by_second=seen.seconds != {0},
        **clock,
    )
    first = datetime.fromtimestamp(start + offset_at(fact.zone, start), UTC).date() - timedelta(days=1)
    for when in dates(seen.on_date, first, days):
        midnight = datetime(when.year, when.month, when.day)  # noqa: DTZ001
        opens_at, closes_at = (instant_of_local(fact.zone, midnight + timedelta(days=n)) for n in (0, 1))
        if fact.kind in ("last", "between") and opens_at > max(fact.at, fact.until):
            return
        if opens_at == closes_at >= start and clock["names_hour"]:
            yield opens_at  # a skipped day
        yield from cron_fires(cron, fact.zone, max(opens_at, start), closes_at)
