"""Failures in a row: counted, reset by a success. The job is paused if its policy says so.

The completion needs this file too, so it does not load the executor's pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from common import events
from common.errors import NotFound, RevisionMismatch
from common.events import Events
from common.jobs.job import PAUSED, Job
from common.planning.execution import SCHEDULE, Execution
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.runs.states import FAILED

if TYPE_CHECKING:
    from common.jobs.store import JobStore

# The beginning of the job's note after such a pause.
_NOTE = "paused after "


class FailureStreak:
    """Keeps the count. Only permanent failures, and the success that ends a streak, cost a write."""

    def __init__(self, store: JobStore, publisher: Events) -> None:
        self._store = store
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
        count = self._store.failures.add(job, execution.run_name)
        if job.spec.pause_after_failures is not None and count >= job.spec.pause_after_failures:
            self._pause(job, count)

    def given_up(self, job: Job | None, execution: Execution, reason: str, error: str) -> None:
        """A run is not retried, for a reason outside its target: publish it, but do not count it."""
        last_error = {"attempt": execution.attempt - 1, "error_type": reason, "error": error}
        self._events.publish(events.RUN_FAILED, {**_about(execution), **responsible(job), **last_error})

    def succeeded(self, job: Job, execution: Execution) -> None:
        """A run has succeeded: end the streak of failures, if there is one."""
        if not job.has_failures or execution.trigger != SCHEDULE:
            return
        if not (failures_in_row := self._store.failures.end(job, execution.run_name)):
            return  # a concurrent run has published it, or a later one has failed
        self._events.publish(
            events.RUN_RECOVERED,
            {**_about(execution), **responsible(job), "failures_in_row": failures_in_row},
        )

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
        detail = {"tenant": job.tenant, "job_id": job.job_id, "note": job.note, "revision": job.revision}
        self._events.publish(events.JOB_PAUSED, {**detail, **responsible(job)})


def responsible(job: Job | None) -> dict[str, str]:
    """The owner and the runbook that a job names, for an event."""
    names = {"owner": job.spec.owner, "runbook": job.spec.runbook} if job else {}
    return {name: value for name, value in names.items() if value}


def _about(execution: Execution) -> dict[str, object]:
    return {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "execution_id": execution.execution_id,
        "fire_at": execution.fire_at,
        "trigger": execution.trigger,
    }
