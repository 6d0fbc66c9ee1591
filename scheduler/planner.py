"""One planner: hand over the executions of one share, and move the mark if it was the last."""

from __future__ import annotations

from dataclasses import dataclass

from common.planning.shares import Shares, decode
from scheduler.tick import Scheduler, Summary


@dataclass(frozen=True, slots=True)
class Planner:
    """Takes shares from the planning queue, and plans them as the tick would."""

    scheduler: Scheduler
    shares: Shares

    def plan(self, body: str) -> Summary:
        """Plan the share that a message names; one that is handed over already costs a read.

        Raises:
            HandOverFailed, UnreadableShare or an AWS error: the share's record stays, and the queue delivers it again.
        """
        end, number = decode(body)
        now = self.scheduler.clock.now()
        summary = Summary(now=now, start=end, end=end)
        if share := self.shares.load(end, number):
            summary.start = share.window.planned_until
            self.scheduler.plan_shards(iter(share.shards), share.window, summary)
            self.shares.confirm(share)
        # Also where it was handed over before: its planner may have died before it moved the mark.
        self.shares.finish_if_last(end)
        return summary
