"""The projection of runs: it equals a recount from the records, whatever happens to its steps."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from common.errors import Minute8Error
from common.planning.chores import Chore, ChoreRunner
from common.projection import rebuild, windows
from common.projection.days import DayTotals, date_of, day_start
from common.projection.entry import RunEntry
from common.projection.state import PROJECTION
from common.projection.totals import HourlyTotals
from common.projection.windows import totals_of
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.storage import keys
from common.storage.table import Table, Tables
from common.timing.instants import DAY_S, rfc3339
from scheduler import projector as projector_module
from scheduler.projector import Projector
from tests.worlds import Killed, World, at, job, open_world

FAR = at("2036-01-01T00:00:00Z")


def projected(world: World, tenant: str = "alice") -> list[RunEntry]:
    """All runs of the projection, oldest first; the totals of each window are those of its runs."""
    runs: list[RunEntry] = []
    for window in world.projector.windows.between(tenant, 0, FAR, consistent=True):
        of_window = list(world.projector.windows.runs_of(tenant, window))[::-1]
        assert totals_of(of_window) == window.totals
        runs += of_window
    return runs


def recounted(world: World, job_ids: list[str], tenant: str = "alice", since: int = 0) -> list[RunEntry]:
    """The same from the records."""
    items = [item for job_id in job_ids for item in world.run_items(tenant, job_id)]
    entries = sorted((RunEntry.of_run(Run.from_item(item)) for item in items), key=lambda entry: entry.key)
    return [entry for entry in entries if entry.fire_at >= since]


def fail_next(world: World, count: int) -> None:
    """The next calls fail."""
    remaining = [False] * count

    def answer(event: object) -> Outcome:
        return Outcome(ok=remaining.pop() if remaining else True, error_type="Error", error="it failed")

    world.target.answer = answer


def start(world: World) -> int:
    """Begin the projection. Returns from when on it has all runs."""
    world.project()
    state = world.projector.states.read()
    assert state
    return state.since


def test_a_window_is_projected_ten_minutes_after_its_end(world: World) -> None:
    start(world)
    since = at("2026-11-21T03:30:00Z")
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:48:00Z", ticks=True)
    world.project()
    state = world.projector.states.read()
    assert state and state.until_of("alice") == at("2026-11-21T03:30:00Z")
    assert [entry for entry in projected(world) if entry.fire_at >= since] == []
    world.run_until("2026-11-21T03:58:00Z", ticks=True)
    world.project()
    window = world.projector.windows.window("alice", since)
    assert window
    assert window.totals.statuses == Counter(succeeded=10)
    assert sum(window.totals.lateness_s.values()) == 10
    assert projected(world) == recounted(world, ["minutely"])[: len(projected(world))]
    assert world.project().counts["windows"] == 0


def test_a_new_deployment_has_all_runs_from_the_first_on(world: World) -> None:
    """A newcomer looks at the console in the first minutes."""
    created_at = world.clock.now()
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:18:00Z", ticks=True)
    assert start(world) == created_at // 600 * 600
    world.run_until("2026-11-21T03:58:00Z", ticks=True)
    world.project()
    runs = projected(world)
    assert runs == recounted(world, ["minutely"])[: len(runs)]
    assert runs[-1].fire_at == at("2026-11-21T03:39:00Z")


def test_a_retry_of_the_next_day_is_followed(world: World) -> None:
    since = start(world)
    retries = {"max_attempts": 2, "base_s": 86_000, "cap_s": 86_000, "max_age_s": 604_800}
    world.registry.create("alice", "once", job(at="2026-11-21T03:45:00Z", retry=retries))
    fail_next(world, 1)
    world.run_until("2026-11-21T04:10:00Z", ticks=True)
    world.project()
    assert [(entry.status, entry.fire_at >= since) for entry in projected(world)] == [("retrying", True)]
    while world.clock.now() < at("2026-11-22T05:00:00Z"):
        world.clock.sleep(600)
        world.tick()
        world.deliver()
        world.project()
    assert [entry.status for entry in projected(world)] == ["succeeded"]


def test_a_failed_run_that_is_tried_again_by_hand_is_followed(world: World) -> None:
    start(world)
    world.registry.create("alice", "once", job(at="2026-11-21T03:45:00Z", retry={"max_attempts": 1}))
    fail_next(world, 1)
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    world.project()
    (failed,) = projected(world)
    assert failed.status == "failed"
    world.manual.retry("alice", f"alice:once:{failed.run_name}")
    world.deliver()
    world.clock.sleep(1800)
    world.project()
    assert [entry.status for entry in projected(world)] == ["succeeded"]


def test_what_the_plan_does_not_have_is_followed_too(world: World) -> None:
    since = start(world)
    world.registry.create("alice", "daily", job(cron="0 12 * * *"))
    world.registry.create("alice", "rare", job(cron="0 0 1 1 *"))
    world.run_until("2026-11-21T03:50:00Z", ticks=True)
    world.manual.run_now("alice", "rare", "by-hand")
    world.manual.backfills.start(
        "alice", "daily", at("2026-11-11T00:00:00Z"), at("2026-11-14T00:00:00Z"), 1, "old"
    )
    (coming,) = world.manual.coming(world.store.get("alice", "daily"), 1, world.clock.now())
    world.manual.cancel("alice", coming.execution_id, "not today")
    world.run_until("2026-11-21T13:00:00Z", ticks=True)
    world.project()
    entries = projected(world)
    assert entries == recounted(world, ["daily", "rare"])
    assert [entry.job_id for entry in entries] == ["daily", "daily", "daily", "rare", "daily"]
    assert (entries[-1].status, entries[-1].reason) == ("skipped", "cancelled")
    assert entries[-2].fire_at >= since


def test_missed_fire_times_are_followed(world: World) -> None:
    start(world)
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.clock.move_to(at("2026-11-21T06:00:00Z"))
    world.run_until("2026-11-21T06:40:00Z", ticks=True)
    world.project()
    window = projected(world)
    assert window == [
        run for run in recounted(world, ["minutely"]) if run.fire_at < at("2026-11-21T06:30:00Z")
    ]
    assert max(entry.fires for entry in window if entry.reason == "missed") > 100


def test_a_window_of_an_entry_that_cannot_be_planned_is_followed(world: World) -> None:
    start(world)
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    bad = world.store.get("alice", "minutely")
    key = keys.due_entry(bad.group, bad.shard, "alice", "minutely")
    world.table("due").put({**key, "entry": '["alice","minutely",{"cron":"99 * * * *"},0,1,"latest"]'})
    world.run_until("2026-11-21T04:20:00Z", ticks=True)
    world.project()
    runs = projected(world)
    assert "invalid" in {run.reason for run in runs}
    assert runs == [run for run in recounted(world, ["minutely"]) if run.fire_at < at("2026-11-21T04:10:00Z")]


def test_several_runs_of_a_job_are_read_with_a_query_and_single_ones_by_their_keys(world: World) -> None:
    """Runs that are read again are read consistently, and those of the plan are not, whatever is beside them."""
    start(world)
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    for number in range(20):
        world.registry.create("alice", f"once-{number:02}", job(at="2026-11-21T03:35:00Z"))
    world.run_until("2026-11-21T03:38:00Z", ticks=True)
    world.manual.run_now("alice", "once-00", "by-hand")
    world.run_until("2026-11-21T03:58:00Z", ticks=True)
    reads: list[tuple[str, int, bool]] = []
    query, get_many = Table.query, Table.get_many

    def counted_query(table: Table, asked_for: Any) -> Any:
        if asked_for.pk.startswith("alice#"):
            records = list(query(table, asked_for))
            reads.append((asked_for.pk, len(records), asked_for.consistent))
            return iter(records)
        return query(table, asked_for)

    def counted_get(table: Table, keys_: Any, *, consistent: bool = True, **rest: Any) -> Any:
        if table.name == "test-runs":
            reads.append(("keys", len(keys_), consistent))
        return get_many(table, keys_, consistent=consistent, **rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "query", counted_query)
        patch.setattr(Table, "get_many", counted_get)
        world.project()
    jobs = ["minutely", *(f"once-{number:02}" for number in range(20))]
    end = at("2026-11-21T03:40:00Z")
    assert projected(world) == [run for run in recounted(world, jobs) if run.fire_at < end]
    (queried,) = (asked_for for asked_for in reads if asked_for[0] != "keys")
    assert queried[0] == "alice#minutely" and queried[1] >= 10 and not queried[2]
    assert {("keys", 20, False), ("keys", 1, True)} <= set(reads)


def test_a_large_window_is_divided_and_stays_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MAX_INLINE", 5)
    monkeypatch.setattr(windows, "CHUNK_RUNS", 7)
    start(world)
    for number in range(6):
        world.registry.create("alice", f"j{number}", job(cron="* * * * *"))
    fail_next(world, 400)
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    world.project()
    world.target.answer = lambda event: Outcome(ok=True)
    world.run_until("2026-11-21T07:00:00Z", ticks=True)
    world.project()
    ids = [f"j{number}" for number in range(6)]
    newest = projected(world)[-1].fire_at
    expected = [run for run in recounted(world, ids) if run.fire_at <= newest]
    assert projected(world) == [run for run in expected if run.fire_at >= projected(world)[0].fire_at]
    assert all(
        len(window.chunks) > 3 for window in world.projector.windows.between("alice", newest - 3_600, newest)
    )


def test_a_past_day_is_rolled_up_and_follows_late_changes(world: World) -> None:
    start(world)
    world.registry.create("alice", "hourly", job(cron="45 * * * *", retry={"max_attempts": 1}))
    world.table("tenants").put(dict(keys.tenant_listing("alice")))
    for _ in range(3 * 144):
        world.run_until(later(world, 600), ticks=True)
        world.project()
    day = day_start(at("2026-11-22T00:00:00Z"))
    rolled_up = rolled_up_day(world, day)
    assert rolled_up.hours == of_day(world, day).hours
    assert len(rolled_up.hours) == 24
    run = recounted(world, ["hourly"], since=day)[5]
    (item,) = (item for item in world.run_items("alice", "hourly") if item["sk"] == run.run_name)
    world.table("runs").put({**item, "status": "failed"})  # as if the target had failed then
    world.manual.retry("alice", f"alice:hourly:{run.run_name}")
    fail_next(world, 1)
    world.run_until(later(world, 3_600), ticks=True)
    world.project()
    again = rolled_up_day(world, day)
    assert again.hours == of_day(world, day).hours != rolled_up.hours


def rolled_up_day(world: World, day: int) -> DayTotals:
    item = world.table("runs").get(keys.projected_day("alice", date_of(day)))
    assert item
    return DayTotals.from_item(item)


def of_day(world: World, day: int) -> HourlyTotals:
    totals = HourlyTotals()
    for entry in recounted(world, ["hourly"], since=day):
        if entry.fire_at < day + DAY_S:
            totals.add(entry.fire_at, totals_of([entry]))
    return totals


def later(world: World, seconds: int) -> str:
    return rfc3339(int(world.clock.now()) + seconds)


@dataclass
class CutOff:
    """A client that dies at the nth request."""

    client: Any
    requests: int

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if not callable(method):
            return method

        def call(**arguments: Any) -> Any:
            self.requests -= 1
            if self.requests < 0:
                raise Killed
            return method(**arguments)

        return call


def cut_off_step(world: World, requests: int) -> None:
    """A step of the projection that dies at a request."""
    client = CutOff(world.dynamodb, requests)
    with suppress(Killed):
        tables = Tables(lambda name: Table(client, f"test-{name}", now=world.clock.now))  # type: ignore[arg-type]
        runner = ChoreRunner(tables.due, world.clock, "test")
        chore = Chore(PROJECTION, Projector.of(tables, world.queue, world.clock).steps)
        runner.run([chore], world.clock.now() + 200)


def act(world: World, rng: random.Random, ids: list[str]) -> None:
    """One random change by the tenant."""
    name = rng.choice(ids)
    runs = world.run_items("alice", name)
    actions: list[Callable[[], object]] = [
        lambda: world.manual.run_now("alice", name, f"n{rng.randrange(10**9)}"),
        lambda: world.manual.retry("alice", f"alice:{name}:{rng.choice(runs)['sk']}") if runs else None,
        lambda: world.manual.cancel("alice", f"alice:{name}:{rng.choice(runs)['sk']}", "") if runs else None,
        lambda: [
            world.manual.cancel("alice", coming.execution_id, "")
            for coming in world.manual.coming(world.store.get("alice", name), 3, world.clock.now())
        ],
        lambda: world.manual.take_back(world.manual.skipped("alice", name)),
        lambda: world.store.pause("alice", name) if rng.random() < 0.5 else world.store.resume("alice", name),
        lambda: world.manual.backfills.start(
            "alice",
            name,
            int(world.clock.now()) - 5_000,
            int(world.clock.now()) - 100,
            2,
            f"b{rng.randrange(10**9)}",
        ),
    ]
    with suppress(Minute8Error):
        rng.choice(actions)()


def create_random_jobs(world: World, rng: random.Random, overlaps: list[str]) -> list[str]:
    """Four jobs that retry what fails, and their ids. Three runs of ten fail."""
    crons = ["* * * * *", "*/7 * * * *", "3 * * * *", "17 */2 * * *"]
    ids = [f"j{number}" for number in range(4)]
    for name, cron in zip(ids, crons, strict=True):
        retry = {"max_attempts": rng.randint(1, 4), "base_s": rng.choice([5, 900, 20_000]), "cap_s": 40_000}
        world.registry.create("alice", name, job(cron=cron, retry=retry, overlap=rng.choice(overlaps)))
    world.target.answer = lambda event: Outcome(ok=rng.random() < 0.7, error_type="E", error="no")
    return ids


def live_on_at_random(world: World, rng: random.Random, ids: list[str]) -> None:
    """Time passes, perhaps without ticks; somebody may act on a job; steps may be cut off."""
    world.run_until(later(world, rng.choice([60, 600, 1_800])), ticks=rng.random() < 0.9)
    if rng.random() < 0.7:
        act(world, rng, ids)
    for _ in range(rng.choice([0, 1, 1, 2])):
        cut_off_step(world, rng.choice([3, 20, 60, 90, 10_000]))


# The others are played before a release.
SEEDS = [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(3, 8))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_projection_is_a_recount_in_random_worlds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(windows, "MAX_INLINE", rng.choice([3, 300]))
    monkeypatch.setattr(windows, "CHUNK_RUNS", rng.choice([4, 3_000]))
    monkeypatch.setattr(projector_module, "_READS_BETWEEN_CLOCK_READS", rng.choice([5, 1_600]))
    with open_world() as world:
        since = start(world)
        ids = create_random_jobs(world, rng, ["allow", "skip", "queue_one"])
        for _ in range(60):
            live_on_at_random(world, rng, ids)
        for name in ids:
            world.store.pause("alice", name)
        world.target.answer = lambda event: Outcome(ok=True)
        for _ in range(60):
            world.run_until(later(world, 3_600), ticks=True)
            world.project()
        assert [run for run in projected(world) if run.fire_at >= since] == recounted(world, ids, since=since)
        assert not [run for run in projected(world) if run.is_open]


def test_a_rebuild_makes_the_projection_of_the_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "JOBS_A_STEP", 2)
    ids = ["a", "b", "c"]
    for name in ids:
        world.registry.create("alice", name, job(cron="*/20 * * * *"))
    world.run_until("2026-11-21T08:00:00Z", ticks=True)
    world.project()
    since = at("2026-11-21T08:20:00Z")
    world.run_until("2026-11-22T09:00:00Z", ticks=True)
    world.project()
    window = world.projector.windows.window("alice", since)
    assert window and window.runs
    false = RunEntry(window.runs[0].run_name, "nobody", "failed")
    world.projector.windows.merge("alice", since, {false.key: false, window.runs[0].key: None}, 0)
    again = rebuild.Rebuild(world.table("jobs"), world.table("runs"), world.table("due"))
    cursor: rebuild.RebuildPosition | None = again.start(world.clock.now(), 2)
    while cursor:
        cursor = again.step("alice", cursor, world.clock.now()).next
    newest = projected(world)[-1].fire_at
    assert projected(world) == [run for run in recounted(world, ids) if run.fire_at <= newest]
    day = at("2026-11-21T00:00:00Z")
    rolled_up = rolled_up_day(world, day)
    assert sum(totals.runs for totals in rolled_up.hours.values()) == len(
        [run for run in projected(world) if run.fire_at < day + DAY_S]
    )


def test_a_tenant_whose_item_is_lost_is_projected_and_named(world: World) -> None:
    since = start(world)
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T04:28:00Z", ticks=True)
    world.table("tenants").delete(keys.tenant("alice"))
    world.table("tenants").delete(keys.tenant_listing("alice"))
    done = world.round(PROJECTION, world.projector.steps)
    assert "alice: it has no item among the tenants" in done.problems
    newest = projected(world)[-1].fire_at
    assert newest >= since
    runs = recounted(world, ["minutely"], since=since)
    assert [run for run in projected(world) if run.fire_at >= since] == [
        run for run in runs if run.fire_at <= newest
    ]


def test_a_round_without_runs_reads_one_range_of_each_bucket(world: World) -> None:
    start(world)
    world.run_until("2026-11-21T03:48:00Z", ticks=True)
    world.project()
    requests: Counter[str] = Counter()
    world.dynamodb.before = lambda name: requests.update([name])
    world.project()
    world.dynamodb.before = lambda name: None
    assert requests["query"] <= keys.LOG_BUCKETS + 4, requests
    assert requests.total() <= keys.LOG_BUCKETS + 10, requests
