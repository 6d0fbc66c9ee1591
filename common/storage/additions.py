"""A bound on how many items a tenant has, which also holds if several are added at once.

Each addition changes one mark. It requires the mark that was read before the items were counted.
"""

from __future__ import annotations

import secrets

from common.storage.expressions import ConditionFailed, Expression, TransactionConflict
from common.storage.keys import Key
from common.storage.tables import Table, Transaction


class Addition:
    """An item that is to be added. Make this before the items are counted: it reads the mark in `key`."""

    def __init__(self, table: Table, key: Key) -> None:
        self._table, self._key = table, key
        item = table.get(key)
        self._unchanged = Expression("attribute_not_exists(pk)", {})
        if item:
            self._unchanged = Expression("#mark = :before", {":before": item["mark"]})

    def note(self, tx: Transaction) -> None:
        """Let `tx` fail if another item was added since the mark was read."""
        tx.put(self._table, {**self._key, "mark": secrets.token_hex(8)}, self._unchanged)

    def check_first(self, lost: ConditionFailed) -> None:
        """Raise TransactionConflict if `tx` failed because another item was added: count again."""
        if lost.key == self._key:
            raise TransactionConflict([self._key]) from lost
