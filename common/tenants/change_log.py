"""The log of the tenants that the platform has changed, so that processes need not read each tenant to find out.

An entry is part of the change's own transaction. It stands under the time at which its writer decided, which is before
it can be seen: whoever reads the log reads LATE_COMMIT_S of what it has read before once more.
"""

from __future__ import annotations

from typing import Final

from common.storage import keys
from common.storage.tables import Table, Transaction
from common.timing.instants import DAY_S

# A transaction is tried again while others are in its way, and the clocks of two machines differ.
LATE_COMMIT_S: Final = 300
# Longer than any process trusts what it has read.
_KEPT_S: Final = DAY_S


def note(tx: Transaction, table: Table, tenant: str, now: float) -> None:
    """Have `tx`, which changes what the platform keeps of a tenant, tell everybody."""
    tx.put(table, {**keys.tenant_change(now, tenant), "expires_at": int(now) + _KEPT_S})


def changed_since(table: Table, at: float) -> set[str]:
    """The tenants whose changes were committed since `at`, and some that were changed shortly before."""
    changes = table.query(
        keys.TENANT_CHANGES,
        sk_between=keys.tenant_changes_since(at - LATE_COMMIT_S),
        attributes=("sk",),
    )
    return {keys.changed_tenant(change["sk"]) for change in changes}
