"""The totals of all tenants in each window and in each hour that is over: an item for each bucket of tenants."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Annotated, Any, Final

from msgspec import Meta
from msgspec.json import Decoder

from common.projection.totals import HOUR_S, LATE_S
from common.projection.windows import ProjectedWindow
from common.runs.states import FAILED, SKIPPED
from common.storage import keys
from common.storage.stored import packed, unpacked
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S

RETENTION_S: Final = 8 * DAY_S


@dataclass(frozen=True, slots=True)
class TenantTotals:
    """The runs of a tenant: how many, how many failed, were late or skipped, and how late the latest one was."""

    runs: int = 0
    failed: int = 0
    late: int = 0
    max_lateness_s: float = 0.0
    # Of windows before this was counted: 0.
    skipped: int = 0

    @classmethod
    def of_window(cls, window: ProjectedWindow) -> TenantTotals:
        totals = window.totals
        return cls(
            totals.runs,
            totals.statuses.get(FAILED, 0),
            sum(count for value, count in totals.lateness_s.items() if value > LATE_S),
            max(totals.lateness_s, default=0.0),
            totals.statuses.get(SKIPPED, 0),
        )

    @classmethod
    def sum(cls, totals: Iterable[TenantTotals]) -> TenantTotals:
        """The totals of all of them."""
        rows = [_row(each) for each in totals]
        return cls(*_summed(rows)) if rows else cls()


# The fields of a TenantTotals. Of a day of a thousand tenants there are 24,000: objects would take too long.
_Row = Sequence[Any]
_Totals = dict[str, TenantTotals]
_ROWS: Final = Decoder(dict[str, Annotated[list[int | float], Meta(max_length=5)]])


@dataclass(slots=True)
class PlatformTotals:
    """The totals of each tenant, and those of all tenants by hour."""

    _tenants: defaultdict[str, list[_Row]] = field(default_factory=lambda: defaultdict(list))
    _hours: defaultdict[int, list[_Row]] = field(default_factory=lambda: defaultdict(list))

    def add(self, hour: int, rows: Mapping[str, _Row]) -> None:
        """Add what some tenants have in an hour, or in a part of it."""
        for tenant, row in rows.items():
            self._tenants[tenant].append(row)
        self._hours[hour] += rows.values()

    @property
    def tenants(self) -> dict[str, TenantTotals]:
        """The totals of each tenant that had runs."""
        return {tenant: TenantTotals(*_summed(rows)) for tenant, rows in self._tenants.items()}

    @property
    def hours(self) -> dict[int, TenantTotals]:
        """The totals of all tenants by the start of the hour."""
        return {hour: TenantTotals(*_summed(rows)) for hour, rows in self._hours.items() if rows}


class ProjectedTenants:
    """The items, in the runs table."""

    def __init__(self, runs: Table) -> None:
        self._table = runs

    def set(self, bucket: int, windows: Mapping[tuple[str, int], ProjectedWindow]) -> list[str]:
        """Put the totals of some tenants' windows, by tenant and start, in place of those before. Raises Busy.

        Returns the sort keys of damaged items. They stay as they are, since other tenants' totals would be lost.
        """
        by_start: defaultdict[int, dict[str, TenantTotals]] = defaultdict(dict)
        newest = max((start for _, start in windows), default=0)
        for (tenant, start), window in windows.items():
            if start > newest - RETENTION_S:
                by_start[start][tenant] = TenantTotals.of_window(window)
        damaged = [start for start, totals in by_start.items() if not self._set(start, bucket, totals)]
        hours = {hour_of(start) for start in by_start}
        # The last window of an hour may have no runs.
        for hour in sorted(hours | {hour_of(newest) - HOUR_S} if hours else hours):
            if hour + HOUR_S <= newest + WINDOW_S:
                self._roll_up(hour, bucket)
        return [keys.projected_tenants(start, bucket)["sk"] for start in damaged]

    def remake(self, key: keys.Key, windows: Mapping[str, ProjectedWindow]) -> None:
        """Make an item of a window anew, from what its bucket's tenants have there; one of an hour, or none, goes."""
        self._table.delete(key)
        if window := next(iter(windows.values()), None):
            start, bucket = window.start, int(key["sk"].partition("#")[2])
            self._table.delete(keys.projected_tenants_hour(hour_of(start), bucket))
            self.set(bucket, {(tenant, start): window for tenant, window in windows.items()})

    def _set(self, start: int, bucket: int, totals: Mapping[str, TenantTotals]) -> bool:
        """Whether what is stored can be read, and so was written."""

        def after(before: _Totals | None) -> _Totals | None:
            return None if before is None else {**before, **totals}

        return self._change(keys.projected_tenants(start, bucket), start, after)

    def _roll_up(self, hour: int, bucket: int) -> None:
        """Write the totals of an hour. Each change of a window is followed by this, so the last one has all."""

        def after(_: _Totals | None) -> _Totals | None:
            starts = range(hour, hour + HOUR_S, WINDOW_S)
            items = self._table.get_many([keys.projected_tenants(start, bucket) for start in starts])
            of_hour = PlatformTotals()
            for item in items:
                if (rows := rows_of(item)) is None:
                    return None
                of_hour.add(hour, rows)
            return of_hour.tenants

        self._change(keys.projected_tenants_hour(hour, bucket), hour, after)

    def _change(self, key: keys.Key, start: int, change: Callable[[_Totals | None], _Totals | None]) -> bool:
        """Whether it was made; `change` gets and returns None for what is damaged."""

        def changed(stored: Item | None) -> tuple[Item | None, bool]:
            before = _totals(stored) if stored else {}
            after = change(before)
            if after is None or after == before:
                return stored, after is not None
            return {"tenants": _text(after), "expires_at": start + RETENTION_S}, True

        _, is_made = self._table.swap(key, changed, read=True)
        return is_made

    def between(self, start: int, end: int) -> PlatformTotals:
        """The totals of the hours that begin in [start, end), and of the windows of those that are not over."""
        totals, read = PlatformTotals(), set()
        span = f"H{hour_of(start):010d}", f"H{end - 1:010d}#~"
        for item in self._table.query(Query(keys.PROJECTION, sk_between=span, consistent=False)):
            hour, bucket = item["sk"][1:].split("#")
            if rows := rows_of(item):
                read.add((int(hour), bucket))
                totals.add(int(hour), rows)
        span = f"{hour_of(start):010d}", f"{end - 1:010d}#~"
        listed = self._table.query(
            Query(keys.PROJECTION, sk_between=span, attributes=("sk",), consistent=False)
        )
        remaining: list[keys.Key] = []
        for item in listed:
            start_text, bucket = item["sk"].split("#")
            if (hour_of(int(start_text)), bucket) not in read:
                remaining.append({"pk": keys.PROJECTION, "sk": item["sk"]})
        for item in self._table.get_many(remaining, consistent=False):
            totals.add(hour_of(int(item["sk"].partition("#")[0])), rows_of(item) or {})
        return totals


def hour_of(at: int) -> int:
    """The start of the hour of an instant."""
    return at - at % HOUR_S


def _text(totals: Mapping[str, TenantTotals]) -> str:
    shown = {tenant: _row(each) for tenant, each in sorted(totals.items())}
    return packed(json.dumps(shown, separators=(",", ":")))


def _totals(item: Item) -> _Totals | None:
    rows = rows_of(item)
    return None if rows is None else {tenant: TenantTotals(*row) for tenant, row in rows.items()}


def rows_of(item: Item) -> Mapping[str, _Row] | None:
    """The rows of an item by tenant; None: somebody has damaged it."""
    try:
        return _ROWS.decode(unpacked(item["tenants"]))
    except DAMAGE:
        return None


def _row(totals: TenantTotals) -> _Row:
    return totals.runs, totals.failed, totals.late, totals.max_lateness_s, totals.skipped


def _summed(rows: Sequence[_Row]) -> tuple[int, int, int, float, int]:
    runs, failed, late, lateness_s, *skipped = zip_longest(*rows, fillvalue=0)
    return sum(runs), sum(failed), sum(late), max(lateness_s), sum(map(sum, skipped))
