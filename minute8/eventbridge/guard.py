"""The guard of schedules in the job store: a new schedule needs its group, and each change keeps the job's origin."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from common.jobs.guards import Guard, JobChanges
from common.jobs.job import Job
from common.storage import keys
from common.storage.table import Table
from common.storage.transactions import Transaction
from minute8.eventbridge.groups import ScheduleGroups
from minute8.eventbridge.origin import kept_origin


@dataclass(frozen=True, slots=True)
class ScheduleGuard(Guard):
    """Each change of jobs respects the groups of the schedules among them."""

    groups: ScheduleGroups

    def revised(self, old: Job | None, new: Job, now: float) -> Job:
        return replace(new, origin=kept_origin(old, new, now))

    def require(self, tx: Transaction, changes: JobChanges) -> None:
        self.groups.require(tx, changes)

    def explain(self, failed: keys.Key) -> None:
        """Raises NotFound, Conflict."""
        self.groups.check_required(failed)


def schedule_guard(jobs: Table) -> Guard:
    """The guard of the schedules in a jobs table."""
    return ScheduleGuard(ScheduleGroups(jobs))
