"""What became of many runs, by UTC day of their fire times: counts, success rate, lateness and duration. Pure.

A summary keeps every value with how often it occurred, so that two of them merge to exactly what one over all the runs
would be, percentiles too.
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
class Day:
    """One day's runs, or those of several days."""

    statuses: Counter[str] = field(default_factory=Counter)
    # Of the skipped ones.
    reasons: Counter[str] = field(default_factory=Counter)
    # Of those that were started, and of those that ended well or not: value -> how often.
    lateness_s: Counter[float] = field(default_factory=Counter)
    duration_s: Counter[float] = field(default_factory=Counter)

    def add(self, item: Mapping[str, Any]) -> None:
        """One record; it counts as many as the skipped fire times that it tells of."""
        status, count = item["status"], item.get("skipped_count", 1)
        self.statuses[status] += count
        if status == SKIPPED:
            self.reasons[item["reason"]] += count
        if "lateness_s" in item:
            self.lateness_s[item["lateness_s"]] += 1
        if status in (SUCCEEDED, FAILED) and "duration_s" in item:
            self.duration_s[item["duration_s"]] += 1

    def merge(self, other: Day) -> None:
        self.statuses.update(other.statuses)
        self.reasons.update(other.reasons)
        self.lateness_s.update(other.lateness_s)
        self.duration_s.update(other.duration_s)

    def to_json(self, *, values: bool = False) -> dict[str, Any]:
        """As the API shows it; with `values` it can be read again."""
        return {
            "runs": self.statuses.total(),
            "statuses": dict(sorted(self.statuses.items())),
            "reasons": dict(sorted(self.reasons.items())),
            "success_rate": success_rate(self.statuses),
            "lateness_s": _spread(self.lateness_s, values),
            "duration_s": _spread(self.duration_s, values),
        }

    @classmethod
    def of_json(cls, shown: Mapping[str, Any]) -> Day:
        """The inverse of `to_json` with values."""
        spreads = (Counter(dict(shown[name]["values"])) for name in ("lateness_s", "duration_s"))
        return cls(Counter(shown["statuses"]), Counter(shown["reasons"]), *spreads)


@dataclass(slots=True)
class Summary:
    """Runs by day."""

    days: dict[str, Day] = field(default_factory=dict)
    # How many records it is made of.
    records: int = 0

    def add(self, item: Mapping[str, Any]) -> None:
        self.records += 1
        self.days.setdefault(rfc3339(item["fire_at"])[:10], Day()).add(item)

    def merge(self, days: Iterable[tuple[str, Day]]) -> None:
        """Other runs of the same or other days."""
        for date, day in days:
            self.days.setdefault(date, Day()).merge(day)

    def total(self) -> Day:
        """All days as one."""
        total = Day()
        for day in self.days.values():
            total.merge(day)
        return total

    def to_json(self, *, values: bool = False) -> dict[str, Any]:
        """The days that have runs, newest first, and their total."""
        days = [
            {"date": date, **self.days[date].to_json(values=values)}
            for date in sorted(self.days, reverse=True)
        ]
        return {"days": days, "total": self.total().to_json()}


def success_rate(statuses: Mapping[str, int]) -> float | None:
    """The part that succeeded of what succeeded or failed for good; None if nothing did either.

    What was skipped, is still going, or was handed over (`dispatched`) says nothing about the target and is left out.
    """
    ended = statuses.get(SUCCEEDED, 0) + statuses.get(FAILED, 0)
    return round(statuses.get(SUCCEEDED, 0) / ended, 6) if ended else None


def percentiles(values: Mapping[float, int], wanted: Iterable[int] = PERCENTILES) -> list[float]:
    """By nearest rank: the least value that so many per cent of all are not above. `wanted` rises."""
    size = sum(values.values())
    # Whole numbers, since 0.07 * 100 is more than 7.
    ranks = [-(-percent * size // 100) for percent in wanted]
    found: list[float] = []
    below = 0
    for value, count in sorted(values.items()):
        below += count
        while len(found) < len(ranks) and ranks[len(found)] <= below:
            found.append(value)
    return found


def _spread(values: Counter[float], with_values: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"count": values.total()}
    if values:
        names = [f"p{percent}" for percent in PERCENTILES]
        shown |= dict(zip(names, percentiles(values), strict=True)) | {"max": max(values)}
    return shown | ({"values": sorted(values.items())} if with_values else {})
