"""Tenants: what the platform stores about them, and how it changes. `common/platform/api_keys.py` has their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from msgspec import Struct, structs, to_builtins

from common.clock import Clock, SystemClock
from common.declared import read
from common.errors import AlreadyExists, Conflict, Damaged, InvalidInput, NotFound, RevisionMismatch
from common.ids import TENANT_ID_CHARS, check_id, check_name, check_note
from common.jobs.job import Job
from common.platform.api_keys import ApiKey, ApiKeys
from common.storage import expressions, keys, stored
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import Attribute, Condition
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.unreadable import Unreadable
from common.storage.wire import Item
from common.tenants import rules_cache
from common.tenants.allowed_targets import is_allowed, patterns_shown
from common.tenants.audit import AWS, Audit
from common.tenants.tenant import ACTIVE, DELETED, DELETING, SUSPENDED, Patterns, Tenant, TenantRules
from common.timing.compiled import compiled
from common.timing.cron import shortest_interval_s
from common.timing.schedule import AtTiming, EveryTiming, ManyTiming, Schedule


class Tenants:
    """The tenants and their keys. Use one instance per process; its `api_keys` caches keys."""

    def __init__(self, table: Table, clock: Clock | None = None) -> None:
        self._table = table
        self._clock = clock or SystemClock()
        self.api_keys = ApiKeys(table, self._clock)

    @property
    def audit(self) -> Audit:
        """Who changed what of the tenants and their keys."""
        return Audit(self._table)

    def create(
        self,
        tenant_id: str,
        name: str,
        now: float,
        settings: Mapping[str, Any] | None = None,
        *,
        by: str = AWS,
    ) -> Tenant:
        """Create a tenant; `settings` are some of SETTABLE in rules.py. Raises InvalidInput, AlreadyExists."""
        check_id("tenant_id", tenant_id, TENANT_ID_CHARS)
        new = Tenant(tenant_id=tenant_id, created_at=int(now))
        tenant = edited(new, {**(settings or {}), "name": name})
        tx = Transaction(self._table.client)
        # The name of a deleted tenant cannot be used again while its tombstone exists: some of its runs may be left.
        tx.put(self._table, {**keys.tenant(tenant_id), **tenant.to_item()}, self._table.absent)
        self._publish(tx, tenant, now)
        Audit(self._table).add(tx, tenant_id, by, "tenant.created", tenant_id, now, after=tenant.to_item())
        if tx.try_commit():
            raise AlreadyExists("tenant", tenant_id)
        return tenant

    def get(self, tenant_id: str) -> Tenant:
        """Raises NotFound."""
        item = self._table.get(keys.tenant(tenant_id))
        if item is None or item.get("state") == DELETED:
            raise NotFound("tenant", tenant_id)
        return stored.read(item, Tenant)

    def list_tenants(self, after: str = "", limit: int | None = None) -> Iterator[Tenant | Unreadable]:
        """All tenants after `after`, in the order of their ids, without their registered totals."""
        start = keys.tenant_listing(after) if after else None
        return map(_read, self._table.query(Query(keys.TENANTS, after=start, limit=limit)))

    def ids(self, limit: int) -> Iterator[str]:
        """The ids of all tenants, in order."""
        query = Query(keys.TENANTS, attributes=("sk",), limit=limit, consistent=False)
        return (item["sk"] for item in self._table.query(query))

    def with_counts(self, tenant_ids: Sequence[str]) -> list[Tenant]:
        """These tenants with their registered totals, by their ids; missing and damaged ones are left out."""
        items = self._table.get_many([keys.tenant(tenant_id) for tenant_id in tenant_ids])
        read = (_read(item) for item in items if item.get("state") != DELETED)
        tenants = [tenant for tenant in read if isinstance(tenant, Tenant)]
        return sorted(tenants, key=lambda tenant: tenant.tenant_id)

    def list_keys(self, tenant_id: str) -> list[ApiKey]:
        """The keys, oldest first, with those that are over for some days. Raises NotFound (the tenant)."""
        self.get(tenant_id)
        return self.api_keys.keys_of(tenant_id)

    def edit(
        self,
        tenant_id: str,
        changes: Mapping[str, Any],
        now: float,
        *,
        expected_revision: int | None = None,
        by: str = AWS,
    ) -> Tenant:
        """Change the given name and settings. Raises InvalidInput, NotFound, RevisionMismatch."""
        return self._change(
            tenant_id,
            lambda tenant: edited(tenant, changes, expected_revision),
            now,
            "tenant.changed",
            by,
        )

    def suspend(self, tenant_id: str, note: str, now: float, *, by: str = AWS) -> Tenant:
        """Stop its jobs and refuse its changes, everywhere within seconds. Raises NotFound."""
        note = check_note(note)
        return self._change(
            tenant_id,
            lambda tenant: structs.replace(tenant, note=note, state=SUSPENDED),
            now,
            "tenant.suspended",
            by,
        )

    def resume(self, tenant_id: str, now: float, *, by: str = AWS) -> Tenant:
        """Let its jobs run again; skipped executions stay skipped. Raises NotFound."""
        return self._change(
            tenant_id,
            lambda tenant: structs.replace(tenant, note="", state=ACTIVE),
            now,
            "tenant.resumed",
            by,
        )

    def _change(
        self, tenant_id: str, change: Callable[[Tenant], Tenant], now: float, action: str, by: str
    ) -> Tenant:
        def attempt() -> Tenant:
            before = self.get(tenant_id)
            if before.state == DELETING:
                raise Conflict(f"tenant {tenant_id!r} is being deleted")
            after = change(before)
            if after == before:
                return before
            after = structs.replace(after, revision=before.revision + 1)
            self._store(before, after, now, action, by)
            return after

        return retry_if_changed(attempt, f"tenant {tenant_id!r}", sleep=self._clock.sleep)

    def _store(self, before: Tenant, after: Tenant, now: float, action: str, by: str) -> None:
        """Write field by field: registrations change the counts in the same item."""
        fields = after.to_item()
        values = {name: value for name, value in fields.items() if value is not None}
        tx = Transaction(self._table.client)
        tx.update(
            self._table,
            keys.tenant(after.tenant_id),
            expressions.change(values, remove=[name for name in fields if name not in values]),
            unchanged(before),
        )
        self._publish(tx, after, now)
        Audit(self._table).add(
            tx, after.tenant_id, by, action, after.tenant_id, now, before=before.to_item(), after=fields
        )
        tx.commit()

    def _publish(self, tx: Transaction, tenant: Tenant, now: float) -> None:
        """Add what belongs to every change of the tenant's item."""
        rules_cache.note_change(tx, self._table, tenant.tenant_id, now)
        tx.put(self._table, {**keys.tenant_listing(tenant.tenant_id), **tenant.to_item()})


def _read(item: Item) -> Tenant | Unreadable:
    try:
        return stored.read(item, Tenant)
    except Damaged as error:
        return Unreadable("tenants", keys.key_of(item), str(error)[:300])


def edited(tenant: Tenant, changes: Mapping[str, Any], expected_revision: int | None = None) -> Tenant:
    """The tenant with the given name and settings. Pure. Raises InvalidInput, RevisionMismatch."""
    names = ("name", *EDITABLE)
    if unknown := sorted(set(changes) - set(names)):
        name = unknown[0]
        raise InvalidInput(name, "is not a known field", value=changes[name], accepted=", ".join(names))
    if expected_revision not in (None, tenant.revision):
        raise RevisionMismatch(tenant.tenant_id, expected_revision, tenant.revision, kind="tenant")
    name = check_name(changes["name"]) if "name" in changes else tenant.name
    return structs.replace(changed(tenant, changes), name=name)


def unchanged(tenant: Tenant) -> Condition:
    """The condition that the tenant did not change since it was read."""
    return Attribute("revision") == tenant.revision


# In one request.
MAX_JOBS_READ: Final = 2_000
TARGETS_NAMED: Final = 20


@dataclass(slots=True)
class Effects:
    """The numbers of jobs that a change of rules newly affects, among the read ones.

    `not_allowed` counts jobs by their target: these stop running. Jobs with a too short interval or a too large payload
    go on, and can no longer be changed without becoming valid.
    """

    jobs_read: int = 0
    complete: bool = True
    not_allowed: Counter[str] = field(default_factory=Counter)
    interval_too_short: int = 0
    payload_too_large: int = 0


def effects_of(before: Tenant, after: Tenant, jobs: Iterable[Job]) -> Effects:
    """The effects on the first MAX_JOBS_READ jobs; more of them make it incomplete."""
    effects = Effects()
    for job in jobs:
        if effects.jobs_read == MAX_JOBS_READ:
            effects.complete = False
            break
        effects.jobs_read += 1
        if is_allowed(job.spec.target, before.allowed_targets) and not is_allowed(
            job.spec.target, after.allowed_targets
        ):
            effects.not_allowed[_reached(job)] += 1
        interval_s = _interval_s(job.schedule)
        if interval_s is not None:
            shortest_before, shortest = before.quotas.shortest_interval_s, after.quotas.shortest_interval_s
            effects.interval_too_short += shortest_before <= interval_s < shortest
        size = job.payload.bytes
        effects.payload_too_large += after.quotas.payload_bytes < size <= before.quotas.payload_bytes
    return effects


def overused(after: Tenant) -> dict[str, dict[str, int]]:
    """The quotas of which the tenant would use more than it has: it keeps its jobs, and can add none."""
    used = {"jobs": after.jobs, "executions_per_day": after.executions_per_day}
    return {
        name: {"used": count, "allowed": getattr(after.quotas, name)}
        for name, count in used.items()
        if count > getattr(after.quotas, name)
    }


def _reached(job: Job) -> str:
    target = str(job.spec.target.get("arn") or job.spec.target.get("url"))
    return f"{target} with {job.spec.target['role_arn']}" if job.spec.target.get("role_arn") else target


def _interval_s(schedule: Schedule) -> int | None:
    timing = schedule.timing
    if isinstance(timing, ManyTiming):
        return min((each for each in map(_interval_s, schedule.parts) if each is not None), default=None)
    if isinstance(timing, AtTiming):
        return None
    if isinstance(timing, EveryTiming):
        return timing.interval_s
    return shortest_interval_s(compiled(timing))


SETTABLE: Final = ("allowed_targets", "quotas", "retention_days", "spread_s")
# A change may also add single patterns to `allowed_targets`, or remove them.
EDITABLE: Final = (*SETTABLE, "add_targets", "remove_targets")
Rules = TypeVar("Rules", bound=TenantRules)


class _Edits(Struct):
    add_targets: Patterns = []
    remove_targets: Patterns = []


def changed(rules: Rules, changes: Mapping[str, Any]) -> Rules:
    """The rules with some of `EDITABLE` applied, and only the given quotas replaced; None sets the default.

    Raises InvalidInput.
    """
    before = to_builtins(rules)
    settings = {name: changes.get(name, before[name]) for name in SETTABLE}
    if isinstance(settings["quotas"], Mapping):
        settings["quotas"] = _without_none(before["quotas"] | settings["quotas"])
    if edits := {name: changes[name] for name in ("add_targets", "remove_targets") if name in changes}:
        if "allowed_targets" in changes:
            accepted = "either it, or add_targets and remove_targets"
            raise InvalidInput("allowed_targets", "replaces all patterns", accepted=accepted)
        edited = read(_without_none(edits), _Edits, "the change")
        settings["allowed_targets"] = _edited(rules.allowed_targets, edited)
    new = read(_without_none(settings), TenantRules, "the rules")
    return structs.replace(
        rules,
        allowed_targets=list(dict.fromkeys(new.allowed_targets)),
        quotas=new.quotas,
        retention_days=new.retention_days,
        spread_s=new.spread_s,
    )


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is left out gets its default."""
    return {name: value for name, value in values.items() if value is not None}


def _edited(patterns: list[str], edits: _Edits) -> list[str]:
    for at, pattern in enumerate(edits.remove_targets):
        if pattern not in patterns:
            raise InvalidInput(
                f"remove_targets.{at}",
                "is not one of the tenant's patterns",
                value=pattern,
                accepted=patterns_shown(patterns),
            )
    return [*(pattern for pattern in patterns if pattern not in edits.remove_targets), *edits.add_targets]
