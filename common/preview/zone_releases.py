"""Which schedules a tzdata update moved: the clock changes of earlier releases beside the present ones.

`former_zones.json` holds the zones of earlier releases that differ from the installed release, from its day on.
`python -m scripts.former_zones` writes it whenever tzdata is updated.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, zip_longest
from pathlib import Path
from typing import Any, Final

from common.errors import InvalidInput
from common.timing.compiled import compiled
from common.timing.fires import cron_fires
from common.timing.instants import DAY_S
from common.timing.schedule import CronTiming, Schedule
from common.timing.zones import changes, offset_at

FILE: Final = Path(__file__).with_name("former_zones.json")
_YEAR_S: Final = 366 * DAY_S
# A week of minutes is compared in each stretch of different offsets.
_MAX_COMPARED: Final = 10_080


@dataclass(frozen=True, slots=True)
class Moved:
    """The first fire time that a tzdata update moved; None on one side: it was added, or dropped."""

    before_at: int | None
    after_at: int | None


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    releases: dict[str, Any] = json.loads(FILE.read_text())
    return releases


def releases() -> list[str]:
    """The earlier releases that can be compared, the newest first."""
    return list(_file()["releases"])


def check_release(version: str | None) -> str:
    """An earlier release; the newest of them for None. Raises InvalidInput."""
    known = releases()
    if version is None:
        return known[0]
    if version not in known:
        raise InvalidInput("since", "is not a known tzdata release", value=version, accepted=", ".join(known))
    return version


def moved(schedule: Schedule, release: str, now: int) -> Moved | None:
    """The first fire of the coming year that is at another time than by an earlier release; None if all are the same.

    Of several schedules, that of the first one that has one.

    Bounds and excluded dates are left out: they can only hide a moved fire.
    """
    moves = (_moved(timing, release, now - now % DAY_S) for timing in compared(schedule, release))
    return next(filter(None, moves), None)


def compared(schedule: Schedule, release: str) -> list[CronTiming]:
    """The timings whose fires `moved` compares: those that the release affects. Each takes some 20 ms."""
    timings = (part.timing for part in schedule.parts)
    zones = _file()["releases"][release]
    return [timing for timing in timings if isinstance(timing, CronTiming) and timing.timezone in zones]


@lru_cache(maxsize=4096)
def _moved(timing: CronTiming, release: str, now: int) -> Moved | None:
    cron = compiled(timing)
    for start, end, former_s in _stretches(timing.timezone, release, now, now + _YEAR_S):
        former = (at - former_s for at in cron_fires(cron, "UTC", start + former_s, end + former_s))
        present = cron_fires(cron, timing.timezone, start, end)
        for before_at, after_at in islice(zip_longest(former, present), _MAX_COMPARED):
            if before_at != after_at:
                return Moved(before_at, after_at)
    return None


def _stretches(zone: str, release: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The parts of [start, end) in which the offsets differ, with the former offset, in order."""
    former = _file()["releases"][release][zone]
    times = [at for at, _ in former]
    cuts = {start, end, *(change.at for change in changes(zone, start, end))}
    cuts |= {at for at in times if start < at < end}
    ordered = sorted(cuts)
    for first, last in pairwise(ordered):
        offset_s = former[max(0, bisect_right(times, first) - 1)][1]
        if offset_s != offset_at(zone, first):
            yield first, last, offset_s
