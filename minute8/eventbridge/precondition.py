"""The precondition of schedules in the job store: a new one needs its group, and a change keeps `imported_from`."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from common.jobs.job import Job
from common.jobs.preconditions import JobChanges, Precondition
from common.storage import keys
from common.storage.table import Table
from common.storage.transactions import Transaction
from minute8.eventbridge.groups import ScheduleGroups
from minute8.eventbridge.imported_from import kept_imported_from


@dataclass(frozen=True, slots=True)
class SchedulePrecondition(Precondition):
    """Each change of jobs respects the groups of the schedules among them."""

    groups: ScheduleGroups

    def revised(self, old: Job | None, new: Job, now: float) -> Job:
        return replace(new, imported_from=kept_imported_from(old, new, now))

    def require(self, tx: Transaction, changes: JobChanges) -> None:
        self.groups.require(tx, changes)

    def explain(self, failed: keys.Key) -> None:
        """Raises NotFound, Conflict."""
        self.groups.check_required(failed)


def schedule_precondition(jobs: Table) -> Precondition:
    """The precondition of the schedules in a jobs table."""
    return SchedulePrecondition(ScheduleGroups(jobs))
