"""Lets one process at a time remove what is over. Others leave a mark, and the one that removes begins once more.

Two removals at a time would only get in each other's way. A process that crashed holds the lease until it expires.
"""

from __future__ import annotations

from typing import Final

from common.storage import keys
from common.storage.expressions import Attribute
from common.storage.table import Table
from common.storage.wire import Item
from common.timing.instants import has_ended

# Longer than the function may run (serverless.yml).
LEASE_S: Final = 310
# The clocks of two machines may differ by so much.
_CLOCKS_S: Final = 600


class RemovalLease:
    """The lease, in the due table. Each method raises Busy."""

    def __init__(self, due: Table) -> None:
        self._due = due

    def take(self, now: float) -> bool:
        """Whether this process may remove. If not, the one that does begins once more."""

        def change(item: Item | None) -> tuple[Item, bool]:
            if item is None or has_ended(item.get("until"), int(now) + 1, LEASE_S + _CLOCKS_S):
                return {"until": int(now) + LEASE_S}, True
            return {**item, "again": True}, False

        return self._due.swap(keys.REMOVAL, change)[1]

    def release(self, now: float) -> bool:
        """Give the lease back. Returns False, and keeps it, if others left a mark since it was taken."""
        if self._due.delete_if(keys.REMOVAL, Attribute("again").is_absent):
            return True
        self._due.put({**keys.REMOVAL, "until": int(now) + LEASE_S})
        return False

    def drop(self) -> None:
        """Give the lease back, whatever others want."""
        self._due.delete(keys.REMOVAL)
