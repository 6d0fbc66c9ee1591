"""Totals of many runs by UTC day of their fire times. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from common.projection.totals import HourlyTotals, RunTotals
from common.runs.run import Run
from common.timing.instants import rfc3339


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
        summary.records = sum(totals.statuses.total() for totals in hourly.hours.values())
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
