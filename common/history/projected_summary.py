"""What became of all runs of a tenant by hour, from the projection: five requests for any number of runs.

Rolled-up days are one item each; the other windows have their totals. What is newer than the projection is counted from
the records. If these are too many for one look, the answer says up to when it counts. Live runs are read first: a
window that is written meanwhile has them too, and each run counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from common.history.live_runs import LiveRecords
from common.history.runs_by_time import RunsByTime
from common.projection.days import DayTotals, day_keys, day_start
from common.projection.entry import RunEntry
from common.projection.state import ProjectionState
from common.projection.totals import HOUR_S, HourlyTotals, RunTotals
from common.projection.windows import ProjectedWindow, totals_of
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start


@dataclass(slots=True)
class HourlySummary:
    """Totals by hour of the fire times from `from_at` on, and up to when all runs are counted."""

    from_at: int
    fresh_at: int
    hourly: HourlyTotals = field(default_factory=HourlyTotals)


@dataclass(slots=True)
class _Read:
    """Items by key, and the windows that were read, None without an item; runs of other windows are in days."""

    items: dict[tuple[str, str], Item]
    # The windows of the first hour, if that is not whole.
    first_hour: range
    windows: dict[int, ProjectedWindow | None] = field(default_factory=dict)

    def those_of(self, item_keys: Iterable[keys.Key]) -> Iterator[Item]:
        """The items of these keys that exist."""
        names = ((key["pk"], key["sk"]) for key in item_keys)
        return (self.items[name] for name in names if name in self.items)


class ProjectedSummaries:
    """Summaries over all jobs. The tenant always comes from the credential."""

    def __init__(self, runs: Table, by_time: RunsByTime) -> None:
        self._table = runs
        self._by_time = by_time

    def between(
        self, tenant: str, from_at: int, until_at: int, now: float, live: LiveRecords | None = None
    ) -> HourlySummary:
        """The summary of fire times in [from_at, until_at).

        `live` saves reading the live runs if they were read before.
        """
        state = self._by_time.states.recent(now) or ProjectionState()
        summary = HourlySummary(from_at, min(until_at, int(now)))
        first_hour = range(window_start(from_at), _whole_hour(from_at), WINDOW_S)
        item_keys = [
            *day_keys(tenant, day_start(from_at), day_start(until_at)),
            *(keys.projected_window(tenant, start) for start in first_hour),
        ]
        if live is None:
            live = self._by_time.records(tenant, now, item_keys)
            items: Iterable[Item] = live.other_items
        else:
            items = self._table.get_many(item_keys, consistent=False)
        read = _Read({(item["pk"], item["sk"]): item for item in items}, first_hour)
        self._add_stored(tenant, read, summary, until_at)
        within = {key: run for key, run in live.runs.items() if from_at <= run.fire_at < until_at}
        before = self._by_time.windows.entries(tenant, read.windows, within)
        for key, run in within.items():
            _recount(summary.hourly, RunEntry.of_run(run), before.get(key))
        if not live.complete:
            summary.fresh_at = min(summary.fresh_at, state.until_of(tenant))
        return summary

    def _add_stored(self, tenant: str, read: _Read, summary: HourlySummary, until_at: int) -> None:
        covered = []
        keys_of_days = day_keys(tenant, day_start(summary.from_at), day_start(until_at))
        for day in DayTotals.readable(read.those_of(keys_of_days)):
            # Of the first day only the hours that are whole.
            begin = max(day.start, _whole_hour(summary.from_at))
            for hour, totals in day.hours.items():
                if hour >= begin:
                    summary.hourly.add(hour, totals)
            covered.append((begin, day.start + DAY_S))
        for begin, end in spans_between(summary.from_at, until_at, covered):
            read.windows |= dict.fromkeys(range(window_start(begin), end, WINDOW_S))
            for window in self._windows(tenant, read, begin, end):
                read.windows[window.start] = window
                if begin <= window.start and window.start + WINDOW_S <= end:
                    summary.hourly.add(window.start, window.totals)
                    continue
                runs = self._by_time.windows.runs_of(tenant, window)
                within = [run for run in runs if begin <= run.fire_at < end]
                summary.hourly.add(window.start, totals_of(within))

    def _windows(self, tenant: str, read: _Read, begin: int, end: int) -> Iterable[ProjectedWindow]:
        """The windows of a span: those of the first hour were read, others are a query."""
        starts = range(window_start(begin), end, WINDOW_S)
        if starts[0] in read.first_hour and starts[-1] in read.first_hour:
            window_keys = (keys.projected_window(tenant, start) for start in starts)
            return map(ProjectedWindow.shown, read.those_of(window_keys))
        return self._by_time.windows.between(tenant, starts[0], end)


def _whole_hour(at: int) -> int:
    """The first whole hour from `at` on."""
    return at + -at % HOUR_S


def _recount(hourly: HourlyTotals, entry: RunEntry, before: RunEntry | None) -> None:
    """Count a run as it is now, in place of what its window has of it."""
    hour = entry.fire_at // HOUR_S * HOUR_S
    totals = hourly.hours.setdefault(hour, RunTotals())
    if before:
        totals.take_entry(before)
    totals.add_entry(entry)


def spans_between(
    from_at: int, until_at: int, covered: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The parts of [from_at, until_at) that none of these ranges covers, in order. Pure."""
    begin = from_at
    for covered_from, covered_until in sorted(covered):
        if begin < covered_from:
            yield begin, covered_from
        begin = covered_until
    if begin < until_at:
        yield begin, until_at
