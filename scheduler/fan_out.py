"""Where the shares of a window go if it is too large for one invocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.planning.due_index import Mark
from common.planning.shares import PlanningQueue, Shares

_FEWEST_ENTRIES: Final = 50


@dataclass(frozen=True, slots=True)
class FanOut:
    """Where the shares of a window go if it is too large for one invocation: more than `share_entries` due entries."""

    shares: Shares
    queue: PlanningQueue
    share_entries: int

    def entries_a_share(self, window: Mark) -> int:
        """Fewer with each tick that the window has cost."""
        return max(min(_FEWEST_ENTRIES, self.share_entries), self.share_entries >> 2 * window.tries)
