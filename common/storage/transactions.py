"""Writes that happen together or not at all."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from common.errors import ItemTooLarge, Minute8Error
from common.limits import MAX_ITEM_BYTES
from common.storage.conflicts import ConditionFailed, TransactionConflict
from common.storage.expressions import unchanged
from common.storage.keys import Key, key_of
from common.storage.table import Table
from common.storage.wire import Expression, expression_arguments, from_wire, item_to_wire, to_wire

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
MAX_WRITES = 100
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
MAX_TRANSACTION_BYTES = 4_000_000
_WRITES_OF_ANY_SIZE = MAX_TRANSACTION_BYTES // MAX_ITEM_BYTES


class TooManyWrites(Minute8Error):
    """A transaction has more writes and checks, or more bytes, than DynamoDB takes; nothing was written."""


class Transaction:
    """Writes to any tables that happen together or not at all: at most 100, of 4 MB together.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
    """

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client
        self._writes: list[TransactWriteItemTypeDef] = []
        # What each write is of: its key, or the item that has it.
        self._items: list[Mapping[str, Any]] = []
        self._stored_bytes = 0

    def __len__(self) -> int:
        return len(self._writes)

    def put(self, table: Table, item: Mapping[str, Any], condition: Expression | None = None) -> None:
        """Raises ItemTooLarge."""
        self._add("Put", table, item, condition)

    def update(
        self,
        table: Table,
        key: Key,
        change: Expression,
        condition: Expression | None = None,
        *,
        stored_bytes: int = 0,
    ) -> None:
        """Apply an update expression, if the condition holds. Commit raises ItemTooLarge.

        The size of a large item that is stored already counts as well.
        """
        self._add("Update", table, key, condition, change)
        self._stored_bytes += stored_bytes

    def extend(self, other: Transaction) -> None:
        """Add all that is in another one."""
        self._writes += other._writes
        self._items += other._items
        self._stored_bytes += other._stored_bytes

    def check(self, table: Table, key: Key, condition: Expression) -> None:
        """Require that `condition` holds for an item that is not written."""
        self._add("ConditionCheck", table, key, condition)

    def delete(self, table: Table, key: Key, condition: Expression | None = None) -> None:
        """Delete an item, if the condition holds."""
        self._add("Delete", table, key, condition)

    def _add(
        self,
        kind: str,
        table: Table,
        item: Mapping[str, Any],
        condition: Expression | None,
        change: Expression | None = None,
    ) -> None:
        named = {"Item": item_to_wire(item)} if kind == "Put" else {"Key": to_wire(item)}
        write: Any = {kind: {"TableName": table.name, **named, **expression_arguments(condition, change)}}
        self._writes.append(write)
        self._items.append(item)

    def _check_size(self) -> None:
        """Raises TooManyWrites."""
        count = len(self._writes)
        if count > MAX_WRITES:
            raise TooManyWrites(f"a transaction of {count} writes; DynamoDB takes {MAX_WRITES}")
        # The JSON is longer than the items, and is made in a fifth of the time that counting them takes.
        if count <= _WRITES_OF_ANY_SIZE:
            return
        size = len(json.dumps(self._writes)) + self._stored_bytes
        if size > MAX_TRANSACTION_BYTES:
            raise TooManyWrites(f"a transaction of {size} bytes; DynamoDB takes {MAX_TRANSACTION_BYTES}")

    def commit(self) -> None:
        """Write everything.

        Raises:
            ConditionFailed: a condition did not hold; nothing was written.
            TransactionConflict: another transaction was writing an item; nothing was written.
            TooManyWrites: there are more than MAX_WRITES, or they have more than MAX_TRANSACTION_BYTES.
            ItemTooLarge: an update makes an item larger than DynamoDB takes; nothing was written.
        """
        self._check_size()
        try:
            self._client.transact_write_items(TransactItems=self._writes)
        except self._client.exceptions.TransactionCanceledException as error:
            reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
            codes = [reason.get("Code") for reason in reasons]
            if "ConditionalCheckFailed" in codes:
                nth = codes.index("ConditionalCheckFailed")
                item = reasons[nth].get("Item")
                raise ConditionFailed(
                    from_wire(item) if item else None, nth, key_of(self._items[nth])
                ) from error
            if any("Item size" in str(reason.get("Message")) for reason in reasons):
                raise ItemTooLarge from error
            if {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}.intersection(
                codes
            ):
                held = [
                    key_of(item)
                    for item, code in zip(self._items, codes, strict=False)
                    if code == "TransactionConflict"
                ]
                raise TransactionConflict(held) from error
            raise
        except self._client.exceptions.TransactionInProgressException as error:
            raise TransactionConflict from error

    def try_commit(self) -> ConditionFailed | None:
        """Write everything. Returns the condition that did not hold; None: written. Raises as `commit` otherwise."""
        try:
            self.commit()
        except ConditionFailed as refused:
            return refused
        return None

    def commit_if_unchanged(self) -> bool:
        """Write everything. False: a condition did not hold, or another transaction was in the way; nothing written."""
        try:
            return self.try_commit() is None
        except TransactionConflict:
            return False


class Addition:
    """An item that is to be added. Make this before the items are counted: it reads the mark in `key`."""

    def __init__(self, table: Table, key: Key) -> None:
        self._table, self._key = table, key
        item = table.get(key)
        self._unchanged = unchanged(item, "mark")

    def note(self, tx: Transaction) -> None:
        """Let `tx` fail if another item was added since the mark was read."""
        tx.put(self._table, {**self._key, "mark": secrets.token_hex(8)}, self._unchanged)

    def check_first(self, conflict: ConditionFailed) -> None:
        """Raise TransactionConflict if `tx` failed because another item was added: count again."""
        if conflict.key == self._key:
            raise TransactionConflict([self._key]) from conflict
