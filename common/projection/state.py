"""How far the projection is: from when on it has all runs, and up to where ticks have followed the log; and when a run
that is not over, or has no record yet, is read again.

What it has read outlives the runs: the log of planning and of looks is in another table. So after a restore of the runs
it tells which executions had a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from common.cache import Cache
from common.planning.execution import Execution
from common.planning.log import AGAIN, AGAIN_PLANNED, AGAIN_RECORDED, PLANNED, ExecutionLog
from common.runs.run import STUCK_AFTER_S
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import DAMAGE
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start

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
        """Before which nothing ran, as the deployment was new then; None: planned_until was lost since."""
        since: int | None = (self._due.get(keys.PROGRESS) or {}).get("new_since")
        return since


# After this time without a record a run will not have one, unless it is noted as changed then.
NO_RECORD_AFTER_S: Final = DAY_S
_FAR_AT: Final = 9_999_999_999


class Again(NamedTuple):
    """When to read an execution's run again, and the kind of the look (common/planning/log.py)."""

    at: int
    execution: Execution
    kind: str = AGAIN


def had_records(log: ExecutionLog, bucket: int, begin: int, until: int, among: set[str]) -> set[str]:
    """Of these ids, those of planned executions of windows in [begin, until) that had a record when ticks read it.

    `until`: up to where ticks have followed the bucket's log. What had none is noted, to be looked at again. No other
    ids of the log, which has those of two days, are kept in memory.
    """
    by_kind: dict[str, set[str]] = {PLANNED: set(), AGAIN_PLANNED: set(), AGAIN_RECORDED: set()}
    for chunk in log.chunks(begin, _FAR_AT, bucket):
        if chunk.kind not in by_kind or (chunk.kind == PLANNED and chunk.window >= until):
            continue
        with suppress(*DAMAGE):  # of a later version, or damaged: the projector says so
            by_kind[chunk.kind] |= among & {Execution.decode(body).execution_id for body in chunk.bodies()}
    return (by_kind[PLANNED] - by_kind[AGAIN_PLANNED]) | by_kind[AGAIN_RECORDED]


def next_look(execution: Execution, goes_on_at: float, now: float) -> int:
    """When to read a run again that is not over. Pure.

    `goes_on_at`: when its lease ends, or its next attempt is due; 0: it waits for neither. If it has not gone on soon
    after, it is stuck, and that tick finds it. Else in a quarter of its age.
    """
    if goes_on_at + STUCK_AFTER_S >= now:
        at = max(now + WINDOW_S, goes_on_at + STUCK_AFTER_S)
    else:
        at = now + max(WINDOW_S, (now - execution.visible_at) / 4)
    return window_start(int(at))
