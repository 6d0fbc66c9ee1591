"""The clock, and a budget of processor time. Pure code takes `now`; the edges read a clock, once in each step."""

from __future__ import annotations

import time
from typing import Protocol

from common.limits import PAGE_CPU_S


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


class CpuBudget:
    """Processor time of the present thread from now on; waiting costs none. A page of a list ends when it is spent."""

    def __init__(self, seconds: float = PAGE_CPU_S) -> None:
        self._until = time.thread_time() + seconds

    @property
    def is_spent(self) -> bool:
        """Whether no more work may begin."""
        return time.thread_time() >= self._until
