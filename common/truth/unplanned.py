"""Plans what ticks did not plan of a job, because they did not find its due entry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from msgspec import structs

from common.clock import Clock
from common.jobs.calendars import Calendars
from common.jobs.job import Job
from common.planning.due_entry import Missed
from common.planning.due_index import DueIndex
from common.planning.execution import Execution
from common.planning.log import ExecutionLog
from common.planning.plan import execution_of, max_caught_up, scattered
from common.planning.postponed import Postponed
from common.planning.queue import ExecutionsQueue
from common.runs.records import Runs, without_record
from common.storage import keys
from common.storage.table import Tables
from common.storage.transactions import MAX_WRITES, Transaction
from common.storage.wire import DAMAGE
from common.timing.fires import newest_fires
from common.timing.instants import DAY_S, rfc3339
from common.timing.windows import MISSED_AFTER_S, window_start

_FAR_AT: Final = 9_999_999_999
# Records of two days are read, and so many of the newest fire times. What was missed before is one record.
_LOOKBACK_S: Final = 2 * DAY_S
_MAX_FIRES: Final = 20_000
# Of the log of planned executions; what was planned before that is over.
_LOG_READ_S: Final = 8 * 3_600
# Pending entries have the revisions of their jobs, which count from 1. A repair's own have this one.
OF_REPAIR: Final = 0


class Work(NamedTuple):
    """The fire times of a job up to `until`: those to enqueue, and those to record as missed."""

    until: int
    due: Sequence[int]
    executions: Sequence[Execution]
    missed: set[int]


def _span(fire_times: Collection[int]) -> str:
    first, last = min(fire_times), max(fire_times)
    return rfc3339(first) if first == last else f"{rfc3339(first)} to {rfc3339(last)}"


@dataclass(frozen=True, slots=True)
class Unplanned:
    """Enqueues executions that no tick planned, and records those that were missed. Made twice, nothing runs twice."""

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock

    def foresee(self, job: Job) -> str:
        """What `plan` would do, in words. Raises Busy, MissingCalendar."""
        work = self.work(job)
        late = [execution.fire_at for execution in work.executions]
        words = [f"enqueues {len(late)} runs ({_span(late)})"] if late else []
        words += [f"records {len(work.missed)} as missed ({_span(work.missed)})"] if work.missed else []
        return " and ".join(words) or "no fire time is affected"

    def plan(self, job: Job) -> int:
        """Plan the job's fire times up to the announced end that no tick planned. Returns that end.

        Those of up to ten minutes ago run late. Of older ones its catch-up decides; the others are recorded as missed.
        Raises HandOverFailed, Busy, MissingCalendar.
        """
        now, work = self.clock.now(), self.work(job)
        self._record_missed(job, work.due, work.missed, now)
        log = DueIndex(self.tables.due).log.writer(now)
        near = Postponed(self.tables.due, self.queue, self.clock).postpone_distant(
            log.recording(work.executions)
        )
        self.queue.send(near)
        log.write()
        return work.until

    def work(self, job: Job, until: int = 0) -> Work:
        """What `plan` would do, or a tick up to `until`. Raises Busy, MissingCalendar."""
        index, now = DueIndex(self.tables.due), self.clock.now()
        until = max(until, index.ensure_progress(now).planning_until)
        excluded = Calendars(self.tables.jobs).excluded(job.tenant, job.schedule)
        since = max(job.effective_at, int(now) - _LOOKBACK_S)
        due = newest_fires(job.schedule, since, until, _MAX_FIRES, excluded=excluded)
        spans = Runs(self.tables.runs).recorded_spans(job.tenant, job.job_id, due[0]) if due else []
        unplanned = self._without_logged(job, without_record(due, spans))
        late = [fire_at for fire_at in unplanned if fire_at >= now - MISSED_AFTER_S]
        older, most = unplanned[: len(unplanned) - len(late)], max_caught_up(job.spec.catch_up)
        caught_up = older[-most:] if most else []
        entry = job.due_entry()
        executions = [
            scattered(entry, structs.replace(execution_of(entry, fire_at), first_due_at=first_due_at))
            for fire_times, first_due_at in ((caught_up, int(now)), (late, 0))
            for fire_at in fire_times
        ]
        return Work(until, due, executions, set(older[: len(older) - len(caught_up)]))

    def _without_logged(self, job: Job, fire_times: Sequence[int]) -> list[int]:
        """The fire times that no tick enqueued: the others wait in the queue, or the comparison lists them."""
        if not fire_times:
            return []
        first = window_start(max(fire_times[0], int(self.clock.now()) - _LOG_READ_S))
        logged: set[int] = set()
        of_job = f'"tenant":"{job.tenant}","job":"{job.job_id}"'
        index = DueIndex(self.tables.due)
        for chunk in index.log.planned(first, _FAR_AT, keys.log_bucket(job.tenant)):
            with suppress(*DAMAGE):  # the projection reports it
                logged |= {Execution.decode(body).fire_at for body in chunk.bodies() if of_job in body}
        return [fire_at for fire_at in fire_times if fire_at not in logged]

    def _record_missed(self, job: Job, due: Sequence[int], missed: set[int], now: float) -> None:
        """One record for each stretch of missed fire times."""
        for is_missed, stretch in groupby(due, key=missed.__contains__):
            fire_times = list(stretch)
            if not is_missed:
                continue
            last = fire_times[-1]
            execution = Execution(job.tenant, job.job_id, last, last, job.schedule_revision)
            ExecutionLog(self.tables.due).note([execution], now)
            Runs(self.tables.runs).record_missed(
                Missed(
                    *(job.tenant, job.job_id, job.schedule_revision),
                    *(len(fire_times), fire_times[0], last),
                    job.spec.catch_up,
                    job.schedule,
                ),
                now,
            )

    def pend(self, jobs: Sequence[Job], planned_until: int) -> None:
        """Let the next tick plan these jobs from `planned_until` to the end that is announced by then."""
        index = DueIndex(self.tables.due)
        for first in range(0, len(jobs), MAX_WRITES):
            tx = Transaction(self.tables.due.client)
            for job in jobs[first : first + MAX_WRITES]:
                index.put_pending(tx, since(job, planned_until).due_entry(), OF_REPAIR)
            tx.commit()


def since(job: Job, planned_until: int) -> Job:
    """The job as if it took effect when what was planned ends."""
    return structs.replace(job, effective_at=max(job.effective_at, planned_until))
