"""What became of all runs of a tenant by hour, from the projection: a few queries for any number of runs.

Rolled-up days are one item each; the other windows have their totals. What is newer than the projection is counted from
the records if it is little. Else the answer says up to when it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from common.history.live_runs import LiveRuns
from common.history.runs_by_time import RunsByTime
from common.projection.days import ProjectedDays, day_start
from common.projection.entry import ATTRIBUTES, RunEntry, RunKey, window_of
from common.projection.state import ProjectionState
from common.projection.totals import HOUR_S, HourlyTotals
from common.projection.windows import ProjectedWindow, totals_of
from common.storage import keys
from common.storage.table import Table
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start

# Records of live runs that a summary reads, a hundred in a request.
MAX_LIVE: Final = 300


@dataclass(slots=True)
class HourlySummary:
    """Totals by hour of the fire times from `from_at` on, and up to when all runs are counted."""

    from_at: int
    fresh_at: int
    hourly: HourlyTotals = field(default_factory=HourlyTotals)


@dataclass(slots=True)
class _Read:
    """The windows that were read; runs of other windows are in days."""

    windows: dict[int, ProjectedWindow] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def has(self, run_name: str) -> bool:
        """Whether the window of a run was read, or has no item."""
        start = window_of(run_name)
        return any(window_start(begin) <= start < end for begin, end in self.spans)


class ProjectedSummaries:
    """Summaries over all jobs. The tenant always comes from the credential."""

    def __init__(self, runs: Table, by_time: RunsByTime) -> None:
        self._table = runs
        self._by_time = by_time
        self._days = ProjectedDays(runs)

    def between(
        self, tenant: str, from_at: int, until_at: int, now: float, live: LiveRuns | None = None
    ) -> HourlySummary | None:
        """The summary of fire times in [from_at, until_at), from the projection's beginning on; None: before it.

        `live` saves reading the live runs if they were read before.
        """
        state = self._by_time.states.read()
        since = self._by_time.since(tenant, state, from_at)
        if state is None or since is None or until_at <= since:
            return None
        summary = HourlySummary(max(from_at, since), min(until_at, int(now)))
        read = self._stored(tenant, summary, until_at)
        live = live or self._by_time.live.of_tenant(tenant, state)
        self._add_live(tenant, state, live, summary, until_at, now, read)
        return summary

    def _stored(self, tenant: str, summary: HourlySummary, until_at: int) -> _Read:
        read = _Read()
        covered = []
        for day in self._days.between(tenant, day_start(summary.from_at), day_start(until_at)):
            # Of the first day only the hours that are whole.
            begin = max(day.start, summary.from_at + -summary.from_at % HOUR_S)
            for hour, totals in day.hourly.hours.items():
                if hour >= begin:
                    summary.hourly.add(hour, totals)
            covered.append((begin, day.start + DAY_S))
        read.spans = list(spans_between(summary.from_at, until_at, covered))
        for begin, end in read.spans:
            for window in self._windows(tenant, begin, end):
                read.windows[window.start] = window
                if begin <= window.start and window.start + WINDOW_S <= end:
                    summary.hourly.add(window.start, window.totals)
                    continue
                runs = self._by_time.windows.runs_of(tenant, window)
                within = [run for run in runs if begin <= run.fire_at < end]
                summary.hourly.add(window.start, totals_of(within))
        return read

    def _windows(self, tenant: str, begin: int, end: int) -> Iterable[ProjectedWindow]:
        """The windows of a span: one batch for a part of an hour, else a query."""
        start = window_start(begin)
        if end - start <= HOUR_S:
            return self._by_time.windows.at(tenant, range(start, end, WINDOW_S))
        return self._by_time.windows.between(tenant, start, end)

    def _add_live(
        self,
        tenant: str,
        state: ProjectionState,
        live: LiveRuns,
        summary: HourlySummary,
        until_at: int,
        now: float,
        read: _Read,
    ) -> None:
        """Count what the projection does not have yet, if that is little; else say up to when it counts."""
        run_keys = _within(live, summary.from_at, until_at, now)
        if len(run_keys) > MAX_LIVE or not live.complete:
            summary.fresh_at = min(summary.fresh_at, state.until_of(tenant))
            return
        records = self._table.get_many(
            [keys.run(tenant, job_id, run_name) for run_name, job_id in run_keys], attributes=ATTRIBUTES
        )
        entries = {entry.key: entry for entry in map(RunEntry.of_record, records)}
        counted = [_recount(summary.hourly, key, entries.get(key), read) for key in run_keys]
        if not all(counted):
            summary.fresh_at = min(summary.fresh_at, state.until_of(tenant))


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
