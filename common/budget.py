"""A budget of processor time: a page of a list ends at it, and its cursor leads on."""

from __future__ import annotations

import time
from typing import Final

# The API's function has a seventh of a processor for 29 s, some 4 s of a whole one. A page keeps within half of it.
PAGE_CPU_S: Final = 1.5


class CpuBudget:
    """Processor time of the present thread from now on, so that waiting for DynamoDB costs none."""

    def __init__(self, seconds: float = PAGE_CPU_S) -> None:
        self._until = time.thread_time() + seconds

    @property
    def is_spent(self) -> bool:
        """Whether no more work may begin."""
        return time.thread_time() >= self._until
