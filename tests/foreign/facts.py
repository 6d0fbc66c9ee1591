"""Facts from the suites of other projects, and whether we agree with each.

A suite is a file of JSON lines under `data`. The first is an object that says whose facts they are; every other line is
one fact, an array that begins with its kind:

    ["next", cron, zone, from, [times]]     the first fires at or after `from`; [] means none any more
    ["last", cron, zone, before, time]      the last fire before a time; null means none
    ["between", cron, zone, start, end, [times]]    all fires in [start, end)
    ["at", cron, zone, time, true]          whether it fires at that second
    ["same", cron, cron], ["differs", …]    whether two expressions mean the same times
    ["accepted", cron], ["refused", cron]   whether it can be read
    ["never", cron]                         it can be read, and no date ever matches

A last element, if it is there, notes what else the original test was given (an option, a seed).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from common.errors import InvalidInput
from common.registration.cron_text import read_cron
from common.timing.cron import Cron, compile_cron
from common.timing.date_bits import date_bits
from common.timing.fires import cron_fires
from common.timing.instants import DAY_S

DATA = Path(__file__).parent / "data"
REFUSED = "refused"
_YEARS_S = 41 * 366 * DAY_S
_NEAR_S = 3_600
_PLAIN_ARGUMENTS = {"next": 3, "between": 4, "last": 3, "at": 3, "same": 1, "differs": 1}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a suite, times as seconds since 1970."""

    kind: str
    cron: str
    zone: str = "UTC"
    at: int = 0
    expected: Any = None
    note: str = ""
    until: int = 0


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of facts, with its header."""

    about: dict[str, Any]
    facts: tuple[Fact, ...]


def suites() -> dict[str, Suite]:
    """All suites by the name of their file."""
    return {path.stem: _suite(path) for path in sorted(DATA.glob("*.ndjson"))}


def _suite(path: Path) -> Suite:
    about, *lines = map(json.loads, path.read_text("ascii").splitlines())
    return Suite(about, tuple(map(_fact, lines)))


def _fact(line: list[Any]) -> Fact:
    kind, cron, *rest = line
    plain = _PLAIN_ARGUMENTS.get(kind, 0)
    note = rest[plain] if len(rest) > plain else ""
    match kind, *rest[:plain]:
        case "next", zone, at, times:
            return Fact(kind, cron, zone, instant(at), [instant(time) for time in times], note)
        case "between", zone, at, until, times:
            return Fact(
                kind, cron, zone, instant(at), [instant(time) for time in times], note, instant(until)
            )
        case "last", zone, at, time:
            return Fact(kind, cron, zone, instant(at), time and instant(time), note)
        case "at", zone, at, fires:
            return Fact(kind, cron, zone, instant(at), fires, note)
        case "same" | "differs", other:
            return Fact(kind, cron, expected=other, note=note)
    return Fact(kind, cron, note=note)


def instant(text: str) -> int:
    """Seconds since 1970 of an RFC 3339 text, for any year."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


@lru_cache(maxsize=1 << 14)
def _compiled(cron: str) -> Cron:
    return compile_cron(read_cron(cron, job_key="foreign/suite"))


def refusal(cron: str) -> str:
    """Our error message for an expression, "" if we accept it."""
    try:
        _compiled(cron)
    except InvalidInput as error:
        return str(error)
    return ""


def answer(fact: Fact) -> Any:
    """Our answer where the other suite has `expected`; REFUSED if we refuse the expression."""
    try:
        cron = _compiled(fact.cron)
    except InvalidInput as error:
        nothing = {"next": [], "never": [], "last": None}
        return nothing.get(fact.kind, REFUSED) if "never fires" in str(error) else REFUSED
    match fact.kind:
        case "next":
            return list(islice(_from(cron, fact), max(1, len(fact.expected))))
        case "between":
            return list(cron_fires(cron, fact.zone, fact.at, fact.until))
        case "last":
            return _last(cron, fact)
        case "at":
            return any(True for _ in cron_fires(cron, fact.zone, fact.at, fact.at + 1))
        case "same" | "differs":
            return REFUSED if refusal(fact.expected) else _meaning(cron) == _meaning(_compiled(fact.expected))
        case "never":
            return list(islice(cron_fires(cron, fact.zone, fact.at, fact.at + _YEARS_S), 1))
    return "accepted"


def _from(cron: Cron, fact: Fact) -> Iterator[int]:
    """The fires from a time on; the near ones are computed separately, which is fast."""
    near = fact.at + _NEAR_S
    yield from cron_fires(cron, fact.zone, fact.at, near)
    yield from cron_fires(cron, fact.zone, near, fact.at + _YEARS_S)


def _last(cron: Cron, fact: Fact) -> int | None:
    for seconds in (_NEAR_S, DAY_S, 40 * DAY_S, 400 * DAY_S, _YEARS_S):
        last = deque(cron_fires(cron, fact.zone, fact.at - seconds, fact.at), maxlen=1)
        if last:
            return last[0]
    return None


@lru_cache(maxsize=1)
def _dates() -> tuple[tuple[int, int], ...]:
    return tuple(date_bits(day) for day in range(date(1972, 1, 1).toordinal(), date(2000, 1, 1).toordinal()))


@lru_cache(maxsize=4096)
def _meaning(cron: Cron) -> tuple[object, ...]:
    """The times of day, and whether each date of 28 years matches."""
    return cron.seconds, cron.minutes, cron.hours, tuple(cron.on_date(*bits) for bits in _dates())


def agrees(fact: Fact, our_answer: Any) -> bool:
    """Whether our answer equals theirs."""
    if fact.kind == "refused":
        return bool(our_answer == REFUSED)
    if our_answer == REFUSED:
        return False
    match fact.kind:
        case "same":
            return bool(our_answer)
        case "differs":
            return not our_answer
        case "accepted":
            return True
        case "never":
            return bool(our_answer == [])
    return bool(our_answer == fact.expected)
