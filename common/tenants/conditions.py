"""Conditions on a tenant's item."""

from __future__ import annotations

from typing import Final

from common.storage.wire import Expression
from common.tenants.states import ACTIVE, SUSPENDED

# The condition that an item is that of a tenant which is not being deleted. Items of old versions have no state.
IS_THERE: Final = Expression(
    "attribute_exists(pk) AND (attribute_not_exists(#state) OR #state IN (:active, :suspended))",
    {":active": ACTIVE, ":suspended": SUSPENDED},
)
