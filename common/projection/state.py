"""How far the projection is: from when on it has all runs, and up to where ticks have followed the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Expression, Item

_REBUILT: Final = "REBUILT"


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """`since`: fire times from then on are in the projection. `until`: by bucket of tenants, the end of its log."""

    since: int
    until: dict[int, int] = field(default_factory=dict)

    def until_of(self, tenant: str) -> int:
        """Up to where the log of a tenant's executions is in the projection."""
        return self.until.get(keys.log_bucket(tenant), self.since)

    @classmethod
    def from_item(cls, item: Item) -> ProjectionState:
        until = {bucket: item[f"b{bucket}"] for bucket in range(keys.LOG_BUCKETS) if f"b{bucket}" in item}
        return cls(item["since"], until)


class ProjectionStates:
    """The state of the projection in the due table, and of tenants whose runs were projected again."""

    def __init__(self, due: Table, runs: Table) -> None:
        self._due = due
        self._runs = runs

    def read(self) -> ProjectionState | None:
        """None: no tick has begun a projection yet."""
        item = self._due.get(keys.PROJECTED)
        return ProjectionState.from_item(item) if item else None

    def begin(self, since: int, until: int) -> ProjectionState:
        """Begin the projection: the log is followed from `until` on."""
        marks = {f"b{bucket}": until for bucket in range(keys.LOG_BUCKETS)}
        self._due.put({**keys.PROJECTED, "since": since, **marks}, Expression("attribute_not_exists(pk)", {}))
        return ProjectionState(since, dict.fromkeys(range(keys.LOG_BUCKETS), until))

    def move(self, buckets: list[int], until: int) -> None:
        """The log of these buckets is in the projection up to `until`."""
        if buckets:
            words = ", ".join(f"#b{bucket} = :until" for bucket in buckets)
            self._due.update(keys.PROJECTED, Expression(f"SET {words}", {":until": until}))

    def rebuilt_since(self, tenant: str) -> int | None:
        """From when on the tenant's runs were projected again; None: never."""
        item = self._runs.get(self._rebuilt(tenant), consistent=False)
        return int(item["since"]) if item else None

    def note_rebuilt(self, tenant: str, since: int, expires_at: int) -> None:
        """All runs of the tenant from `since` on are projected."""
        self._runs.put({**self._rebuilt(tenant), "since": since, "expires_at": expires_at})

    def _rebuilt(self, tenant: str) -> keys.Key:
        return {"pk": keys.projected_days(tenant), "sk": _REBUILT}
