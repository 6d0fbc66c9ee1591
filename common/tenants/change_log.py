"""The log of tenants that the platform has changed. Processes read it instead of reading each tenant.

An entry is part of the change's own transaction. Its key is the time of the decision, which is before the commit.
A reader therefore reads the last LATE_COMMIT_S again.
"""

from __future__ import annotations

from typing import Final

from common.storage import keys
from common.storage.table import Table, Transaction
from common.timing.instants import DAY_S

# Conflicting transactions are retried, and the clocks of two machines differ.
LATE_COMMIT_S: Final = 300
# Longer than any process trusts its copies.
_KEPT_S: Final = DAY_S


def note(tx: Transaction, table: Table, tenant: str, now: float) -> None:
    """Add an entry for the tenant to `tx`, which changes the tenant."""
    tx.put(table, {**keys.tenant_change(now, tenant), "expires_at": int(now) + _KEPT_S})


def changed_since(table: Table, at: float) -> set[str]:
    """The tenants whose changes were committed since `at`, and some that were changed shortly before."""
    changes = table.query(
        keys.TENANT_CHANGES,
        sk_between=keys.tenant_changes_since(at - LATE_COMMIT_S),
        attributes=("sk",),
    )
    return {keys.changed_tenant(change["sk"]) for change in changes}
