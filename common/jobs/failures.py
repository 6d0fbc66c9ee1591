"""The failures in a row of a job, counted on its item.

Counting moves no revision, since nothing changes that the job does. A change of the job starts the count anew
(`JobStore.change_all`).
"""

from __future__ import annotations

from dataclasses import dataclass

from common.jobs.job import DELETED
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table
from common.storage.wire import Expression


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """The counts in the jobs table; `run_name` names a run among its job's, in the order of their fire times."""

    jobs: Table

    def add(self, tenant: str, job_id: str, run_name: str) -> int:
        """Count a failed run, once however often this is called. The failures in a row; 0 if the job is deleted."""
        new = Expression(
            "attribute_exists(pk) AND #state <> :deleted"
            " AND (attribute_not_exists(#failed_run) OR #failed_run <> :run)",
            {":deleted": DELETED, ":run": run_name},
        )
        change = Expression("SET #failed_run = :run ADD #failures_in_row :one", {":run": run_name, ":one": 1})
        try:
            item = self.jobs.update(keys.job(tenant, job_id), change, new)
        except ConditionFailed as conflict:
            item = conflict.existing or {}
            if item.get("state") == DELETED:
                return 0
        return int(item.get("failures_in_row", 0))

    def end(self, tenant: str, job_id: str, run_name: str) -> bool:
        """A run has succeeded: count from 0 again. False if there is nothing to end, or a later run has failed."""
        before = Expression(
            "attribute_exists(#failures_in_row) AND (attribute_not_exists(#failed_run) OR #failed_run < :run)",
            {":run": run_name},
        )
        over = Expression("REMOVE #failures_in_row, #failed_run", {})
        try:
            self.jobs.update(keys.job(tenant, job_id), over, before)
        except ConditionFailed:
            return False
        return True
