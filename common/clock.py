"""The clock. Pure code takes `now`; only the edges hold a clock, and each step reads it once."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time as epoch seconds, waits, and tells processor time."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def thread_s(self) -> float:
        """The processor time that the calling thread has used."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def thread_s(self) -> float:
        return time.thread_time()


class ManualClock:
    """A clock that moves only when a test or simulation moves it, or sleeps on it."""

    def __init__(self, now: float) -> None:
        self._now = float(now)

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def thread_s(self) -> float:
        return 0.0

    def move_to(self, now: float) -> None:
        """Set the time; it may go backwards, as with real clocks."""
        self._now = float(now)
