"""How the planning of each window went: written by ticks and planners after their work, and read by the operator.

It is a record for people. Nothing depends on it, so a crash before it is written costs only that line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item
from common.timing.instants import DAY_S

# A window of ten minutes has one item: TTL bounds their number to about 1,100.
_KEPT_S: Final = 8 * DAY_S


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """The window from `start` to `end`, and the work on it from `began_at` to `ended_at`. Instants are epoch seconds.

    `planned` counts executions that were handed over, again each time that a window was planned again.
    """

    start: int
    end: int
    began_at: float
    ended_at: float
    planned: int = 0
    missed: int = 0
    bad_entries: int = 0
    # How many ticks and planners worked at it.
    ticks: int = 0
    planners: int = 0


class PlannedWindows:
    """The records of windows, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add(self, part: PlannedWindow) -> None:
        """Add what a tick or a planner did to the record of its window."""
        change = Expression(
            "SET #start = if_not_exists(#start, :start), #began_at = if_not_exists(#began_at, :began_at),"
            " #ended_at = :ended_at, #expires_at = :expires_at"
            " ADD #planned :planned, #missed :missed, #bad :bad, #ticks :ticks, #planners :planners",
            {
                ":start": part.start,
                ":began_at": part.began_at,
                ":ended_at": part.ended_at,
                ":expires_at": int(part.ended_at) + _KEPT_S,
                ":planned": part.planned,
                ":missed": part.missed,
                ":bad": part.bad_entries,
                ":ticks": part.ticks,
                ":planners": part.planners,
            },
        )
        self._table.update(keys.planned_window(part.end), change)

    def newest(self, limit: int) -> list[PlannedWindow]:
        """The last windows, the newest first."""
        return [
            _window(item) for item in self._table.query(Query(keys.WINDOWS, newest_first=True, limit=limit))
        ]


def _window(item: Item) -> PlannedWindow:
    return PlannedWindow(
        start=item["start"],
        end=int(item["sk"]),
        began_at=float(item["began_at"]),
        ended_at=float(item["ended_at"]),
        planned=item.get("planned", 0),
        missed=item.get("missed", 0),
        bad_entries=item.get("bad", 0),
        ticks=item.get("ticks", 0),
        planners=item.get("planners", 0),
    )
