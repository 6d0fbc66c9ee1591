"""From due entries to executions. An error in one entry does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from botocore.exceptions import BotoCoreError, ClientError

from common.clock import Clock
from common.jobs.calendars import RememberedCalendars
from common.jobs.ended import fires_again
from common.planning.directory import Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import BadEntry, DueIndex, Mark, Pending, place
from common.planning.execution import Execution
from common.planning.pace_shards import pace_of
from common.planning.plan import Plan, plan, plan_registered, scattered
from scheduler.paced import PaceKeeper
from scheduler.skipped import Skipped
from scheduler.summary import TickSummary


@dataclass(slots=True)
class Progress:
    """How far the planning of some shards is: this many are done, and the next one up to the place `after`."""

    shards: Sequence[Shard]
    after: str = ""
    done: int = 0

    @property
    def left(self) -> Sequence[Shard]:
        """The shards that are not done."""
        return self.shards[self.done :]


@dataclass(frozen=True, slots=True)
class Entries:
    """Reads due entries and registrations, and plans each of them."""

    index: DueIndex
    calendars: RememberedCalendars
    clock: Clock
    skipped: Skipped
    summary: TickSummary

    def executions(self, progress: Progress, keeper: PaceKeeper, until: float) -> Iterator[Execution]:
        """What the shards have to run in the keeper's window, the shards of a pace together.

        From `until` on no more entries are read, but those of a pace up to its end, or up to MAX_TOGETHER executions.
        """

        def is_time() -> bool:
            return bool(until) and self.clock.now() >= until

        for pace, some in groupby(progress.shards, key=lambda shard: pace_of(shard.shard)):
            shards = list(some)
            if pace:
                planned = self._planned(progress, shards, keeper.window, lambda: False)
                yield from keeper.kept(shards[0], planned, is_time)
            else:
                for entry, executions in self._planned(progress, shards, keeper.window, is_time):
                    yield from (scattered(entry, execution) for execution in executions)
            if is_time():
                return

    def registered(self, pendings: Sequence[Pending | BadEntry], mark: Mark) -> Iterator[Execution]:
        """What registrations that were cut off have to run before the announced end."""
        for pending in pendings:
            if isinstance(pending, BadEntry):
                self.skipped.bad_entry(pending, mark.planned_until)
            else:
                yield from self._plan(pending.entry, mark, _as_registered)

    def _planned(
        self, progress: Progress, shards: Sequence[Shard], window: Mark, is_time: Callable[[], bool]
    ) -> Iterator[tuple[DueEntry, list[Execution]]]:
        for shard in shards:
            self.summary.shards_due += 1
            for entry in self.index.entries(shard, progress.after):
                self.summary.entries_read += 1
                progress.after = place(entry)
                if isinstance(entry, BadEntry):
                    self.skipped.bad_entry(entry, window.planned_until)
                else:
                    yield entry, self._plan(entry, window, _as_due)
                if is_time():
                    return
            progress.done += 1
            progress.after = ""

    def _plan(self, entry: DueEntry, window: Mark, how: _How) -> list[Execution]:
        try:
            excluded = self.calendars.excluded(entry.tenant, entry.schedule.calendars)
            planned = how(entry, window, excluded)
        except (BotoCoreError, ClientError):  # not the entry's fault
            raise
        except Exception as error:  # noqa: BLE001
            bad = BadEntry(entry.tenant, entry.job_id, f"cannot be planned: {error!r}"[:500])
            self.skipped.bad_entry(bad, window.planned_until)
            return []
        if planned.missed:
            again = planned.executions or fires_again(entry.schedule, window.planning_until - 1, excluded)
            self.skipped.missed(planned.missed, is_last=not again)
        return planned.executions


_How = Callable[[DueEntry, Mark, Container[str]], Plan]


def _as_due(entry: DueEntry, window: Mark, excluded: Container[str]) -> Plan:
    return plan(entry, window.planned_until, window.planning_until, window.decided_at, excluded)


def _as_registered(entry: DueEntry, mark: Mark, excluded: Container[str]) -> Plan:
    return Plan(plan_registered(entry, mark.planning_until, excluded))
