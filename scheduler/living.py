"""Which tenants are not being deleted: what is projected of the others is removed."""

from __future__ import annotations

from typing import Final

from common.clock import Clock
from common.storage import keys
from common.storage.table import Query, Table
from common.tenants.states import ACTIVE, SUSPENDED

# The removal of a tenant waits for longer than this after its beginning (common/platform/deletion.py).
TRUSTED_S: Final = 30
_READ_AGAIN_AFTER_S: Final = 15
# Of tenants without an item.
_MAX_NAMED: Final = 5


class LivingTenants:
    """For one tick. The list of tenants costs a sixteenth of reading each tenant's own item."""

    def __init__(self, tenants: Table, clock: Clock) -> None:
        self._tenants = tenants
        self._clock = clock
        self._states: dict[str, str] = {}
        self._read_at = float("-inf")

    @property
    def trusted_until(self) -> float:
        """Until then what was found may be written."""
        return self._read_at + TRUSTED_S

    def listed(self) -> list[str]:
        """All of them, as of some seconds ago."""
        if self._clock.now() > self._read_at + _READ_AGAIN_AFTER_S:
            self._read_at = self._clock.now()
            query = Query(keys.TENANTS, attributes=("sk", "state"), consistent=False)
            self._states = {item["sk"]: item.get("state", ACTIVE) for item in self._tenants.query(query)}
        return [tenant for tenant, state in self._states.items() if state in (ACTIVE, SUSPENDED)]

    def of(self, tenants: set[str], problems: list[str]) -> set[str]:
        """Those of some tenants, as of some seconds ago. `problems` gets names of tenants that have lost their items.

        What is deleted leaves a tombstone.
        """
        living = tenants & set(self.listed())
        return living | self.now(tenants - self._states.keys(), problems)

    def now(self, tenants: set[str], problems: list[str]) -> set[str]:
        """The same by the tenants' own items."""
        items = self._tenants.get_many([keys.tenant(tenant) for tenant in sorted(tenants)], consistent=False)
        states = {item["pk"]: item.get("state", ACTIVE) for item in items}
        without_item = sorted(tenants - states.keys())
        problems += [f"{tenant}: it has no item among the tenants" for tenant in without_item[:_MAX_NAMED]]
        return {tenant for tenant in tenants if states.get(tenant, ACTIVE) in (ACTIVE, SUSPENDED)}
