"""The states of a tenant."""

from __future__ import annotations

from typing import Final, Literal

State = Literal["active", "suspended", "deleting", "deleted"]
ACTIVE: Final = "active"
SUSPENDED: Final = "suspended"
DELETING: Final = "deleting"
# A deleted tenant leaves a tombstone: its name cannot be used again while some of its items or messages may be left.
DELETED: Final = "deleted"
