"""Paces from the registration to the run: whole windows, planned by ticks and planners."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import to_builtins

from common.history.job_directory import JobDirectory
from common.history.next_fires import Fires, TenantDensity
from common.planning.due_entry import DueEntry
from common.planning.execution import Execution
from common.planning.packs import lines
from common.storage import keys
from common.storage.table import Query
from common.tenants.audit import Audit
from common.timing.instants import rfc3339
from scheduler.summary import TickSummary
from tests.planning.test_shares import Fleet
from tests.worlds import World, at, job, open_world

Spots = dict[tuple[str, str], int]


@pytest.fixture
def world() -> Iterator[World]:
    with open_world() as world:
        yield world


def register(world: World, count: int, prefix: str = "job", tenant: str = "alice", **fields: Any) -> None:
    fields = {"cron": "25 * * * *", "pace": {"per_second": 2}, **fields}
    for number in range(count):
        world.registry.create(tenant, f"{prefix}{number}", job(**fields))


def sent(world: World) -> Spots:
    """When each execution that was sent becomes visible; of one that was sent twice, both times must be equal."""
    spots: Spots = {}
    for body in world.sqs.bodies:
        for line in lines(body):
            execution = Execution.decode(line)
            name = f"{execution.tenant}/{execution.job_id}", rfc3339(execution.fire_at)
            assert spots.setdefault(name, execution.visible_at) == execution.visible_at
    return spots


def seconds(spots: Spots) -> list[tuple[str, int]]:
    return [(rfc3339(second)[11:19], count) for second, count in sorted(Counter(spots.values()).items())]


def tick(world: World, when: str = "2026-11-21T03:18:00Z") -> TickSummary:
    world.run_until(when)
    return world.scheduler.tick()


def test_simultaneous_executions_are_due_at_a_pace_and_the_run_shows_both_times(world: World) -> None:
    register(world, 5)
    world.registry.create("alice", "free", job(cron="25 * * * *"))
    world.registry.create("alice", "other", job(cron="25 * * * *", pace={"per_second": 2, "key": "crm"}))
    register(world, 1, tenant="bob")
    tick(world)
    spots = sent(world)
    assert spots.pop(("alice/free", "2026-11-21T03:25:00Z")) == at("2026-11-21T03:25:00Z")
    assert spots.pop(("alice/other", "2026-11-21T03:25:00Z")) == at("2026-11-21T03:25:00Z")
    assert spots.pop(("bob/job0", "2026-11-21T03:25:00Z")) == at("2026-11-21T03:25:00Z")
    assert seconds(spots) == [("03:25:00", 2), ("03:25:01", 2), ("03:25:02", 1)]
    world.run_until("2026-11-21T03:26:00Z")
    (run,) = world.run_items("alice", "job4")
    assert (run["fire_at"], run["due_at"]) == (at("2026-11-21T03:25:00Z"), at("2026-11-21T03:25:02Z"))
    assert run["lateness_s"] < 1


def test_a_window_that_is_planned_twice_has_the_same_due_times(world: World) -> None:
    world.run_until("2026-11-21T03:18:00Z")
    world.scheduler.tick()  # the jobs come after it
    register(world, 9, cron="*/2 * * * *", jitter_s=5)
    register(world, 9, prefix="half", cron="30 * * * * *")
    world.sqs.bodies.clear()
    tick(world, "2026-11-21T03:28:00Z")
    once = list(world.sqs.bodies)
    world.sqs.bodies.clear()
    progress = world.table("due").get(keys.PROGRESS)
    assert progress
    world.table("due").put({**progress, "planned_until": at("2026-11-21T03:30:00Z")})
    tick(world, "2026-11-21T03:29:00Z")
    assert sorted(world.sqs.bodies) == sorted(once)
    assert len(sent(world)) == 9 * 15


def test_neighbouring_windows_keep_the_pace_together(world: World) -> None:
    register(world, 7, prefix="before", cron="59 29 * * * *")
    register(world, 7, prefix="after", cron="0 30 * * * *")
    tick(world)
    tick(world, "2026-11-21T03:28:00Z")
    spots = sent(world)
    assert len(spots) == 14 and max(Counter(spots.values()).values()) == 2
    assert max(spots.values()) == at("2026-11-21T03:29:59Z") + 6


def test_executions_beyond_the_tolerance_run_and_are_reported(world: World) -> None:
    register(world, 25, pace={"per_second": 2, "tolerance_s": 9, "key": "crm"})
    summary = tick(world)
    assert (summary.planned, summary.over_pace) == (25, 5)
    assert [count for _, count in seconds(sent(world))] == [3] * 5 + [2] * 5
    assert world.events == [
        (
            "Pace Exceeded",
            {
                "tenant": "alice",
                "key": "crm",
                "per_second": 2,
                "executions": 25,
                "over": 5,
                "most_in_a_second": 3,
                "start_at": at("2026-11-21T03:20:00Z"),
                "end_at": at("2026-11-21T03:30:00Z"),
            },
        )
    ]


def density_of(world: World) -> tuple[TenantDensity, Fires]:
    """Of the window that the next tick plans."""
    now = world.clock.now()
    jobs = JobDirectory(world.table("jobs"), Audit(world.table("tenants"))).listed("alice", now)
    fires = Fires.of(world.table("jobs"), "alice", now)
    return fires.density(jobs, at("2026-11-21T03:20:00Z"), at("2026-11-21T03:30:00Z")), fires


def test_a_density_of_too_many_paced_executions_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(world, 4, pace={"per_second": 2, "tolerance_s": 9, "key": "crm"})
    register(world, 4, prefix="other", cron="26 * * * *", pace=None)
    density, fires = density_of(world)
    assert (len(density.paces["crm"].due), fires.jobs, fires.is_cut) == (4, 8, False)
    monkeypatch.setattr("common.history.next_fires.MAX_PACED", 3)
    _, fires = density_of(world)
    assert fires.is_cut


def test_the_density_foresees_what_the_tick_does(world: World) -> None:
    register(world, 40, pace={"per_second": 2, "tolerance_s": 14, "key": "crm"})
    register(
        world, 9, prefix="calm", cron="*/2 * * * *", pace={"per_second": 1, "tolerance_s": 60, "key": "calm"}
    )
    register(world, 1, prefix="other", cron="*/3 * * * *", pace=None)
    density, _ = density_of(world)
    foreseen = {key: shared.forecast() for key, shared in density.paces.items()}
    over = tick(world).over_pace
    delays = {
        key: [
            second - at(fire_at)
            for (name, fire_at), second in sent(world).items()
            if prefix in name and at(fire_at) >= at("2026-11-21T03:20:00Z")
        ]
        for key, prefix in (("crm", "/job"), ("calm", "/calm"))
    }
    assert foreseen.keys() == delays.keys()
    assert over == sum(foresight.over for foresight in foreseen.values()) == 10
    for key, key_delays in delays.items():
        count, delayed, longest_s, _ = foreseen[key]
        assert (count, delayed, longest_s) == (len(key_delays), sum(map(bool, key_delays)), max(key_delays))


def test_a_delay_longer_than_sqs_allows_is_kept(world: World) -> None:
    register(world, 300, cron="29 * * * *", pace={"per_second": 1, "tolerance_s": 600})
    tick(world)
    world.run_until("2026-11-21T03:45:00Z", ticks=True)
    called = Counter(context["due_at"] for _, context in world.target.calls)
    assert called.total() == len(called) == 300
    assert max(called) == "2026-11-21T03:33:59Z"
    assert all(run["lateness_s"] < 1 for run in world.run_items("alice", "job299"))


def test_after_an_outage_what_is_late_comes_at_the_pace(world: World) -> None:
    register(world, 6, cron="25 * * * *")
    world.run_until("2026-11-21T03:29:00Z")
    world.scheduler.tick()
    assert seconds(sent(world)) == [
        ("03:25:00", 2),
        ("03:29:01", 2),
        ("03:29:02", 2),
    ]  # the first two at once
    world.run_until("2026-11-21T03:35:00Z")
    assert [world.run_items("alice", f"job{n}")[0]["lateness_s"] >= 240 for n in range(6)] == [True] * 6


@pytest.mark.parametrize(("share_entries", "parts"), [(1_000, 1), (290, 1), (60, 4)])
def test_planners_keep_the_pace_of_a_divided_window(world: World, share_entries: int, parts: int) -> None:
    pace = {"per_second": 3, "tolerance_s": 120}
    for number, minute in enumerate(range(20, 30)):
        register(
            world, 5, prefix=f"a{number}-", cron=f"{minute} * * * *", timezone=f"Etc/GMT+{number}", pace=pace
        )
        register(world, 9, prefix=f"b{number}-", cron=f"{minute} * * * *", timezone=f"Etc/GMT-{number}")
    fleet = Fleet(world, share_entries)
    world.run_until("2026-11-21T03:18:00Z")
    fleet.tick()
    shares = list(world.table("due").query(Query(keys.SHARES)))
    assert bool(shares) == (share_entries < 1_000)
    assert max((int(share.get("pace_part", [0, 1])[1]) for share in shares), default=1) >= parts
    fleet.plan_all()
    spots = sent(world)
    assert len(spots) == 140
    slow = {name: spot for name, spot in spots.items() if name[0].startswith("alice/a")}
    assert max(Counter(spots.values()).values()) <= 3 and len(slow) == 50


def test_a_registration_in_a_planned_window_starts_within_the_tolerance(world: World) -> None:
    tick(world)
    register(world, 40, pace={"per_second": 1, "tolerance_s": 30})
    spots = sent(world)
    assert len(spots) == 40 and len(set(spots.values())) > 15
    assert all(0 <= spot - at("2026-11-21T03:25:00Z") <= 30 for spot in spots.values())
    world.run_until("2026-11-21T03:26:00Z")
    assert len(world.target.calls) == 40


def test_manual_runs_and_retries_do_not_count(world: World) -> None:
    register(world, 3, pace={"per_second": 1})
    world.run_until("2026-11-21T03:18:00Z")
    for number in range(3):
        world.manual.run_now("alice", f"job{number}", "now")
    assert set(sent(world).values()) == {at("2026-11-21T03:18:00Z")}


def test_a_job_gets_and_loses_a_pace_and_is_planned_once(world: World) -> None:
    register(world, 4, pace=None)
    for pace in ({"per_second": 1}, None, {"per_second": 1, "key": "crm"}):
        for number in range(4):
            world.registry.put("alice", f"job{number}", job(cron="25 * * * *", pace=pace))
    tick(world)
    assert [count for _, count in seconds(sent(world))] == [1] * 4
    entries = list(world.index.directory.all())
    assert [listing.shard.jobs for listing in entries] == [4]  # type: ignore[union-attr]
    for number in range(4):
        world.store.delete("alice", f"job{number}")
    assert list(world.index.directory.all()) == []


def test_another_target_is_another_pace(world: World) -> None:
    register(world, 1)
    before = world.store.get("alice", "job0")
    other = job(cron="25 * * * *", pace={"per_second": 2})
    other["target"]["arn"] += "-2"
    after = world.registry.put("alice", "job0", other)
    assert before.schedule.pace and after.schedule.pace
    assert (before.schedule.pace.key, after.schedule.pace.key) == (
        before.spec.target["arn"],
        other["target"]["arn"],
    )
    assert after.schedule_revision == before.schedule_revision + 1
    assert before.shard != after.shard


def test_an_older_version_reads_the_items_and_runs_the_jobs_without_a_pace(world: World) -> None:
    """It knows no paces: to it, the shards are shards, and the entries lack what it does not read."""
    register(world, 5)
    entries = [entry for shard in world.index.directory.all() for entry in world.index.entries(shard.shard)]  # type: ignore[union-attr]
    assert len(entries) == 5
    for entry in entries:
        assert isinstance(entry, DueEntry)
        shown = to_builtins(entry.schedule)
        assert shown.pop("pace") == {"key": job()["target"]["arn"], "per_second": 2, "tolerance_s": 60}
        assert shown == {"cron": "25 * * * *"}


def test_a_tenant_with_a_pace_for_each_job_does_not_slow_the_registrations_of_others(world: World) -> None:
    for number in range(150):
        register(
            world, 1, prefix=f"a{number}-", tenant="mallory", pace={"per_second": 1, "key": f"key{number}"}
        )
    read: list[str] = []
    world.dynamodb.before = read.append
    world.registry.create("bob", "first", job(cron="25 * * * *"))
    few = len(read)
    read.clear()
    world.registry.create("bob", "second", job(cron="25 * * * *"))
    assert len(read) <= few < 25
    world.dynamodb.before = lambda name: None
    tick(world)
    assert set(sent(world).values()) == {at("2026-11-21T03:25:00Z")}
    assert len(sent(world)) == 152


@pytest.mark.parametrize("seed", range(4))
def test_random_jobs_and_windows_keep_every_pace(world: World, seed: int) -> None:
    """Hours of random jobs, ticks that are left out or come twice, planners of few entries: nothing is lost."""
    rng = random.Random(seed)
    numbers = {"a": 1, "b": 2, "c": 5}
    for number in range(60):
        key = rng.choice(sorted(numbers))
        pace = {"per_second": numbers[key], "key": key, "tolerance_s": rng.choice((20, 60, 300, 600))}
        minutes = ",".join(map(str, sorted(rng.sample(range(60), rng.randint(1, 6)))))
        jitter_s = rng.choice((0, 0, 30))
        definition = job(
            cron=f"{rng.choice(('0', '59', '30'))} {minutes} * * * *", pace=pace, jitter_s=jitter_s
        )
        world.registry.create(rng.choice(("alice", "bob")), f"{key}{number}", definition)
    fleet = Fleet(world, rng.choice((30, 100, 10_000)))
    fleet.plan_all()
    over = 0
    for minute in range(18, 200, 10):
        world.run_until(f"2026-11-21T{3 + minute // 60:02}:{minute % 60:02}:00Z")
        if rng.random() < 0.9:
            over += fleet.tick().over_pace
            while fleet.queue.bodies:
                body = fleet.queue.bodies.pop(rng.randrange(len(fleet.queue.bodies)))
                over += fleet.plan(body).over_pace
                if rng.random() < 0.2:
                    fleet.plan(body)
    world.run_until("2026-11-21T07:00:00Z")
    calls = Counter((c["tenant"], c["job_id"], c["fire_at"]) for _, c in world.target.calls)
    assert set(calls.values()) == {1}
    for tenant in ("alice", "bob"):
        for key, number in numbers.items():
            called = Counter(
                int(called_at)
                for called_at, context in world.target.calls
                if context["tenant"] == tenant and context["job_id"].startswith(key)
                if called_at >= at("2026-11-21T03:50:00Z")  # after those that registrations enqueued
            )
            assert over or max(called.values(), default=0) <= number
