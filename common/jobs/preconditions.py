"""Preconditions of the job store: conditions and writes of other data, in the transaction that changes jobs.

What jobs may name, such as a calendar, is deleted only if no job names it: it would be unknown what a job that names a
missing one means. So a deletion marks the item, reads the jobs, and deletes the item only if the mark is still its own.
A job that newly names the item is stored in a transaction that fails if the item is marked or missing. Storing the item
again removes the mark.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.job import DELETED, Job
from common.storage import keys
from common.storage.expressions import PRESENT, Attribute, change
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import DAMAGE, Item
from common.tenants.audit import AuditedCommit

# Jobs before and after a change.
JobChanges = Sequence[tuple[Job | None, Job]]

# A deletion marks an item with this attribute before it looks for jobs that name the item.
DELETING: Final = "deleting"
_NOT_DELETING: Final = PRESENT & Attribute(DELETING).is_absent


class Precondition(Protocol):
    """A condition of other data on a change of jobs. The methods of this class accept every change."""

    def revised(self, old: Job | None, new: Job, now: float) -> Job:
        """The job to store in the place of `new`."""
        return new

    def require(self, tx: Transaction, changes: JobChanges) -> None:
        """Add conditions and writes to the transaction of the changes."""

    def explain(self, failed: keys.Key) -> None:
        """Raise the reason if the condition of the item at `failed` is this precondition's, and still does not hold."""


@dataclass(frozen=True, slots=True)
class NamedItems(Precondition):
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
    """The precondition of the calendars that jobs name."""
    return NamedItems(
        "calendar",
        jobs,
        keys.calendar,
        lambda job: job.schedule.named_calendars,
        "schedule.exclude.calendars",
    )


def named_secrets(tenants: Table) -> NamedItems:
    """The precondition of the secrets that jobs name."""
    return NamedItems("secret", tenants, keys.secret, lambda job: job.secrets, "job")


# How many of the jobs that name the item an error shows.
_NAMED_JOBS: Final = 3


class StillNamed(Conflict):
    """An item cannot be deleted while jobs name it."""

    def __init__(self, kind: str, name: str, job_ids: list[str], advice: str) -> None:
        super().__init__(f"{kind} {name!r} is named by jobs: {', '.join(job_ids)}; {advice}")


@dataclass(frozen=True, slots=True)
class NamedDeletion:
    """The deletion of one kind of items.

    `is_named` says whether the item of a job, of which only the attributes `read` are read, has a name. `audit_view` is
    what the audit keeps of the deleted item. `advice` ends the error of one that jobs name.
    """

    of: NamedItems
    jobs: Table
    read: tuple[str, ...]
    is_named: Callable[[Item, str], bool]
    audit_view: Callable[[Item], Item]
    advice: str

    def delete(self, tenant: str, name: str, now: float, audited: AuditedCommit) -> None:
        """Delete the item that no job names. Reads the tenant's jobs.

        Raises NotFound, StillNamed, Busy; Conflict if it is stored, or deleted by another request, meanwhile.
        """
        kind, table, key = self.of.kind, self.of.table, self.of.key(tenant, name)
        token = secrets.token_hex(8)
        is_mine = Attribute(DELETING) == token
        marked = table.update_if(key, change({DELETING: token}), PRESENT)
        if marked is None:
            raise NotFound(kind, name)
        jobs = self.jobs.query(Query(tenant, sk_prefix=keys.JOB_PREFIX, attributes=("job_id", *self.read)))
        naming = (item["job_id"] for item in jobs if self._is_named(item, name))
        if job_ids := list(islice(naming, _NAMED_JOBS)):
            table.update_if(key, change(remove=[DELETING]), is_mine)
            raise StillNamed(kind, name, job_ids, self.advice)
        tx = Transaction(table.client)
        tx.delete(table, key, is_mine)
        if audited.try_commit(tx, tenant, f"{kind}.deleted", name, now, before=self.audit_view(marked)):
            if table.get(key) is None:
                raise NotFound(kind, name)
            raise Conflict(f"{kind} {name!r} was stored, or is being deleted, by another request")

    def _is_named(self, item: Item, name: str) -> bool:
        """A damaged job names nothing: it fires again only if it is put again."""
        with suppress(*DAMAGE):
            return self.is_named(item, name)
        return False
