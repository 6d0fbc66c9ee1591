"""Faults of ticks, one drawn at random for every ten minutes, and the wire that injects them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from threading import current_thread, main_thread

from tests.worlds import Killed


class Fate(StrEnum):
    ON_TIME = "on time"
    LATE = "minutes late"
    LOST = "lost"
    TWICE = "twice"
    TWICE_AT_ONCE = "twice at once"
    CRASHED = "crashed, not tried again"
    RESTARTED = "crashed and restarted"
    CLOCK_BACK = "clock stepped back"
    CHANGED = "a job changed while it ran"
    OUTAGE = "outage"


_WEIGHTS = {
    Fate.ON_TIME: 860,
    Fate.LATE: 40,
    Fate.LOST: 20,
    Fate.TWICE: 20,
    Fate.TWICE_AT_ONCE: 15,
    Fate.CRASHED: 10,
    Fate.RESTARTED: 15,
    Fate.CLOCK_BACK: 5,
    Fate.CHANGED: 15,
}
_OUTAGES_S = (3_600, 3 * 3_600, 26 * 3_600)


@dataclass(frozen=True, slots=True)
class Slot:
    """One minute 8, and the fate of its tick."""

    at: float
    fate: Fate


def slots(rng: random.Random, begins: int, ends: int) -> Iterator[Slot]:
    """Every minute 8, 18, 28… with its fate; now and then nothing ticks for hours, once for more than a day."""
    days = (ends - begins) // 86_400
    lengths = [*_OUTAGES_S, *(rng.choice(_OUTAGES_S[:2]) for _ in range(days // 45))]
    outages = [(start, start + length) for length in lengths for start in [rng.randrange(begins, ends)]]
    for at in range(begins // 600 * 600 + 480, ends, 600):
        if any(start <= at < end for start, end in outages):
            yield Slot(at, Fate.OUTAGE)
            continue
        (fate,) = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        late_s = rng.uniform(60, 560) if fate is Fate.LATE else rng.uniform(0, 8)
        yield Slot(at + late_s, fate)


class Wire:
    """Counts the calls of a tick, and injects a fault before one of them."""

    def __init__(self) -> None:
        self.happened: Counter[str] = Counter()
        self._left = 0
        self._fault: Callable[[], None] | None = None
        self.look: Callable[[], None] = lambda: None

    def arm(self, nth: int, fault: Callable[[], None]) -> None:
        self._left, self._fault = nth, fault

    def disarm(self) -> None:
        self._fault = None

    def before(self, name: str) -> None:
        self.look()
        if self._fault is None:
            return
        self._left -= 1
        # Another tick or a registration may run before a call of the tick's own thread; the tick may die at any call.
        if self._left <= 0 and (self._fault is kill or current_thread() is main_thread()):
            fault, self._fault = self._fault, None
            self.happened[fault.__name__] += 1
            fault()


def kill() -> None:
    raise Killed
