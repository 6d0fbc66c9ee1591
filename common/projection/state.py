"""How far the projection is: from when on it has all runs, and up to where ticks have followed the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from common.cache import Cache
from common.storage import keys
from common.storage.table import Table

# The chore's name (scheduler/chores.py).
PROJECTION: Final = "projection"
# Ticks move the state every ten minutes.
_RECENT_S: Final = 30


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """`since`: fire times from then on are in the projection. `until`: by bucket of tenants, the end of its log."""

    since: int = 0
    until: dict[int, int] = field(default_factory=dict)

    def until_of(self, tenant: str) -> int:
        """Up to where the log of a tenant's executions is in the projection."""
        return self.until.get(keys.log_bucket(tenant), self.since)

    @classmethod
    def stored(cls, position: Mapping[str, Any] | None) -> ProjectionState | None:
        """The state at a position of the chore; None if there is none that can be read. Pure."""
        match position:
            case {"since": int(since), "until": [*ends]}:
                return cls(since, {bucket: end for bucket, end in enumerate(ends) if isinstance(end, int)})
        return None

    @property
    def position(self) -> Mapping[str, Any]:
        """What is stored of it."""
        return {"since": self.since, "until": [self.until.get(bucket) for bucket in range(keys.LOG_BUCKETS)]}


class ProjectionStates:
    """The state of the projection in the due table."""

    def __init__(self, due: Table) -> None:
        self._due = due
        self._recent: Cache[tuple[()], ProjectionState] = Cache(_RECENT_S, 1)

    def read(self) -> ProjectionState | None:
        """None: no tick has begun a projection yet."""
        return ProjectionState.stored((self._due.get(keys.chore(PROJECTION)) or {}).get("at"))

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
