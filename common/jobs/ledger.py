"""The tenant's counts and audit, which every change of a job updates in the job's own transaction.

The counts are on the tenant's item, with a condition. Concurrent registrations can never exceed a quota together, and
none succeeds after the tenant is suspended or its deletion has begun. The cost is contention: registrations of ONE
tenant write that item one after the other. A transaction that conflicts is tried again (`JobStore.change`), so a
tenant is limited to some tens of registrations a second. Other tenants never wait. Changes that move no count (pausing,
resuming, another payload) do not write the item.

Here is also which shards of the due index hold the jobs of a change.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct, json, to_builtins
from msgspec.structs import replace

from common import telemetry
from common.errors import NotFound, QuotaExceeded, TenantSuspended
from common.jobs.job import ACTIVE as ACTIVE_JOB
from common.jobs.job import CORRUPT, DELETED, PAUSED, Job, exists
from common.jobs.preconditions import JobChanges
from common.planning.directory import Directory, Listing
from common.planning.pace import pace_number, pace_of
from common.storage import keys
from common.storage.expressions import PRESENT, Attribute, change
from common.storage.stored import read
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.tenants.audit import Audit, HmacOf
from common.tenants.rules_cache import KnownTenants
from common.tenants.tenant import ACTIVE, SUSPENDED, Quotas, TenantRules
from common.timing.compiled import compiled
from common.timing.instants import DAY_S
from common.timing.schedule import AtTiming, EveryTiming, ManyTiming, Schedule

COUNTED: Final = ("jobs", "executions_per_day")
# What the audit keeps of a job besides its definition.
_AUDITED: Final = ("state", "note", "revision", "schedule_revision")


@dataclass(frozen=True, slots=True)
class TenantLedger:
    """The tenants table as registrations use it."""

    table: Table
    known: KnownTenants
    # Only the API has the key.
    hmac_of: HmacOf = lambda text, now: None

    def rules(self, tenant: str, now: float) -> TenantRules:
        """The current rules, so that a change by the platform applies at once. Raises NotFound, TenantSuspended."""
        return require_active(self.known.read(tenant, now), tenant)

    def count(self, tx: Transaction, tenant: str, moved: JobChanges, now: float) -> None:
        """Add the changes of the counts to `tx`, if there are any. Raises QuotaExceeded if they could never fit."""
        deltas = {name: delta for name, delta in deltas_of(moved).items() if delta}
        if not deltas:
            return
        condition, quotas = PRESENT, None
        if any(delta > 0 for delta in deltas.values()):
            condition &= Attribute("state").is_absent | (Attribute("state") == ACTIVE)
            quotas = require_active(self.known.rules(tenant, now), tenant).quotas
        for name, delta in deltas.items():
            if delta > 0 and quotas is not None:
                room = getattr(quotas, name) - delta
                if room < 0:
                    raise self._exceeded(tenant, name, delta)
                condition &= Attribute(name).is_absent | (Attribute(name) <= room)
        tx.update(self.table, keys.tenant(tenant), change(add=deltas), condition)

    def check_room(self, tenant: str, moved: JobChanges, now: float) -> None:
        """Find out why changes were refused; returns if they fit now. Raises what `count` raises, and NotFound."""
        self.room(tenant, now).take(moved)

    def room(self, tenant: str, now: float) -> Room:
        """The room in the quotas now. Raises NotFound, TenantSuspended."""
        quotas = self.rules(tenant, now).quotas
        item = self.table.get(keys.tenant(tenant)) or {}
        return Room(quotas, {name: item.get(name, 0) for name in COUNTED})

    def _exceeded(self, tenant: str, quota: str, delta: int) -> QuotaExceeded:
        item = self.table.get(keys.tenant(tenant)) or {}
        most = getattr(read(item, TenantRules).quotas, quota)
        return QuotaExceeded(quota, most, item.get(quota, 0), delta)

    def audit(self, tx: Transaction, by: str, old: Job | None, new: Job, now: float) -> None:
        """Add an audit entry of the change to `tx`."""
        before = _audited(old) if old and exists(old) else {}
        after = _audited(new) if new.state != DELETED else {}
        action = f"job.{_action(old, new)}"
        times = times_before(old, new)
        sides = {"before": before, "after": after}
        audit, subject = Audit(self.table), new.job_id
        audit.add(tx, new.tenant, by, action, subject, now, **sides, times=times, hmac_of=self.hmac_of)


@dataclass(frozen=True, slots=True)
class Room:
    """A tenant's quotas and its use of them, while a request's changes are added one after the other."""

    quotas: Quotas
    used: dict[str, int]

    def take(self, moved: JobChanges) -> None:
        """Count the changes, all of them or none. Raises QuotaExceeded."""
        deltas = deltas_of(moved)
        for name, delta in deltas.items():
            most = getattr(self.quotas, name)
            if delta > 0 and self.used[name] + delta > most:
                raise QuotaExceeded(name, most, self.used[name], delta)
        for name, delta in deltas.items():
            self.used[name] += delta


def require_active(rules: TenantRules | None, tenant: str) -> TenantRules:
    """The rules of a tenant that may make changes. Raises NotFound, TenantSuspended."""
    if rules is None or rules.state not in (ACTIVE, SUSPENDED):
        raise NotFound("tenant", tenant)
    if rules.state == SUSPENDED:
        raise TenantSuspended(
            f"the platform has suspended tenant {tenant!r}; it can look and change nothing (`minute8 quotas` says why)"
        )
    return rules


def most_per_day(schedule: Schedule) -> int:
    """The most executions of a schedule on one day, without clock changes. The quota must have room for this number.

    Exclusions, bounds and days without fires are ignored, so the estimate is cheap and never too low.
    """
    timing = schedule.timing
    if isinstance(timing, ManyTiming):
        return sum(map(most_per_day, schedule.parts))
    if isinstance(timing, AtTiming):
        return 1
    if isinstance(timing, EveryTiming):
        return -(-DAY_S // timing.interval_s)
    cron = compiled(timing)
    return len(cron.seconds) * cron.minutes.bit_count() * cron.hours.bit_count()


def deltas_of(moved: JobChanges) -> dict[str, int]:
    """The difference that the changes make to each count. Pure."""
    counts = [(counted(old), counted(new)) for old, new in moved]
    return {name: sum(after[name] - before[name] for before, after in counts) for name in COUNTED}


def counted(job: Job | None) -> dict[str, int]:
    """The counts of one job. A paused job counts as an active one, so that it can always be resumed."""
    if job is None or job.state == DELETED:
        return dict.fromkeys(COUNTED, 0)
    return {"jobs": 1, "executions_per_day": most_per_day(job.schedule)}


def _action(old: Job | None, new: Job) -> str:
    if new.state == DELETED:
        return "deleted"
    if old is None or old.state == DELETED:
        return "created"
    if old.state != new.state and old.state != CORRUPT:
        return {PAUSED: "paused", ACTIVE_JOB: "resumed"}[new.state]
    return "changed"


def _audited(job: Job) -> dict[str, Any]:
    """What the audit compares: the definition, with where a large payload is, and the job's state."""
    return {
        **to_builtins(job.spec),
        "payload": job.payload.attribute,
        **{name: getattr(job, name) for name in _AUDITED},
    }


class JobTimes(Struct, frozen=True, array_like=True):
    """A job's state (`active` or `paused`) and schedule. Nothing fires before `effective_at`.

    The audit entry of a change keeps the times before the change, so the due set of the past is known.
    """

    state: str
    schedule: Schedule
    effective_at: int
    schedule_revision: int

    @classmethod
    def of(cls, job: Job | None) -> JobTimes | None:
        """None if there is no such job."""
        if job is None or not exists(job):
            return None
        return cls(job.state, job.schedule, job.effective_at, job.schedule_revision)


def times_before(old: Job | None, new: Job) -> str:
    """The text in an audit entry: the times before a change, which `read_times` reads. Empty: no change."""
    before = JobTimes.of(old)
    return "" if before == JobTimes.of(new) else json.encode(before).decode()


# The inverse. Raises one of DAMAGE.
read_times: Final = json.Decoder(JobTimes | None).decode


class ShardChoice:
    """Picks the shards, opens new ones before the change is committed, and removes those that it leaves empty."""

    def __init__(self, directory: Directory, rng: random.Random) -> None:
        self._directory = directory
        self._rng = rng
        self._tries = 0
        # The entries that each shard gains, or loses (negative).
        self._entries: Counter[tuple[str, int]] = Counter()
        self._may_be_empty: set[tuple[str, int]] = set()

    def place(self, moved: Sequence[tuple[Job | None, Job]], conflicts: int) -> list[tuple[Job | None, Job]]:
        """The jobs with their shards; jobs of one group and pace get the same shard. Raises TransactionConflict."""
        group_shards: dict[tuple[str, int], Listing] = {}
        # Of each job the group and the pace in which it needs a shard; None: it needs no other one.
        kinds = [None if not new.group or _stays(old, new) else (new.group, _pace(new)) for old, new in moved]
        for kind in dict.fromkeys(kinds):
            if kind:
                group, pace = kind
                group_shards[kind] = self._directory.pick(
                    group, self._rng, conflicts, pace=pace, consistent=self._tries > 0
                )
        self._tries += 1
        unlisted = [choice for choice in group_shards.values() if not choice.is_open]
        self._may_be_empty |= {(choice.shard.group, choice.shard.shard) for choice in unlisted}
        self._directory.open(unlisted)
        placed: list[tuple[Job | None, Job]] = []
        for (old, new), kind in zip(moved, kinds, strict=True):
            if kind:
                new = replace(new, shard=group_shards[kind].shard.shard)
            elif old and new.group:
                new = replace(new, shard=old.shard)
            placed.append((old, new))
        return placed

    def count(self, tx: Transaction, placed: Sequence[tuple[Job | None, Job]]) -> None:
        """Add the changed numbers of entries to `tx`."""
        self._entries.clear()
        for old, new in placed:
            if moves(old, new):
                if old and old.group:
                    self._entries[old.group, old.shard] -= 1
                if new.group:
                    self._entries[new.group, new.shard] += 1
        for (group, shard), gained in self._entries.items():
            if gained:
                self._directory.count(tx, group, shard, gained)

    def committed(self) -> None:
        """Note which shards may be empty, after what `count` added is stored."""
        grown = {name for name, gained in self._entries.items() if gained > 0}
        shrunk = {name for name, gained in self._entries.items() if gained < 0}
        self._may_be_empty = self._may_be_empty - grown | shrunk

    def tidy(self) -> None:
        """Remove the shards that the change left empty, also one that failed: no tick may look at them before days."""
        if not self._may_be_empty:
            return
        with telemetry.tolerated("empty shards are left to the tick that looks at them next"):
            self._directory.drop_if_empty(sorted(self._may_be_empty))


def moves(old: Job | None, new: Job) -> bool:
    """Whether a change puts the job's entry into another shard, or takes it away."""
    return old is None or (old.group, old.shard) != (new.group, new.shard)


def _stays(old: Job | None, new: Job) -> bool:
    if old is None or not new.group or old.group != new.group:
        return False
    return pace_of(old.shard) == _pace(new)


def _pace(job: Job) -> int:
    """The number of the job's pace, by which its shard is found; 0 without one."""
    return pace_number(job.tenant, job.schedule.pace)
