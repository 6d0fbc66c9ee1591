"""One tick: plan [mark, end of the next whole ten minutes) and hand every execution to the queue.

A window that was announced and never finished is planned first, and as it was decided then.

The order of the steps is what makes it safe to cut it off anywhere, or to run it twice at once: announce, read, hand
over, and only then move the mark. What is sent again by the next tick has the same execution id, and is run once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from common.calendars import Calendars, TickCalendars
from common.clock import Clock
from common.due_index import BadEntry, DueIndex, Mark, Shard
from common.events import RUN_SKIPPED, Events
from common.execution import Execution
from common.executions_queue import ExecutionsQueue
from common.groups import group_can_fire
from common.planning import DueEntry, Missed, plan, plan_registered
from common.runs import INVALID, MISSED, Runs
from common.window import planning_end


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
    bad: list[BadEntry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Stage one."""

    index: DueIndex
    runs: Runs
    queue: ExecutionsQueue
    clock: Clock
    calendars: Calendars
    events: Events

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
                mark = self._plan_window(mark, summary)
        summary.end = mark.planned_until
        return summary

    def _plan_window(self, window: Mark, summary: Summary) -> Mark:
        empty: list[Shard] = []
        calendars = TickCalendars(self.calendars)
        self._hand_over(self._executions(window, calendars, summary, empty), summary)
        mark = self.index.finish_planning(window.planning_until)
        for shard in empty:
            self.index.drop_empty(shard)
        return mark

    def _finish_registrations(self, mark: Mark, summary: Summary) -> Mark:
        """Hand over what a registration committed and then, cut off, did not hand over itself.

        Before any window is announced, so that what is left of a registration is never older than what is announced.
        """
        pendings = list(self.index.pending())
        if not pendings:
            return mark
        # Read after them: it holds whatever was announced before one of them was committed.
        mark = self.index.ensure_mark(summary.now)
        calendars = TickCalendars(self.calendars)
        for pending in pendings:
            if isinstance(pending, BadEntry):
                self._bad(pending, mark, summary)
                continue
            summary.pending += 1
            self._hand_over(iter(self._registered(pending.entry, mark, calendars, summary)), summary)
            self.index.confirm(pending)
        return mark

    def _hand_over(self, executions: Iterator[Execution], summary: Summary) -> None:
        planned, refused = self.queue.send(executions)
        summary.planned += planned
        summary.refused += len(refused)
        for refusal in refused:
            self.runs.skip(refusal.execution, INVALID, f"refused by SQS: {refusal.reason}", summary.now)

    def _executions(
        self, window: Mark, calendars: TickCalendars, summary: Summary, empty: list[Shard]
    ) -> Iterator[Execution]:
        for shard in self._due_shards(window, summary, empty):
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
        self, entry: DueEntry, window: Mark, calendars: TickCalendars, summary: Summary
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
        self.events.tell(
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
        self, entry: DueEntry, mark: Mark, calendars: TickCalendars, summary: Summary
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
