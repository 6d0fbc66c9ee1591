"""Guards of the job store: conditions and writes of other data, in the transaction that changes jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from common.errors import Conflict, InvalidInput
from common.jobs.job import DELETED, Job
from common.storage import keys
from common.storage.expressions import PRESENT, Attribute
from common.storage.table import Table
from common.storage.transactions import Transaction

# Jobs before and after a change.
JobChanges = Sequence[tuple[Job | None, Job]]

# A deletion marks an item with this attribute before it looks for jobs that name the item.
DELETING: Final = "deleting"
_NOT_DELETING: Final = PRESENT & Attribute(DELETING).is_absent


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
class NamedItems(Guard):
    """An item that a job newly names, such as a calendar, stays until the job is stored.

    `names` are those of a job. `field` is the field of a definition that an error names.
    """

    kind: str
    table: Table
    key: Callable[[str, str], keys.Key]
    names: Callable[[Job], Iterable[str]]
    field: str

    def require(self, tx: Transaction, changes: JobChanges) -> None:
        newly_named = {
            (new.tenant, name)
            for old, new in changes
            for name in self.names(new)
            if old is None or old.state == DELETED or name not in self.names(old)
        }
        for tenant, name in sorted(newly_named):
            tx.check(self.table, self.key(tenant, name), _NOT_DELETING)

    def explain(self, failed: keys.Key) -> None:
        """Raises InvalidInput, Conflict."""
        prefix = self.key("", "")["sk"]
        if not failed["sk"].startswith(prefix):
            return
        name, item = failed["sk"].removeprefix(prefix), self.table.get(failed)
        if item is None:
            raise InvalidInput(
                self.field, f"no such {self.kind}", value=name, accepted=f"the name of a stored {self.kind}"
            )
        if DELETING in item:
            raise Conflict(f"{self.kind} {name!r} is being deleted; to keep it, store it again")


def named_calendars(jobs: Table) -> NamedItems:
    """The guard of the calendars that jobs name."""
    return NamedItems(
        "calendar",
        jobs,
        keys.calendar,
        lambda job: job.schedule.named_calendars,
        "schedule.exclude.calendars",
    )


def named_secrets(tenants: Table) -> NamedItems:
    """The guard of the secrets that jobs name."""
    return NamedItems("secret", tenants, keys.secret, lambda job: job.secrets, "job")
