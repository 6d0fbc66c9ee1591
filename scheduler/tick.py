"""One tick: plans [planned_until, end of the next whole ten minutes) and enqueues every execution.

The order of the steps makes it safe to stop anywhere, or to run two ticks at once: announce a window, read its entries,
enqueue its executions, and then move planned_until. If the next tick enqueues an execution again, the execution has
the same id and runs once.

An announced but unfinished window is planned first, with its stored decision. Shards that cannot be planned are
quarantined, and planned_until moves on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.planning.due_index import PendingRegistration, PlanningProgress
from common.timing.windows import planning_end
from scheduler.planner import FanOut, Planner, WindowPlanner, retry_quarantined
from scheduler.summary import TickSummary

# Millions of retries of one tenant may wait for one second; they must not delay a window. So the tick enqueues
# postponed executions for a short time before it plans a window, and the rest after the windows.
MAX_POSTPONED_BEFORE_WINDOW_S: Final = 20
# Counted from the start of the tick.
MAX_POSTPONED_S: Final = 150
_MAX_CONFIRMED_TOGETHER: Final = 500


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Stage one. Without `fan_out` it plans everything that is due by itself."""

    planner: Planner
    fan_out: FanOut | None = None

    def tick(self, progress: PlanningProgress | None = None) -> TickSummary:
        """Plan everything that can be planned now. `progress` is one that was just read.

        Raises:
            HandOverFailed, or an AWS error: planned_until has not moved; the next tick plans the same window again.
        """
        now = self.planner.clock.now()
        progress = self._trusted(progress or self.planner.index.ensure_progress(now), now)
        summary = TickSummary(now=now, start=progress.planned_until, end=progress.planned_until)
        progress = self._finish_registrations(progress, summary)
        progress = self._take_up_open_window(progress)
        self._remove_stale_shares(progress)
        progress, postponed_remain = self._plan_windows(progress, summary)
        if postponed_remain:
            self.planner.enqueue_postponed(progress, summary, now + MAX_POSTPONED_S)
        self.planner.write_down(summary, ticks=1)
        summary.set_aside = retry_quarantined(self.planner, self.fan_out, summary)
        return summary

    def _trusted(self, progress: PlanningProgress, now: float) -> PlanningProgress:
        if progress.has_gap:
            progress = self.planner.index.close_gap(progress, now)
        return progress if progress.trusts_listings else self.planner.index.distrust_listings(now)

    def _finish_registrations(self, progress: PlanningProgress, summary: TickSummary) -> PlanningProgress:
        """Enqueue the executions of registrations that committed and were then interrupted.

        Done before any window is announced, so that no interrupted registration is older than the announced window.
        """
        index = self.planner.index
        pendings = list(index.pending())
        if not pendings:
            return progress
        # Read after the registrations: it includes every window that was announced before one of them committed.
        progress = index.ensure_progress(summary.now)
        for first in range(0, len(pendings), _MAX_CONFIRMED_TOGETHER):
            batch = pendings[first : first + _MAX_CONFIRMED_TOGETHER]
            self.planner.plan_registrations(batch, progress, summary)
            readable = [pending for pending in batch if isinstance(pending, PendingRegistration)]
            index.confirm(*readable)
            summary.pending += len(readable)
        return progress

    def _take_up_open_window(self, progress: PlanningProgress) -> PlanningProgress:
        """Count another try of a window that an earlier tick did not finish. Planners count tries of their own."""
        return (
            self.planner.index.count_try(progress)
            if progress.is_open and not progress.is_divided
            else progress
        )

    def _remove_stale_shares(self, progress: PlanningProgress) -> None:
        if self.fan_out:
            self.fan_out.shares.remove_stale(progress.planned_until)

    def _plan_windows(
        self, progress: PlanningProgress, summary: TickSummary
    ) -> tuple[PlanningProgress, bool]:
        """Plan the open window, then the next one. Returns the progress, and whether postponed executions remain."""
        windows = WindowPlanner(self.planner, self.fan_out)
        end, postponed_remain = planning_end(summary.now), False
        while progress.is_open or progress.planned_until < end:
            progress = self.planner.index.begin_planning(progress, end, summary.now)  # announce
            if progress.is_open:
                stop_at = self.planner.clock.now() + MAX_POSTPONED_BEFORE_WINDOW_S
                postponed_remain = self.planner.enqueue_postponed(progress, summary, stop_at)
                progress = windows.plan(progress, summary)
            if (
                progress.is_divided
            ):  # planners have it; the next tick sends the shares that are not done by then
                break
        summary.end, summary.planning_until = progress.planned_until, progress.planning_until
        return progress, postponed_remain
