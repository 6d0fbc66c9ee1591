"""The tenants' rules as a process knows them: one read per tenant, and one of what has changed per interval.

With thousands of tenants nearly every run is of one that was not seen for seconds. So rules stay trusted while the log
of changes, asked every TRUSTED_FOR_S, does not name their tenant; where it cannot be asked, for TRUSTED_FOR_S alone.
"""

from __future__ import annotations

import logging
import math
import threading
from typing import Final, Protocol

from common.cache import Cache, Kept
from common.storage import keys
from common.storage.tables import Table
from common.tenants import change_log
from common.tenants.rules import TenantRules

# What the platform changes takes effect everywhere within this: suspending a tenant, say.
TRUSTED_FOR_S: Final = 15
# The longest that rules are trusted which the log does not name. It bounds what a writer that knows no log (an earlier
# version, while a new one is deployed) can leave behind.
_LONGEST_TRUST_S: Final = 3_600
_KEPT: Final = 10_000
# Tenants share locks, so that there are not as many as tenants; who waits for another's read waits for milliseconds.
_LOCKS: Final = 64
_log = logging.getLogger("minute8.known_tenants")


class RulesOf(Protocol):
    """Where rules come from."""

    def rules(self, tenant: str, now: float) -> TenantRules | None:
        """Those of a tenant; None if there is no such tenant."""


class KnownTenants:
    """Rules out of the tenants table, as of TRUSTED_FOR_S ago at most. One instance lives as long as its process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kept: Cache[str, TenantRules | None] = Cache(_LONGEST_TRUST_S, _KEPT)
        self._lock = threading.Lock()
        self._reading = [threading.Lock() for _ in range(_LOCKS)]
        self._asking = threading.Lock()
        self._asked_at = -math.inf
        # Up to when the log was read, and whom it named then.
        self._known_until = -math.inf
        self._named: set[str] = set()
        # How often a tenant was read.
        self.reads = 0

    def rules(self, tenant: str, now: float) -> TenantRules | None:
        """As of TRUSTED_FOR_S ago at most; also that there is no such tenant is remembered, for so long."""
        if kept := self._trusted(tenant, now):
            return kept.value
        with self._reading[hash(tenant) % _LOCKS]:
            if kept := self._trusted(tenant, now):  # read while we waited
                return kept.value
            # Half the price. A replica may lag behind a change; then the log names the tenant, soon if not yet.
            return self._read(tenant, now, consistent=tenant in self._named)

    def read(self, tenant: str, now: float) -> TenantRules | None:
        """As of now."""
        return self._read(tenant, now, consistent=True)

    def _read(self, tenant: str, now: float, *, consistent: bool) -> TenantRules | None:
        key = keys.tenant(tenant)
        item = self._table.get(key, consistent=consistent)
        if (
            item is None and not consistent
        ):  # a replica may not have a new tenant yet, and its run would be skipped
            item = self._table.get(key)
        rules = TenantRules.from_item(item) if item else None
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
        return self._kept.get(tenant, now)  # forgotten, if the log names it

    def _log_is_known(self, now: float) -> bool:
        """Forget the tenants that were changed, every TRUSTED_FOR_S; False where it is not known who was."""
        with self._asking:
            if abs(now - self._asked_at) >= TRUSTED_FOR_S:
                self._asked_at = now  # also if it fails: an outage is not to cost a request for each run
                try:
                    self._forget_changed(now)
                except Exception:  # noqa: BLE001  whatever it is, each tenant can still be read
                    _log.exception("the log of changed tenants cannot be read")
            return abs(now - self._known_until) < TRUSTED_FOR_S

    def _forget_changed(self, now: float) -> None:
        # A clock that was ahead has asked for too little.
        since = self._known_until if self._known_until <= now else -math.inf
        self._named = change_log.changed_since(self._table, max(since, now - _LONGEST_TRUST_S))
        for tenant in self._named:
            self._kept.forget(tenant)
        self._known_until = now
