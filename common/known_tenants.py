"""The tenants' rules as a process knows them: one read per tenant and interval, however many ask at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, Protocol

from common import keys
from common.tables import Table
from common.tenant_rules import TenantRules

# What the platform changes takes effect everywhere within this: suspending a tenant, say.
TRUSTED_FOR_S: Final = 15
_KEPT: Final = 10_000
# Tenants share locks, so that there are not as many as tenants; who waits for another's read waits for milliseconds.
_LOCKS: Final = 64


class RulesOf(Protocol):
    """Where rules come from."""

    def rules(self, tenant: str, now: float) -> TenantRules | None:
        """Those of a tenant; None if there is no such tenant."""


class KnownTenants:
    """Rules out of the tenants table, at most TRUSTED_FOR_S old. One instance lives as long as its process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kept: OrderedDict[str, tuple[float, TenantRules | None]] = OrderedDict()
        self._lock = threading.Lock()
        self._reading = [threading.Lock() for _ in range(_LOCKS)]
        # How often the table was read.
        self.reads = 0

    def rules(self, tenant: str, now: float) -> TenantRules | None:
        """As of TRUSTED_FOR_S ago at most; also that there is no such tenant is remembered."""
        if (kept := self._fresh(tenant, now)) is not None:
            return kept[1]
        with self._reading[hash(tenant) % _LOCKS]:
            if (kept := self._fresh(tenant, now)) is not None:  # read while we waited
                return kept[1]
            # Half the price, and less stale than what is trusted anyway.
            return self._read(tenant, now, consistent=False)

    def read(self, tenant: str, now: float) -> TenantRules | None:
        """As of now."""
        return self._read(tenant, now, consistent=True)

    def _read(self, tenant: str, now: float, *, consistent: bool) -> TenantRules | None:
        item = self._table.get(keys.tenant(tenant), consistent=consistent)
        rules = TenantRules.from_item(item) if item else None
        with self._lock:
            self.reads += 1
            self._kept[tenant] = (now, rules)
            self._kept.move_to_end(tenant)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return rules

    def _fresh(self, tenant: str, now: float) -> tuple[float, TenantRules | None] | None:
        with self._lock:
            kept = self._kept.get(tenant)
        return kept if kept and kept[0] <= now < kept[0] + TRUSTED_FOR_S else None
