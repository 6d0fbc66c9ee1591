"""What is kept of runs by time, where somebody has damaged it: it is made anew from the runs' records.

Ticks name what they meet and leave it as it is: what they know of a window are its changes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from common.clock import Clock
from common.projection.days import day_start
from common.projection.rebuild import Rebuild
from common.projection.tenants import ProjectedTenants, rows_of
from common.projection.windows import ProjectedRuns, ProjectedWindow
from common.storage import keys
from common.storage.table import Query, Tables
from common.storage.wire import Item
from common.timing.instants import DAY_S
from common.truth.contradiction import PROJECTION_CORRUPT, Contradiction, Subject

# Of older windows the days' totals are read, and a list of runs passes over what is damaged.
_LOOKED_AT_S: Final = 2 * DAY_S
_START_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class ProjectionChecks:
    """Reads the windows of the last two days, and the totals of tenants."""

    tables: Tables
    clock: Clock

    def suspects(self, tenants: Iterable[str]) -> Iterator[Subject]:
        """The damaged items."""
        since = f"{day_start(int(self.clock.now())) - _LOOKED_AT_S:0{_START_DIGITS}d}"
        for partition in (keys.PROJECTION, *map(keys.projected_windows, tenants)):
            query = Query(partition, sk_between=(since, keys.LAST), consistent=False)
            yield from (_subject(item) for item in self.tables.runs.query(query) if self._is_damaged(item))

    def has(self, item: Item) -> bool:
        """Whether an item of the runs table is one of these."""
        return item["pk"] in (keys.PROJECTION, keys.projected_windows(_tenant(item["pk"])))

    def look(self, item: Item) -> list[Contradiction]:
        """What contradicts such an item."""
        if not self._is_damaged(item):
            return []
        key, remake = keys.key_of(item), self._remake_window
        if item["pk"] == keys.PROJECTION:
            remake = self._remake_totals
        detail = "it cannot be read: lists and counts lack its runs"
        return [Contradiction(PROJECTION_CORRUPT, _subject(item), detail, partial(remake, key))]

    def _is_damaged(self, item: Item) -> bool:
        if item["pk"] == keys.PROJECTION:
            return rows_of(item) is None or not item["sk"].removeprefix("H").replace("#", "").isdecimal()
        runs, window = ProjectedRuns(self.tables.runs), ProjectedWindow.from_item(item)
        return not runs.is_whole(_tenant(item["pk"]), window)

    def _remake_window(self, key: keys.Key) -> None:
        """Make the day of the window anew; what is no window goes."""
        tables, tenant, start = self.tables, _tenant(key["pk"]), key["sk"]
        runs = ProjectedRuns(tables.runs)
        if not start.isdecimal():
            tables.runs.delete(key)
            return
        rebuild = Rebuild(tables.jobs, tables.runs, tables.due)
        rebuild.day(tenant, day_start(int(start)), self.clock.now())
        if window := runs.window(tenant, int(start)):
            ProjectedTenants(tables.runs).set(keys.log_bucket(tenant), {(tenant, int(start)): window})

    def _remake_totals(self, key: keys.Key) -> None:
        start, _, bucket = key["sk"].partition("#")
        windows = {}
        if start.isdecimal() and bucket.isdecimal():
            runs = ProjectedRuns(self.tables.runs)
            for listed in self.tables.tenants.query(Query(keys.TENANTS, attributes=("sk",))):
                tenant = listed["sk"]
                if keys.log_bucket(tenant) == int(bucket) and (window := runs.window(tenant, int(start))):
                    windows[tenant] = window
        ProjectedTenants(self.tables.runs).remake(key, windows)


def _subject(item: Item) -> Subject:
    return Subject("stored", f"runs {item['pk']} {item['sk']}")


def _tenant(pk: str) -> str:
    return pk.partition("#")[0]
