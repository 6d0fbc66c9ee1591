"""The totals of past days by hour, each one item, so that a week is read in one request.

A day is rolled up once it is over, and again when a run of it changes. A day that is not rolled up is read from its
windows: the item only saves reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import ClassVar, Final

from common.errors import Damaged
from common.projection.entry import OPEN
from common.projection.totals import HourlyTotals, RunTotals
from common.projection.windows import ProjectedRuns
from common.storage import keys
from common.storage.stored import Stored
from common.storage.table import Query, Table
from common.storage.wire import Item
from common.timing.instants import DAY_S, rfc3339

# Where the partition has days; what else it has begins with letters.
_DATES: Final = ("0", ":")


class DayTotals(Stored, frozen=True):
    """The runs of the day that starts at `start`, by the hour in epoch seconds."""

    packed: ClassVar = ("hours",)

    tenant: str
    start: int
    hours: dict[int, RunTotals]
    expires_at: int

    @property
    def key(self) -> keys.Key:
        return keys.projected_day(self.tenant, date_of(self.start))

    @classmethod
    def readable(cls, items: Iterable[Item]) -> Iterator[DayTotals]:
        """Of these days those that can be read: of the others the windows are read."""
        for item in items:
            with suppress(Damaged):
                yield cls.from_item(item)


class ProjectedDays:
    """The rolled-up days, in the runs table."""

    def __init__(self, runs: Table) -> None:
        self._table = runs
        self._windows = ProjectedRuns(runs)

    def missing(self, tenants: Iterable[str], start: int) -> list[str]:
        """Those of the tenants whose day is not rolled up."""
        day_keys = {tenant: keys.projected_day(tenant, date_of(start)) for tenant in tenants}
        items = self._table.get_many(list(day_keys.values()), consistent=False, attributes=("pk",))
        rolled_up = {item["pk"] for item in items}
        return [tenant for tenant, key in day_keys.items() if key["pk"] not in rolled_up]

    def not_ended(self, tenant: str, until: int) -> Iterator[tuple[int, int]]:
        """The times before `until` that are not in a rolled-up day whose runs have all ended."""
        items = self._table.query(Query(keys.projected_days(tenant), sk_between=_DATES))
        start = 0
        for day in DayTotals.readable(items):
            if any(OPEN & totals.statuses.keys() for totals in day.hours.values()):
                continue
            if start < day.start:
                yield start, day.start
            start = day.start + DAY_S
        yield start, until

    def roll_up(self, tenant: str, start: int, *, only_again: bool = False) -> None:
        """Write the totals of the day that starts at `start`; `only_again`: if it was rolled up before.

        Raises Busy, Damaged.
        """

        def rolled_up(stored: Item | None) -> tuple[Item | None, None]:
            """Reads the windows after the item, and is called again if another roll-up was faster."""
            if only_again and stored is None:
                return None, None
            hourly, expires_at = HourlyTotals(), 0
            for window in self._windows.between(tenant, start, start + DAY_S, consistent=True):
                self._windows.require_readable(tenant, window)
                hourly.add(window.start, window.totals)
                expires_at = max(expires_at, window.expires_at)
            if not hourly.hours:
                return None, None
            return DayTotals(tenant, start, hourly.hours, expires_at).to_item(), None

        self._table.swap(keys.projected_day(tenant, date_of(start)), rolled_up, read=True)


def day_keys(tenant: str, start: int, end: int) -> list[keys.Key]:
    """The keys of the rolled-up days that start in [start, end), both at the start of a day. Pure."""
    return [keys.projected_day(tenant, date_of(at)) for at in range(start, end, DAY_S)]


def day_start(at: int) -> int:
    """The start of the UTC day of `at`."""
    return at - at % DAY_S


def date_of(at: int) -> str:
    """The UTC date of an instant."""
    return rfc3339(at)[:10]
