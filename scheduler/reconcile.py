"""After planning, each tick looks for executions that were enqueued and have no record.

It compares the log of planned executions (common/planning/log.py) with the runs, for the windows that ended at
least ten minutes ago. Every execution that began, waits, or was skipped has a record by then. What has none is late, if
the executions queue holds at least as many messages and it was due less than an hour ago: later ticks look again. Else
it is listed (common/runs/unrecorded.py), and counted by an alarm.

Windows with more executions than a tick may read are sampled: every n-th, a different one in each window. If one of
the sample has no record, all are read. Errors are left to the next tick; planning is done by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from common.clock import Clock
from common.planning.due_index import DueIndex
from common.planning.execution import Execution
from common.planning.packs import MAX_IN_A_PACK
from common.planning.queue import ExecutionsQueue
from common.runs.unrecorded import MAX_LISTED, Unrecorded
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Expression
from common.tenants.states import ACTIVE, SUSPENDED
from common.timing.windows import NO_RECORD_AFTER_S, WINDOW_S, window_start
from scheduler.concurrently import for_each

# How long after its end a window is compared.
_SETTLED_AFTER_S: Final = WINDOW_S
# The latest start of another read, after the tick's start. The function has 300 s (serverless.yml).
_WORKS_FOR_S: Final = 150
# One batch read; common/storage/table.py.
_AT_ONCE: Final = 100
_READ_TOGETHER: Final = 1_600


@dataclass(slots=True)
class Compared:
    """The result: how many executions were planned, how many of them were read, are late, and are listed."""

    planned: int = 0
    read: int = 0
    late: int = 0
    listed: int = 0
    # Some were not read, for lack of time or because the list is full.
    partly: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares what was planned with what was recorded. It reads at most about `most` runs a tick; 0: none."""

    index: DueIndex
    due: Table
    tenants: Table
    unrecorded: Unrecorded
    queue: ExecutionsQueue
    clock: Clock
    most: int

    def compare(self, began_at: float) -> Compared:
        """Look for them, in a tick that began at `began_at`. Raises nothing; a problem is in the result."""
        compared = Compared()
        try:
            compared.listed = len(self._still_listed())
            if self.most:
                self._compare(compared, began_at + _WORKS_FOR_S)
        except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
            compared.problem = repr(error)
        return compared

    def _compare(self, compared: Compared, stop_at: float) -> None:
        now = self.clock.now()
        end = window_start(int(now) - _SETTLED_AFTER_S)
        begin = (self.due.get(keys.RECONCILED) or {}).get("until", 0)
        compared.planned = sum(self.index.planned.sizes(begin, end).values())
        room = MAX_LISTED - compared.listed
        if not compared.planned or room <= 0:
            compared.partly = bool(compared.planned)
            return
        step = -(-compared.planned // self.most)
        missing = self._missing(begin, end, step, stop_at, compared)
        late = self._late(missing, step, now)
        if step > 1 and len(missing) > len(late):
            missing = self._missing(begin, end, 1, stop_at, compared)
            late = self._late(missing, 1, now)
        lost = [one for one in missing if one.execution_id not in late]
        self.unrecorded.add(lost[:room], now)
        compared.late, compared.listed = len(late), len(list(self.unrecorded.all()))
        compared.partly = compared.partly or len(lost) > room
        if not compared.partly:
            self._reconciled(min([end, *(window_start(one.visible_at) for one in late.values())]))

    def _still_listed(self) -> list[Execution]:
        """What is listed and has no record yet; the others leave the list."""
        listed = [one.execution for one in self.unrecorded.all()]
        left = self._of_living_tenants(self.unrecorded.missing(listed))
        kept = {one.execution_id for one in left}
        if gone := [one for one in listed if one.execution_id not in kept]:
            self.unrecorded.remove(gone)
        return left

    def _missing(
        self, begin: int, end: int, step: int, stop_at: float, compared: Compared
    ) -> list[Execution]:
        """Every `step`-th execution of these windows, if it has no record."""
        found = _Found()
        compared.read = 0
        for portion in self.index.planned.portions(begin, end):
            bodies = portion.bodies()[portion.window // WINDOW_S % step :: step]
            for first in range(0, len(bodies), _READ_TOGETHER):
                if self.clock.now() >= stop_at:
                    compared.partly = True
                    return self._sure(found.missing)
                some = bodies[first : first + _READ_TOGETHER]
                compared.read += len(some)
                for_each(
                    [some[at : at + _AT_ONCE] for at in range(0, len(some), _AT_ONCE)],
                    lambda bodies: found.add(
                        self.unrecorded.missing(list(map(Execution.decode, bodies)), consistent=False)
                    ),
                )
        return self._sure(found.missing)

    def _sure(self, missing: Iterable[Execution]) -> list[Execution]:
        """Those that a consistent read does not find, and whose tenant is not being deleted."""
        return self._of_living_tenants(self.unrecorded.missing(list(missing)))

    def _of_living_tenants(self, executions: Sequence[Execution]) -> list[Execution]:
        """The records of a tenant that is deleted are removed with it."""
        names = sorted({one.tenant for one in executions})
        living = {
            item["pk"]
            for item in self.tenants.get_many([keys.tenant(name) for name in names])
            if item.get("state", ACTIVE) in (ACTIVE, SUSPENDED)
        }
        return [one for one in executions if one.tenant in living]

    def _late(self, missing: Sequence[Execution], step: int, now: float) -> dict[str, Execution]:
        """Those that may still be in the queue, or are kept for a later tick, by their ids."""
        if not missing:
            return {}
        names = {
            keys.postponed(one.visible_at, f"{one.execution_id}#{one.attempt}")["sk"]: one for one in missing
        }
        places = [keys.postponed(one.visible_at, name.partition("#")[2]) for name, one in names.items()]
        late = {names[item["sk"]].execution_id: names[item["sk"]] for item in self.due.get_many(places)}
        young = [
            one
            for one in missing
            if now - one.visible_at < NO_RECORD_AFTER_S and one.execution_id not in late
        ]
        if young and len(young) * step <= self.queue.waiting() * MAX_IN_A_PACK:
            late |= {one.execution_id: one for one in young}
        return late

    def _reconciled(self, until: int) -> None:
        change = Expression("SET #until = :until", {":until": until})
        self.due.update(keys.RECONCILED, change)


@dataclass(slots=True)
class _Found:
    """What threads add to; adding to a list is atomic."""

    missing: list[Execution] = field(default_factory=list)

    def add(self, some: list[Execution]) -> None:
        self.missing += some
