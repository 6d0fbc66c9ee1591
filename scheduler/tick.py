"""One tick: plans [mark, end of the next whole ten minutes) and enqueues every execution.

An announced but unfinished window is planned first, with its stored decision. What cannot be planned is set aside, and
the mark moves on. At the end the tick retries what was set aside before.

The order of the steps makes it safe to stop anywhere, or to run two ticks at once: announce, read, enqueue, and only
then move the mark. If the next tick enqueues something again, it has the same execution id and runs once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from common.clock import Clock
from common.events import Events
from common.jobs.calendars import Calendars, RememberedCalendars
from common.planning.carried import Carried
from common.planning.directory import Shard
from common.planning.due_index import BadEntry, DueIndex, Mark, Pending
from common.planning.execution import Execution
from common.planning.executions_queue import ExecutionsQueue
from common.planning.pace import WHOLE, Part
from common.planning.packs import PACK_FROM, packed
from common.planning.postponed import Postponed
from common.planning.quarantine import Quarantine
from common.planning.shares import cut, gathered
from common.timing.windows import planning_end
from scheduler.concurrently import for_each
from scheduler.due import Untidy, due_shards, tidy
from scheduler.entries import Entries, Progress
from scheduler.fan_out import FanOut as FanOut
from scheduler.paced import PaceKeeper
from scheduler.set_aside import plan_set_aside
from scheduler.skipped import Skipped
from scheduler.summary import TickSummary as TickSummary

if TYPE_CHECKING:
    from common.jobs.ended import EndedJobs
    from common.runs.records import Runs

# If a window begins sooner than this, its executions are enqueued as fast as possible.
HURRY_S = 30
# How long a tick waits for planners if a window is behind, so that it can plan the next one too.
_PATIENCE_S = 60
# How long a tick enqueues postponed executions before it plans a window, and when it stops enqueuing the rest, counted
# from its start. Millions of retries of one tenant may wait for one second; they must not delay a window.
_POSTPONED_FIRST_S = 20
_POSTPONED_UNTIL_S = 150
# A window that this many ticks have not finished goes to planners, in shares that get smaller each time.
_TRIES = 2
# How many interrupted registrations are enqueued, and then confirmed, together.
_PENDINGS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Stage one. Without `fan_out` it plans whatever is due by itself.

    A `patient` one sends when executors hold messages least. Seconds of more than `pack_from` executions are packed.
    """

    index: DueIndex
    runs: Runs
    queue: ExecutionsQueue
    clock: Clock
    postponed: Postponed
    calendars: Calendars
    events: Events
    quarantine: Quarantine
    ended: EndedJobs
    carried: Carried
    fan_out: FanOut | None = None
    patient: bool = False
    pack_from: int = PACK_FROM

    def tick(self) -> TickSummary:
        """Plan everything that can be planned now.

        Raises:
            HandOverFailed, or an AWS error: the mark has not moved; the next tick plans the same window again.
        """
        now = self.clock.now()
        mark = self.index.ensure_mark(now)
        if not mark.is_filed:
            mark = self.index.file_anew(now)
        summary = TickSummary(now=now, start=mark.planned_until, end=mark.planned_until)
        mark = self._finish_registrations(mark, summary)
        if mark.is_open and not mark.is_divided:
            mark = self.index.take_up(mark)
        if self.fan_out:
            self.fan_out.shares.sweep(mark.planned_until)
        end, left = planning_end(now), False
        while mark.is_open or mark.planned_until < end:
            mark = self.index.begin_planning(mark, end, now)
            if mark.is_open:
                left = self._hand_over_postponed(mark, summary, self.clock.now() + _POSTPONED_FIRST_S)
                mark = self._plan_window(mark, summary)
            if mark.is_divided:  # planners have it; the next tick sends again what is not done by then
                break
        summary.end, summary.planning_until = mark.planned_until, mark.planning_until
        if left:
            self._hand_over_postponed(mark, summary, now + _POSTPONED_UNTIL_S)
        summary.set_aside = plan_set_aside(self, summary)
        return summary

    def _plan_window(self, window: Mark, summary: TickSummary) -> Mark:
        if self.fan_out and window.is_divided:
            return self._planned_by_others(self.fan_out, window, summary, overdue=True)
        untidy = Untidy()
        due = due_shards(self.index, self.quarantine, window, summary, untidy)
        if self.fan_out:
            shares = cut(due, window, self.fan_out.entries_a_share(window))
            first = list(islice(shares, 2))
            if len(first) > 1 or window.tries >= _TRIES:
                mark = self.fan_out.shares.record(window, chain(first, shares))
                if mark.is_divided:
                    mark = self._planned_by_others(self.fan_out, mark, summary)
                tidy(self.index, untidy, self.clock)
                return mark
            due = chain.from_iterable(one.shards for one in first)
        else:
            due = chain.from_iterable(gathered(due))
        self.plan_shards(list(due), window, summary)
        mark = self.index.finish_planning(window.planning_until)
        tidy(self.index, untidy, self.clock)
        return mark

    def _hand_over_postponed(self, window: Mark, summary: TickSummary, stop_at: float) -> bool:
        """Whether some may be left for lack of time."""
        skipped = self._skipped(summary)
        for handed_over in self.postponed.hand_over(window.planning_until, stop_at):
            if isinstance(handed_over, BadEntry):
                skipped.bad_entry(handed_over, window.planned_until)
            else:
                summary.planned += handed_over
        self._hand_over(iter(()), skipped, summary)
        return self.clock.now() >= stop_at

    def _skipped(self, summary: TickSummary) -> Skipped:
        return Skipped(self.runs, self.events, self.quarantine, self.ended, summary.now)

    def _planned_by_others(
        self, fan_out: FanOut, window: Mark, summary: TickSummary, *, overdue: bool = False
    ) -> Mark:
        """Send the shares that are left of a divided window to the planners.

        Where that window holds up the next one, planners have had their time: an `overdue` rest is set aside.
        """
        end = window.planning_until
        left = fan_out.shares.left(window)
        summary.shares += len(left)
        fan_out.queue.send(end, left)
        if not left:
            fan_out.shares.finish_if_last(end)
        behind = end < planning_end(summary.now)
        until = self.clock.now() + (_PATIENCE_S if left and behind else 0)
        while (mark := self.index.ensure_mark(summary.now)).is_divided and self.clock.now() < until:
            self.clock.sleep(1)
        if overdue and behind and mark == window:
            return self._set_aside_shares(fan_out, window, summary)
        return mark

    def _set_aside_shares(self, fan_out: FanOut, window: Mark, summary: TickSummary) -> Mark:
        def set_aside(number: int) -> None:
            if share := fan_out.shares.load(window.planning_until, number):
                self.quarantine.add_share(
                    share, "no planner got through it before the next tick", summary.now
                )

        for_each(fan_out.shares.left(window), set_aside)
        fan_out.shares.finish_if_last(window.planning_until)
        return self.index.ensure_mark(summary.now)

    def plan_shards(
        self,
        shards: Sequence[Shard],
        window: Mark,
        summary: TickSummary,
        after: str = "",
        part: Part = WHOLE,
        until: float = 0,
    ) -> Progress:
        """Hand over all that the entries of these shards have to run in the window; from `until` on no more entries.

        Returns what is left, which is nothing without `until`.
        """
        progress = Progress(shards, after)
        spare_until = window.planned_until - HURRY_S if self.patient else 0
        skipped = self._skipped(summary)
        keeper = PaceKeeper(self.carried, self.events, window, part, summary)
        executions = self._entries(skipped, summary).executions(progress, keeper, until)
        self._hand_over(executions, skipped, summary, spare_until)
        return progress

    def _entries(self, skipped: Skipped, summary: TickSummary) -> Entries:
        return Entries(self.index, RememberedCalendars(self.calendars), self.clock, skipped, summary)

    def _finish_registrations(self, mark: Mark, summary: TickSummary) -> Mark:
        """Enqueue what a registration committed but did not enqueue, because it was interrupted.

        Done before any window is announced, so that no registration's rest is older than the announced window.
        """
        pendings = list(self.index.pending())
        if not pendings:
            return mark
        # Read after them: it includes everything that was announced before one of them was committed.
        mark = self.index.ensure_mark(summary.now)
        for first in range(0, len(pendings), _PENDINGS_AT_ONCE):
            some = pendings[first : first + _PENDINGS_AT_ONCE]
            skipped = self._skipped(summary)
            executions = self._entries(skipped, summary).registered(some, mark)
            self._hand_over(executions, skipped, summary)
            readable = [pending for pending in some if isinstance(pending, Pending)]
            self.index.confirm(*readable)
            summary.pending += len(readable)
        return mark

    def _hand_over(
        self, executions: Iterator[Execution], skipped: Skipped, summary: TickSummary, spare_until: float = 0
    ) -> None:
        noted = self.index.planned.noted(self.clock.now())
        near = self.postponed.keep_far(noted.through(executions))
        planned, refused = self.queue.send_packs(packed(near, self.pack_from), spare_until=spare_until)
        for refusal in refused:
            skipped.refused(refusal.execution, refusal.reason)
        skipped.write()
        noted.write()
        summary.planned += planned
        summary.refused += len(refused)
        summary.missed += skipped.missed_count
        summary.bad_entries += skipped.bad_entries
        summary.bad += skipped.bad
