"""Failures in a row: counted, reset by a success; the job is paused if its policy says so. And jobs that do not run.

The completion needs this file too, so it does not load the executor's pipeline.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from common import events
from common.errors import NotFound, RevisionMismatch
from common.events import Events
from common.jobs.job import PAUSED, Job, responsible
from common.planning.execution import BACKFILL, SCHEDULE, Execution
from common.runs.outcome import Outcome
from common.runs.run import REQUIRED, Run, readable_runs
from common.runs.states import FAILED, SUSPENDED_TENANT
from common.storage import keys
from common.storage.table import Query, Table

if TYPE_CHECKING:
    from common.jobs.not_running import NotRunning
    from common.jobs.store import JobStore
    from common.timing.excluded_days import Excluded

# The beginning of the job's note after such a pause.
_NOTE = "paused after "
# Of a job, to judge whether it runs.
_NEWEST = 50


class FailureStreak:
    """Keeps the count. Only permanent failures, and the success that ends a streak, cost a write."""

    def __init__(self, store: JobStore, runs: Table, publisher: Events) -> None:
        self._store = store
        self._runs = runs
        self._events = publisher

    def failed(self, job: Job | None, execution: Execution, outcome: Outcome) -> None:
        """A run has failed permanently: publish it, count it, and pause the job if its limit is reached."""
        detail = {
            **_about(execution),
            **responsible(job),
            "attempt": execution.attempt,
            "error_type": outcome.error_type,
            "error": outcome.error,
        }
        self._events.publish(events.RUN_FAILED, detail)
        if job is None or execution.trigger != SCHEDULE:
            return
        if job.state == PAUSED:
            # Only runs that began before the pause can fail now. This one may have caused it, and died before
            # publishing.
            if job.note.startswith(_NOTE):
                self._publish_paused(job)
            return
        self.ran(job, execution)
        count = self._store.failures.add(job, execution.run_name)
        if job.spec.pause_after_failures is not None and count >= job.spec.pause_after_failures:
            self._pause(job, count)

    def given_up(self, job: Job | None, execution: Execution, reason: str, error: str) -> None:
        """A run is not retried, for a reason outside its target: publish it, but do not count it. It waits no more."""
        if job and job.not_running == "waits":
            self.ran(job, execution)
        last_error = {"attempt": execution.attempt - 1, "error_type": reason, "error": error}
        self._events.publish(events.RUN_FAILED, {**_about(execution), **responsible(job), **last_error})

    def succeeded(self, job: Job, execution: Execution) -> None:
        """A run has succeeded: end the streak of failures, if there is one."""
        self.ran(job, execution)
        if execution.trigger != SCHEDULE or not job.has_failures:
            return
        if not (failures_in_row := self._store.failures.end(job, execution.run_name)):
            return  # a concurrent run has published it, or a later one has failed
        self._events.publish(
            events.RUN_RECOVERED,
            {**_about(execution), **responsible(job), "failures_in_row": failures_in_row},
        )

    # Most batches skip nothing, and load none of what tells of it.
    def skipped(self, job: Job, execution: Execution, reason: str, detail: str) -> None:
        """A run was skipped: the job may not run any more. A reason that is noted costs a read."""
        from common.jobs.ended import is_one_off, is_rare
        from common.jobs.not_running import SKIPS, NotRunning, skipped

        if execution.trigger not in (SCHEDULE, BACKFILL) or reason not in (*SKIPS, SUSPENDED_TENANT):
            return
        now = self._store.clock.now()
        if execution.trigger == BACKFILL:
            if not job.not_running:
                self._begin(job, NotRunning(reason, now, f"a run of a backfill was skipped: {detail}"))
            return
        if job.not_running == reason:
            noted = self._store.not_running.of_job(job.tenant, job.job_id)
            if (
                noted
                and noted.is_share
                and (all_of := skipped(self._newest(job, execution.fire_at), now, reason))
            ):
                self._begin(job, all_of)
        elif is_one_off(job.schedule) or is_rare(job.schedule, execution.fire_at):
            self._begin(job, NotRunning(reason, execution.due_at, detail))
        elif reason == SUSPENDED_TENANT:
            return
        elif noted := skipped(self._newest(job, execution.fire_at), now, known=job.not_running):
            self._begin(job, noted)

    def waits(self, job: Job, execution: Execution, detail: str) -> None:
        """A run waits for other runs, or a hold, to end."""
        from common.jobs.not_running import WAITS, NotRunning

        if execution.trigger == SCHEDULE and not job.not_running:
            self._begin(job, NotRunning(WAITS, execution.due_at, detail))

    def unreadable(self, job: Job) -> None:
        """A run is due of a job that somebody has damaged."""
        from common.jobs.not_running import UNREADABLE, NotRunning

        if job.not_running != UNREADABLE:
            note = NotRunning(
                UNREADABLE, self._store.clock.now(), f"put it again, or delete it; it is {job.note}"
            )
            self._store.not_running.begin(job.tenant, job.job_id, note)

    def ran(self, job: Job, execution: Execution) -> None:
        """A run was made: what is noted of skips is over, unless others are skipped. A one-off may run by hand."""
        if not job.not_running:
            return
        from common.jobs.ended import is_one_off
        from common.jobs.not_running import LASTING, NEVER_FIRES, RUNS_AGAIN, goes_on

        is_single = is_one_off(job.schedule)
        if execution.trigger not in (SCHEDULE, BACKFILL) and not is_single:
            return
        if job.not_running in LASTING and not (is_single and job.not_running == NEVER_FIRES):
            return
        notes, now = self._store.not_running, self._store.clock.now()
        noted = notes.of_job(job.tenant, job.job_id)
        if noted and execution.due_at < noted.since_at:
            return  # it was planned before
        if noted and goes_on(noted, self._newest(job, max(execution.fire_at, now)), now):
            return
        notes.end(job, RUNS_AGAIN)

    def note_if_over(
        self, job: Job, execution: Execution, excluded: Callable[[], Excluded], skipped: str = ""
    ) -> None:
        """Note that no fire time follows this one, if that is so. `skipped`: why this one did not run."""
        from common.jobs.ended import why_over
        from common.jobs.not_running import ENDED, NotRunning

        after = max(execution.fire_at, self._store.clock.now())
        if execution.trigger == SCHEDULE and (why := why_over(job, execution.fire_at, after, excluded)):
            also = f"; its last run was skipped: {skipped}" if skipped else ""
            self._begin(job, NotRunning(ENDED, execution.fire_at, why + also))

    def _begin(self, job: Job, noted: NotRunning) -> None:
        self._store.not_running.begin(job.tenant, job.job_id, noted, job.schedule_revision)

    def _newest(self, job: Job, until: float) -> list[Run]:
        """The newest runs whose fire times are not after `until`, the newest first."""
        query = Query(
            keys.runs_of_job(job.tenant, job.job_id),
            sk_between=keys.runs_between(None, math.floor(until) + 1),
            newest_first=True,
            page=_NEWEST,
            attributes=(*REQUIRED, "reason", "detail", "skipped_count", "skipped_from_at"),
        )
        return list(readable_runs(islice(self._runs.query(query), _NEWEST)))

    def repeat_end(self, job: Job, execution: Execution, record: Run) -> None:
        """Do the same for a recorded run whose executor may have died before it published the end."""
        last = record.last_attempt
        if last is None or last.attempt != execution.attempt or record.error_type:
            return  # the run was cancelled, or not retried: no attempt ended it
        if last.outcome == "succeeded":
            self.succeeded(job, execution)
        elif record.status == FAILED:
            self.failed(job, execution, Outcome(ok=False, error_type=last.error_type, error=last.error))

    def _pause(self, job: Job, count: int) -> None:
        note = f"{_NOTE}{count} failed runs in a row"
        try:
            paused = self._store.pause(job.tenant, job.job_id, note, expected_revision=job.revision)
        except NotFound:
            return  # the job was deleted meanwhile
        except (
            RevisionMismatch
        ):  # the job changed, which starts the count anew, or this pause was written before
            paused = self._store.get(job.tenant, job.job_id)
            if paused.note != note:
                return
        self._publish_paused(paused)

    def _publish_paused(self, job: Job) -> None:
        from common.jobs.not_running import PAUSED_AFTER_FAILURES, NotRunning

        at = self._store.clock.now()
        note = NotRunning(PAUSED_AFTER_FAILURES, at, job.note)
        self._store.not_running.begin(job.tenant, job.job_id, note)
        detail = {"tenant": job.tenant, "job_id": job.job_id, "note": job.note, "revision": job.revision}
        self._events.publish(events.JOB_PAUSED, {**detail, **responsible(job)})


def _about(execution: Execution) -> dict[str, object]:
    return {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "execution_id": execution.execution_id,
        "fire_at": execution.fire_at,
        "trigger": execution.trigger,
    }
