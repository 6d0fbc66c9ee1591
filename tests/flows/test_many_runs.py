"""A tenant with jobs of every second: what reads the runs of all jobs again holds a bounded number of them."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import pytest

from common.planning.chores import Done
from common.planning.execution import Execution
from common.projection import rebuild
from common.projection.entry import RunEntry, window_of
from common.projection.state import PROJECTION, ProjectionState
from common.projection.windows import ProjectedRuns
from common.runs.run import Run
from common.runs.states import SUCCEEDED
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.storage.wire import Item
from common.timing.instants import DAY_S, compact_time
from scheduler.open_runs import OpenRuns
from tests.worlds import World, at

NOW, DAY = at("2026-11-22T02:00:00Z"), at("2026-11-21T00:00:00Z")
RUNS = 1_000
# Of tracemalloc: so many of 72,000 runs take some MB, and all take 60.
PEAK_BYTES = 12_000_000


class ManyRuns(Table):
    """A runs table: each of these jobs has a run for each second of a span, which are made while they are read."""

    def __init__(self, world: World, jobs: int, begin: int, seconds: int) -> None:
        self.stored, self.clock = world.table("runs"), world.clock
        super().__init__(self.stored.client, self.stored.name, self.clock.sleep, self.clock.now)
        self.partitions = {keys.runs_of_job("alice", f"job{n:03}"): f"job{n:03}" for n in range(jobs)}
        self.span = range(begin, begin + seconds)
        self.read: Counter[str] = Counter()
        self.read_s = 0.0
        for job_id in self.partitions.values():
            world.table("jobs").put(keys.job("alice", job_id))

    def query(self, query: Query) -> Iterator[Item]:
        job_id = self.partitions.get(query.pk)
        return self._runs(job_id, query) if job_id else self.stored.query(query)

    def _runs(self, job_id: str, query: Query) -> Iterator[Item]:
        assert query.sk_between
        first, last = query.sk_between
        for number, fire_at in enumerate(self.span):
            if number % (query.page or 1_000) == 0:
                self.clock.sleep(self.read_s)
            if first <= compact_time(fire_at) <= last:
                self.read[job_id] += 1
                execution = Execution("alice", job_id, fire_at, fire_at, 1)
                yield Run.of(execution, SUCCEEDED, attempt=1, expires_at=NOW + DAY_S).to_item()


def open_runs(world: World, runs: Table) -> OpenRuns:
    tables = Tables(lambda name: runs if name == "runs" else world.table(name))
    return replace(world.projector.open_runs, tables=tables)


def project(world: World, entries: Iterable[RunEntry]) -> None:
    """Put these into the projection."""
    windows = ProjectedRuns(world.table("runs"))
    for start, of_window in groupby(entries, lambda entry: window_of(entry.run_name)):
        windows.merge("alice", start, {entry.key: entry for entry in of_window}, NOW + DAY_S)


def followed(world: World) -> None:
    """Ticks have followed the logs up to now."""
    ends = dict.fromkeys(range(keys.LOG_BUCKETS), NOW)
    world.clock.move_to(NOW)
    world.table("due").put({**keys.chore(PROJECTION), "at": ProjectionState(DAY, ends).position})


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def peak(before: int) -> int:
    return tracemalloc.get_traced_memory()[1] - before


def test_a_step_of_a_rebuild_holds_a_bounded_number_of_runs(
    world: World, monkeypatch: pytest.MonkeyPatch, traced: None
) -> None:
    """Twenty jobs have a run for each second of an hour, 72,000, and the projection has half as many others."""
    monkeypatch.setattr(rebuild, "RUNS_A_STEP", RUNS)
    followed(world)
    many = ManyRuns(world, 20, DAY, 3_600)
    project(world, (RunEntry(compact_time(DAY + at), "job", "failed") for at in range(36_000)))
    again = rebuild.Rebuild(world.table("jobs"), many, world.table("due"))
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    step = again.step("alice", rebuild.RebuildPosition(DAY, DAY), NOW)
    assert peak(before) < PEAK_BYTES
    assert 0 < step.runs <= RUNS
    assert step.next and step.next.day == DAY


def test_the_steps_of_a_divided_day_make_all_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the bound is within a second, and a job is registered between two steps."""
    monkeypatch.setattr(rebuild, "RUNS_A_STEP", 50)
    monkeypatch.setattr(rebuild, "RUNS_A_READ", 7)
    monkeypatch.setattr(rebuild, "JOBS_A_PART", 3)
    monkeypatch.setattr(rebuild, "JOBS_A_STEP", 4)
    followed(world)
    many = ManyRuns(world, 10, DAY + 1_150, 100)
    strays = [RunEntry(compact_time(DAY + at), "job007x", "failed") for at in range(1_000, 1_300)]
    project(world, strays)
    again = rebuild.Rebuild(world.table("jobs"), many, world.table("due"))
    cursor: rebuild.RebuildPosition | None = rebuild.RebuildPosition(DAY, DAY)
    steps = []
    while cursor and cursor.day == DAY:
        step = again.step("alice", cursor, NOW)
        steps.append(step.runs)
        cursor = step.next
        world.table("jobs").put(keys.job("alice", "job000x"))
    assert max(steps) <= 50
    windows = ProjectedRuns(world.table("runs"))
    projected = Counter(
        (entry.job_id, entry.fire_at)
        for window in windows.between("alice", DAY, DAY + DAY_S)
        for entry in windows.runs_of("alice", window)
    )
    assert projected == Counter((job_id, at) for job_id in many.partitions.values() for at in many.span)


def test_runs_of_all_jobs_are_read_in_parts_of_a_bounded_number(world: World, traced: None) -> None:
    """After the due table was wiped: 80,000 runs that ticks may not have read."""
    many = ManyRuns(world, 40, NOW - 2_000, 2_000)
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    done = Done("test", world.clock, NOW + 100)
    followed(world)
    open_runs(world, many).note(["alice"], NOW - 1_800, done)
    assert done.problems == []
    assert set(many.read.values()) == {2_000}
    assert peak(before) < PEAK_BYTES


def test_a_tenant_leaves_half_of_the_time_to_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops between two parts, and the next tenant's runs are noted."""
    monkeypatch.setattr(rebuild, "JOBS_A_PART", 4)
    many = ManyRuns(world, 40, NOW - 2_000, 2_000)
    followed(world)
    many.read_s = 0.1
    done = Done("test", world.clock, NOW + 20)
    open_runs(world, many).note(["alice", "bob"], NOW - 1_800, done)
    (problem,) = done.problems
    assert problem.startswith("alice") and "no time to look for its open runs" in problem
    assert world.clock.now() <= NOW + 10 + 4 * many.read_s
    assert 0 < many.read.total() < 40 * 2_000
