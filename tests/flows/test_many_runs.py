"""A tenant with jobs of every second: what reads the runs of all jobs again holds a bounded number of them."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from common.errors import Damaged
from common.planning import log
from common.planning.chores import Done
from common.planning.execution import Execution
from common.projection import rebuild
from common.projection.entry import RunEntry, fire_time, window_of
from common.projection.state import PROJECTION, ProjectionState
from common.projection.windows import ProjectedRuns, ProjectedWindow
from common.runs.run import Run
from common.runs.states import SUCCEEDED
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.storage.wire import Item
from common.timing.instants import DAY_S, compact_time
from common.timing.windows import WINDOW_S
from scheduler import followed as followed_module
from scheduler import projector as projector_module
from scheduler.comparison import Comparison
from scheduler.open_runs import OpenRuns
from scheduler.projector import Projector
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

    def get_many(self, run_keys: Sequence[keys.Key], **options: Any) -> Iterator[Item]:
        other_keys = [key for key in run_keys if key["pk"] not in self.partitions]
        yield from self.stored.get_many(other_keys, **options)
        for key in run_keys:
            if job_id := self.partitions.get(key["pk"]):
                self.read[job_id] += 1
                yield self._run(job_id, fire_time(key["sk"]))

    def _runs(self, job_id: str, query: Query) -> Iterator[Item]:
        assert query.sk_between
        first, last = query.sk_between
        for number, fire_at in enumerate(self.span):
            if number % (query.page or 1_000) == 0:
                self.clock.sleep(self.read_s)
            if first <= compact_time(fire_at) <= last:
                self.read[job_id] += 1
                yield self._run(job_id, fire_at)

    def _run(self, job_id: str, fire_at: int) -> Item:
        execution = Execution("alice", job_id, fire_at, fire_at, 1)
        return Run.of(execution, SUCCEEDED, attempt=1, expires_at=NOW + DAY_S).to_item()


def open_runs(world: World, runs: Table) -> OpenRuns:
    tables = Tables(lambda name: runs if name == "runs" else world.table(name))
    return replace(world.projector.open_runs, tables=tables)


def project(world: World, entries: Iterable[RunEntry]) -> None:
    """Put these into the projection."""
    windows = ProjectedRuns(world.table("runs"))
    for start, of_window in groupby(entries, lambda entry: window_of(entry.run_name)):
        windows.merge("alice", start, {entry.key: entry for entry in of_window}, NOW + DAY_S)


def followed(world: World, until: int = NOW) -> None:
    """Ticks have followed the logs up to an instant; it is now."""
    ends = dict.fromkeys(range(keys.LOG_BUCKETS), until)
    world.clock.move_to(NOW)
    world.table("due").put({**keys.chore(PROJECTION), "at": ProjectionState(DAY, ends).position})


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of the log is some quarter of what a round holds, instead of a fortieth."""
    monkeypatch.setattr(followed_module, "MAX_HELD", BLOCKED)
    monkeypatch.setattr(log, "_MAX_CHUNK_EXECUTIONS", 500)


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


def large_window(world: World, runs: int) -> ProjectedWindow:
    """A window of so many runs, which are not in memory any more."""
    entries = (
        RunEntry(compact_time(DAY + n * WINDOW_S // runs), f"job-{n:06}", "failed") for n in range(runs)
    )
    project(world, entries)
    window = ProjectedRuns(world.table("runs")).window("alice", DAY)
    assert window and window.totals.statuses == {"failed": runs}
    return window


def test_a_change_of_each_chunk_of_a_large_window_holds_few_of_its_runs(world: World) -> None:
    """All of 100,000 were 45 MB at once; a tenant may have a million in ten minutes."""
    window, windows = large_window(world, 100_000), ProjectedRuns(world.table("runs"))
    assert len(window.chunks) > 30
    first_runs = {chunk.first: RunEntry(*chunk.first, "succeeded") for chunk in window.chunks}
    tracemalloc.start()
    try:
        assert windows.is_whole("alice", window)
        assert len(windows.entries("alice", {DAY: window}, first_runs)) == len(first_runs)
        merged = windows.merge("alice", DAY, first_runs, NOW + DAY_S)
        assert peak(0) < PEAK_BYTES
    finally:
        tracemalloc.stop()
    assert merged == windows.window("alice", DAY)
    assert merged.totals.statuses == {"failed": 100_000 - len(first_runs), "succeeded": len(first_runs)}
    chunks = world.table("runs").query(Query(keys.projected_chunks("alice"), attributes=("sk",)))
    assert {item["sk"].partition("#")[2] for item in chunks} == {part.name for part in merged.chunks}


def test_a_damaged_chunk_leaves_no_new_ones_behind(world: World) -> None:
    """Chunks are written one by one, and the window is not if a later one is damaged."""
    window, windows, runs = (
        large_window(world, 10_000),
        ProjectedRuns(world.table("runs")),
        world.table("runs"),
    )
    runs.delete(keys.projected_chunk("alice", DAY, window.chunks[-1].name))
    first_runs = {chunk.first: RunEntry(*chunk.first, "succeeded") for chunk in window.chunks}
    before = list(runs.query(Query(keys.projected_chunks("alice"))))
    with pytest.raises(Damaged):
        windows.merge("alice", DAY, first_runs, NOW + DAY_S)
    assert list(runs.query(Query(keys.projected_chunks("alice")))) == before
    assert windows.window("alice", DAY) == window
    assert not windows.is_whole("alice", window)


BLOCKED, EACH_S = 2_000, 40
# A tenant of the same bucket.
OTHER = next(
    name for name in map("bob{}".format, range(99)) if keys.log_bucket(name) == keys.log_bucket("alice")
)


def planned(world: World, start: int) -> None:
    """The log of a window: forty jobs of each second, and one run of another tenant."""
    world.table("runs").put({**keys.FOLLOWED, "until": start})
    writer = world.index.log.writer(start - WINDOW_S)
    for fire_at in range(start, start + WINDOW_S):
        for n in range(EACH_S):
            writer.add(Execution("alice", f"job{n:03}", fire_at, fire_at, 1))
    writer.write_all()
    other = Execution(OTHER, "job", start, start, 1)
    world.table("runs").put(Run.of(other, SUCCEEDED, attempt=1, expires_at=NOW + DAY_S).to_item())
    late = world.index.log.writer(start - WINDOW_S)
    late.add(other)
    late.write_all()


def rounds(world: World, many: Table, count: int) -> Iterator[Done]:
    """Rounds of the projection, ten minutes apart."""
    tables = Tables(lambda name: many if name == "runs" else world.table(name))
    for _ in range(count):
        yield world.round(PROJECTION, Projector.of(tables, world.queue, world.clock).steps)
        world.clock.sleep(WINDOW_S)


def test_of_a_tenant_with_too_many_runs_a_part_is_followed_in_each_round(
    world: World, small_chunks: None
) -> None:
    """The others come first, and nothing is lost: 24,000 runs of ten minutes, of which a round holds 2,000."""
    start = NOW - 2 * WINDOW_S
    many = ManyRuns(world, EACH_S, start, WINDOW_S)
    followed(world, start)
    for tenant in ("alice", OTHER):
        world.table("tenants").put(dict(keys.tenant_listing(tenant)))
    planned(world, start)
    windows, counted = ProjectedRuns(world.table("runs")), []
    for done in rounds(world, many, 28):
        assert done.errors == []
        assert done.counts["read"] <= BLOCKED
        window = windows.window("alice", start)
        counted.append(window.totals.runs if window else 0)
        other = windows.window(OTHER, start)
        assert other and other.totals.statuses == {SUCCEEDED: 1}, (
            "those of other tenants are followed at once"
        )
    assert counted[0] >= BLOCKED // 2 - 1
    assert counted == sorted(counted) and counted[-1] == EACH_S * WINDOW_S
    assert counted.index(counted[-1]) <= EACH_S * WINDOW_S / (BLOCKED / 2) + 1
    assert [done.problems for done in rounds(world, many, 2)] == [[], []]


def test_a_round_holds_a_bounded_number_of_executions(world: World, small_chunks: None) -> None:
    """All of a tenant's 24,000 were 30 MB; of a million the scheduler's memory has not a third."""
    start = NOW - 2 * WINDOW_S
    many = ManyRuns(world, EACH_S, start, WINDOW_S)
    followed(world, start)
    planned(world, start)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        next(rounds(world, many, 1))
        assert peak(before) < PEAK_BYTES
    finally:
        tracemalloc.stop()


def test_of_what_is_due_lately_a_bounded_part_is_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch, small_chunks: None
) -> None:
    """The log's newest part had no bound: a million executions were decoded and held, to look at 400 records."""
    monkeypatch.setattr(projector_module, "_MAX_RECENT", 1_000)
    start = NOW - WINDOW_S
    many = ManyRuns(world, EACH_S, start, WINDOW_S)
    followed(world, NOW - WINDOW_S)
    planned(world, start)
    looked_at: list[int] = []

    def spied(comparison: Comparison, due: Sequence[Execution]) -> list[str]:
        looked_at.append(len(due))
        return []

    monkeypatch.setattr(Comparison, "look_at_recent", spied)
    next(rounds(world, many, 1))
    assert 500 <= looked_at[0] <= 1_500
