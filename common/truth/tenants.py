"""One tenant: its item, the platform's list, its counts, and its newest changes in the audit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from common.clock import Clock
from common.errors import Conflict
from common.jobs.job import Job, exists
from common.jobs.ledger import COUNTED, counted
from common.storage import keys
from common.storage.expressions import ABSENT, PRESENT, Attribute, Condition, change, every, unchanged
from common.storage.stored import read
from common.storage.table import Query, Tables
from common.storage.transactions import Transaction
from common.storage.wire import DAMAGE, Item
from common.tenants import rules_cache
from common.tenants.audit import RETENTION_S, Audit, Entry, EntryFilter, differing
from common.tenants.audit_chain import AuditSeals, Seal, Tampering, missing_entry
from common.tenants.tenant import DELETED, DELETING, Tenant, TenantRules
from common.truth.contradiction import (
    AUDIT_LOST,
    JOB_LOST,
    JOB_ROLLED_BACK,
    TENANT_CORRUPT,
    TENANT_COUNTS,
    TENANT_DIFFERS,
    TENANT_MISSING,
    TENANT_ROLLED_BACK,
    TENANT_UNLISTED,
    Contradiction,
    Subject,
    job_subject,
)
from common.truth.jobs import read_job

# Of a tenant's audit, the newest entries.
ENTRIES_READ: Final = 200
_MAX_LOOKS: Final = 5
_JOB_CHANGES: Final = ("job.created", "job.changed", "job.paused", "job.resumed", "job.deleted")
_TENANT_CHANGES: Final = ("tenant.created", "tenant.changed", "tenant.suspended", "tenant.resumed")


@dataclass(frozen=True, slots=True)
class TenantChecks:
    """Compares one tenant with what belongs to it. It reads all its jobs."""

    tables: Tables
    clock: Clock

    def look(self, tenant: str) -> list[Contradiction]:
        """What contradicts the tenant. Nothing of one that is being deleted."""
        audit = Audit(self.tables.tenants)
        for _ in range(_MAX_LOOKS):
            before = self._items(tenant)
            if self._is_deleted(tenant, before):
                return []
            log = ChangeLog.read(audit, tenant, self.clock.now())
            jobs = self._jobs(tenant)
            contradictions = [
                *self._compared(tenant, *before, jobs),
                *audit_problems(tenant, log, before[0], jobs, self.clock.now()),
            ]
            if not contradictions or self._items(tenant) == before:
                return contradictions
        return []

    def is_gone(self, tenant: str) -> bool:
        """Whether the tenant is deleted, or its deletion has begun."""
        return self._is_deleted(tenant, self._items(tenant))

    def _is_deleted(self, tenant: str, items: tuple[Item | None, Item | None]) -> bool:
        """Whether its deletion was begun by Minute8, or the items that are there say so."""
        if any(item and "deletion" in item for item in items) or self.tables.tenants.get(
            keys.deletion(tenant)
        ):
            return True
        present = [item for item in items if item]
        return bool(present) and all(map(is_over, present))

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
                detail += "" if listing else "; the list lacks it, too, and its audit decides"
                write = partial(self._write_item, listing=listing) if listing else self._write_as_audited
                yield Contradiction(TENANT_MISSING, subject, detail, lambda: write(tenant))
            return
        if contradiction := self._twins(tenant, item, listing):
            yield contradiction
            if contradiction.name == TENANT_CORRUPT:
                return
        if None in jobs.values():
            return  # what a job that cannot be read counts is not known
        stored = {name: item.get(name, 0) for name in COUNTED}
        if stored != (real := counts_of(jobs.values())):
            detail = f"it counts {_shown(stored)}, and has {_shown(real)}"
            yield Contradiction(TENANT_COUNTS, subject, detail, lambda: self._recount(tenant, stored, real))

    def _twins(self, tenant: str, item: Item, listing: Item | None) -> Contradiction | None:
        """Whether the tenant's item and the list's can be read, and say the same."""
        if listing is None:
            detail = "the platform's list of tenants does not have it"
            return Contradiction(
                TENANT_UNLISTED, Subject("tenant", tenant), detail, lambda: self._list(tenant, item)
            )
        if not is_readable(item) or not is_readable(listing):
            return self._corrupt(tenant, item, listing)
        different = twins_differ(item, listing)
        return self._differs(tenant, item, listing, different) if different else None

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

    def _differs(self, tenant: str, item: Item, listing: Item, names: Iterable[str]) -> Contradiction:
        """Which of the two is as the newest audit entry says, field by field."""
        by_name = {name: (item.get(name), listing.get(name)) for name in names}
        audited = self._audited(tenant, by_name)
        decided = {
            name: next(value for value in both if shown_in_audit(value) == audited[name])
            for name, both in by_name.items()
            if name in audited and any(shown_in_audit(value) == audited[name] for value in both)
        }
        differences = "; ".join(
            f"{name} is {value!r} in its item, {listed!r} in the list"[:200]
            + (f", and {decided[name]!r} by the audit"[:100] if name in decided else "")
            for name, (value, listed) in by_name.items()
        )
        repair = (lambda: self._write_both(tenant, item, listing, decided)) if decided else None
        return Contradiction(TENANT_DIFFERS, Subject("tenant", tenant), differences, repair)

    def _audited(self, tenant: str, names: Collection[str]) -> dict[str, Any]:
        """What the newest entries about the tenant say of these fields, of those that one names."""
        entries, _ = Audit(self.tables.tenants).page(tenant, EntryFilter(action="tenant"), limit=ENTRIES_READ)
        audited = newest_values(entries)
        return {name: audited[name] for name in names if name in audited}

    # Repairs

    def _write_as_audited(self, tenant: str) -> None:
        """Write the tenant as the audit says that it was created and changed. Raises Conflict if that is not known."""
        audit = Audit(self.tables.tenants)
        changes = list(audit.all(tenant, EntryFilter(action="tenant")))
        created = next((entry for entry in changes if entry.action == "tenant.created"), None)
        if created is None:
            raise Conflict("the audit has no creation of this tenant: restore the table of tenants")
        deletions = audit.all(keys.OPERATORS, EntryFilter(subject=tenant, action="tenant.deleted"))
        if any(entry.at >= created.at for entry in deletions):
            raise Conflict("the audit has its deletion: nothing of it runs; restore the table of tenants")
        since = [entry for entry in changes if entry.at >= created.at]
        # Two of one millisecond are in no order.
        fields = newest_values(sorted(since, key=lambda entry: -_revision(entry.after)))
        long = [name for name, value in fields.items() if isinstance(value, dict) and "sha256" in value]
        if long:
            raise Conflict(f"the audit has no value of {', '.join(long)}, only its hash: restore the table")
        item = {name: value for name, value in fields.items() if value is not None}
        read(item, Tenant)
        tx = Transaction(self.tables.tenants.client)
        counts = counts_of(self._jobs(tenant).values())
        tx.put(self.tables.tenants, {**item, **counts, **keys.tenant(tenant)}, ABSENT)
        tx.put(self.tables.tenants, {**item, **keys.tenant_listing(tenant)}, ABSENT)
        rules_cache.note_change(tx, self.tables.tenants, tenant, self.clock.now())
        tx.commit()

    def _write_both(self, tenant: str, item: Item, listing: Item, values: Mapping[str, Any]) -> None:
        present = {name: value for name, value in values.items() if value is not None}
        changes = change(present, remove=[name for name in values if name not in present])
        tx = Transaction(self.tables.tenants.client)
        for key, known in ((keys.tenant(tenant), item), (keys.tenant_listing(tenant), listing)):
            as_read = [unchanged(known, name) for name in ("revision", *values)]
            tx.update(self.tables.tenants, key, changes, every(as_read))
        # Executors trust their copies for an hour if the log does not name the tenant.
        rules_cache.note_change(tx, self.tables.tenants, tenant, self.clock.now())
        tx.commit()

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
        read(item, TenantRules if is_over(item) else Tenant)
    except DAMAGE:
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


def twins_differ(item: Item, listing: Item) -> list[str]:
    """The fields in which a tenant's item and the list's differ. Pure."""
    names = sorted({*item, *listing} - {"pk", "sk", *COUNTED})
    return [name for name in names if item.get(name) != listing.get(name)]


def newest_values(entries: Iterable[Entry]) -> dict[str, Any]:
    """What entries, the newest first, say of each field that one names; None: it was removed. Pure."""
    values: dict[str, Any] = {}
    for entry in entries:
        for name in {**entry.before, **entry.after}:
            values.setdefault(name, entry.after.get(name))
    return values


def shown_in_audit(value: Any) -> Any:
    """A value as an entry of the audit shows it. Pure."""
    return differing({}, {"value": value})[1].get("value")


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """What a tenant's newest audit entries say: the newest change of each job, and the tenant's newest.

    `is_whole`: there are no older entries. `problem`: what differs from the last seal.
    """

    changes: Mapping[str, Entry]
    tenant_revision: int
    is_whole: bool
    problem: str

    @classmethod
    def read(cls, audit: Audit, tenant: str, now: float) -> ChangeLog:
        """The log, of the last ENTRIES_READ entries. It has to be read before the jobs."""
        seal = AuditSeals(audit).newest(tenant)
        entries = list(audit.newest(tenant, ENTRIES_READ))
        is_whole = len(entries) < ENTRIES_READ
        changes: dict[str, Entry] = {}
        for entry in entries:
            if entry.action in _JOB_CHANGES:
                changes.setdefault(entry.subject, entry)
        of_tenant = [entry for entry in entries if entry.action in _TENANT_CHANGES]
        revision = max((_revision(entry.after) for entry in of_tenant), default=0)
        return cls(changes, revision, is_whole, _seal_problem(seal, entries, is_whole, now))


def _seal_problem(seal: Seal | Tampering | None, entries: Sequence[Entry], is_whole: bool, now: float) -> str:
    if isinstance(seal, Tampering):
        return f"{seal.of}: {seal.detail}"
    since = "" if is_whole or not entries else entries[-1].entry_id
    missing = missing_entry(seal, {entry.entry_id for entry in entries}, since, now) if seal else None
    return f"seal {seal.number} has the entry {missing}, which is gone" if seal and missing else ""


def audit_problems(
    tenant: str, log: ChangeLog, item: Item | None, jobs: Mapping[str, Job | None], now: float
) -> Iterator[Contradiction]:
    """The jobs that are gone or older than their last change in the audit, and changes that it does not have. Pure."""
    subject = Subject("tenant", tenant)
    for job_id, entry in log.changes.items():
        if entry.action != "job.deleted":
            yield from _job_problems(job_subject(tenant, job_id), job_id in jobs, jobs.get(job_id), entry)
    revision = item.get("revision", 0) if item else None
    if isinstance(revision, int) and revision < log.tenant_revision:
        detail = f"it has revision {revision}, and the audit its revision {log.tenant_revision}"
        yield Contradiction(TENANT_ROLLED_BACK, subject, detail)
    if missing := [*([log.problem] if log.problem else []), *_unaudited(log, jobs, now)]:
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield Contradiction(AUDIT_LOST, subject, f"{missing[0]}{more}")


def _job_problems(subject: Subject, exists: bool, job: Job | None, entry: Entry) -> Iterator[Contradiction]:
    revision = _revision(entry.after)
    if not exists:
        yield Contradiction(JOB_LOST, subject, f"the audit knows no deletion of its revision {revision}")
    elif job and job.revision < revision:
        detail = f"it has revision {job.revision}, and the audit its revision {revision}"
        yield Contradiction(JOB_ROLLED_BACK, subject, detail)


def _unaudited(log: ChangeLog, jobs: Mapping[str, Job | None], now: float) -> Iterator[str]:
    """The jobs' changes that the audit should have and has not, in words."""
    for job_id, job in jobs.items():
        entry = log.changes.get(job_id)
        if job is None or job.updated_at + RETENTION_S <= now or (entry is None and not log.is_whole):
            continue
        if entry is None or _revision(entry.after) < job.revision:
            yield f"it has no change of {job_id} to revision {job.revision}"


def _revision(after: Mapping[str, Any]) -> int:
    revision = after.get("revision", 0)
    return revision if isinstance(revision, int) else 0


def _shown(counts: Mapping[str, int]) -> str:
    return f"{counts['jobs']} jobs with {counts['executions_per_day']} executions a day"
