"""The last outcomes of jobs, and what a page of jobs shows of them, are what the runs say."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from typing import Any

import pytest

from common.errors import Busy
from common.history.expected import AsOf
from common.history.health import JobHealth
from common.history.job_directory import JobDirectory
from common.history.listed_health import ListedHealth
from common.history.runs_by_time import RunsByTime
from common.jobs.calendars import Calendars, RememberedCalendars
from common.projection import outcomes
from common.projection.entry import RunEntry
from common.projection.outcomes import JobOutcomes, LastOutcomes, RunOutcome, decoded, encoded
from common.runs.outcome import Outcome
from common.storage import keys
from common.tenants.audit import Audit
from tests.flows.test_projection import FAR, create_random_jobs, live_on_at_random, projected, start
from tests.worlds import World, at, job, open_world

OUTCOMES = 20


@pytest.fixture(autouse=True)
def _a_look_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine needs several looks of 0.2 s of processor for what these tests read at once."""
    monkeypatch.setattr(outcomes, "_STEP_CPU_S", math.inf)


def listed_health(world: World) -> ListedHealth:
    jobs, runs = world.table("jobs"), world.table("runs")
    directory = JobDirectory(jobs, Audit(world.table("tenants")))
    return ListedHealth(runs, RunsByTime(runs, world.table("due"), directory), directory)


def last_outcomes(world: World, reader: JobOutcomes) -> LastOutcomes:
    state = world.projector.states.read()
    assert state
    return reader.of_tenant("alice", state, world.clock.now(), lambda: None)


def recounted(world: World, job_id: str, last: LastOutcomes) -> list[RunOutcome]:
    """The same from the windows."""
    within = [run for run in projected(world) if last.whole_from <= run.fire_at < last.until]
    return [RunOutcome.of_entry(run) for run in reversed(within) if run.job_id == job_id][:OUTCOMES]


# The others are played before a release.
SEEDS = [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(3, 8))]


@pytest.mark.parametrize("seed", SEEDS)
def test_pages_show_what_the_runs_say_in_random_worlds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(outcomes, "_STORED_AFTER_S", rng.choice([600, 7_200]))
    monkeypatch.setattr(outcomes, "_CHUNK_CHARS", rng.choice([10, 250_000]))
    monkeypatch.setattr(outcomes, "MAX_LATE_RUNS", rng.choice([1, 20_000]))
    monkeypatch.setattr(outcomes, "MAX_RUNS_OF_WINDOW", rng.choice([9, 50_000]))
    with open_world() as world:
        start(world)
        ids = create_random_jobs(world, rng, ["allow"])
        kept = listed_health(world)
        for _ in range(50):
            live_on_at_random(world, rng, ids)
            reader = rng.choice([kept, listed_health(world)])  # a function that stays, or a new one
            compare(world, reader)
        world.project()
        last = last_outcomes(world, JobOutcomes(world.table("runs")))
        for name in ids:
            assert last.of(name) == recounted(world, name, last)


def compare(world: World, reader: ListedHealth) -> None:
    """The page has the newest runs of each job as they are, and as many as the last outcomes reach back."""
    jobs = list(world.store.list_jobs("alice"))
    as_of = AsOf(world.clock.now(), -math.inf, -math.inf)
    calendars = RememberedCalendars(Calendars(world.table("jobs")))
    exact = JobHealth(world.table("runs")).of_jobs(jobs, as_of, calendars)
    last = reader.last_outcomes("alice", as_of.now)
    for job_id, health in reader.of_jobs("alice", jobs, as_of, calendars, 30).items():
        shown = [short(run) for run in health.outcomes]
        assert shown == [short(run) for run in exact[job_id].outcomes][: len(shown)]
        assert last
        reached = [run for run in exact[job_id].outcomes if run.fire_at >= last.whole_from]
        assert len(shown) >= min(len(reached), 10)
        assert health.outcomes[:1] == exact[job_id].outcomes[:1]
        assert health.overdue == exact[job_id].overdue


def short(run: Any) -> tuple[Any, ...]:
    return run.run_name, run.status, run.trigger, run.reason, run.fire_at


def test_a_retry_of_tomorrow_changes_an_outcome_that_is_stored(world: World) -> None:
    since = start(world)
    world.registry.create("alice", "hourly", job(cron="7 * * * *"))
    world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="E", error="no")
    world.run_until("2026-11-21T08:00:00Z", ticks=True)
    world.project()
    first = JobOutcomes(world.table("runs"))
    assert {run.status for run in last_outcomes(world, first).of("hourly")} == {"failed"}
    assert world.table("runs").get(keys.last_outcomes("alice"))
    world.target.answer = lambda event: Outcome(ok=True)
    world.run_until("2026-11-22T08:00:00Z", ticks=True)
    failed = next(run for run in world.run_items("alice", "hourly") if run["fire_at"] > since)
    world.manual.retry("alice", f"alice:hourly:{failed['sk']}")
    world.run_until("2026-11-22T09:30:00Z", ticks=True)
    world.project()
    for reader in (first, JobOutcomes(world.table("runs"))):
        last = last_outcomes(world, reader)
        assert last.of("hourly") == recounted(world, "hourly", last)
    (again,) = [run for run in projected(world) if run.run_name == failed["sk"]]
    assert again.status == "succeeded"


def test_notes_of_one_run_do_not_hide_later_ones(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """More notes than a look reads, of fewer runs: what the last ones say was lost."""
    start(world)
    world.registry.create("alice", "hourly", job(cron="7 * * * *"))
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    world.project()
    reader, (name, *_) = JobOutcomes(world.table("runs")), [run.run_name for run in projected(world)]
    last_outcomes(world, reader)
    monkeypatch.setattr(outcomes, "MAX_LATE_RUNS", 2)
    for status in ("retrying", "retrying", "retrying", "failed"):
        world.clock.sleep(1)
        changed = RunEntry(name, "hourly", status)
        world.projector.late.note("alice", {changed.key: changed}, world.clock.now())
        world.projector.windows.merge("alice", changed.fire_at // 600 * 600, {changed.key: changed}, FAR)
    (outcome,) = (run for run in last_outcomes(world, reader).of("hourly") if run.run_name == name)
    assert outcome.status == "failed"


def test_outcomes_as_text_are_read_again() -> None:
    names = ["20261121T031800Z", "20261121T031800Z:m-x", "20261121T031700Z:m-y", "20261120T000000Z"]
    runs = [
        RunOutcome.of_entry(RunEntry(name, "a", status, reason))
        for name, (status, reason) in zip(
            names,
            [("skipped", "misfire"), ("failed", ""), ("queued", ""), ("skipped", "of a later version")],
            strict=True,
        )
    ]
    assert decoded(encoded(runs)) == runs
    assert [run.run_name for run in runs] == names
    assert [run.trigger for run in runs] == ["schedule", "manual", "manual", "schedule"]
    assert [run.reason for run in runs] == ["misfire", "", "", ""]
    assert decoded(encoded([])) == []


def test_jobs_that_are_gone_leave_when_outcomes_are_stored(world: World) -> None:
    start(world)
    for name in ("stays", "goes"):
        world.registry.create("alice", name, job(cron="7 * * * *"))
    world.run_until("2026-11-21T08:00:00Z", ticks=True)
    world.project()
    reader = listed_health(world)
    world.store.delete("alice", "goes")
    last = reader.last_outcomes("alice", world.clock.now())
    assert last and set(last.rows) == {"stays"}


def test_making_them_goes_on_with_the_next_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    start(world)
    world.registry.create("alice", "a", job(cron="*/5 * * * *"))
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    world.project()
    monkeypatch.setattr(outcomes, "_STEP_CPU_S", 0)
    steps, last = 0, None
    while last is None:
        steps += 1
        with suppress(Busy):
            last = listed_health(world).last_outcomes("alice", world.clock.now())
    compare(world, listed_health(world))
    assert last.of("a") == recounted(world, "a", last)
    assert steps > 5
    assert at("2026-11-21T05:30:00Z") <= last.until


def test_outcomes_are_shown_as_long_as_runs_are_kept(world: World) -> None:
    start(world)
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.registry.create("alice", "daily", job(cron="35 3 * * *"))
    world.run_until("2026-11-23T02:00:00Z", ticks=True)
    world.project()
    jobs = list(world.store.list_jobs("alice"))
    as_of = AsOf(world.clock.now(), -math.inf, -math.inf)
    calendars = RememberedCalendars(Calendars(world.table("jobs")))
    of_jobs = listed_health(world).of_jobs
    assert len(of_jobs("alice", jobs, as_of, calendars, 30)["daily"].outcomes) == 2
    assert len(of_jobs("alice", jobs, as_of, calendars, 1)["daily"].outcomes) == 1


def test_a_page_shows_outcomes_as_soon_as_its_looks_have_made_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then each job of the page is asked."""
    start(world)
    world.registry.create("alice", "a", job(cron="*/5 * * * *"))
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    world.project()
    jobs = list(world.store.list_jobs("alice"))
    as_of = AsOf(world.clock.now(), -math.inf, -math.inf)
    calendars = RememberedCalendars(Calendars(world.table("jobs")))
    monkeypatch.setattr(outcomes, "_STEP_CPU_S", 0)
    looks = 1
    while not (shown := listed_health(world).of_jobs("alice", jobs, as_of, calendars, 30)):
        looks += 1
    assert looks > 5
    exact = JobHealth(world.table("runs")).of_jobs(jobs, as_of, calendars)
    assert [short(run) for run in shown["a"].outcomes] == [short(run) for run in exact["a"].outcomes]
