"""Quarantine: what cannot be planned is set aside with the reason, and the mark moves on for everybody else.

Set aside are groups that cannot be read and shares that no planner has got through. Each record says which shards, and
from when to when. Every tick tries them again: what can be planned by then is planned as the window was decided, late
or missed as after an outage, and its record goes. Nothing of it holds up a window.

A due entry that cannot be planned is set aside for the time of one window: its job has a skipped run that says why,
and the next tick that finds it due tries it anyway. Its record here is for whoever looks after the platform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from common.planning.due_index import Mark
from common.planning.shares import Share, share_item, share_of
from common.storage import keys
from common.storage.tables import ConditionFailed, Expression, Item, Table, Transaction, TransactionConflict
from common.timing.instants import DAY_S

GROUP: Final = "group"
SHARE: Final = "share"
ENTRY: Final = "entry"
# So much is tried by a tick.
MOST: Final = 2_000
# A share that fails is tried again in so many parts, and those again: one shard that cannot be planned is found so.
PARTS: Final = 16
_REASON_CHARS: Final = 500
# TTL then removes what is known of an entry that nobody found bad again.
_ENTRY_KEPT_S: Final = DAY_S
# A group that nobody found unreadable again for so long has left the directory.
_GROUP_KEPT_S: Final = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class SetAside:
    """One thing that could not be planned. `start_at` to `end_at` is the time for which it is not."""

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
    """What is set aside; in the due table."""

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
        """Set aside a share, in one step with its record. What a planner confirms at this moment is gone already."""
        tx = Transaction(self._table.client)
        tx.delete(self._table, share.key, Expression("attribute_exists(pk)", {}))
        tx.put(self._table, _item(share.key["sk"], share, reason, now))
        with suppress(ConditionFailed):
            tx.commit()

    def add_entry(self, tenant: str, job_id: str, reason: str, now: float) -> None:
        """Make known that an entry could not be planned; again and again it is one record."""
        self._table.put(
            {
                **keys.set_aside(ENTRY, f"{tenant}#{job_id}"),
                "reason": reason[:_REASON_CHARS],
                "seen_at": int(now),
                "expires_at": int(now) + _ENTRY_KEPT_S,
            }
        )

    def all(self) -> Iterator[SetAside]:
        """Of every kind, without the names of their shards."""
        return self._between(ENTRY, SHARE)

    def waiting(self) -> Iterator[SetAside]:
        """Groups and shares alone, so that many bad entries keep nobody from them."""
        return self._between(GROUP, SHARE)

    def bad_entries(self) -> Iterator[SetAside]:
        return self._between(ENTRY, ENTRY)

    def _between(self, first: str, last: str) -> Iterator[SetAside]:
        attributes = ("pk", "sk", "start", "end", "reason", "seen_at", "tries", "parts")
        between = keys.kinds_between(first, last)
        for item in self._table.query(keys.QUARANTINE, sk_between=between, attributes=attributes):
            yield _set_aside(item)

    def take(self, name: str, now: float) -> Share | None:
        """Begin to plan it, by its sort key. It counts, before it can end its planner; None if it is planned."""
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
        """Its executions are handed over. What was set aside for a window more meanwhile stays."""
        as_read = Expression("#end = :end", {":end": share.window.planning_until})
        with suppress(ConditionFailed):
            self._table.delete(share.key, as_read)

    def split(self, one: SetAside, now: float) -> list[str]:
        """Put parts in the place of a share. Returns the names of what is there then."""
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
        named = [(f"{one.name}.{nth}", Share(one.key, share.window, part)) for nth, part in enumerate(parts)]
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
        **share_item(share.window, share.shards),
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
