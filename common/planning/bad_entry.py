"""An entry of the due table that cannot be read or planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.storage import keys
from common.storage.wire import Item

# The attribute of an unreadable item that says when a tick reported it.
REPORTED: Final = "reported_at"


@dataclass(frozen=True, slots=True)
class BadEntry:
    """It affects only its job. `key` is set if it stays where each tick reads it; `reported_at` if a tick reported it.

    A tick reports it once, and renews the record for the operator each day.
    """

    tenant: str
    job_id: str
    problem: str
    key: keys.Key | None = None
    reported_at: int = 0

    @classmethod
    def staying(cls, item: Item, tenant: str, job_id: str, problem: str) -> BadEntry:
        """The bad entry of an item that stays."""
        return cls(tenant, job_id, problem, keys.key_of(item), int(item.get(REPORTED, 0)))
