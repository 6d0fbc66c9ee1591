"""One tick: plan [mark, end of the next whole ten minutes) and hand every execution to the queue.

A window that was announced and never finished is planned first, and as it was decided then.

The order of the steps is what makes it safe to cut it off anywhere, or to run it twice at once: announce, read, hand
over, and only then move the mark. What is sent again by the next tick has the same execution id, and is run once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from common.clock import Clock
from common.events import RUN_SKIPPED, Events
from common.jobs.calendars import Calendars, RememberedCalendars
from common.planning.due_index import BadEntry, DueIndex, Mark, Shard
from common.planning.execution import Execution
from common.planning.executions_queue import ExecutionsQueue
from common.planning.plan import DueEntry, Missed, plan, plan_registered
from common.planning.postponed import Postponed
from common.planning.shares import PlanningQueue, Shares, divide
from common.runs.records import Runs
from common.runs.states import INVALID, MISSED
from common.timing.groups import group_can_fire
from common.timing.windows import planning_end


@dataclass(slots=True)
class Summary:
    """What a tick did. Instants are epoch seconds."""

    now: float
    start: int
    end: int
    groups_known: int = 0
    shards_due: int = 0
    entries_read: int = 0
    planned: int = 0
    missed: int = 0
    refused: int = 0
    pending: int = 0
    shares: int = 0
    bad: list[BadEntry] = field(default_factory=list)


# A window that begins sooner than this is handed over as fast as it goes.
HURRY_S = 30
# Where a window is behind, the tick waits so long for planners, in order to plan the next one too.
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class FanOut:
    """Where the shares of a window go that is too much for one invocation: more than `share_entries` due entries."""

    shares: Shares
    queue: PlanningQueue
    share_entries: int


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Stage one. Without `fan_out` it plans whatever is due by itself.

    A `patient` one uses the time that it has before a window begins to send when executors hold the messages least.
    """

    index: DueIndex
    runs: Runs
    queue: ExecutionsQueue
    clock: Clock
    postponed: Postponed
    calendars: Calendars
    events: Events
    fan_out: FanOut | None = None
    patient: bool = False

    def tick(self) -> Summary:
        """Plan what is to be planned now.

        Raises:
            HandOverFailed, or an AWS error: the mark has not moved; the next tick plans the same window again.
        """
        now = self.clock.now()
        mark = self.index.ensure_mark(now)
        summary = Summary(now=now, start=mark.planned_until, end=mark.planned_until)
        mark = self._finish_registrations(mark, summary)
        end = planning_end(now)
        while mark.is_open or mark.planned_until < end:
            mark = self.index.begin_planning(mark, end, now)
            if mark.is_open:
                self._hand_over_postponed(mark, summary)
                mark = self._plan_window(mark, summary)
            if mark.is_divided:  # planners have it; the next tick sends again what they have not done by then
                break
        summary.end = mark.planned_until
        return summary

    def _plan_window(self, window: Mark, summary: Summary) -> Mark:
        if self.fan_out and window.is_divided:
            return self._planned_by_others(self.fan_out, window, summary)
        empty: list[Shard] = []
        due = self._due_shards(window, summary, empty)
        if self.fan_out:
            shares = divide(list(due), self.fan_out.share_entries)
            if len(shares) > 1:
                mark = self.fan_out.shares.record(window, shares)
                self._drop(empty)
                return self._planned_by_others(self.fan_out, mark, summary) if mark.is_divided else mark
            due = iter(shares[0])
        self.plan_shards(due, window, summary)
        mark = self.index.finish_planning(window.planning_until)
        self._drop(empty)
        return mark

    def _hand_over_postponed(self, window: Mark, summary: Summary) -> None:
        for handed_over in self.postponed.hand_over(window.planning_until):
            if isinstance(handed_over, BadEntry):
                self._bad(handed_over, window, summary)
            else:
                summary.planned += handed_over

    def _planned_by_others(self, fan_out: FanOut, window: Mark, summary: Summary) -> Mark:
        """Send the shares that are left of a divided window to the planners."""
        end = window.planning_until
        left = fan_out.shares.left(end)
        summary.shares += len(left)
        fan_out.queue.send(end, left)
        if not left:
            fan_out.shares.finish_if_last(end)
        until = self.clock.now() + (_PATIENCE_S if left and end < planning_end(summary.now) else 0)
        while (mark := self.index.ensure_mark(summary.now)).is_divided and self.clock.now() < until:
            self.clock.sleep(1)
        return mark

    def plan_shards(self, shards: Iterator[Shard], window: Mark, summary: Summary) -> None:
        """Hand over all that the entries of these shards have to run in the window."""
        calendars = RememberedCalendars(self.calendars)
        spare_until = window.planned_until - HURRY_S if self.patient else 0
        self._hand_over(self._executions(shards, window, calendars, summary), summary, spare_until)

    def _drop(self, empty: list[Shard]) -> None:
        for shard in empty:
            self.index.drop_empty(shard)

    def _finish_registrations(self, mark: Mark, summary: Summary) -> Mark:
        """Hand over what a registration committed and then, cut off, did not hand over itself.

        Before any window is announced, so that what is left of a registration is never older than what is announced.
        """
        pendings = list(self.index.pending())
        if not pendings:
            return mark
        # Read after them: it holds whatever was announced before one of them was committed.
        mark = self.index.ensure_mark(summary.now)
        calendars = RememberedCalendars(self.calendars)
        for pending in pendings:
            if isinstance(pending, BadEntry):
                self._bad(pending, mark, summary)
                continue
            summary.pending += 1
            self._hand_over(iter(self._registered(pending.entry, mark, calendars, summary)), summary)
            self.index.confirm(pending)
        return mark

    def _hand_over(self, executions: Iterator[Execution], summary: Summary, spare_until: float = 0.0) -> None:
        planned, refused = self.queue.send(executions, spare_until=spare_until)
        summary.planned += planned
        summary.refused += len(refused)
        for refusal in refused:
            self.runs.skip(refusal.execution, INVALID, f"refused by SQS: {refusal.reason}", summary.now)

    def _executions(
        self, shards: Iterator[Shard], window: Mark, calendars: RememberedCalendars, summary: Summary
    ) -> Iterator[Execution]:
        for shard in shards:
            summary.shards_due += 1
            for entry in self.index.entries(shard):
                summary.entries_read += 1
                if isinstance(entry, BadEntry):
                    self._bad(entry, window, summary)
                else:
                    yield from self._planned(entry, window, calendars, summary)

    def _due_shards(self, window: Mark, summary: Summary, empty: list[Shard]) -> Iterator[Shard]:
        start, end = window.planned_until, window.planning_until
        for shard in self.index.recurring_shards():
            summary.groups_known += 1
            if shard.jobs <= 0:
                empty.append(shard)
            elif group_can_fire(shard.group, start, end):
                yield shard
        yield from self.index.one_off_shards(start, end)

    def _planned(
        self, entry: DueEntry, window: Mark, calendars: RememberedCalendars, summary: Summary
    ) -> list[Execution]:
        """One entry's executions. Whatever is wrong with it, the others are planned all the same."""
        try:
            excluded = calendars.excluded(entry.tenant, entry.schedule.calendars)
            planned = plan(entry, window.planned_until, window.planning_until, window.decided_at, excluded)
        except Exception as error:  # noqa: BLE001
            self._bad(_unplannable(entry, error), window, summary)
            return []
        if planned.missed:
            summary.missed += planned.missed.count
            if self.runs.record_missed(planned.missed, summary.now):
                self._tell_missed(planned.missed)
        return planned.executions

    def _tell_missed(self, missed: Missed) -> None:
        self.events.publish(
            RUN_SKIPPED,
            {
                "tenant": missed.tenant,
                "job_id": missed.job_id,
                "reason": MISSED,
                "skipped_count": missed.count,
                "skipped_from_at": missed.first_fire_at,
                "skipped_to_at": missed.last_fire_at,
            },
        )

    def _registered(
        self, entry: DueEntry, mark: Mark, calendars: RememberedCalendars, summary: Summary
    ) -> list[Execution]:
        try:
            excluded = calendars.excluded(entry.tenant, entry.schedule.calendars)
            return plan_registered(entry, mark.planning_until, excluded)
        except Exception as error:  # noqa: BLE001
            self._bad(_unplannable(entry, error), mark, summary)
            return []

    def _bad(self, entry: BadEntry, window: Mark, summary: Summary) -> None:
        """Recorded where its tenant looks, under the start of the window that could not be planned for it."""
        summary.bad.append(entry)
        start = window.planned_until
        execution = Execution(entry.tenant, entry.job_id, start, start, schedule_revision=0)
        self.runs.skip(execution, INVALID, entry.problem, summary.now)


def _unplannable(entry: DueEntry, error: Exception) -> BadEntry:
    return BadEntry(entry.tenant, entry.job_id, f"cannot be planned: {error!r}")
