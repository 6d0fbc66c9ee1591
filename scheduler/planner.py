"""A planner: enqueues the executions of one share, and moves the mark after the last share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.planning.quarantine import Quarantine
from common.planning.shares import PlanningQueue, Share, Shares, decode, encode, encode_set_aside
from scheduler.tick import Scheduler, TickSummary

# After this time a planner leaves the rest to another; its function has 300 s (serverless.yml).
WORKS_FOR_S: Final = 180


@dataclass(frozen=True, slots=True)
class Planner:
    """Takes shares and quarantined records from the planning queue, and plans them as the tick would."""

    scheduler: Scheduler
    shares: Shares
    queue: PlanningQueue

    def plan(self, body: str) -> TickSummary:
        """Plan what a message names; a share that is already done costs one read.

        Raises:
            HandOverFailed, UnreadableShare or an AWS error: the share's record stays, and the queue delivers it again.
        """
        work = decode(body)
        now = self.scheduler.clock.now()
        if isinstance(work, list):
            summary = TickSummary(now=now, start=int(now), end=int(now))
            for name in work:
                self._plan_set_aside(self.scheduler.quarantine, name, summary)
            return summary
        summary = TickSummary(now=now, start=work.end, end=work.end, planning_until=work.end)
        if share := self.shares.load(work.end, work.number):
            summary.start = share.window.planned_until
            if not self._plan(share, encode(work.end, work.number), summary):
                return summary
            self.shares.confirm(share)
        # Also for a share that was done before: its planner may have died before it moved the mark.
        self.shares.finish_if_last(work.end)
        return summary

    def _plan_set_aside(self, quarantine: Quarantine, name: str, summary: TickSummary) -> None:
        share = quarantine.take(name, summary.now)
        if share and self._plan(share, encode_set_aside([name]), summary):
            quarantine.release(share)

    def _plan(self, share: Share, message: str, summary: TickSummary) -> bool:
        """Whether the whole share is done. If not, its progress is stored, and `message` goes to another planner."""
        until = summary.now + WORKS_FOR_S
        progress = self.scheduler.plan_shards(
            share.shards, share.window, summary, share.after, share.part, until
        )
        if not progress.left:
            return True
        if self.shares.advance(share, progress.left, progress.after):
            self.queue.send_bodies([message])
        return False
