"""A page of the audit, on each engine, since DynamoDB provides its bounds and order."""

from __future__ import annotations

from typing import Any

from common.storage.table import Table
from common.storage.transactions import Transaction
from common.tenants.audit import Audit, EntryFilter


def test_entries_between_two_times_newest_first(tables: dict[str, Table]) -> None:
    audit = Audit(tables["tenants"])
    for at in (1_000, 2_000, 2_000.5, 3_000):
        tx = Transaction(tables["tenants"].client)
        audit.add(tx, "alice", "key", "job.changed", f"at {at}", at, before={"n": 1}, after={"n": 2})
        tx.commit()
    tables["tenants"].put({"pk": "alice", "sk": "BACKFILL#x"})
    tables["tenants"].put({"pk": "alice", "sk": "CALENDAR#x"})

    def page(next_place: str = "", limit: int = 10, **bounds: Any) -> tuple[list[float], str]:
        entries, last = audit.page("alice", EntryFilter(**bounds), limit=limit, before_id=next_place)
        return [entry.at for entry in entries], last

    assert page() == ([3_000, 2_000.5, 2_000, 1_000], "")
    assert page(from_at=2_000, until_at=3_000) == ([2_000.5, 2_000], "")
    first, next_place = page(limit=3)
    assert (first, bool(next_place)) == ([3_000, 2_000.5, 2_000], True)
    assert page(next_place) == ([1_000], "")
    assert page(next_place, from_at=2_500) == ([], "")
    assert page(from_at=3_000, until_at=2_000) == ([], "")
