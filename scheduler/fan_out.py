"""How a window that is too large for one invocation is given to planners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.planning.due_index import Mark
from common.planning.shares import PlanningQueue, Shares

_MIN_ENTRIES: Final = 50


@dataclass(frozen=True, slots=True)
class FanOut:
    """The records of shares, and the queue to the planners. A share has up to `share_entries` due entries."""

    shares: Shares
    queue: PlanningQueue
    share_entries: int

    def entries_a_share(self, window: Mark) -> int:
        """The most entries of a share: fewer for each tick that did not finish the window."""
        return max(min(_MIN_ENTRIES, self.share_entries), self.share_entries >> 2 * window.tries)
