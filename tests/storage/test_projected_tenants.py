"""The totals of the platform's tenants by hour."""

from __future__ import annotations

from common.projection.tenants import ProjectedTenants
from common.storage.table import Table

HOUR_AT = 1_763_694_000


def test_no_hour_has_no_totals(tables: dict[str, Table]) -> None:
    """DynamoDB refuses a range of keys that ends before it begins."""
    projected = ProjectedTenants(tables["runs"])
    for start, end in ((HOUR_AT, HOUR_AT), (HOUR_AT + 600, HOUR_AT), (HOUR_AT, HOUR_AT - 1)):
        assert projected.between(start, end).tenants == {}
    projected.between(HOUR_AT, HOUR_AT + 1)
