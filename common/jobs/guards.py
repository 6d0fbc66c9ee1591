"""Guards of the job store: conditions and writes of other data, in the transaction that changes jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from common.errors import Conflict
from common.jobs.calendars import DELETING, Calendars
from common.jobs.job import DELETED, Job
from common.storage import keys
from common.storage.table import Transaction
from common.storage.wire import Expression

# Jobs before and after a change.
JobChanges = Sequence[tuple[Job | None, Job]]

_NOT_DELETING: Final = Expression(f"attribute_exists(pk) AND attribute_not_exists(#{DELETING})", {})


class Guard(Protocol):
    """A condition of other data on a change of jobs. The methods of this class accept every change."""

    def revised(self, old: Job | None, new: Job, now: float) -> Job:
        """The job to store in the place of `new`."""
        return new

    def require(self, tx: Transaction, changes: JobChanges) -> None:
        """Add conditions and writes to the transaction of the changes."""

    def explain(self, failed: keys.Key) -> None:
        """Raise the reason if the condition of the item at `failed` is this guard's, and still does not hold."""


@dataclass(frozen=True, slots=True)
class NamedCalendars(Guard):
    """A calendar that a job newly names stays until the job is stored."""

    calendars: Calendars

    def require(self, tx: Transaction, changes: JobChanges) -> None:
        newly_named = {
            (new.tenant, name)
            for old, new in changes
            for name in new.schedule.named_calendars
            if old is None or old.state == DELETED or name not in old.schedule.named_calendars
        }
        for tenant, name in sorted(newly_named):
            tx.check(self.calendars.table, keys.calendar(tenant, name), _NOT_DELETING)

    def explain(self, failed: keys.Key) -> None:
        """Raises InvalidInput, Conflict."""
        if not failed["sk"].startswith(keys.CALENDAR_PREFIX):
            return
        name = failed["sk"].removeprefix(keys.CALENDAR_PREFIX)
        self.calendars.check_named(failed["pk"], [name])
        if DELETING in (self.calendars.table.get(failed) or {}):
            raise Conflict(f"calendar {name!r} is being deleted; to keep it, store it again")
