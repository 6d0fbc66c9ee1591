"""One tick: plans [mark, end of the next whole ten minutes) and enqueues every execution.

The order of the steps makes it safe to stop anywhere, or to run two ticks at once: announce a window, read its entries,
enqueue its executions, and only then move the mark. If the next tick enqueues an execution again, the execution has the
same id and runs once.

An announced but unfinished window is planned first, with its stored decision. Shards that cannot be planned are
quarantined, and the mark moves on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.planning.due_index import Mark, PendingRegistration
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

    def tick(self, mark: Mark | None = None) -> TickSummary:
        """Plan everything that can be planned now. `mark` is one that was just read.

        Raises:
            HandOverFailed, or an AWS error: the mark has not moved; the next tick plans the same window again.
        """
        now = self.planner.clock.now()
        mark = self._trusted(mark or self.planner.index.ensure_mark(now), now)
        summary = TickSummary(now=now, start=mark.planned_until, end=mark.planned_until)
        mark = self._finish_registrations(mark, summary)
        mark = self._take_up_open_window(mark)
        self._remove_stale_shares(mark)
        mark, postponed_remain = self._plan_windows(mark, summary)
        if postponed_remain:
            self.planner.enqueue_postponed(mark, summary, now + MAX_POSTPONED_S)
        self.planner.write_down(summary, ticks=1)
        summary.set_aside = retry_quarantined(self.planner, self.fan_out, summary)
        return summary

    def _trusted(self, mark: Mark, now: float) -> Mark:
        if mark.has_gap:
            mark = self.planner.index.close_gap(mark, now)
        return mark if mark.trusts_listings else self.planner.index.distrust_listings(now)

    def _finish_registrations(self, mark: Mark, summary: TickSummary) -> Mark:
        """Enqueue the executions of registrations that committed and were then interrupted.

        Done before any window is announced, so that no interrupted registration is older than the announced window.
        """
        index = self.planner.index
        pendings = list(index.pending())
        if not pendings:
            return mark
        # Read after the registrations: it includes every window that was announced before one of them committed.
        mark = index.ensure_mark(summary.now)
        for first in range(0, len(pendings), _MAX_CONFIRMED_TOGETHER):
            batch = pendings[first : first + _MAX_CONFIRMED_TOGETHER]
            self.planner.plan_registrations(batch, mark, summary)
            readable = [pending for pending in batch if isinstance(pending, PendingRegistration)]
            index.confirm(*readable)
            summary.pending += len(readable)
        return mark

    def _take_up_open_window(self, mark: Mark) -> Mark:
        """Count another try of a window that an earlier tick did not finish. Planners count tries of their own."""
        return self.planner.index.count_try(mark) if mark.is_open and not mark.is_divided else mark

    def _remove_stale_shares(self, mark: Mark) -> None:
        if self.fan_out:
            self.fan_out.shares.remove_stale(mark.planned_until)

    def _plan_windows(self, mark: Mark, summary: TickSummary) -> tuple[Mark, bool]:
        """Plan the open window, then the next one. Returns the stored mark, and whether postponed executions remain."""
        windows = WindowPlanner(self.planner, self.fan_out)
        end, postponed_remain = planning_end(summary.now), False
        while mark.is_open or mark.planned_until < end:
            mark = self.planner.index.begin_planning(mark, end, summary.now)  # announce
            if mark.is_open:
                stop_at = self.planner.clock.now() + MAX_POSTPONED_BEFORE_WINDOW_S
                postponed_remain = self.planner.enqueue_postponed(mark, summary, stop_at)
                mark = windows.plan(mark, summary)
            if mark.is_divided:  # planners have it; the next tick sends the shares that are not done by then
                break
        summary.end, summary.planning_until = mark.planned_until, mark.planning_until
        return mark, postponed_remain
