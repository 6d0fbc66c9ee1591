"""Gives the executions of paces their seconds in a window.

The executions of a window may take seconds after its end. A carryover records these seconds, so that the next windows
leave them free.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from common import telemetry
from common.events import PACE_EXCEEDED, Events
from common.planning.directory import Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import Window
from common.planning.execution import Execution
from common.planning.pace import PacedExecution, PaceName, PaceReservations, PaceSlice, pace_of
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.timing.instants import DAY_S
from scheduler.summary import TickSummary

# Executions that get their seconds together: some 50 MB. Later executions get the seconds that are still free.
MAX_RESERVED_TOGETHER: Final = 50_000
# The longest spread, jitter and tolerance together: a window that ended longer ago cannot reach into this one.
MAX_CARRYOVER_S: Final = 3 * 3_600
_CARRYOVER_TTL_S: Final = DAY_S

Reserved = dict[PaceName, Counter[int]]
PlannedEntries = Iterator[tuple[DueEntry, list[Execution]]]


class PaceCarryover:
    """The records of reserved seconds after the end of a window, in the due table.

    Each pace and window has one item, and only if something is due after the window's end.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def load(self, pace: int, start: int) -> Reserved:
        """The seconds from `start` on that windows before it reserved, of the paces with this number."""
        reserved: defaultdict[PaceName, Counter[int]] = defaultdict(Counter)
        between = keys.begins_between(start - MAX_CARRYOVER_S, start)
        for item in self._table.query(Query(keys.pace_carryover(pace, start)["pk"], sk_between=between)):
            try:
                seconds = list(_reserved_seconds(item))
            except DAMAGE as error:  # the pace is exceeded in these seconds, and the others are planned
                telemetry.logger().error("unreadable carryover", key=keys.key_of(item), problem=repr(error))
                continue
            for name, second, count in seconds:
                if second >= start:
                    reserved[name][second] += count
        return reserved

    def store(self, pace: int, end: int, first: Shard, reserved: Reserved) -> None:
        """Record the seconds from `end` on that a share reserved; `first` is its first shard.

        If the share is planned again, the new record replaces the old one.
        """
        carried = [
            (*name, sorted((second - end, count) for second, count in seconds.items() if second >= end))
            for name, seconds in sorted(reserved.items())
        ]
        if carried := [entry for entry in carried if entry[-1]]:
            key = keys.pace_carryover(pace, end, first.group, first.shard)
            text = json.dumps(carried, separators=(",", ":"))
            self._table.put({**key, "end": end, "taken": text, "expires_at": end + _CARRYOVER_TTL_S})


def _reserved_seconds(item: Item) -> Iterator[tuple[PaceName, int, int]]:
    """Each second of a record with the executions of a pace that are due at it."""
    end = item["end"]
    for tenant, key, seconds in json.loads(item["taken"]):
        for after_s, count in seconds:
            if not isinstance(key, str) or {type(end), type(after_s), type(count)} != {int}:
                raise TypeError(f"{key!r}: {count!r} executions {after_s!r} s after {end!r}"[:300])
            yield PaceName(tenant, key), end + after_s, count


@dataclass(frozen=True, slots=True)
class PaceKeeper:
    """Plans paces for a window. `pace_slice` says which seconds are this planner's."""

    carryover: PaceCarryover
    events: Events
    window: Window
    pace_slice: PaceSlice
    summary: TickSummary

    def keep(
        self, first: Shard, planned: PlannedEntries, is_time_up: Callable[[], bool]
    ) -> Iterator[Execution]:
        """The executions of a pace's shards, each at its second; `first` is the first of these shards.

        After MAX_RESERVED_TOGETHER executions the method stops if the time is up. Publishes an event for each pace that
        could not be kept.
        """
        carried = self.carryover.load(pace_of(first.shard), self.window.start)
        reservations: dict[PaceName, PaceReservations] = {}
        waiting: defaultdict[PaceName, list[PacedExecution]] = defaultdict(list)
        count = 0
        for entry, executions in planned:
            if (pace := entry.schedule.pace) is None:
                yield from executions
                continue
            name = PaceName(entry.tenant, pace.key)
            waiting[name] += (PacedExecution(execution, pace) for execution in executions)
            count += len(executions)
            if count >= MAX_RESERVED_TOGETHER:
                yield from self._reserve(first, waiting, reservations, carried)
                count = 0
                if is_time_up():
                    break
        yield from self._reserve(first, waiting, reservations, carried)
        self._publish(reservations)

    def _reserve(
        self,
        first: Shard,
        waiting: defaultdict[PaceName, list[PacedExecution]],
        reservations: dict[PaceName, PaceReservations],
        carried: Reserved,
    ) -> list[Execution]:
        executions: list[Execution] = []
        for name, paced in waiting.items():
            if name not in reservations:
                reservations[name] = PaceReservations(self.pace_slice, carried[name])
            executions += reservations[name].reserve(paced, self.window.decided_at)
        waiting.clear()
        own = {name: pace.own for name, pace in reservations.items()}
        self.carryover.store(pace_of(first.shard), self.window.end, first, own)
        return executions

    def _publish(self, reservations: Mapping[PaceName, PaceReservations]) -> None:
        for name, pace in reservations.items():
            self.summary.over_pace += pace.over
            if pace.over:
                self.events.publish(
                    PACE_EXCEEDED,
                    {
                        "tenant": name.tenant,
                        "key": name.key,
                        "per_second": pace.per_second,
                        "executions": pace.own.total(),
                        "over": pace.over,
                        "most_in_a_second": max(pace.reserved.values()),
                        "start_at": self.window.start,
                        "end_at": self.window.end,
                    },
                )
