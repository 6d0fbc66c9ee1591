"""A process's cache of the tenants' rules: one read per tenant, and one read of the change log per interval.

With thousands of tenants, most runs belong to a tenant that was not used for seconds. So cached rules stay valid while
the change log, which is read every TRUSTED_FOR_S, does not name the tenant. If the log cannot be read, they are valid
for TRUSTED_FOR_S only.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Final

from msgspec import ValidationError, convert

from common import telemetry
from common.cache import Cache, JointReads, Kept
from common.errors import Damaged
from common.storage import keys
from common.storage.stored import read
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import DAMAGE
from common.tenants.allowed_targets import Block
from common.tenants.tenant import TenantRules
from common.timing.instants import DAY_S

# Changes by the platform, such as a suspension, take effect everywhere within this time.
TRUSTED_FOR_S: Final = 15
# Cached rules expire after this time even if the log does not name the tenant: an edit by hand writes no log.
_MAX_TRUST_S: Final = 3_600
_MAX_TENANTS: Final = 10_000
# Conflicting transactions are retried, and the clocks of two machines differ.
LATE_COMMIT_S: Final = 300
# Longer than any process trusts its copies.
_LOGGED_S: Final = DAY_S


class KnownTenants:
    """Rules from the tenants table, at most TRUSTED_FOR_S old. Use one instance per process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kept: Cache[str, TenantRules | None] = Cache(_MAX_TRUST_S, _MAX_TENANTS)
        self._lock = threading.Lock()
        # The threads of one tenant share one read, also if it fails, and never wait for another tenant's.
        self._reading: JointReads[str, TenantRules | None] = JointReads()
        self._asking = threading.Lock()
        self._asked_at = -math.inf
        # The log was read up to this instant, and named these tenants.
        self._known_until = -math.inf
        self._named: set[str] = set()
        self._holding = threading.Lock()
        self._blocks: Sequence[Block] = ()
        self._holds_at = -math.inf
        # Counts reads of tenants.
        self.reads = 0

    def rules(self, tenant: str, now: float) -> TenantRules | None:
        """The rules, at most TRUSTED_FOR_S old. A missing tenant is cached for the same time."""
        if kept := self._trusted(tenant, now):
            return kept.value

        def read_rules() -> TenantRules | None:
            if kept := self._trusted(tenant, now):  # another thread has read them since
                return kept.value
            # An eventually consistent read costs half. If it misses a change, the log names the tenant soon.
            return self._read(tenant, now, consistent=tenant in self._named)

        return self._reading.get(tenant, read_rules)

    def learn(self, tenants: Iterable[str], now: float) -> set[str]:
        """Read the rules of these tenants together. Returns those whose rules are known now.

        The others are read when asked for: they have just changed, are throttled, or were not found.
        """
        names = set(tenants)
        known = {tenant for tenant in names if self._trusted(tenant, now)}
        unknown = {keys.tenant(name)["pk"]: name for name in names - known - self._named}
        for item in self._table.get_some([keys.tenant(name) for name in unknown.values()], consistent=False):
            with suppress(*DAMAGE):  # its own read raises it
                self._kept.put(unknown[item["pk"]], read(item, TenantRules), now)
                known.add(unknown[item["pk"]])
        with self._lock:
            self.reads += len(unknown)
        return known

    def blocks(self, now: float) -> Sequence[Block]:
        """The blocks, at most TRUSTED_FOR_S old. If they cannot be read again, the ones before stay."""
        with self._holding:
            if abs(now - self._holds_at) < TRUSTED_FOR_S:
                return self._blocks
            is_first = self._holds_at == -math.inf
            with nullcontext() if is_first else telemetry.tolerated("the blocks cannot be read"):
                self._blocks = blocked_targets(self._table, consistent=False)
            self._holds_at = now
            return self._blocks

    def read(self, tenant: str, now: float) -> TenantRules | None:
        """The current rules."""
        return self._read(tenant, now, consistent=True)

    def _read(self, tenant: str, now: float, *, consistent: bool) -> TenantRules | None:
        key = keys.tenant(tenant)
        item = self._table.get(key, consistent=consistent)
        if (
            item is None and not consistent
        ):  # an eventually consistent read can miss a new tenant, and its run would be skipped
            item = self._table.get(key)
        rules = read(item, TenantRules) if item else None
        with self._lock:
            self.reads += 1
        self._kept.put(tenant, rules, now)
        return rules

    def _trusted(self, tenant: str, now: float) -> Kept[TenantRules | None] | None:
        kept = self._kept.whatever_age(tenant)
        if kept and abs(now - kept.at) < TRUSTED_FOR_S:
            return kept
        kept = self._kept.get(tenant, now)
        if kept is None or kept.value is None or not self._log_is_known(now):
            return None
        return self._kept.get(tenant, now)  # None if the log named the tenant

    def _log_is_known(self, now: float) -> bool:
        """Remove changed tenants from the cache, every TRUSTED_FOR_S. False if the log could not be read."""
        with self._asking:
            if abs(now - self._asked_at) >= TRUSTED_FOR_S:
                self._asked_at = now  # also on failure: an outage must not cost a request for each run
                # Each tenant can still be read.
                with telemetry.tolerated("the log of changed tenants cannot be read"):
                    self._forget_changed(now)
            return abs(now - self._known_until) < TRUSTED_FOR_S

    def _forget_changed(self, now: float) -> None:
        # The clock was set back, so the last read asked for too little.
        since = self._known_until if self._known_until <= now else -math.inf
        self._named = changed_since(self._table, max(since, now - _MAX_TRUST_S))
        for tenant in self._named:
            self._kept.forget(tenant)
        self._known_until = now


def note_change(tx: Transaction, table: Table, tenant: str, now: float) -> None:
    """Add an entry for the tenant to `tx`, which changes the tenant."""
    tx.put(table, {**keys.tenant_change(now, tenant), "expires_at": int(now) + _LOGGED_S})


def changed_since(table: Table, at: float) -> set[str]:
    """The tenants whose changes were committed since `at`, and some that were changed shortly before."""
    changes = table.query(
        Query(
            keys.TENANT_CHANGES,
            sk_between=keys.tenant_changes_since(at - LATE_COMMIT_S),
            attributes=("sk",),
        )
    )
    return {keys.changed_tenant(change["sk"]) for change in changes}


def blocked_targets(table: Table, *, consistent: bool = True) -> list[Block]:
    """The blocks in the tenants table, the oldest first."""
    return blocks_of(table.get(keys.BLOCKS, consistent=consistent))


def blocks_of(item: Mapping[str, Any] | None) -> list[Block]:
    """The blocks of their item; None if there is none. Raises Damaged."""
    try:
        return convert((item or {}).get("blocks", []), list[Block])
    except ValidationError as error:
        raise Damaged(f"the blocks of targets are damaged: {error}") from error
