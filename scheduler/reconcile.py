"""After planning, each tick looks for executions that were enqueued and have no record.

It compares the log of planned executions (common/planning/log.py) with the runs, for the windows that ended at
least ten minutes ago. Every execution that began, waits, or was skipped has a record by then. An execution without a
record is late if the executions queue holds as many messages as they need, and if it was due less than an hour ago:
later ticks look again. Else it is listed (common/runs/unrecorded.py), and counted by an alarm.

What was due since the tick before is counted: if more of it has neither begun nor waits in the queue, it is lost. So
a loss is known within a tick, and a retry that is lost soon after. A sample is read; the comparison lists the others.

The projector (`projector.py`) has usually read all of them in the same tick, and says which have no record. Else
windows with more executions than a tick may read are sampled: every n-th, a different one in each window. If one of
the sample has no record, all are read. Errors are left to the next tick; planning is done by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from common.clock import Clock
from common.planning.concurrently import for_each
from common.planning.due_index import DueIndex
from common.planning.execution import Execution, UnreadableMessage
from common.planning.log import Portion
from common.planning.packs import MAX_IN_A_PACK
from common.planning.queue import ExecutionsQueue
from common.runs.run import MAX_STUCK, Run
from common.runs.unrecorded import MAX_LISTED, Unrecorded
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Expression, Item
from common.tenants.states import ACTIVE, SUSPENDED
from common.texts import UNREADABLE
from common.timing.windows import NO_RECORD_AFTER_S, WINDOW_S, followed_from, window_start

if TYPE_CHECKING:
    from scheduler.projector import Projected

# A window is compared so long after its end.
_SETTLED_AFTER_S: Final = WINDOW_S
# No read starts later than this after the tick's start. The function has 300 s (serverless.yml).
_MAX_COMPARISON_S: Final = 150
# One batch read; common/storage/table.py.
_BATCH_SIZE: Final = 100
_READS_BETWEEN_CLOCK_READS: Final = 1_600
# A message is received, and hidden after a failure, for less than this; executor/redelivery.py.
_IN_FLIGHT_S: Final = 1_200
# Of what was due since the tick before, so many records are read: half a read unit each.
_COUNTED_A_TICK: Final = 400
# An execution begins within seconds. SQS's counts lag by up to a minute, and are about right.
_BEGUN_AFTER_S: Final = 60
_COUNTED_AGAIN_AFTER_S: Final = 30
_COUNT_ERROR: Final = 1.25


@dataclass(slots=True)
class Compared:
    """The result: how many executions were planned, how many of them were read, are late, and are listed."""

    planned: int = 0
    read: int = 0
    late: int = 0
    listed: int = 0
    # Of what was due since the tick before, so many were looked for.
    counted: int = 0
    # The ids of those that should have gone on.
    stuck: list[str] = field(default_factory=list)
    # Some executions were not read, for lack of time or because the list is full.
    partly: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares what was planned with what was recorded. A tick reads about `max_reads` runs at most; 0: none."""

    index: DueIndex
    due: Table
    tenants: Table
    unrecorded: Unrecorded
    queue: ExecutionsQueue
    clock: Clock
    max_reads: int

    def compare(self, began_at: float, projected: Projected | None = None) -> Compared:
        """Look for executions without a record, in a tick that began at `began_at`.

        `projected`: what the tick has read of the log and the runs already. Raises nothing; a problem is in the result.
        """
        compared = Compared()
        try:
            compared.listed = len(self._still_listed())
            if self.max_reads:
                self._compare(compared, began_at + _MAX_COMPARISON_S, projected)
                if projected:
                    self._count(compared, began_at + _MAX_COMPARISON_S, projected)
        except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
            compared.problem = repr(error)
        return compared

    def _compare(self, compared: Compared, stop_at: float, projected: Projected | None) -> None:
        now = self.clock.now()
        end = window_start(int(now) - _SETTLED_AFTER_S)
        begin = followed_from((self.due.get(keys.RECONCILED) or {}).get("until", 0), end)
        read_before = _of_span(projected, begin, end)
        if read_before:
            compared.planned = read_before.planned
        else:
            compared.planned = sum(self.index.planned.sizes(begin, end).values())
        room = MAX_LISTED - compared.listed
        if not compared.planned:
            if projected and not read_before:  # from here on the projector's reading is enough
                self._reconciled(end)
            return
        if room <= 0:
            compared.partly = True
            return
        if read_before:
            compared.read = compared.planned
            missing = self._sure(read_before.missing)
            late = self._late(missing, 1, now)
        else:
            missing, late = self._sample(begin, end, stop_at, compared, now)
        without_record = [execution for execution in missing if execution.execution_id not in late]
        self.unrecorded.add(without_record[:room], now)
        compared.late, compared.listed = len(late), len(list(self.unrecorded.all()))
        compared.partly = compared.partly or len(without_record) > room
        if not compared.partly:
            oldest_late = [window_start(execution.visible_at) for execution in late.values()]
            self._reconciled(min([end, *oldest_late]))

    def _count(self, compared: Compared, stop_at: float, projected: Projected) -> None:
        """List what was due since the tick before, and has neither begun nor fits into the messages that wait."""
        now, room = self.clock.now(), MAX_LISTED - compared.listed
        due = self._recently_due(projected, now)
        step = -(-len(due) // min(_COUNTED_A_TICK, self.max_reads)) or 1
        sample = due[int(now) // WINDOW_S % step :: step]
        compared.counted = len(sample)
        records = self.unrecorded.records(sample, consistent=False)
        compared.stuck = [name for name, record in records.items() if _is_suspicious(record, now)][:MAX_STUCK]
        missing = [execution for execution in sample if execution.execution_id not in records]
        for wait_s in (0, _COUNTED_AGAIN_AFTER_S):
            if not missing or self.clock.now() + wait_s >= stop_at:
                return
            self.clock.sleep(wait_s)
            room_in_queue = sum(self.queue.waiting()) * _COUNT_ERROR
            # Read after the count: what begins in between was counted, and is not missing.
            postponed = self._postponed(missing)
            missing = [run for run in self._sure(missing) if run.execution_id not in postponed]
            if least_messages(missing) * step <= room_in_queue:
                return
        self.unrecorded.add(missing[:room], now)
        compared.listed = len(list(self.unrecorded.all()))

    def _recently_due(self, projected: Projected, now: float) -> list[Execution]:
        """What was due in the ten minutes before the last one; of a very large stage the part of some tenants."""
        until, due = int(now) - _BEGUN_AFTER_S, list[Execution]()
        for portion in projected.recent:
            with suppress(UnreadableMessage):  # of a later version
                executions = map(Execution.decode, _bodies(portion))
                due += [run for run in executions if until - WINDOW_S <= run.visible_at < until]
        return due

    def _sample(
        self, begin: int, end: int, stop_at: float, compared: Compared, now: float
    ) -> tuple[list[Execution], dict[str, Execution]]:
        """The missing executions of a sample, and the late ones among them. If some are not late, of all executions."""
        step = -(-compared.planned // self.max_reads)
        missing = self._missing(begin, end, step, stop_at, compared)
        late = self._late(missing, step, now)
        if step > 1 and len(missing) > len(late):
            missing = self._missing(begin, end, 1, stop_at, compared)
            late = self._late(missing, 1, now)
        return missing, late

    def _still_listed(self) -> list[Execution]:
        """The listed executions that have no record yet. The others leave the list."""
        listed = [record.execution for record in self.unrecorded.all()]
        missing = self._of_living_tenants(self.unrecorded.missing(listed))
        missing_ids = {execution.execution_id for execution in missing}
        if recorded := [execution for execution in listed if execution.execution_id not in missing_ids]:
            self.unrecorded.remove(recorded)
        return missing

    def _missing(
        self, begin: int, end: int, step: int, stop_at: float, compared: Compared
    ) -> list[Execution]:
        """Every `step`-th execution of these windows, if it has no record."""
        missing: list[Execution] = []

        def add_missing(bodies: list[str]) -> None:
            executions = list(map(Execution.decode, bodies))
            # Threads extend the same list; extending a list is atomic.
            missing.extend(self.unrecorded.missing(executions, consistent=False))

        compared.read = 0
        for portion in self.index.planned.portions(begin, end):
            bodies = _bodies(portion)[portion.window // WINDOW_S % step :: step]
            for first in range(0, len(bodies), _READS_BETWEEN_CLOCK_READS):
                if self.clock.now() >= stop_at:
                    compared.partly = True
                    return self._sure(missing)
                batch = bodies[first : first + _READS_BETWEEN_CLOCK_READS]
                compared.read += len(batch)
                for_each(
                    [batch[at : at + _BATCH_SIZE] for at in range(0, len(batch), _BATCH_SIZE)], add_missing
                )
        return self._sure(missing)

    def _sure(self, missing: Iterable[Execution]) -> list[Execution]:
        """The executions that a consistent read does not find, and whose tenant is not being deleted."""
        return self._of_living_tenants(self.unrecorded.missing(list(missing)))

    def _of_living_tenants(self, executions: Sequence[Execution]) -> list[Execution]:
        """The executions without those of deleted tenants, whose records are removed with the tenant."""
        names = sorted({execution.tenant for execution in executions})
        living = {
            item["pk"]
            for item in self.tenants.get_many([keys.tenant(name) for name in names])
            if item.get("state", ACTIVE) in (ACTIVE, SUSPENDED)
        }
        return [execution for execution in executions if execution.tenant in living]

    def _late(self, missing: Sequence[Execution], step: int, now: float) -> dict[str, Execution]:
        """The executions that may still be in the queue, or are kept for a later tick, by their ids."""
        if not missing:
            return {}
        late = self._postponed(missing)
        young = [
            execution
            for execution in missing
            if now - execution.visible_at < NO_RECORD_AFTER_S and execution.execution_id not in late
        ]
        if young:
            waiting = may_wait(young, step, *self.queue.waiting(), now)
            late |= {execution.execution_id: execution for execution in waiting}
        return late

    def _postponed(self, missing: Sequence[Execution]) -> dict[str, Execution]:
        """The executions that are kept for a later tick, by their ids."""
        postponed = {
            keys.postponed(execution.visible_at, f"{execution.execution_id}#{execution.attempt}")[
                "sk"
            ]: execution
            for execution in missing
        }
        postponed_keys = [
            keys.postponed(execution.visible_at, sk.partition("#")[2]) for sk, execution in postponed.items()
        ]
        found_sks = [item["sk"] for item in self.due.get_many(postponed_keys)]
        return {postponed[sk].execution_id: postponed[sk] for sk in found_sks}

    def _reconciled(self, until: int) -> None:
        change = Expression("SET #until = :until", {":until": until})
        self.due.update(keys.RECONCILED, change)


def _is_suspicious(record: Item, now: float) -> bool:
    """Whether the truth checker has to look at a run: it does not go on, or cannot be read."""
    try:
        return Run.from_item(record).is_stuck(now)
    except UNREADABLE:
        return True


def _bodies(portion: Portion) -> list[str]:
    """The messages of a portion; none if nobody can read it, which the projection reports."""
    with suppress(*UNREADABLE):
        return portion.bodies()
    return []


def _of_span(projected: Projected | None, begin: int, end: int) -> Projected | None:
    """What the projector has read, if that is all that was planned in [begin, end). Pure."""
    if projected is None or not projected.complete or projected.end != end:
        return None
    begins_here = begin == projected.begin or projected.quiet_from <= begin < projected.begin
    return projected if begins_here else None


def may_wait(
    missing: Sequence[Execution], step: int, visible: int, in_flight: int, now: float
) -> list[Execution]:
    """Those of the missing executions that the queue's messages can be, of a sample of every `step`-th one. Pure.

    A message holds executions of one second. It is in flight for some minutes at most, so what was due before that
    can only be in a visible one. If there are more of them than messages, some are lost, and all are taken for that.
    """
    recent = [execution for execution in missing if now - execution.visible_at < _IN_FLIGHT_S]
    older = [execution for execution in missing if now - execution.visible_at >= _IN_FLIGHT_S]
    late = older if least_messages(older) * step <= visible else []
    room = visible + in_flight - least_messages(late) * step
    return [*late, *(recent if least_messages(recent) * step <= room else [])]


def least_messages(executions: Sequence[Execution]) -> int:
    """The fewest messages that these can be in. Pure."""
    seconds = Counter(execution.visible_at for execution in executions)
    return sum(-(-count // MAX_IN_A_PACK) for count in seconds.values())
