"""Lets one process at a time remove what is over. Others leave a mark, and the one that removes begins once more.

Two removals at a time would only get in each other's way. A process that crashed holds the lease until it expires.
"""

from __future__ import annotations

from typing import Final

from common.storage import keys
from common.storage.expressions import ABSENT, Attribute, change
from common.storage.table import Table

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
            free = ABSENT | (Attribute("until") <= int(now))
            if self._due.put_if({**keys.REMOVAL, "until": int(now) + LEASE_S}, free):
                return True
            # Refused: it was released or has expired meanwhile.
            if self._due.update_if(keys.REMOVAL, change({"again": True}), Attribute("until") > int(now)):
                return False
        return False

    def release(self, now: float) -> bool:
        """Give the lease back. Returns False, and keeps it, if others left a mark since it was taken."""
        if self._due.delete_if(keys.REMOVAL, Attribute("again").is_absent):
            return True
        self._due.put({**keys.REMOVAL, "until": int(now) + LEASE_S})
        return False

    def drop(self) -> None:
        """Give the lease back, whatever others want."""
        self._due.delete(keys.REMOVAL)
