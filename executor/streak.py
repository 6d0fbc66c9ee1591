"""Failures in a row: they are counted on the job, end with a success, and pause the job where it asks for that."""

from __future__ import annotations

from common import events, keys
from common.errors import NotFound
from common.events import Events
from common.execution import SCHEDULE, Execution
from common.job import DELETED, Job
from common.job_store import JobStore
from common.runs import Outcome
from common.tables import Condition, ConditionFailed


class Streak:
    """Keeps the count. Only failures for good and the success that ends them cost a write."""

    def __init__(self, store: JobStore, told: Events) -> None:
        self._store = store
        self._events = told

    def failed(self, job: Job, execution: Execution, outcome: Outcome) -> None:
        """A run has failed for good: tell it, count it, and pause the job if that were too many."""
        detail = {
            **_about(execution),
            "attempt": execution.attempt,
            "error_type": outcome.error_type,
            "error": outcome.error,
        }
        self._events.tell(events.RUN_FAILED, detail)
        if execution.trigger != SCHEDULE:
            return
        count = self._count(job)
        if job.pause_after_failures is not None and count >= job.pause_after_failures:
            self._pause(job, count)

    def succeeded(self, job: Job, execution: Execution) -> None:
        """A run has succeeded: if others failed before it, that is over."""
        if not job.failures_in_row or execution.trigger != SCHEDULE:
            return
        try:
            self._store.jobs.update(
                keys.job(job.tenant, job.job_id),
                Condition("REMOVE #failures_in_row", {}),
                Condition("attribute_exists(#failures_in_row)", {}),
            )
        except ConditionFailed:
            return  # a run beside this one has told it already
        self._events.tell(events.RUN_RECOVERED, {**_about(execution), "failures_in_row": job.failures_in_row})

    def _count(self, job: Job) -> int:
        try:
            item = self._store.jobs.update(
                keys.job(job.tenant, job.job_id),
                Condition("ADD #failures_in_row :one", {":one": 1}),
                Condition("attribute_exists(pk) AND #state <> :deleted", {":deleted": DELETED}),
            )
        except ConditionFailed:
            return 0
        return int(item["failures_in_row"])

    def _pause(self, job: Job, count: int) -> None:
        note = f"paused after {count} failed runs in a row"
        try:
            paused = self._store.pause(job.tenant, job.job_id, note)
        except NotFound:
            return  # deleted meanwhile
        detail = {"tenant": job.tenant, "job_id": job.job_id, "note": note, "revision": paused.revision}
        self._events.tell(events.JOB_PAUSED, detail)


def _about(execution: Execution) -> dict[str, object]:
    return {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "execution_id": execution.execution_id,
        "fire_at": execution.fire_at,
        "trigger": execution.trigger,
    }
