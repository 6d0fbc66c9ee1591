"""The executions that a window skips: recorded for the tenants, published, and reported to the platform."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from common.errors import ItemTooLarge
from common.events import RUN_SKIPPED, Events
from common.planning.chores import for_each
from common.planning.due_entry import Missed
from common.planning.execution import UNPLANNED_PREFIX, Execution
from common.planning.log import ExecutionLog
from common.planning.quarantine import Quarantine
from common.runs.states import INVALID, MISSED
from common.storage.unreadable import Unreadable

if TYPE_CHECKING:
    from common.jobs.ended import EndedJobs
    from common.runs.records import Runs

_MAX_BUFFERED_RECORDS: Final = 500
# Further bad entries of an invocation are only counted, and recorded as runs.
MAX_REPORTED_ENTRIES: Final = 100


@dataclass(slots=True)
class SkipRecorder:
    """Buffers skipped executions and writes them in batches. Call `write` before planned_until moves."""

    runs: Runs
    log: ExecutionLog
    events: Events
    quarantine: Quarantine
    ended_jobs: EndedJobs
    now: float
    bad: list[Unreadable] = field(default_factory=list)
    bad_entries: int = 0
    # How many each record stands for.
    _missed: list[int] = field(default_factory=list)
    _buffered: list[Callable[[], object]] = field(default_factory=list)
    _unplanned: list[Execution] = field(default_factory=list)
    _unreadable: list[Unreadable] = field(default_factory=list)

    def missed(self, missed: Missed, *, is_last: bool = False) -> None:
        """Write one record of all missed fire times of a job, and publish an event if it is new.

        `is_last`: no run of the job follows, so it may have to be deleted.
        """
        last_at = missed.last_fire_at
        last = Execution(missed.tenant, missed.job_id, last_at, last_at, missed.schedule_revision)
        self._unplanned.append(last)
        self._buffer(lambda: self._record_missed(missed, last, is_last=is_last))

    @property
    def missed_count(self) -> int:
        """How many missed fire times were recorded."""
        return sum(self._missed)

    def bad_entry(self, entry: Unreadable, window_start: int) -> None:
        """Record the entry under the start of the window that its job misses."""
        self.bad_entries += 1
        is_reported = len(self.bad) < MAX_REPORTED_ENTRIES
        if is_reported:
            self.bad.append(replace(entry, item=None))
        if entry.item:
            self._unreadable.append(entry)
        elif is_reported:
            name = "#".join(entry.job or (entry.key["sk"],))
            self._buffer(lambda: self.quarantine.add_entry(name, entry.reason, self.now))
        if entry.job is None:
            return
        tenant, job_id = entry.job
        trigger_id = f"{UNPLANNED_PREFIX}window"
        execution = Execution(tenant, job_id, window_start, window_start, 0, trigger_id=trigger_id)
        self._unplanned.append(execution)
        detail = f"the platform could not plan the job; define it again, or ask the platform: {entry.reason}"
        self._buffer(lambda: self.runs.skip(execution, INVALID, detail, self.now))
        self._buffer(lambda: self._note(execution, INVALID, window_start, detail))

    def _set_aside(self, entry: Unreadable) -> None:
        with suppress(ItemTooLarge):  # it stays, and the next tick names it again
            self.quarantine.add_item(entry, self.now)

    def refused(self, execution: Execution, reason: str) -> None:
        """Record an execution that SQS refused."""
        self._unplanned.append(execution)
        self._buffer(lambda: self.runs.skip(execution, INVALID, f"refused by SQS: {reason}", self.now))

    def write(self) -> None:
        """Write all buffered records. They are noted before, for the projection of runs."""
        if not (self._buffered or self._unplanned or self._unreadable):
            return
        unplanned, self._unplanned = self._unplanned, []
        self.log.note(unplanned, self.now)
        writes, self._buffered = self._buffered, []
        for_each(writes, lambda write: write())
        unreadable, self._unreadable = self._unreadable, []  # only after the records are written
        for_each(unreadable, self._set_aside)

    def _buffer(self, write: Callable[[], object]) -> None:
        self._buffered.append(write)
        if len(self._buffered) >= _MAX_BUFFERED_RECORDS:
            self.write()

    def _note(self, execution: Execution, reason: str, since_at: int, detail: str) -> None:
        """Let the chore of ended jobs tell why the job does not run: an outage has every job miss its times."""
        from common.jobs.not_running import NotRunning

        self.ended_jobs.note(execution, self.now, NotRunning(reason, since_at, detail))

    def _record_missed(self, missed: Missed, last: Execution, *, is_last: bool) -> None:
        run = self.runs.record_missed(missed, self.now)
        count = run.skipped_count if run else missed.count
        from common.jobs.ended import is_one_off, is_rare
        from common.jobs.not_running import ENDED, IN_ROW  # most windows miss nothing

        # Also if the record is known: who wrote it may have died before the note.
        if is_last or count >= IN_ROW or is_rare(missed.schedule, missed.last_fire_at):
            # No run follows the last one, which would tell that the job is over.
            reason = ENDED if is_last and not is_one_off(missed.schedule) else MISSED
            runs = f"{count} runs in a row were" if count > 1 else "its run was"
            end = "; no fire time is left" if reason == ENDED else ""
            self._note(last, reason, missed.first_fire_at, f"{runs} not planned in time{end}")
        if run is None:
            return
        self._missed.append(count)
        if run.fire_at != missed.last_fire_at:  # that one has a record, and is noted
            self.log.note([run.execution], self.now)
        self.events.publish(
            RUN_SKIPPED,
            {
                "tenant": missed.tenant,
                "job_id": missed.job_id,
                "reason": MISSED,
                "skipped_count": run.skipped_count,
                "skipped_from_at": run.skipped_from_at,
                "skipped_to_at": run.fire_at,
            },
        )
