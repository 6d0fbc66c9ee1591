"""Totals of many runs: counts by outcome, success rate, lateness and duration. Pure.

Totals keep each value with its number of occurrences. Merging two totals therefore gives exactly the totals of all
their runs, percentiles included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from common.projection.entry import RunEntry
from common.runs.run import Run
from common.runs.states import DISPATCHED, ENDED, FAILED, SKIPPED, SKIPPED_ON_REQUEST, SUCCEEDED
from common.timing.instants import rfc3339

PERCENTILES: Final = (50, 95, 99)
# A run that starts later than this is counted as late.
LATE_S: Final = 1.0
HOUR_S: Final = 3_600
Value = TypeVar("Value", str, float)


class RunTotals(Struct, omit_defaults=True):
    """The runs of some time."""

    statuses: dict[str, int] = {}
    # Of the skipped runs: reason -> how often.
    reasons: dict[str, int] = {}
    # Of started runs (lateness) and of runs that succeeded or failed (duration): value -> how often.
    lateness_s: dict[float, int] = {}
    duration_s: dict[float, int] = {}

    def add(self, run: Run) -> None:
        """Add one run. A record of skipped fire times counts as many runs as it has fire times."""
        entry = RunEntry.of_run(run)
        self.add_entry(structs.replace(entry, lateness_s=run.lateness_s, duration_s=run.duration_s))

    def add_entry(self, entry: RunEntry) -> None:
        """Add one run as the projection has it."""
        self._add_entry(entry, 1)

    def take_entry(self, entry: RunEntry) -> None:
        """The inverse of `add_entry`."""
        self._add_entry(entry, -1)

    def _add_entry(self, entry: RunEntry, sign: int) -> None:
        _count(self.statuses, entry.status, sign * entry.fires)
        if entry.status == SKIPPED:
            _count(self.reasons, entry.reason, sign * entry.fires)
        if entry.lateness_s is not None:
            _count(self.lateness_s, entry.lateness_s, sign)
        if entry.status in (SUCCEEDED, FAILED) and entry.duration_s is not None:
            _count(self.duration_s, entry.duration_s, sign)

    def merge(self, other: RunTotals) -> None:
        """Add the runs of another time."""
        _add(self.statuses, other.statuses)
        _add(self.reasons, other.reasons)
        _add(self.lateness_s, other.lateness_s)
        _add(self.duration_s, other.duration_s)

    @property
    def runs(self) -> int:
        """How many runs these are."""
        return sum(self.statuses.values())

    def to_json(self, *, values: bool = False) -> dict[str, Any]:
        """The JSON that the API shows; with `values`, each value with its number."""
        return {
            "runs": self.runs,
            "statuses": dict(sorted(self.statuses.items())),
            "reasons": dict(sorted(self.reasons.items())),
            "due": due(self.statuses, self.reasons),
            "success_rate": success_rate(self.statuses, self.reasons),
            "lateness_s": _spread(self.lateness_s, values),
            "duration_s": _spread(self.duration_s, values),
        }


@dataclass(slots=True)
class HourlyTotals:
    """Totals by the hour of the fire time: the hour's start in epoch seconds."""

    hours: dict[int, RunTotals] = field(default_factory=dict)

    def add(self, at: int, totals: RunTotals) -> None:
        """Add the totals of some runs that are all in the hour of `at`."""
        self.hours.setdefault(at - at % HOUR_S, RunTotals()).merge(totals)


def due(statuses: Mapping[str, int], reasons: Mapping[str, int]) -> int:
    """How many runs were to run and have ended: without those that go on, or were skipped because somebody asked."""
    on_request = sum(reasons.get(reason, 0) for reason in SKIPPED_ON_REQUEST)
    return sum(statuses.get(status, 0) for status in ENDED) - on_request


def success_rate(statuses: Mapping[str, int], reasons: Mapping[str, int]) -> float | None:
    """The share of those that succeeded, or were handed to a service that accepted them; None if none was due."""
    were_due = due(statuses, reasons)
    good = statuses.get(SUCCEEDED, 0) + statuses.get(DISPATCHED, 0)
    return round(good / were_due, 6) if were_due else None


def percentiles(values: Mapping[float, int]) -> list[float]:
    """PERCENTILES by nearest rank: the least value that at least this share of all values does not exceed."""
    size = sum(values.values())
    # Integers, because 0.07 * 100 is more than 7.
    ranks = [-(-percent * size // 100) for percent in PERCENTILES]
    values_at: list[float] = []
    below = 0
    for value, count in sorted(values.items()):
        below += count
        while len(values_at) < len(ranks) and ranks[len(values_at)] <= below:
            values_at.append(value)
    return values_at


def _spread(values: Mapping[float, int], with_values: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"count": sum(values.values())}
    if values:
        names = [f"p{percent}" for percent in PERCENTILES]
        shown |= dict(zip(names, percentiles(values), strict=True)) | {"max": max(values)}
    return shown | ({"values": sorted(values.items())} if with_values else {})


def _add(counts: dict[Value, int], more: Mapping[Value, int]) -> None:
    for value, count in more.items():
        counts[value] = counts.get(value, 0) + count


def _count(counts: dict[Value, int], value: Value, more: int) -> None:
    """Add to a count, and forget it at 0, so that equal totals are equal."""
    if count := counts.get(value, 0) + more:
        counts[value] = count
    else:
        counts.pop(value, None)


@dataclass(slots=True)
class Summary:
    """Runs by day."""

    days: dict[str, RunTotals] = field(default_factory=dict)
    # The number of added records.
    records: int = 0

    @classmethod
    def of_runs(cls, runs: Iterable[Run]) -> Summary:
        """The days of some runs."""
        summary = cls()
        for run in runs:
            summary.records += 1
            summary.days.setdefault(rfc3339(run.fire_at)[:10], RunTotals()).add(run)
        return summary

    @classmethod
    def of_hours(cls, hourly: HourlyTotals) -> Summary:
        """The days of totals by hour."""
        summary = cls()
        for hour, totals in hourly.hours.items():
            summary.days.setdefault(rfc3339(hour)[:10], RunTotals()).merge(totals)
        summary.records = sum(totals.runs for totals in hourly.hours.values())
        return summary

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
