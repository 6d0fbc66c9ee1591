"""Lists over all jobs by the projection: the runs that are recorded, in the same order, for few requests."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from itertools import pairwise

import pytest
from msgspec import convert, to_builtins

from common.errors import Conflict
from common.history.job_directory import JobDirectory
from common.history.projected_summary import ProjectedSummaries
from common.history.runs_by_time import RunFilter, RunsByTime, TimeRange
from common.projection.entry import RunEntry
from common.projection.totals import HourlyTotals
from common.projection.windows import totals_of
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.storage import keys
from common.tenants.audit import Audit
from common.timing.instants import DAY_S, rfc3339
from minute8.api.views import run_view
from tests.worlds import World, at, job, open_world

RANGE = at("2026-11-21T03:00:00Z")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))]


def lists(world: World) -> RunsByTime:
    jobs = world.table("jobs")
    directory = JobDirectory(jobs, Audit(world.table("tenants")))
    return RunsByTime(world.table("runs"), world.table("due"), directory)


def by_time(world: World, run_filter: RunFilter, limit: int = 7) -> list[Run]:
    """All pages of a list."""
    span: TimeRange | None = TimeRange(run_filter.from_at or RANGE, run_filter.until_at)
    runs: list[Run] = []
    while span:
        page = lists(world).page("alice", span, run_filter, limit=limit, now=world.clock.now())
        assert len(page.items) <= limit
        runs += page.items
        span = page.after and convert(to_builtins(page.after), TimeRange)
    return runs


def recorded(world: World, run_filter: RunFilter) -> list[Run]:
    """The same from the records of each job."""
    items = [item for job_id in "abcd" for item in world.run_items("alice", job_id)]
    first, last = run_filter.from_at or RANGE, run_filter.until_at or 10**11
    runs = [run for run in map(Run.from_item, items) if first <= run.fire_at < last]
    matching = filter(run_filter.matches, runs)
    return sorted(matching, key=lambda run: (run.run_name, run.job_id), reverse=True)


def busy_world(world: World, seed: int) -> None:
    """Some hours of four jobs, whose projection began before half of them."""
    rng = random.Random(seed)
    for name, cron in (("a", "* * * * *"), ("b", "*/3 * * * *"), ("c", "7 * * * *"), ("d", "*/11 * * * *")):
        retry = {"max_attempts": rng.randint(1, 3), "base_s": 700, "cap_s": 40_000}
        world.registry.create("alice", name, job(cron=cron, retry=retry, tags=[f"tag-{name}"]))
    world.target.answer = lambda event: Outcome(ok=rng.random() < 0.8, error_type="E", error="no")
    world.run_until("2026-11-21T04:30:00Z", ticks=True)
    world.project()
    for _ in range(12):
        world.run_until(rfc3339(int(world.clock.now()) + rng.randint(60, 900)), ticks=True)
        if rng.random() < 0.7:
            world.project()
        world.manual.run_now("alice", rng.choice("abcd"), f"n{rng.randrange(10**9)}")
        for coming in world.manual.coming(world.store.get("alice", "c"), 1, world.clock.now()):
            with suppress(Conflict):
                world.manual.cancel("alice", coming.execution_id, "")
        world.deliver()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_list_has_the_runs_that_are_recorded(seed: int) -> None:
    with open_world() as world:
        busy_world(world, seed)
        middle = at("2026-11-21T05:05:00Z")
        for run_filter in (
            RunFilter(),
            RunFilter(status="failed"),
            RunFilter(status="retrying"),
            RunFilter(status="skipped"),
            RunFilter(trigger="manual"),
            RunFilter(from_at=middle),
            RunFilter(from_at=middle - 1_300, until_at=middle),
            RunFilter(until_at=middle),
        ):
            shown = by_time(world, run_filter)
            expected = recorded(world, run_filter)
            assert [run_view(run, world.clock.now()) for run in shown] == [
                run_view(run, world.clock.now()) for run in expected
            ], run_filter
            assert all(
                newer > older for newer, older in pairwise((run.run_name, run.job_id) for run in shown)
            )


@pytest.mark.parametrize("is_state_older", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_summary_is_a_recount_of_all_runs(seed: int, is_state_older: bool) -> None:
    with open_world() as world:
        busy_world(world, seed)
        now = world.clock.now()
        looks = lists(world)
        if is_state_older:
            world.run_until(rfc3339(int(now) + 1_500), ticks=True)
            now = world.clock.now()
            kept = looks.states.recent(now)
            world.project()
            assert kept == looks.states.recent(now) != looks.states.read()
        for from_at, until_at in (
            (at("2026-11-21T04:40:00Z"), int(now) + 1),
            (at("2026-11-21T05:03:17Z"), at("2026-11-21T05:44:00Z")),
        ):
            shown = ProjectedSummaries(world.table("runs"), looks).between("alice", from_at, until_at, now)
            assert shown.from_at == from_at
            recounted = HourlyTotals()
            for run in recorded(world, RunFilter(from_at=shown.from_at, until_at=until_at)):
                entry = RunEntry.of_run(run)
                recounted.add(entry.fire_at, totals_of([entry]))
            assert shown.hourly == recounted


@pytest.mark.long
def test_a_week_is_read_in_few_requests(world: World) -> None:
    world.table("tenants").put(dict(keys.tenant_listing("alice")))
    world.registry.create("alice", "hourly", job(cron="7 * * * *"))
    world.project()
    for _ in range(8 * 144):
        world.run_until(rfc3339(int(world.clock.now()) + 600), ticks=True)
        world.project()
    now = world.clock.now()
    until_at = int(now) + 1
    summaries = ProjectedSummaries(world.table("runs"), lists(world))
    for first_look in (1, 0):
        requests: Counter[str] = Counter()
        world.dynamodb.before = lambda name, seen=requests: seen.update([name])
        shown = summaries.between("alice", until_at - 7 * DAY_S, until_at, now)
        assert requests.total() <= 5 + first_look, requests
    assert shown and sum(totals.runs for totals in shown.hourly.hours.values()) == 168


def test_tag_and_target_select_jobs(world: World) -> None:
    busy_world(world, 1)
    all_runs = by_time(world, RunFilter())
    assert by_time(world, RunFilter(tag="tag-b")) == [run for run in all_runs if run.job_id == "b"]
    assert by_time(world, RunFilter(target="lambda")) == all_runs
    assert by_time(world, RunFilter(target="sqs")) == []


def test_the_newest_fifty_cost_few_requests_however_many_jobs(world: World) -> None:
    for number in range(300):
        world.registry.create("alice", f"job-{number}", job(cron=f"{number % 60} * * * *"))
    world.project()
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    world.project()
    for run_filter in (
        RunFilter(),
        RunFilter(status="failed"),
        RunFilter(tag="none"),
        RunFilter(until_at=at("2026-11-21T05:00:00Z")),
    ):
        requests: Counter[str] = Counter()
        world.dynamodb.before = lambda name, counted=requests: counted.update([name])
        cursor = TimeRange(at("2026-11-21T04:00:00Z"), run_filter.until_at)
        lists(world).page("alice", cursor, run_filter, limit=50, now=world.clock.now())
        world.dynamodb.before = lambda name: None
        assert requests.total() <= 10, (run_filter, requests)
