"""Targets that the platform holds: runs of all tenants that would call one are skipped, until it is released.

For an outage of a service that many tenants call, or a stop of everything. One item holds all patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from common.clock import Clock, SystemClock
from common.declared import read
from common.errors import Conflict, NotFound
from common.ids import check_note
from common.limits import MAX_HOLDS
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import unchanged
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.tenants.allowed_targets import Hold
from common.tenants.audit import AWS, Audit
from common.tenants.rules_cache import held_targets, holds_of
from common.tenants.tenant import Pattern


class Holds:
    """The holds in the tenants table. Only the platform changes them."""

    def __init__(self, table: Table, clock: Clock | None = None) -> None:
        self._table = table
        self._clock = clock or SystemClock()

    def all(self) -> list[Hold]:
        """The holds, the oldest first."""
        return held_targets(self._table)

    def hold(self, pattern: object, note: object, now: float, *, by: str = AWS) -> list[Hold]:
        """Hold what the pattern covers. Again, it changes the note. Raises InvalidInput, Conflict (too many), Busy."""
        added = Hold(read(pattern, Pattern, "pattern"), check_note(note), int(now), by)

        def change(holds: list[Hold]) -> list[Hold]:
            kept = [hold for hold in holds if hold.pattern != added.pattern]
            if len(kept) == MAX_HOLDS:
                raise Conflict(f"there are {MAX_HOLDS} holds, which are the most; release one first")
            return [*kept, added]

        return self._change(change, "target.held", added.pattern, now, by, {"note": added.note or None})

    def release(self, pattern: str, now: float, *, by: str = AWS) -> list[Hold]:
        """Let the targets of a pattern be called again. Raises NotFound, Busy."""

        def change(holds: list[Hold]) -> list[Hold]:
            remaining = [hold for hold in holds if hold.pattern != pattern]
            if len(remaining) == len(holds):
                raise NotFound("hold", pattern)
            return remaining

        return self._change(change, "target.released", pattern, now, by, {})

    def _change(
        self,
        change: Callable[[list[Hold]], list[Hold]],
        action: str,
        pattern: str,
        now: float,
        by: str,
        after: Mapping[str, Any],
    ) -> list[Hold]:
        def attempt() -> list[Hold]:
            stored = self._table.get(keys.HOLDS)
            item = stored or {}
            holds, revision = change(holds_of(item)), item.get("revision", 0)
            tx = Transaction(self._table.client)
            new = {"revision": revision + 1, "holds": [asdict(hold) for hold in holds]}
            tx.put(self._table, {**keys.HOLDS, **new}, unchanged(stored, "revision"))
            Audit(self._table).add(tx, keys.OPERATORS, by, action, pattern, now, after=after)
            tx.commit()
            return holds

        return retry_if_changed(attempt, "the holds", sleep=self._clock.sleep)
