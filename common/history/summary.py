"""Totals of many runs by UTC day of their fire times: counts, success rate, lateness and duration. Pure.

A summary keeps each value with its number of occurrences. Merging two summaries therefore gives exactly the summary of
all their runs, percentiles included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from common.runs.states import FAILED, SKIPPED, SUCCEEDED
from common.timing.instants import rfc3339

PERCENTILES: Final = (50, 95, 99)


@dataclass(slots=True)
class RunTotals:
    """The runs of one day, or of several days."""

    statuses: Counter[str] = field(default_factory=Counter)
    # Of the skipped runs: reason -> how often.
    reasons: Counter[str] = field(default_factory=Counter)
    # Of started runs (lateness) and of runs that succeeded or failed (duration): value -> how often.
    lateness_s: Counter[float] = field(default_factory=Counter)
    duration_s: Counter[float] = field(default_factory=Counter)

    def add(self, item: Mapping[str, Any]) -> None:
        """Add one record. A record of skipped fire times counts as many runs as it has fire times."""
        status, count = item["status"], item.get("skipped_count", 1)
        self.statuses[status] += count
        if status == SKIPPED:
            self.reasons[item["reason"]] += count
        if "lateness_s" in item:
            self.lateness_s[item["lateness_s"]] += 1
        if status in (SUCCEEDED, FAILED) and "duration_s" in item:
            self.duration_s[item["duration_s"]] += 1

    def merge(self, other: RunTotals) -> None:
        """Add the runs of another day."""
        self.statuses.update(other.statuses)
        self.reasons.update(other.reasons)
        self.lateness_s.update(other.lateness_s)
        self.duration_s.update(other.duration_s)

    def to_json(self, *, values: bool = False) -> dict[str, Any]:
        """The JSON that the API shows; with `values`, `of_json` can read it again."""
        return {
            "runs": self.statuses.total(),
            "statuses": dict(sorted(self.statuses.items())),
            "reasons": dict(sorted(self.reasons.items())),
            "success_rate": success_rate(self.statuses),
            "lateness_s": _spread(self.lateness_s, values),
            "duration_s": _spread(self.duration_s, values),
        }

    @classmethod
    def of_json(cls, shown: Mapping[str, Any]) -> RunTotals:
        """The inverse of `to_json(values=True)`."""
        spreads = (Counter(dict(shown[name]["values"])) for name in ("lateness_s", "duration_s"))
        return cls(Counter(shown["statuses"]), Counter(shown["reasons"]), *spreads)


@dataclass(slots=True)
class Summary:
    """Runs by day."""

    days: dict[str, RunTotals] = field(default_factory=dict)
    # The number of added records.
    records: int = 0

    def add(self, item: Mapping[str, Any]) -> None:
        """Add one record to its day."""
        self.records += 1
        self.days.setdefault(rfc3339(item["fire_at"])[:10], RunTotals()).add(item)

    def merge(self, days: Iterable[tuple[str, RunTotals]]) -> None:
        """Add runs of the same or other days."""
        for date, day in days:
            self.days.setdefault(date, RunTotals()).merge(day)

    def total(self) -> RunTotals:
        """All days merged into one."""
        total = RunTotals()
        for day in self.days.values():
            total.merge(day)
        return total

    def to_json(self, *, values: bool = False) -> dict[str, Any]:
        """The days with runs, newest first, and their total."""
        days = [
            {"date": date, **self.days[date].to_json(values=values)}
            for date in sorted(self.days, reverse=True)
        ]
        return {"days": days, "total": self.total().to_json()}


def success_rate(statuses: Mapping[str, int]) -> float | None:
    """Succeeded runs divided by succeeded and failed runs; None if there are neither.

    Skipped, unfinished and `dispatched` runs say nothing about the target and are left out.
    """
    ended = statuses.get(SUCCEEDED, 0) + statuses.get(FAILED, 0)
    return round(statuses.get(SUCCEEDED, 0) / ended, 6) if ended else None


def percentiles(values: Mapping[float, int], percents: Iterable[int] = PERCENTILES) -> list[float]:
    """By nearest rank: the least value that at least this share of all values does not exceed. `percents` rises."""
    size = sum(values.values())
    # Integers, because 0.07 * 100 is more than 7.
    ranks = [-(-percent * size // 100) for percent in percents]
    values_at: list[float] = []
    below = 0
    for value, count in sorted(values.items()):
        below += count
        while len(values_at) < len(ranks) and ranks[len(values_at)] <= below:
            values_at.append(value)
    return values_at


def _spread(values: Counter[float], with_values: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"count": values.total()}
    if values:
        names = [f"p{percent}" for percent in PERCENTILES]
        shown |= dict(zip(names, percentiles(values), strict=True)) | {"max": max(values)}
    return shown | ({"values": sorted(values.items())} if with_values else {})
