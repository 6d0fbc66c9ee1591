"""Gives the executions of paces their places in a window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from common.events import PACE_EXCEEDED, Events
from common.planning.carried import Carried, Taken
from common.planning.directory import Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import Mark
from common.planning.execution import Execution
from common.planning.pace import Name, Paced, Part, Places
from common.planning.pace_shards import pace_of
from scheduler.summary import TickSummary

# How many executions get their places together: some 50 MB. Those that are read later get what is left.
MAX_TOGETHER: Final = 50_000

Planned = Iterator[tuple[DueEntry, list[Execution]]]


@dataclass(frozen=True, slots=True)
class PaceKeeper:
    """Plans paces for a window. `part` says which seconds are this planner's."""

    carried: Carried
    events: Events
    window: Mark
    part: Part
    summary: TickSummary

    def kept(self, first: Shard, planned: Planned, is_time: Callable[[], bool]) -> Iterator[Execution]:
        """The executions of a pace's shards, the `first` one's and the others', each with its place.

        If it `is_time` after MAX_TOGETHER executions, the rest is left. Publishes an event for each pace that could
        not be kept.
        """
        taken = self.carried.into(pace_of(first.shard), self.window.planned_until)
        places: dict[Name, Places] = {}
        waiting: defaultdict[Name, list[Paced]] = defaultdict(list)
        count = 0
        for entry, executions in planned:
            if (pace := entry.schedule.pace) is None:
                yield from executions
                continue
            waiting[Name(entry.tenant, pace.key)] += (Paced(execution, pace) for execution in executions)
            count += len(executions)
            if count >= MAX_TOGETHER:
                yield from self._placed(first, waiting, places, taken)
                count = 0
                if is_time():
                    break
        yield from self._placed(first, waiting, places, taken)
        self._publish(places)

    def _placed(
        self,
        first: Shard,
        waiting: defaultdict[Name, list[Paced]],
        places: dict[Name, Places],
        taken: Taken,
    ) -> list[Execution]:
        found: list[Execution] = []
        for name, some in waiting.items():
            if name not in places:
                places[name] = Places(self.part, taken[name])
            found += places[name].place(some, self.window.decided_at)
        waiting.clear()
        own = {name: one.own for name, one in places.items()}
        self.carried.keep(pace_of(first.shard), self.window.planning_until, first, own)
        return found

    def _publish(self, places: Mapping[Name, Places]) -> None:
        for name, one in places.items():
            self.summary.over_pace += one.over
            if one.over:
                self.events.publish(
                    PACE_EXCEEDED,
                    {
                        "tenant": name.tenant,
                        "key": name.key,
                        "per_second": one.per_second,
                        "executions": one.own.total(),
                        "over": one.over,
                        "most_in_a_second": max(one.taken.values()),
                        "start_at": self.window.planned_until,
                        "end_at": self.window.planning_until,
                    },
                )
