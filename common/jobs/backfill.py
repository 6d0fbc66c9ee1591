"""A backfill: the fire times of a past range, a limited number at a time.

No process drives it: when one of its runs ends, that run takes the next fire time and enqueues it. Its record keeps the
fire time that it took until that is enqueued, so the message that is delivered again after a crash enqueues it again.
Runs that end at the same time thus take different fire times, and each is enqueued once. A backfill ends with its job.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from common.clock import Clock
from common.limits import BACKFILL_KEPT_S
from common.planning.execution import BACKFILL, BACKFILL_PREFIX, Execution
from common.planning.log import ExecutionLog
from common.planning.queue import ExecutionsQueue
from common.runs.run import Run
from common.storage import keys
from common.storage.conflicts import ConditionFailed, retry_if_changed
from common.storage.expressions import PRESENT, Attribute, change
from common.storage.stored import Stored
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.timing.fires import next_fires
from common.timing.schedule import Schedule

# A backfill has at most 100 runs at once. All may end together, and each try lets one of them move the pointer.
_MAX_TRIES = 100
# An attribute of a run's record: the end of this run has moved its backfill's pointer. It holds the fire time that was
# taken, and True as soon as that one is enqueued.
MOVED_ON = "moved_on"


class Backfill(Stored, frozen=True, kw_only=True):
    """One backfill of one job. `next_at` is the first fire time not yet enqueued; at `end_at` or later, all are."""

    derived: ClassVar = ("expires_at",)

    tenant: str
    job_id: str
    backfill_id: str
    start_at: int
    end_at: int
    schedule_revision: int
    concurrency: int
    total: int
    next_at: int
    created_at: int
    sent: int = 0
    # Its first executions are known to be enqueued.
    is_started: bool = True
    # 0: nobody has cancelled it.
    cancelled_at: int = 0
    schedule: Schedule

    @property
    def is_under_way(self) -> bool:
        """Whether some of its fire times are still to be enqueued."""
        return self.sent < self.total and self.next_at < self.end_at

    @property
    def key(self) -> keys.Key:
        return keys.backfill(self.tenant, self.job_id, self.backfill_id)

    @property
    def expires_at(self) -> int:
        """Each step moves it (`Backfills`)."""
        return self.created_at + BACKFILL_KEPT_S

    def execution(self, fire_at: int, now: int) -> Execution:
        """The execution of one fire time. Its id differs from the scheduled run's id."""
        return Execution(
            tenant=self.tenant,
            job_id=self.job_id,
            fire_at=fire_at,
            due_at=now,
            schedule_revision=self.schedule_revision,
            trigger=BACKFILL,
            trigger_id=f"{BACKFILL_PREFIX}{self.backfill_id}",
        )

    def first(self, now: int) -> list[Execution]:
        """The executions that start it, no matter how far its pointer has moved."""
        times = next_fires(self.schedule, self.start_at, self.concurrency, until=self.end_at)
        return [self.execution(fire_at, now) for fire_at in times]


def first_steps(backfill: Backfill, now: int) -> tuple[list[Execution], Backfill]:
    """The executions that start it, and the backfill with its pointer after them."""
    return _step(backfill, backfill.concurrency, now)


def _step(backfill: Backfill, count: int, now: int) -> tuple[list[Execution], Backfill]:
    times = next_fires(backfill.schedule, backfill.next_at, count, until=backfill.end_at)
    if not times:
        return [], replace(backfill, next_at=backfill.end_at)
    moved = replace(backfill, next_at=times[-1] + 1, sent=backfill.sent + len(times))
    return [backfill.execution(fire_at, now) for fire_at in times], moved


class Backfills:
    """Continues backfills. They are in the jobs table; a mark on a run's record says that it has moved the pointer."""

    def __init__(self, jobs: Table, runs: Table, clock: Clock) -> None:
        self._jobs = jobs
        self._runs = runs
        self._clock = clock

    def run_ended(
        self, execution: Execution, queue: ExecutionsQueue, now: int, record: Run | None = None
    ) -> None:
        """Take the next fire time after one of its runs ended, and enqueue it.

        `record` is the run's, if the run ended before: each run's end moves the pointer once, even if it is reported
        twice. Raises Busy.
        """
        mark = record.moved_on if record else None
        if mark is True:
            return
        key = keys.backfill(
            execution.tenant, execution.job_id, execution.trigger_id.removeprefix(BACKFILL_PREFIX)
        )
        if mark is None:
            following = retry_if_changed(
                lambda: self._take_next(key, execution, now),
                f"the backfill of {execution.execution_id}",
                tries=_MAX_TRIES,
                sleep=self._clock.sleep,
            )
        else:
            item = self._jobs.get(key)
            following = [Backfill.from_item(item).execution(int(mark), now)] if item else []
        if following:
            ExecutionLog(self._runs.beside("due")).note(following, now)
            queue.send(following)
            self._runs.update(_run_key(execution), change({MOVED_ON: True}))

    def _take_next(self, key: keys.Key, by: Execution, now: int) -> list[Execution]:
        """Move the pointer; returns the execution that is to be enqueued, none at the end.

        Raises ConditionFailed if another run's end was faster.
        """
        if (item := self._jobs.get(key)) is None:
            return []
        backfill = Backfill.from_item(item)
        following, moved = _step(backfill, 1, now)
        if not following:
            return []
        if refused := self._move(key, backfill, moved, by, now):
            if refused.nth == 0:
                raise refused
            # Another delivery of this run's message took one, and may have died before it enqueued it.
            mark = (self._runs.get(_run_key(by)) or {}).get(MOVED_ON)
            return [] if mark in (None, True) else [backfill.execution(int(mark), now)]
        return following

    def _move(
        self, key: keys.Key, backfill: Backfill, moved: Backfill, by: Execution, now: int
    ) -> ConditionFailed | None:
        tx = Transaction(self._jobs.client)
        pointer = {"next_at": moved.next_at, "sent": moved.sent, "expires_at": now + BACKFILL_KEPT_S}
        tx.update(self._jobs, key, change(pointer), Attribute("next_at") == backfill.next_at)
        has_not_moved_on = PRESENT & Attribute(MOVED_ON).is_absent
        tx.update(self._runs, _run_key(by), change({MOVED_ON: moved.next_at - 1}), has_not_moved_on)
        return tx.try_commit()


def _run_key(execution: Execution) -> keys.Key:
    return keys.run(execution.tenant, execution.job_id, execution.run_name)
