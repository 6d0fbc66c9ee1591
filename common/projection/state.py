"""How far the projection is: from when on it has all runs, and up to where ticks have followed the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from common.cache import Cache
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Expression, Item

# Ticks move the state every ten minutes.
_RECENT_S: Final = 30


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """`since`: fire times from then on are in the projection. `until`: by bucket of tenants, the end of its log.

    Nothing was planned in [`quiet_from`, the smallest `until`).
    """

    since: int = 0
    until: dict[int, int] = field(default_factory=dict)
    quiet_from: int = 0

    def until_of(self, tenant: str) -> int:
        """Up to where the log of a tenant's executions is in the projection."""
        return self.until.get(keys.log_bucket(tenant), self.since)

    @classmethod
    def from_item(cls, item: Item) -> ProjectionState:
        until = {bucket: item[f"b{bucket}"] for bucket in range(keys.LOG_BUCKETS) if f"b{bucket}" in item}
        return cls(item["since"], until, item.get("quiet_from", 0))


class ProjectionStates:
    """The state of the projection in the due table."""

    def __init__(self, due: Table) -> None:
        self._due = due
        self._recent: Cache[tuple[()], ProjectionState] = Cache(_RECENT_S, 1)

    def read(self) -> ProjectionState | None:
        """None: no tick has begun a projection yet."""
        item = self._due.get(keys.PROJECTED)
        return ProjectionState.from_item(item) if item else None

    def recent(self, now: float) -> ProjectionState | None:
        """The state of at most half a minute ago, for looks: an older state only makes them read more of the log."""
        if kept := self._recent.get((), now):
            return kept.value
        if state := self.read():
            self._recent.put((), state, now)
        return state

    def new_since(self) -> int | None:
        """Before which nothing ran, as the deployment was new then; None: the mark was lost since."""
        since: int | None = (self._due.get(keys.MARK) or {}).get("new_since")
        return since

    def begin(self, since: int, until: int) -> ProjectionState:
        """Begin the projection: the log is followed from `until` on."""
        marks = {f"b{bucket}": until for bucket in range(keys.LOG_BUCKETS)}
        self._due.put({**keys.PROJECTED, "since": since, **marks}, Expression("attribute_not_exists(pk)", {}))
        return ProjectionState(since, dict.fromkeys(range(keys.LOG_BUCKETS), until))

    def move(self, buckets: list[int], until: int, quiet_from: int) -> None:
        """The log of these buckets is in the projection up to `until`, and has nothing from `quiet_from` on."""
        if buckets:
            words = ", ".join(f"#b{bucket} = :until" for bucket in buckets)
            change = Expression(f"SET {words}, #quiet_from = :quiet", {":until": until, ":quiet": quiet_from})
            self._due.update(keys.PROJECTED, change)
