"""The clock of tests and simulations."""

from __future__ import annotations


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
