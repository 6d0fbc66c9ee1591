"""One tenant: its item, the platform's list, its counts, and its newest changes in the audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.jobs.job import Job, exists
from common.jobs.ledger import COUNTED, counted
from common.storage import keys
from common.storage.expressions import ABSENT, PRESENT, Attribute, Condition, change, every
from common.storage.table import Query, Tables
from common.storage.wire import Item
from common.tenants.audit import Audit, Entry
from common.tenants.states import DELETED, DELETING
from common.tenants.tenant import Tenant, TenantRules
from common.texts import UNREADABLE
from common.truth.contradiction import (
    JOB_LOST,
    JOB_ROLLED_BACK,
    TENANT_CORRUPT,
    TENANT_COUNTS,
    TENANT_MISSING,
    TENANT_UNLISTED,
    Contradiction,
    Subject,
    job_subject,
)
from common.truth.jobs import read_job

# Of a tenant's audit, the newest entries.
ENTRIES_READ: Final = 200
_MAX_LOOKS: Final = 5


@dataclass(frozen=True, slots=True)
class TenantChecks:
    """Compares one tenant with what belongs to it. It reads all its jobs."""

    tables: Tables

    def look(self, tenant: str) -> list[Contradiction]:
        """What contradicts the tenant. Nothing of one that is being deleted."""
        for _ in range(_MAX_LOOKS):
            before = self._items(tenant)
            if any(item and is_over(item) for item in before):
                return []
            changes = newest_changes(Audit(self.tables.tenants).newest(tenant, ENTRIES_READ))
            jobs = self._jobs(tenant)
            contradictions = [*self._compared(tenant, *before, jobs), *audit_problems(tenant, changes, jobs)]
            if not contradictions or self._items(tenant) == before:
                return contradictions
        return []

    def is_gone(self, tenant: str) -> bool:
        """Whether the tenant is deleted, or its deletion has begun."""
        items = [item for item in self._items(tenant) if item]
        return all(map(is_over, items))

    def _items(self, tenant: str) -> tuple[Item | None, Item | None]:
        table = self.tables.tenants
        return table.get(keys.tenant(tenant)), table.get(keys.tenant_listing(tenant))

    def _jobs(self, tenant: str) -> dict[str, Job | None]:
        """The jobs by their ids; None: it cannot be read."""
        items = self.tables.jobs.query(Query(tenant, sk_prefix=keys.JOB_PREFIX))
        return jobs_of(items)

    def _compared(
        self, tenant: str, item: Item | None, listing: Item | None, jobs: Mapping[str, Job | None]
    ) -> Iterator[Contradiction]:
        subject = Subject("tenant", tenant)
        if item is None:
            if listing or jobs:
                detail = f"it has {len(jobs)} jobs, which are all skipped as if it were deleted"
                repair = (lambda: self._write_item(tenant, listing)) if listing else None
                yield Contradiction(TENANT_MISSING, subject, detail, repair)
            return
        if listing is None:
            detail = "the platform's list of tenants does not have it"
            yield Contradiction(TENANT_UNLISTED, subject, detail, lambda: self._list(tenant, item))
        elif not is_readable(item) or not is_readable(listing):
            yield self._corrupt(tenant, item, listing)
            return
        if None in jobs.values():
            return  # what a job that cannot be read counts is not known
        stored = {name: item.get(name, 0) for name in COUNTED}
        if stored != (real := counts_of(jobs.values())):
            detail = f"it counts {_shown(stored)}, and has {_shown(real)}"
            yield Contradiction(TENANT_COUNTS, subject, detail, lambda: self._recount(tenant, stored, real))

    def _corrupt(self, tenant: str, item: Item, listing: Item) -> Contradiction:
        subject = Subject("tenant", tenant)
        if is_readable(listing):
            detail = "its item cannot be read: its runs fail or are skipped"
            return Contradiction(
                TENANT_CORRUPT,
                subject,
                detail,
                lambda: self._write_item(tenant, listing, PRESENT),
            )
        detail = "its item in the list of tenants cannot be read"
        is_sound = is_readable(item)
        repair = (lambda: self._list(tenant, item, PRESENT)) if is_sound else None
        return Contradiction(TENANT_CORRUPT, subject, detail, repair)

    # Repairs

    def _write_item(self, tenant: str, listing: Item, condition: Condition = ABSENT) -> None:
        item = {**listing, **keys.tenant(tenant), **counts_of(self._jobs(tenant).values())}
        self.tables.tenants.put(item, condition)

    def _list(self, tenant: str, item: Item, condition: Condition = ABSENT) -> None:
        listing = {name: value for name, value in item.items() if name not in COUNTED}
        self.tables.tenants.put({**listing, **keys.tenant_listing(tenant)}, condition)

    def _recount(self, tenant: str, stored: Mapping[str, int], real: Mapping[str, int]) -> None:
        """Move the counts by what they were wrong: registrations may have moved them, too."""
        differences = {name: real[name] - stored[name] for name in COUNTED}
        as_read = [Attribute(name) == stored[name] for name in COUNTED if stored[name]]
        self.tables.tenants.update(keys.tenant(tenant), change(add=differences), every(as_read or [PRESENT]))


def is_over(item: Item) -> bool:
    """Whether the tenant is deleted, or its deletion has begun. Pure."""
    return item.get("state") in (DELETING, DELETED)


def is_readable(item: Item) -> bool:
    """Whether the executor and the API can read this item of a tenant. Pure."""
    try:
        (TenantRules if is_over(item) else Tenant).from_item(item)
    except UNREADABLE:
        return False
    return True


def jobs_of(items: Iterable[Item]) -> dict[str, Job | None]:
    """The jobs that exist by their ids; None: it cannot be read. Pure."""
    jobs: dict[str, Job | None] = {}
    for item in items:
        job = read_job(item)
        if isinstance(job, str) or exists(job):
            jobs[item["sk"].removeprefix(keys.JOB_PREFIX)] = None if isinstance(job, str) else job
    return jobs


def counts_of(jobs: Iterable[Job | None]) -> dict[str, int]:
    """What the tenant's item has to count. Pure."""
    each = [counted(job) for job in jobs]
    return {name: sum(counts[name] for counts in each) for name in COUNTED}


def newest_changes(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The newest change of each job, of a tenant's entries from the newest on. Pure."""
    changes: dict[str, Entry] = {}
    for entry in entries:
        if entry.action in ("job.created", "job.changed", "job.paused", "job.resumed", "job.deleted"):
            changes.setdefault(entry.subject, entry)
    return changes


def audit_problems(
    tenant: str, changes: Mapping[str, Entry], jobs: Mapping[str, Job | None]
) -> Iterator[Contradiction]:
    """The jobs that are gone, or older than their last change in the audit. Pure.

    The audit has to be read before the jobs.
    """
    for job_id, entry in changes.items():
        subject, revision = job_subject(tenant, job_id), _revision(entry.after)
        if entry.action == "job.deleted":
            continue
        job = jobs.get(job_id)
        if job_id not in jobs:
            yield Contradiction(JOB_LOST, subject, f"the audit knows no deletion of its revision {revision}")
        elif job and job.revision < revision:
            detail = f"it has revision {job.revision}, and the audit its revision {revision}"
            yield Contradiction(JOB_ROLLED_BACK, subject, detail)


def _revision(after: Mapping[str, Any]) -> int:
    revision = after.get("revision", 0)
    return revision if isinstance(revision, int) else 0


def _shown(counts: Mapping[str, int]) -> str:
    return f"{counts['jobs']} jobs with {counts['executions_per_day']} executions a day"
