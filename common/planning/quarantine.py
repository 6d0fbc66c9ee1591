"""Quarantine: what cannot be planned is set aside with the reason, and planned_until moves on for all others.

Quarantined are unreadable groups, and shares that no planner has finished. Each record names the shards and the time
from `start_at` to `end_at`. Every tick retries them. What can be planned by then is planned with the window's stored
decision, late or missed as after an outage, and its record is deleted. No record delays a window.

A due entry that cannot be planned is set aside for the time of one window: its job gets a skipped run with the reason,
and the next tick that finds it due tries it again. Its record here is for the operator of the platform.

An unreadable postponed execution or pending registration is moved here as it is, and its job gets one run. Another
version of Minute8 puts it back and tries to read it. Until then, or until somebody puts it back or deletes it, it is
named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from common.errors import Conflict, NotFound, shown
from common.planning.due_index import MAX_CLOCK_ERROR_S, Window
from common.planning.shares import Share, share_item, share_of
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.expressions import ABSENT, PRESENT, Attribute, Condition, change, unchanged
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE, Item
from common.timing.instants import DAY_S
from common.timing.windows import planning_end
from common.version import VERSION

GROUP: Final = "group"
ITEM: Final = "item"
SHARE: Final = "share"
ENTRY: Final = "entry"
MAX_RETRIED_RECORDS: Final = 2_000
# A share that fails is split into this many parts, and each part again. This finds the one shard that fails.
SPLIT_PARTS: Final = 16
_MAX_REASON_CHARS: Final = 500
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
_MAX_NAME_BYTES: Final = 1_000
_ENTRY_TTL_S: Final = DAY_S
# A group that was not found unreadable again for this long has left the directory.
_GROUP_TTL_S: Final = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class QuarantinedRecord:
    """A group, share or entry that could not be planned, from `start_at` to `end_at`."""

    key: keys.Key
    kind: str
    name: str
    reason: str
    seen_at: int
    start_at: int = 0
    end_at: int = 0
    tries: int = 0
    shards: int = 0
    # Of Minute8, which could not read the item.
    version: str = ""

    @property
    def is_note(self) -> bool:
        """Whether it is of a window's log or of a step, not of a job."""
        return self.name.startswith("#")


class Quarantine:
    """The quarantined records, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add_group(self, name: str, window: Window, reason: str, now: float) -> None:
        """Set aside a shard by its name in the directory, for one window more."""
        record = {
            "end": window.end,
            "shards": name,
            "parts": 1,
            "reason": reason[:_MAX_REASON_CHARS],
            "seen_at": int(now),
            "expires_at": int(now) + _GROUP_TTL_S,
        }
        added = change(record, keep={"start": window.start}, remove=["decided_at"])
        self._table.update(keys.set_aside(GROUP, _short(name)), added)

    def add_share(self, share: Share, reason: str, now: float) -> None:
        """Set aside a share in one transaction with its record. A confirmed share is gone already."""
        self._move(share.key, _item(share.key["sk"], share, reason, now))

    def add_unreadable_share(self, share: Unreadable, now: float) -> None:
        """Set aside the record of a share that cannot be read, as it is, in one transaction with it."""
        sort_key = share.key["sk"]
        seen = {"end": keys.end_of_share(sort_key), "reason": share.reason, "seen_at": int(now)}
        self._move(share.key, {**(share.item or {}), **seen, **keys.set_aside(SHARE, sort_key)})

    def add_entry(self, name: str, reason: str, now: float) -> None:
        """Report that an entry, tenant#job_id, could not be planned; repeated reports are one record.

        Without a tenant, the name is that of a window's log with a chunk missing, or of a step that is passed over.
        """
        self._table.put(
            {
                **keys.set_aside(ENTRY, _short(name)),
                "reason": reason[:_MAX_REASON_CHARS],
                "seen_at": int(now),
                "expires_at": int(now) + _ENTRY_TTL_S,
            }
        )

    def add_item(self, unreadable: Unreadable, now: float) -> None:
        """Set aside an item that cannot be read, as it is, in one transaction with its record."""
        reason = unreadable.reason[:_MAX_REASON_CHARS]
        record = {"item": unreadable.item, "reason": reason, "seen_at": int(now), "version": VERSION}
        self._move(unreadable.key, {**_item_key(unreadable.name), **record})

    def unreadable(self, name: str) -> QuarantinedRecord | None:
        """The record of an item of add_item by its name, which is the item's key."""
        item = self._table.get(_item_key(name))
        return _record(item) if item else None

    def unreadable_items(self) -> Iterator[QuarantinedRecord]:
        """The records of all items of add_item."""
        return self._between(ITEM, ITEM)

    def put_back(self, name: str) -> None:
        """Put an item of add_item where it was. A tick that cannot read it either sets it aside again.

        Raises:
            NotFound: there is no such item.
            Conflict: there is a new item in its place.
        """
        key = _item_key(name)
        item = (self._table.get(key) or {}).get("item")
        if not (
            isinstance(item, dict) and isinstance(item.get("pk"), str) and isinstance(item.get("sk"), str)
        ):
            raise NotFound("unreadable item", name)
        # Without the time at which it would have expired where it was.
        if self._move(key, {name: value for name, value in item.items() if name != "expires_at"}, ABSENT):
            raise Conflict(f"there is a new item in the place of {shown(name)}: discard this one")

    def _move(self, key: keys.Key, new: Item, condition: Condition | None = None) -> ConditionFailed | None:
        """Put the new item in the place of that of `key`, in one transaction. Nothing happens if that is gone."""
        tx = Transaction(self._table.client)
        tx.delete(self._table, key, PRESENT)
        tx.put(self._table, new, condition)
        return tx.try_commit()

    def discard(self, name: str) -> None:
        """Delete an item of add_item: what it says does not happen. Raises NotFound."""
        if not self._table.delete_if(_item_key(name), PRESENT):
            raise NotFound("unreadable item", name)

    def waiting(self) -> Iterator[QuarantinedRecord]:
        """Groups, items and shares, so that many bad entries cannot hide them."""
        return self._between(GROUP, SHARE)

    def bad_entries(self) -> Iterator[QuarantinedRecord]:
        """The entries that could not be planned."""
        return self._between(ENTRY, ENTRY)

    def _between(self, first: str, last: str) -> Iterator[QuarantinedRecord]:
        attributes = ("pk", "sk", "start", "end", "reason", "seen_at", "tries", "parts", "version")
        between = keys.begins_between(first, last)
        for item in self._table.query(Query(keys.QUARANTINE, sk_between=between, attributes=attributes)):
            yield _record(item)

    def take(self, name: str, now: float) -> Share | None:
        """Begin to plan the record of this sort key; None if it is planned, or cannot be read.

        The try is counted first, since the record may end the planner.
        """
        key: keys.Key = {"pk": keys.QUARANTINE, "sk": name}
        item = self._table.get(key) or {}
        if "shards" not in item:
            return None
        share: Share | None = None
        attempt: Item = {"tries": _number(item, "tries") + 1}
        try:
            share = _share_of_record(item, now)
            attempt["decided_at"] = share.window.decided_at
        except DAMAGE as error:
            attempt["reason"] = f"unreadable: {error!r}"[:_MAX_REASON_CHARS]
        return share if self._table.update_if(key, change(attempt), Attribute("shards").exists) else None

    def release(self, share: Share) -> None:
        """Delete the record: its executions are enqueued. It stays if later windows were set aside meanwhile."""
        self._table.delete_if(share.key, Attribute("end") == share.window.end)

    def split(self, record: QuarantinedRecord, now: float) -> list[str]:
        """Replace a share by its parts. Returns their names."""
        item = self._table.get(record.key)
        if item is None:
            return []
        try:
            share = share_of(item, item["end"])
        except DAMAGE:
            return [record.key["sk"]]
        if len(share.shards) == 1:
            return [record.key["sk"]]
        size = -(-len(share.shards) // SPLIT_PARTS)
        parts = [share.shards[first : first + size] for first in range(0, len(share.shards), size)]
        tx = Transaction(self._table.client)
        tx.delete(self._table, record.key, unchanged(item, "shards"))
        names = [f"{record.name}.{nth}" for nth in range(len(parts))]
        for name, shards in zip(names, parts, strict=True):
            tx.put(self._table, _item(name, replace(share, shards=shards, after=""), record.reason, now))
        if not tx.commit_if_unchanged():  # a planner just got further with it
            return [record.key["sk"]]
        return [keys.set_aside(SHARE, name)["sk"] for name in names]


def _item_key(name: str) -> keys.Key:
    return keys.set_aside(ITEM, _short(name))


def _short(name: str) -> str:
    """A name of somebody else's making may have more bytes than a sort key takes with the kind before it."""
    if len(name.encode()) <= _MAX_NAME_BYTES:
        return name
    return f"{name[:200]}…{hashlib.sha256(name.encode()).hexdigest()}"


def _share_of_record(item: Item, now: float) -> Share:
    """The share of a record, which is decided at its first try. Raises KeyError, TypeError, ValueError."""
    share = share_of({"decided_at": now, **item}, item["end"])
    latest = now + MAX_CLOCK_ERROR_S
    if share.window.end > planning_end(latest) or share.window.decided_at > latest:
        raise ValueError(f"{share.window} is later than anything that ticks plan")
    return share


def _item(name: str, share: Share, reason: str, now: float) -> Item:
    return {
        **keys.set_aside(SHARE, name),
        **share_item(share.window, share.shards, share.pace_slice),
        "end": share.window.end,
        "after": share.after,
        "parts": len(share.shards),
        "reason": reason[:_MAX_REASON_CHARS],
        "seen_at": int(now),
    }


def _record(item: Item) -> QuarantinedRecord:
    kind, name = keys.kind_and_name(item["sk"])
    return QuarantinedRecord(
        key=keys.key_of(item),
        kind=kind,
        name=name,
        reason=_text(item, "reason"),
        seen_at=_number(item, "seen_at"),
        start_at=_number(item, "start"),
        end_at=_number(item, "end"),
        tries=_number(item, "tries"),
        shards=_number(item, "parts"),
        version=_text(item, "version"),
    )


def _number(item: Item, name: str) -> int:
    """A number that only tells; 0 if somebody has written something else there."""
    value = item.get(name)
    return value if type(value) is int else 0


def _text(item: Item, name: str) -> str:
    return str(item.get(name, ""))


def described(records: Sequence[QuarantinedRecord]) -> str:
    """The first three records, for a person."""
    return "; ".join(f"{record.kind} {record.name}: {record.reason}" for record in records[:3])
