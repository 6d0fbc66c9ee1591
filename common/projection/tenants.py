"""The totals of all tenants in each window, for the platform: an item for each bucket of tenants."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.projection.totals import LATE_S
from common.projection.windows import ProjectedWindow
from common.runs.states import FAILED
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item
from common.texts import packed, unpacked
from common.timing.instants import DAY_S

RETENTION_S: Final = 8 * DAY_S
_MAX_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class TenantTotals:
    """The runs of a tenant: how many, how many of them failed or were late, and how late the latest one was."""

    runs: int = 0
    failed: int = 0
    late: int = 0
    max_lateness_s: float = 0.0

    @classmethod
    def of_window(cls, window: ProjectedWindow) -> TenantTotals:
        lateness_s = window.totals.lateness_s
        return cls(
            window.totals.statuses.total(),
            window.totals.statuses.get(FAILED, 0),
            sum(count for value, count in lateness_s.items() if value > LATE_S),
            max(lateness_s, default=0.0),
        )

    def __add__(self, other: TenantTotals) -> TenantTotals:
        return TenantTotals(
            self.runs + other.runs,
            self.failed + other.failed,
            self.late + other.late,
            max(self.max_lateness_s, other.max_lateness_s),
        )


class ProjectedTenants:
    """The items, in the runs table."""

    def __init__(self, runs: Table) -> None:
        self._table = runs

    def set(self, bucket: int, windows: Mapping[tuple[str, int], ProjectedWindow]) -> None:
        """Put the totals of some tenants' windows, by tenant and start, in place of those before. Raises Busy."""
        by_start: defaultdict[int, dict[str, TenantTotals]] = defaultdict(dict)
        newest = max((start for _, start in windows), default=0)
        for (tenant, start), window in windows.items():
            if start > newest - RETENTION_S:
                by_start[start][tenant] = TenantTotals.of_window(window)
        for start, totals in by_start.items():
            self._set(start, bucket, totals)

    def _set(self, start: int, bucket: int, totals: Mapping[str, TenantTotals]) -> None:
        key = keys.projected_tenants(start, bucket)
        for _ in range(_MAX_TRIES):
            stored = self._table.get(key)
            before = _totals(stored) if stored else {}
            after = {**before, **totals}
            if after == before:
                return
            unchanged = Expression("attribute_not_exists(pk)", {})
            if stored:
                unchanged = Expression("#version = :before", {":before": stored["version"]})
            version = stored["version"] + 1 if stored else 1
            item = {**key, "version": version, "tenants": _text(after), "expires_at": start + RETENTION_S}
            try:
                self._table.put(item, unchanged)
            except ConditionFailed:
                continue
            return

    def between(self, start: int, end: int) -> Iterator[tuple[int, dict[str, TenantTotals]]]:
        """The totals of the windows that start in [start, end), a bucket of tenants at a time."""
        span = f"{start:010d}", f"{end:010d}"
        for item in self._table.query(Query(keys.PROJECTION, sk_between=span, consistent=False)):
            yield int(item["sk"].partition("#")[0]), _totals(item)


def _text(totals: Mapping[str, TenantTotals]) -> str:
    shown = {
        tenant: [each.runs, each.failed, each.late, each.max_lateness_s]
        for tenant, each in sorted(totals.items())
    }
    return packed(json.dumps(shown, separators=(",", ":")))


def _totals(item: Mapping[str, Any] | Item) -> dict[str, TenantTotals]:
    return {
        tenant: TenantTotals(*numbers) for tenant, numbers in json.loads(unpacked(item["tenants"])).items()
    }
