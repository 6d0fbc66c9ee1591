"""Lets one process at a time remove what is over. Others leave a mark, and the one that removes begins once more.

Two removals at a time would only get in each other's way. A process that crashed holds the lease until it expires.
"""

from __future__ import annotations

from typing import Final

from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table
from common.storage.wire import Expression

# Longer than the function may run (serverless.yml).
LEASE_S: Final = 310
_MAX_TRIES: Final = 3


class RemovalLease:
    """The lease, in the due table. Each method raises Busy."""

    def __init__(self, due: Table) -> None:
        self._due = due

    def take(self, now: float) -> bool:
        """Whether this process may remove. If not, the one that does begins once more."""
        for _ in range(_MAX_TRIES):
            try:
                free = Expression("attribute_not_exists(pk) OR #until <= :now", {":now": int(now)})
                self._due.put({**keys.REMOVAL, "until": int(now) + LEASE_S}, free)
                return True
            except ConditionFailed:
                pass
            try:
                self._due.update(
                    keys.REMOVAL,
                    Expression("SET #again = :true", {":true": True}),
                    Expression("#until > :now", {":now": int(now)}),
                )
                return False
            except ConditionFailed:  # released or expired meanwhile
                continue
        return False

    def release(self, now: float) -> bool:
        """Give the lease back. Returns False, and keeps it, if others left a mark since it was taken."""
        try:
            self._due.delete(keys.REMOVAL, Expression("attribute_not_exists(#again)", {}))
            return True
        except ConditionFailed:
            self._due.put({**keys.REMOVAL, "until": int(now) + LEASE_S})
            return False

    def drop(self) -> None:
        """Give the lease back, whatever others want."""
        self._due.delete(keys.REMOVAL)
