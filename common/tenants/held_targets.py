"""Reads which targets the platform holds. `holds.py` changes that; executors only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.storage import keys
from common.storage.table import Table
from common.tenants.allowed_targets import Hold


def held_targets(table: Table, *, consistent: bool = True) -> list[Hold]:
    """The holds in the tenants table, the oldest first."""
    return from_item(table.get(keys.holds(), consistent=consistent))


def from_item(item: Mapping[str, Any] | None) -> list[Hold]:
    """The holds of their item; None if there is none."""
    return [Hold(**{**one, "held_at": int(one["held_at"])}) for one in (item or {}).get("holds", [])]
