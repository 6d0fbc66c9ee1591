"""What became of all runs of a tenant by hour, from the projection: five requests for any number of runs.

Rolled-up days are one item each; the other windows have their totals. What is newer than the projection is counted from
the records if it is little. Else the answer says up to when it counts. Live runs are read first: a window that is
written meanwhile has them too, and each run counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from common.history.live_runs import LiveRuns
from common.history.runs_by_time import RunsByTime
from common.projection import days, windows
from common.projection.days import DayTotals, day_keys, day_start
from common.projection.entry import ATTRIBUTES, RunEntry, RunKey, window_of
from common.projection.state import ProjectionState
from common.projection.totals import HOUR_S, HourlyTotals
from common.projection.windows import ProjectedWindow, totals_of
from common.runs.run import Run
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start

# Records of live runs that a summary reads. A request reads a hundred items: days, windows and records.
MAX_LIVE: Final = 300
_ATTRIBUTES: Final = tuple(dict.fromkeys((*ATTRIBUTES, *days.ATTRIBUTES, *windows.ATTRIBUTES)))


@dataclass(slots=True)
class HourlySummary:
    """Totals by hour of the fire times from `from_at` on, and up to when all runs are counted."""

    from_at: int
    fresh_at: int
    hourly: HourlyTotals = field(default_factory=HourlyTotals)


@dataclass(slots=True)
class _Read:
    """Items by key, and the windows that were read; runs of other windows are in days."""

    items: dict[tuple[str, str], Item]
    # The windows of the first hour, if that is not whole.
    first_hour: range
    windows: dict[int, ProjectedWindow] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def has(self, run_name: str) -> bool:
        """Whether the window of a run was read, or has no item."""
        start = window_of(run_name)
        return any(window_start(begin) <= start < end for begin, end in self.spans)

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
        self, tenant: str, from_at: int, until_at: int, now: float, live: LiveRuns | None = None
    ) -> HourlySummary:
        """The summary of fire times in [from_at, until_at).

        `live` saves reading the live runs if they were read before.
        """
        state = self._by_time.states.recent(now) or ProjectionState()
        summary = HourlySummary(from_at, min(until_at, int(now)))
        live = live or self._by_time.live.of_tenant(tenant, state)
        run_keys = _within(live, summary.from_at, until_at, now)
        is_counted = len(run_keys) <= MAX_LIVE and live.complete
        read = self._read(tenant, summary.from_at, until_at, run_keys if is_counted else ())
        self._add_stored(tenant, read, summary, until_at)
        if not (is_counted and _add_live(tenant, read, summary.hourly, run_keys)):
            summary.fresh_at = min(summary.fresh_at, state.until_of(tenant))
        return summary

    def _read(self, tenant: str, from_at: int, until_at: int, run_keys: Sequence[RunKey]) -> _Read:
        """Read days, windows and records together. What needs no key of theirs is one request."""
        first_hour = range(window_start(from_at), _whole_hour(from_at), WINDOW_S)
        item_keys = [
            *day_keys(tenant, day_start(from_at), day_start(until_at)),
            *(keys.projected_window(tenant, start) for start in first_hour),
            *_record_keys(tenant, run_keys),
        ]
        items = self._table.get_many(item_keys, attributes=_ATTRIBUTES)
        return _Read({(item["pk"], item["sk"]): item for item in items}, first_hour)

    def _add_stored(self, tenant: str, read: _Read, summary: HourlySummary, until_at: int) -> None:
        covered = []
        keys_of_days = day_keys(tenant, day_start(summary.from_at), day_start(until_at))
        for day in map(DayTotals.from_item, read.those_of(keys_of_days)):
            # Of the first day only the hours that are whole.
            begin = max(day.start, _whole_hour(summary.from_at))
            for hour, totals in day.hourly.hours.items():
                if hour >= begin:
                    summary.hourly.add(hour, totals)
            covered.append((begin, day.start + DAY_S))
        read.spans = list(spans_between(summary.from_at, until_at, covered))
        for begin, end in read.spans:
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
            return map(ProjectedWindow.from_item, read.those_of(window_keys))
        return self._by_time.windows.between(tenant, starts[0], end)


def _whole_hour(at: int) -> int:
    """The first whole hour from `at` on."""
    return at + -at % HOUR_S


def _record_keys(tenant: str, run_keys: Iterable[RunKey]) -> Iterator[keys.Key]:
    return (keys.run(tenant, job_id, run_name) for run_name, job_id in run_keys)


def _add_live(tenant: str, read: _Read, hourly: HourlyTotals, run_keys: Sequence[RunKey]) -> bool:
    """Count live runs as their records are now. False if a tick has to count some of them."""
    entries = {entry.key: entry for entry in map(_entry, read.those_of(_record_keys(tenant, run_keys)))}
    counted = [_recount(hourly, key, entries.get(key), read) for key in run_keys]
    return all(counted)


def _entry(item: Item) -> RunEntry:
    return RunEntry.of_run(Run.from_item(item))


def _recount(hourly: HourlyTotals, key: RunKey, entry: RunEntry | None, read: _Read) -> bool:
    """Count a run as it is now, in place of what its window has of it. False if a tick has to do that."""
    window = read.windows.get(window_of(key[0]))
    if not read.has(key[0]) or (window and window.runs is None):
        return False
    hour = window_of(key[0]) // HOUR_S * HOUR_S
    before = next((run for run in (window.runs or () if window else ()) if run.key == key), None)
    hourly.add(hour, totals_of(()))
    if before:
        hourly.hours[hour].take_entry(before)
    if entry:
        hourly.hours[hour].add_entry(entry)
    if not hourly.hours[hour].statuses:
        del hourly.hours[hour]
    return True


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


def _within(live: LiveRuns, from_at: int, until_at: int, now: float) -> list[RunKey]:
    run_keys: Iterable[RunKey] = live.keys_until(now)
    return [key for key in run_keys if from_at <= live.executions[key].fire_at < until_at]
