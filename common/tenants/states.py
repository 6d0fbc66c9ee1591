"""The states of a tenant, and a condition on them."""

from __future__ import annotations

from typing import Final, Literal

from common.storage.expressions import PRESENT, Attribute

State = Literal["active", "suspended", "deleting", "deleted"]
ACTIVE: Final = "active"
SUSPENDED: Final = "suspended"
DELETING: Final = "deleting"
# A deleted tenant leaves a tombstone: its name cannot be used again while some of its items or messages may be left.
DELETED: Final = "deleted"

# An item is a tenant's, and the tenant is not being deleted.
IS_THERE: Final = PRESENT & (Attribute("state").is_absent | Attribute("state").is_one_of(ACTIVE, SUSPENDED))
