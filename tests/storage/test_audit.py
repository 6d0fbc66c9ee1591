"""A page of the audit, on each engine: bounds and order are DynamoDB's to keep."""

from __future__ import annotations

from typing import Any

from common.storage.tables import Table, Transaction
from common.tenants.audit import Audit, EntryFilter


def test_entries_between_two_times_newest_first(tables: dict[str, Table]) -> None:
    audit = Audit(tables["jobs"])
    for at in (1_000, 2_000, 2_000.5, 3_000):
        tx = Transaction(tables["jobs"].client)
        audit.add(tx, "alice", "key", "job.changed", f"at {at}", at, before={"n": 1}, after={"n": 2})
        tx.commit()
    tables["jobs"].put({"pk": "alice", "sk": "BACKFILL#x"})
    tables["jobs"].put({"pk": "alice", "sk": "CALENDAR#x"})

    def found(next_place: str = "", limit: int = 10, **wanted: Any) -> tuple[list[float], str]:
        entries, last = audit.page("alice", EntryFilter(**wanted), limit=limit, before_id=next_place)
        return [entry.at for entry in entries], last

    assert found() == ([3_000, 2_000.5, 2_000, 1_000], "")
    assert found(from_at=2_000, until_at=3_000) == ([2_000.5, 2_000], "")
    first, next_place = found(limit=3)
    assert (first, bool(next_place)) == ([3_000, 2_000.5, 2_000], True)
    assert found(next_place) == ([1_000], "")
    assert found(next_place, from_at=2_500) == ([], "")
    assert found(from_at=3_000, until_at=2_000) == ([], "")
