"""One tick: plan [mark, end of the next whole ten minutes) and hand every execution to the queue.

The order of the steps is what makes it safe to cut it off anywhere, or to run it twice at once: announce, read, hand
over, and only then move the mark. What is sent again by the next tick has the same execution id, and is run once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from common.clock import Clock
from common.due_index import BadEntry, DueIndex, Shard
from common.execution import Execution
from common.executions_queue import ExecutionsQueue
from common.groups import group_can_fire
from common.planning import DueEntry, plan
from common.runs import INVALID, Runs
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

    def tick(self) -> Summary:
        """Plan what is to be planned now.

        Raises:
            HandOverFailed, or an AWS error: the mark has not moved; the next tick plans the same window again.
        """
        now = self.clock.now()
        mark = self.index.ensure_mark(now)
        summary = Summary(now=now, start=mark.planned_until, end=max(mark.planned_until, planning_end(now)))
        self._finish_registrations(summary)
        if summary.end > summary.start:
            self._plan_window(summary)
        return summary

    def _plan_window(self, summary: Summary) -> None:
        self.index.begin_planning(summary.end)
        empty: list[Shard] = []
        self._hand_over(self._executions(summary, empty), summary)
        self.index.finish_planning(summary.end)
        for shard in empty:
            self.index.drop_empty(shard)

    def _finish_registrations(self, summary: Summary) -> None:
        """Hand over what a registration committed and then, cut off, did not hand over itself."""
        for pending in self.index.pending():
            if isinstance(pending, BadEntry):
                self._bad(pending, summary)
                continue
            summary.pending += 1
            self._hand_over(iter(self._planned(pending.entry, 0, summary.start, summary)), summary)
            self.index.confirm(pending)

    def _hand_over(self, executions: Iterator[Execution], summary: Summary) -> None:
        planned, refused = self.queue.send(executions)
        summary.planned += planned
        summary.refused += len(refused)
        for refusal in refused:
            self.runs.skip(refusal.execution, INVALID, f"refused by SQS: {refusal.reason}", summary.now)

    def _executions(self, summary: Summary, empty: list[Shard]) -> Iterator[Execution]:
        for shard in self._due_shards(summary, empty):
            summary.shards_due += 1
            for entry in self.index.entries(shard):
                summary.entries_read += 1
                if isinstance(entry, BadEntry):
                    self._bad(entry, summary)
                else:
                    yield from self._planned(entry, summary.start, summary.end, summary)

    def _due_shards(self, summary: Summary, empty: list[Shard]) -> Iterator[Shard]:
        for shard in self.index.recurring_shards():
            summary.groups_known += 1
            if shard.jobs <= 0:
                empty.append(shard)
            elif group_can_fire(shard.group, summary.start, summary.end):
                yield shard
        yield from self.index.one_off_shards(summary.start, summary.end)

    def _planned(self, entry: DueEntry, start: int, end: int, summary: Summary) -> list[Execution]:
        """One entry's executions. Whatever is wrong with it, the others are planned all the same."""
        try:
            planned = plan(entry, start, end, summary.now)
        except Exception as error:  # noqa: BLE001
            self._bad(BadEntry(entry.tenant, entry.job_id, f"cannot be planned: {error!r}"), summary)
            return []
        if planned.missed:
            summary.missed += planned.missed.count
            self.runs.record_missed(planned.missed, summary.now)
        return planned.executions

    def _bad(self, entry: BadEntry, summary: Summary) -> None:
        """Recorded where its tenant looks, under the start of the window that could not be planned for it."""
        summary.bad.append(entry)
        execution = Execution(entry.tenant, entry.job_id, summary.start, summary.start, schedule_revision=0)
        self.runs.skip(execution, INVALID, entry.problem, summary.now)
