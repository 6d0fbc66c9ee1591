"""Targets that the platform blocks: runs of all tenants that would call one are skipped, until it is released.

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
from common.limits import MAX_BLOCKS
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import unchanged
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.tenants.allowed_targets import Block
from common.tenants.audit import AWS, Audit
from common.tenants.rules_cache import blocked_targets, blocks_of
from common.tenants.tenant import Pattern


class Blocks:
    """The blocks in the tenants table. Only the platform changes them."""

    def __init__(self, table: Table, clock: Clock | None = None) -> None:
        self._table = table
        self._clock = clock or SystemClock()

    def all(self) -> list[Block]:
        """The blocks, the oldest first."""
        return blocked_targets(self._table)

    def block(self, pattern: object, note: object, now: float, *, by: str = AWS) -> list[Block]:
        """Block what the pattern covers. Again, it changes the note. Raises InvalidInput, Conflict (too many), Busy."""
        added = Block(read(pattern, Pattern, "pattern"), check_note(note), int(now), by)

        def change(blocks: list[Block]) -> list[Block]:
            kept = [block for block in blocks if block.pattern != added.pattern]
            if len(kept) == MAX_BLOCKS:
                raise Conflict(f"there are {MAX_BLOCKS} blocks, which are the most; release one first")
            return [*kept, added]

        return self._change(change, "target.blocked", added.pattern, now, by, {"note": added.note or None})

    def release(self, pattern: str, now: float, *, by: str = AWS) -> list[Block]:
        """Let the targets of a pattern be called again. Raises NotFound, Busy."""

        def change(blocks: list[Block]) -> list[Block]:
            remaining = [block for block in blocks if block.pattern != pattern]
            if len(remaining) == len(blocks):
                raise NotFound("block", pattern)
            return remaining

        return self._change(change, "target.released", pattern, now, by, {})

    def _change(
        self,
        change: Callable[[list[Block]], list[Block]],
        action: str,
        pattern: str,
        now: float,
        by: str,
        after: Mapping[str, Any],
    ) -> list[Block]:
        def attempt() -> list[Block]:
            stored = self._table.get(keys.BLOCKS)
            item = stored or {}
            blocks, revision = change(blocks_of(item)), item.get("revision", 0)
            tx = Transaction(self._table.client)
            new = {"revision": revision + 1, "blocks": [asdict(block) for block in blocks]}
            tx.put(self._table, {**keys.BLOCKS, **new}, unchanged(stored, "revision"))
            Audit(self._table).add(tx, keys.OPERATORS, by, action, pattern, now, after=after)
            tx.commit()
            return blocks

        return retry_if_changed(attempt, "the blocks", sleep=self._clock.sleep)
