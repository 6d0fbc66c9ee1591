"""Quarantine: what cannot be planned is set aside with the reason, and the mark moves on for all others.

Quarantined are unreadable groups, and shares that no planner has finished. Each record names the shards and the time
from `start_at` to `end_at`. Every tick retries them. What can be planned by then is planned with the window's stored
decision, late or missed as after an outage, and its record is deleted. No record delays a window.

A due entry that cannot be planned is set aside for the time of one window: its job gets a skipped run with the reason,
and the next tick that finds it due tries it again. Its record here is for the operator of the platform.

An unreadable postponed execution or pending registration is reported in the same way, but its job gets one run. It
stays in its place until TTL removes it, since a later version may read it. Until then its record here is renewed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from common.planning.bad_entry import REPORTED
from common.planning.due_index import Mark
from common.planning.shares import Share, share_item, share_of
from common.storage import keys
from common.storage.conflicts import ConditionFailed, TransactionConflict
from common.storage.table import Query, Table, Transaction
from common.storage.wire import Expression, Item
from common.timing.instants import DAY_S

GROUP: Final = "group"
SHARE: Final = "share"
ENTRY: Final = "entry"
# How many records a tick retries.
MOST: Final = 2_000
# A share that fails is retried in this many parts, and each part again. This finds the one shard that fails.
PARTS: Final = 16
_REASON_CHARS: Final = 500
# How long an entry's record stays after the entry was last found bad. Before that, the record is renewed.
_ENTRY_KEPT_S: Final = DAY_S
RENEWED_AFTER_S: Final = _ENTRY_KEPT_S - 3 * 3_600
# How long unreadable items stay: as long as postponed executions. Pending entries have no TTL of their own.
_REPORTED_KEPT_S: Final = 15 * DAY_S
# A group that was not found unreadable again for this long has left the directory.
_GROUP_KEPT_S: Final = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class SetAside:
    """One thing that could not be planned, from `start_at` to `end_at`."""

    key: keys.Key
    kind: str
    name: str
    reason: str
    seen_at: int
    start_at: int = 0
    end_at: int = 0
    tries: int = 0
    shards: int = 0


class Quarantine:
    """The quarantined records, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add_group(self, name: str, window: Mark, reason: str, now: float) -> None:
        """Set aside a shard by its name in the directory, for one window more."""
        change = Expression(
            "SET #start = if_not_exists(#start, :start), #end = :end, #shards = :shards, #parts = :one,"
            " #reason = :reason, #seen_at = :now, #expires_at = :expires REMOVE #decided_at",
            {
                ":start": window.planned_until,
                ":end": window.planning_until,
                ":shards": name,
                ":one": 1,
                ":reason": reason[:_REASON_CHARS],
                ":now": int(now),
                ":expires": int(now) + _GROUP_KEPT_S,
            },
        )
        self._table.update(keys.set_aside(GROUP, name), change)

    def add_share(self, share: Share, reason: str, now: float) -> None:
        """Set aside a share in one transaction with its record. A confirmed share is gone already."""
        tx = Transaction(self._table.client)
        tx.delete(self._table, share.key, Expression("attribute_exists(pk)", {}))
        tx.put(self._table, _item(share.key["sk"], share, reason, now))
        with suppress(ConditionFailed):
            tx.commit()

    def add_entry(self, tenant: str, job_id: str, reason: str, now: float) -> None:
        """Report that an entry could not be planned; repeated reports are one record."""
        self._table.put(
            {
                **keys.set_aside(ENTRY, f"{tenant}#{job_id}"),
                "reason": reason[:_REASON_CHARS],
                "seen_at": int(now),
                "expires_at": int(now) + _ENTRY_KEPT_S,
            }
        )

    def mark_reported(self, entry: keys.Key, now: float) -> None:
        """Mark an unreadable entry that stays, so that it is not reported again."""
        change = Expression(
            f"SET #{REPORTED} = :now, #expires_at = if_not_exists(#expires_at, :expires)",
            {":now": int(now), ":expires": int(now) + _REPORTED_KEPT_S},
        )
        with suppress(ConditionFailed):  # a tick of a later version has read it
            self._table.update(entry, change, Expression("attribute_exists(pk)", {}))

    def all(self) -> Iterator[SetAside]:
        """Records of all kinds, without the names of their shards."""
        return self._between(ENTRY, SHARE)

    def waiting(self) -> Iterator[SetAside]:
        """Only groups and shares, so that many bad entries cannot hide them."""
        return self._between(GROUP, SHARE)

    def bad_entries(self) -> Iterator[SetAside]:
        """The entries that could not be planned."""
        return self._between(ENTRY, ENTRY)

    def _between(self, first: str, last: str) -> Iterator[SetAside]:
        attributes = ("pk", "sk", "start", "end", "reason", "seen_at", "tries", "parts")
        between = keys.begins_between(first, last)
        for item in self._table.query(Query(keys.QUARANTINE, sk_between=between, attributes=attributes)):
            yield _set_aside(item)

    def take(self, name: str, now: float) -> Share | None:
        """Begin to plan the record of this sort key; None if it is planned. Counted first: it may end the planner."""
        begun = Expression(
            "SET #decided_at = if_not_exists(#decided_at, :now) ADD #tries :one", {":now": now, ":one": 1}
        )
        try:
            item = self._table.update(
                {"pk": keys.QUARANTINE, "sk": name}, begun, Expression("attribute_exists(#shards)", {})
            )
        except ConditionFailed:
            return None
        return share_of(item, item["end"])

    def release(self, share: Share) -> None:
        """Delete the record: its executions are enqueued. It stays if later windows were set aside meanwhile."""
        as_read = Expression("#end = :end", {":end": share.window.planning_until})
        with suppress(ConditionFailed):
            self._table.delete(share.key, as_read)

    def split(self, one: SetAside, now: float) -> list[str]:
        """Replace a share by its parts. Returns their names."""
        item = self._table.get(one.key)
        if item is None:
            return []
        share = share_of(item, item["end"])
        if len(share.shards) == 1:
            return [one.key["sk"]]
        size = -(-len(share.shards) // PARTS)
        parts = [share.shards[first : first + size] for first in range(0, len(share.shards), size)]
        tx = Transaction(self._table.client)
        tx.delete(self._table, one.key, Expression("#shards = :shards", {":shards": item["shards"]}))
        named = [
            (f"{one.name}.{nth}", replace(share, shards=part, after="")) for nth, part in enumerate(parts)
        ]
        for name, part in named:
            tx.put(self._table, _item(name, part, one.reason, now))
        try:
            tx.commit()
        except (ConditionFailed, TransactionConflict):  # a planner just got further with it
            return [one.key["sk"]]
        return [keys.set_aside(SHARE, name)["sk"] for name, _ in named]


def _item(name: str, share: Share, reason: str, now: float) -> Item:
    return {
        **keys.set_aside(SHARE, name),
        **share_item(share.window, share.shards, share.part),
        "end": share.window.planning_until,
        "after": share.after,
        "parts": len(share.shards),
        "reason": reason[:_REASON_CHARS],
        "seen_at": int(now),
    }


def _set_aside(item: Item) -> SetAside:
    kind, name = keys.kind_and_name(item["sk"])
    return SetAside(
        key=keys.key_of(item),
        kind=kind,
        name=name,
        reason=item.get("reason", ""),
        seen_at=item.get("seen_at", 0),
        start_at=item.get("start", 0),
        end_at=item.get("end", 0),
        tries=item.get("tries", 0),
        shards=item.get("parts", 0),
    )


def shown(found: Sequence[SetAside]) -> str:
    """The first of them, for a person."""
    return "; ".join(f"{one.kind} {one.name}: {one.reason}" for one in found[:3])
