"""Finds executions that were enqueued and have no record: losses.

The projector (`projector.py`) reads the records of all that was planned, and says which have none: each execution that
began, waits, or was skipped has one by then. One without a record is late if it is kept for a later tick, or if it was
due less than an hour ago and the executions queue holds as many messages as those need: then the projector reads it
again. Else it is listed (common/runs/unrecorded.py), and counted by an alarm.

What was due since the tick before is sampled as well: if more of it has neither begun nor waits in the queue, it is
lost. So a loss is known within a tick. That look has no position; the truth checker, which reads no log, is the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from common import telemetry
from common.clock import Clock
from common.limits import MAX_IN_A_PACK
from common.planning.chores import Done
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.projection.state import PROJECTION
from common.runs.run import Run
from common.runs.unrecorded import MAX_LISTED, Unrecorded
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.tenants.tenant import ACTIVE, SUSPENDED
from common.timing.windows import NO_RECORD_AFTER_S, WINDOW_S

# A message is received, and hidden after a failure, for less than this; executor/redelivery.py.
_IN_FLIGHT_S: Final = 1_200
# Of what was due since the tick before, so many records are read: half a read unit each.
_SAMPLED_A_TICK: Final = 400
# An execution begins within seconds. SQS's counts lag by up to a minute, and are about right.
_BEGUN_AFTER_S: Final = 60
_COUNTED_AGAIN_AFTER_S: Final = 30
_COUNT_ERROR: Final = 1.25


@dataclass(slots=True)
class Comparison:
    """The comparison of one round. Repeating any of it changes nothing."""

    unrecorded: Unrecorded
    due: Table
    queue: ExecutionsQueue
    living: LivingTenants
    clock: Clock
    done: Done
    # Those of this round that the messages in the queue may be.
    _young: list[Execution] = field(default_factory=list)

    def begin(self) -> None:
        """Take from the list what has a record by now, or whose tenant is gone; count the rest."""
        listed = [record.execution for record in self.unrecorded.all()]
        missing_ids = {execution.execution_id for execution in self._sure(listed)}
        if recorded := [execution for execution in listed if execution.execution_id not in missing_ids]:
            self.unrecorded.remove(recorded)
        self.done.metrics[telemetry.EXECUTIONS_WITHOUT_RECORD] = len(missing_ids)

    def compare(self, missing: Sequence[Execution], recorded: Collection[str]) -> None:
        """List those of the executions that are lost. The projector looks again at all of them.

        `recorded`: the ids of those that had a record before, so that only it is lost.
        """
        now = self.clock.now()
        sure = self._sure(missing)
        late = self._late(sure, now)
        if late:
            self.done.counts["late"] += len(late)
        without_record = [execution for execution in sure if execution.execution_id not in late]
        known_by = {run.execution_id: PROJECTION for run in without_record if run.execution_id in recorded}
        self._list(without_record, now, known_by)

    def look_at_recent(self, due: Sequence[Execution]) -> list[str]:
        """List what was due since the tick before, and has neither begun nor fits into the messages that wait.

        Returns the ids of those that have a record and should have gone on.
        """
        now = self.clock.now()
        step = -(-len(due) // _SAMPLED_A_TICK) or 1
        sample = due[int(now) // WINDOW_S % step :: step]
        records = self.unrecorded.records(sample, consistent=False)
        if sample:
            self.done.counts["sampled"] += len(sample)
        missing = [execution for execution in sample if execution.execution_id not in records]
        if not self._fit_into_the_queue(missing, step):
            self._list(self._not_waiting(missing), now)
        return [name for name, record in records.items() if _is_suspicious(record, now)]

    def _fit_into_the_queue(self, missing: Sequence[Execution], step: int) -> bool:
        """Whether those missing of a sample may be in the queue, by its counts or those of half a minute later."""
        for wait_s in (0, _COUNTED_AGAIN_AFTER_S):
            if not missing or self.clock.now() + wait_s >= self.done.until:
                return True
            self.clock.sleep(wait_s)
            room_in_queue = sum(self.queue.waiting()) * _COUNT_ERROR
            # Read after the count: what begins in between was counted, and is not missing.
            missing = self._not_waiting(missing)
            if least_messages(missing) * step <= room_in_queue:
                return True
        return False

    def _not_waiting(self, missing: Sequence[Execution]) -> list[Execution]:
        postponed = self._postponed(missing)
        return [run for run in self._sure(missing) if run.execution_id not in postponed]

    def _list(
        self, missing: Sequence[Execution], now: float, known_by: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if not missing:
            return
        room = MAX_LISTED - len(list(self.unrecorded.all()))
        self.unrecorded.add(missing[: max(0, room)], now, known_by)
        listed = len(list(self.unrecorded.all()))
        self.done.counts["listed"] = listed
        self.done.metrics[telemetry.EXECUTIONS_WITHOUT_RECORD] = listed
        self.done.errors.append(
            f"{len(missing)} executions without a record, the first: {missing[0].execution_id}"
        )

    def _sure(self, missing: Sequence[Execution]) -> list[Execution]:
        """The executions that a consistent read does not find, and whose tenant is not being deleted."""
        sure = self.unrecorded.missing(missing) if missing else []
        living = self.living.now({execution.tenant for execution in sure}, []) if sure else set()
        return [execution for execution in sure if execution.tenant in living]

    def _late(self, missing: Sequence[Execution], now: float) -> set[str]:
        """The ids of executions that may still be in the queue, or are kept for a later tick."""
        if not missing:
            return set()
        late = self._postponed(missing)
        self._young += [
            execution
            for execution in missing
            if now - execution.visible_at < NO_RECORD_AFTER_S and execution.execution_id not in late
        ]
        if self._young:
            waiting = may_wait(self._young, *self.queue.waiting(), now)
            late |= {execution.execution_id for execution in waiting}
        return late

    def _postponed(self, missing: Sequence[Execution]) -> set[str]:
        """The ids of executions that are kept for a later tick."""
        places = [
            keys.postponed(execution.visible_at, f"{execution.execution_id}#{execution.attempt}")
            for execution in missing
        ]
        kept = {item["sk"] for item in self.due.get_many(places)}
        return {
            execution.execution_id
            for execution, place in zip(missing, places, strict=True)
            if place["sk"] in kept
        }


def recently_due(executions: Iterable[Execution], now: float) -> list[Execution]:
    """Those that were due in the ten minutes before the last one. Pure."""
    until = int(now) - _BEGUN_AFTER_S
    return [run for run in executions if until - WINDOW_S <= run.visible_at < until]


def _is_suspicious(record: Item, now: float) -> bool:
    """Whether the truth checker has to look at a run: it does not go on, or cannot be read."""
    try:
        return Run.from_item(record).is_stuck(now)
    except DAMAGE:
        return True


def may_wait(missing: Sequence[Execution], visible: int, in_flight: int, now: float) -> list[Execution]:
    """Those of the missing executions that the queue's messages can be. Pure.

    A message holds executions of one second. It is in flight for some minutes at most, so what was due before that
    can only be in a visible one. If there are more of them than messages, some are lost, and all are taken for that.
    """
    recent = [execution for execution in missing if now - execution.visible_at < _IN_FLIGHT_S]
    older = [execution for execution in missing if now - execution.visible_at >= _IN_FLIGHT_S]
    late = older if least_messages(older) <= visible else []
    room = visible + in_flight - least_messages(late)
    return [*late, *(recent if least_messages(recent) <= room else [])]


def least_messages(executions: Sequence[Execution]) -> int:
    """The fewest messages that these can be in. Pure."""
    seconds = Counter(execution.visible_at for execution in executions)
    return sum(-(-count // MAX_IN_A_PACK) for count in seconds.values())


# The removal of a tenant waits for longer than this after its beginning (common/platform/deletion.py).
TRUSTED_S: Final = 30
_READ_AGAIN_AFTER_S: Final = 15
# Of tenants without an item.
_MAX_NAMED: Final = 5


class LivingTenants:
    """Which tenants are not being deleted, for one tick: what is projected of the others is removed.

    The list of tenants costs a sixteenth of reading each tenant's own item.
    """

    def __init__(self, tenants: Table, clock: Clock) -> None:
        self._tenants = tenants
        self._clock = clock
        self._states: dict[str, str] = {}
        self._read_at = float("-inf")

    @property
    def trusted_until(self) -> float:
        """Until then what was found may be written."""
        return self._read_at + TRUSTED_S

    def listed(self) -> list[str]:
        """All of them, as of some seconds ago."""
        if self._clock.now() > self._read_at + _READ_AGAIN_AFTER_S:
            self._read_at = self._clock.now()
            query = Query(keys.TENANTS, attributes=("sk", "state"), consistent=False)
            self._states = {item["sk"]: item.get("state", ACTIVE) for item in self._tenants.query(query)}
        return [tenant for tenant, state in self._states.items() if state in (ACTIVE, SUSPENDED)]

    def of(self, tenants: set[str], problems: list[str]) -> set[str]:
        """Those of some tenants, as of some seconds ago. `problems` gets names of tenants that have lost their items.

        What is deleted leaves a tombstone.
        """
        living = tenants & set(self.listed())
        return living | self.now(tenants - self._states.keys(), problems)

    def now(self, tenants: set[str], problems: list[str]) -> set[str]:
        """The same by the tenants' own items."""
        items = self._tenants.get_many([keys.tenant(tenant) for tenant in sorted(tenants)], consistent=False)
        states = {item["pk"]: item.get("state", ACTIVE) for item in items}
        without_item = sorted(tenants - states.keys())
        problems += [f"{tenant}: it has no item among the tenants" for tenant in without_item[:_MAX_NAMED]]
        return {tenant for tenant in tenants if states.get(tenant, ACTIVE) in (ACTIVE, SUSPENDED)}
