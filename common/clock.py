"""The clock. Pure code takes `now`; a clock is given to the edges alone, and read once per step."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time as epoch seconds, and waits."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only when told to, or slept on: the product's own, for tests and simulations."""

    def __init__(self, now: float) -> None:
        self._now = float(now)

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def move_to(self, now: float) -> None:
        """Set the time; backwards too, as real clocks do."""
        self._now = float(now)
