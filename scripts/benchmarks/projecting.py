"""What it adds to a million runs that ticks write down what became of them: units, counted by size, and dollars."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from common.planning.chores import Chore, ChoreRunner
from common.planning.execution import Execution
from common.planning.log import LogWriter
from common.planning.queue import ExecutionsQueue
from common.platform.tenants import Tenants
from common.projection.days import ProjectedDays, day_start
from common.projection.entry import RunEntry
from common.projection.state import PROJECTION
from common.projection.windows import ProjectedRuns
from common.runs.run import Run
from common.storage.table import Tables
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start
from scheduler.projector import Projector
from scripts.benchmarks.reading_data import ReadTables, record_of
from scripts.benchmarks.stub_aws import QUEUE_URL, StubAws
from scripts.measure.prices import PRICES
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import track
from tests.manual_clock import ManualClock

_MILLION = 1_000_000
_START = 1_795_219_200
# Windows before those that are counted: then as many looks at open runs come as go.
_FIRST, WINDOWS = 3, 3
# This share of the runs is not over when a tick first looks.
_OPEN = 0.01


@dataclass(frozen=True, slots=True)
class Mix:
    """So many tenants, each with so many jobs, of which each runs so often in ten minutes."""

    name: str
    tenants: int
    jobs: int
    runs: int

    @property
    def in_window(self) -> int:
        """Runs of all tenants."""
        return self.tenants * self.jobs * self.runs

    def executions(self, start: int) -> Iterator[Execution]:
        """Those of the window from `start` on."""
        for number in range(self.tenants):
            for job in range(self.jobs):
                for nth in range(self.runs):
                    at = start + job % 600 + nth * 60
                    yield Execution(_tenant(number), f"customer-report-{job:04}", at, at, 1)


MIXES = (
    Mix("one run per tenant and minute, of one job", 1_000, 1, 10),
    Mix("one run per tenant and minute, of ten jobs", 1_000, 10, 1),
    Mix("ten per tenant and minute, of a hundred jobs", 100, 100, 1),
    Mix("a hundred per tenant and minute, of a thousand jobs", 10, 1_000, 1),
    Mix("the same, of a hundred jobs", 10, 100, 10),
)


def run(scale: float) -> Result:
    """Count, with 10,000 runs a window at scale 1."""
    counted = {}
    for mix in track(MIXES, "mixes"):
        tenants = max(1, round(mix.tenants * scale))
        counted[mix.name] = added(Mix(mix.name, tenants, mix.jobs, mix.runs))
    rows = [
        [name, *(f"{units[kind]:,.0f}" for kind in _KINDS), f"{dollars(units):.3f}"]
        for name, units in counted.items()
    ]
    first, second, *_ = map(dollars, counted.values())
    return Result(
        "projecting",
        scale,
        tables=[Table("Units that a million runs take more", ["runs", *_KINDS, "$"], rows)],
        goals=[
            Goal("a million runs for readers, one per tenant and minute, $", 0.1, max(first, second), False),
        ],
        figures=counted,
    )


_KINDS = ("write units", "read units", "days: write units", "days: read units")


def dollars(units: dict[str, float]) -> float:
    """What these units cost."""
    reads = sum(units[kind] for kind in _KINDS if kind.endswith("read units"))
    writes = sum(units[kind] for kind in _KINDS if kind.endswith("write units"))
    return reads * PRICES["dynamodb_read_unit"] + writes * PRICES["dynamodb_write_unit"]


def added(mix: Mix) -> dict[str, float]:
    """Units that the projection adds to a million runs of the mix; it compares them as well."""
    before = units_of_ticks(mix, projects=False)
    after = units_of_ticks(mix, projects=True)
    a_million = _MILLION / (mix.in_window * WINDOWS)
    units = {kind: (after[kind] - before[kind]) * a_million for kind in ("write units", "read units")}
    day = units_of_day(mix)
    a_million = _MILLION / (mix.jobs * mix.runs * DAY_S / WINDOW_S)
    return units | {f"days: {kind}": day[kind] * a_million for kind in ("write units", "read units")}


def units_of_ticks(mix: Mix, *, projects: bool) -> Counter[str]:
    """Units of the log and of what ticks do after planning, for some windows."""
    return units_of_windows(
        mix.tenants, [mix.executions(start) for start in windows_from(_START, WINDOWS)], projects=projects
    )


def windows_from(start: int, counted: int) -> list[int]:
    """The starts of the windows that `units_of_windows` takes to count so many, from `start` on."""
    return [start + (2 + window) * WINDOW_S for window in range(_FIRST + counted)]


def units_of_windows(
    tenants: int, windows: Sequence[Iterable[Execution]], *, projects: bool = True
) -> Counter[str]:
    """Units of the log and of what ticks do after planning consecutive windows; the first ones are not counted."""
    tables = ReadTables()
    planned = [list(executions) for executions in windows]
    begin = window_start(min(execution.fire_at for executions in planned for execution in executions))
    for number in range(tenants):
        Tenants(tables.named.tenants).create(_tenant(number), "", begin, {"allowed_targets": ["*"]})
    parts = _Parts(tables, tables.counted)
    parts.tick(begin - 2 * WINDOW_S + 480, projects)  # the projection begins
    followed = 0
    for nth, executions in enumerate(planned):
        if nth == _FIRST:
            tables.counts.clear()
        start = begin + nth * WINDOW_S
        parts.plan(start, executions)
        followed += parts.tick(start + WINDOW_S + 480, projects)
    # A projection that finds nothing costs nothing: such a figure would be of no use.
    assert followed >= 0.9 * sum(map(len, planned[:-1])) or not projects, f"{followed} runs were followed"
    return tables.counts


class _Parts:
    """The log and the projection over counted tables."""

    def __init__(self, tables: ReadTables, counted: Tables) -> None:
        self._tables, self._counted = tables, counted
        self._clock, self._rng = ManualClock(_START), random.Random(8)
        tables.now = self._clock.now
        queue = ExecutionsQueue(StubAws().client("sqs"), QUEUE_URL, self._clock)
        self._projector = Projector.of(counted, queue, self._clock)
        self._going: list[dict[str, Any]] = []

    def plan(self, start: int, executions: Iterable[Execution]) -> None:
        """Plan a window and run it; a few runs go on."""
        log = LogWriter(self._counted.due, start)
        for execution in executions:
            log.add(execution)
            record = record_of(execution, self._rng, False)
            if self._rng.random() < _OPEN:
                self._going.append(record)
                record = record | {"status": "running"}
            self._tables.put("runs", record)
        log.write()

    def tick(self, at: int, projects: bool) -> int:
        """What follows planning; then all runs are over. Returns how many planned executions were followed."""
        self._clock.move_to(at)
        followed = 0
        if projects:
            runner = ChoreRunner(self._counted.due, self._clock, "tick")
            (done,) = runner.run([Chore(PROJECTION, self._projector.steps)], at + 200)
            assert not done.problems + done.errors, done
            followed = done.counts["planned"]
        for record in self._going:
            if record["fire_at"] < at - WINDOW_S - 600:
                self._tables.put("runs", record)
        return followed


def units_of_day(mix: Mix) -> Counter[str]:
    """Units of rolling a tenant's day up."""
    tables = ReadTables()
    tables.now = lambda: _START + DAY_S
    windows = ProjectedRuns(tables.named.runs)
    rng = random.Random(8)
    for start in range(day_start(_START), day_start(_START) + DAY_S, WINDOW_S):
        entries = [
            _entry(f"customer-report-{job:04}", start + nth * 60, start, rng)
            for job in range(mix.jobs)
            for nth in range(mix.runs)
        ]
        windows.merge("t", start, {entry.key: entry for entry in entries}, _START + 30 * DAY_S)
    ProjectedDays(tables.counted.runs).roll_up("t", day_start(_START))
    return tables.counts


def _entry(job_id: str, fire_at: int, due_at: int, rng: random.Random) -> RunEntry:
    return RunEntry.of_run(Run.from_item(record_of(Execution("t", job_id, fire_at, due_at, 1), rng, False)))


def _tenant(number: int) -> str:
    return f"tenant-{number:04}"
