"""Requests about schedule groups take effect once: one that is sent again later must not undo what came since.

Schedules know their own requests (`common/eventbridge/origin.py`). A group cannot: it may be gone when a request for it
comes again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from common.eventbridge.origin import KNOWN_FOR_S
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table, Transaction
from common.storage.wire import Expression, Item


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """One tenant's request. `token` is the same whenever the request comes."""

    tenant: str
    token: str
    # Whether the client chose the token. Otherwise it is the signature, which only a repeated request has again.
    is_named: bool = False

    @property
    def item_key(self) -> keys.Key:
        return keys.idempotency_key(self.tenant, f"group-{self.token}")

    def remember(self, tx: Transaction, jobs: Table, now: float) -> None:
        """Store in `tx` that it was done, unless it was done before."""
        tx.put(jobs, *self._first(now))

    def remember_alone(self, jobs: Table, now: float) -> None:
        """Store that it was done, where it changed nothing else. Raises Busy."""
        with suppress(ConditionFailed):
            jobs.put(*self._first(now))

    def _first(self, now: float) -> tuple[Item, Expression]:
        # DynamoDB removes expired items only after some time, up to days.
        free = Expression("attribute_not_exists(pk) OR #expires_at <= :now", {":now": int(now)})
        return {**self.item_key, "expires_at": int(now) + KNOWN_FOR_S}, free

    def is_known(self, jobs: Table, now: float) -> bool:
        """Whether it was done before."""
        item = jobs.get(self.item_key)
        return item is not None and item["expires_at"] > int(now)

    def was_done(self, lost: ConditionFailed) -> bool:
        """Whether a transaction failed because the request had been done."""
        return lost.key == self.item_key
