"""What is coming on the platform as ticks count it: the same as the due index says, and bounded."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from common.planning import platform_density
from common.planning.platform_density import PARTITIONS, DensityCursor, PlatformDensity, count_step
from common.projection import coming as coming_file
from common.projection.coming import MAX_AGE_S, Coming, ComingCounts
from common.storage import keys
from common.storage.table import Query
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start
from scheduler.coming import ComingCounter, Counted
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, job, make_world

SCHEDULES: tuple[dict[str, Any], ...] = (
    {"cron": "*/7 * * * *"},
    {"cron": "0 * * * *"},
    {"cron": "H H * * *"},
    {"cron": "30 4 * * *", "timezone": "Asia/Kolkata"},
    {"cron": "5 * * * *", "jitter_s": 2_000},
    {"every": 3_700, "anchor": "2026-11-21T00:00:00Z"},
    {"at": "2026-11-21T09:30:15Z"},
)


def counter(world: World) -> ComingCounter:
    return ComingCounter.of(world.tables, world.clock)


def count(world: World) -> Counted:
    """A step of the ticks, as if an operator had just asked."""
    counted = counter(world).count(world.clock.now(), world.clock.now())
    assert not counted.problem
    return counted


def stored_counts(world: World, start: int, end: int) -> Coming | None:
    return ComingCounts(world.tables.runs).between(start, end, world.clock.now())


def recounted(world: World, start: int, end: int) -> PlatformDensity:
    """The same from the due index."""
    density, cursor = PlatformDensity(start, end), DensityCursor()
    while cursor := count_step(world.index, density, cursor):  # type: ignore[assignment]
        pass
    return density


def test_what_ticks_count_is_what_the_due_index_says(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any range of whole windows, in random worlds, with portions and steps of any size."""
    rng = random.Random(25)
    for n in range(60):
        tenant = f"tenant-{n % 5}"
        world.registry.create(tenant, f"job-{n}", job(**rng.choice(SCHEDULES)))
        if n % 9 == 0:
            world.store.pause(tenant, f"job-{n}")
    monkeypatch.setattr(platform_density, "MAX_ENTRIES", 3)
    monkeypatch.setattr(coming_file, "_PORTION_CHARS", 200)
    assert len(count(world).partitions) == PARTITIONS
    now = window_start(int(world.clock.now()))
    for _ in range(20):
        start = now + rng.randrange(100) * WINDOW_S
        end = start + rng.randrange(1, 60) * WINDOW_S
        stored = stored_counts(world, start, end)
        assert stored
        expected = recounted(world, start, end)
        assert stored.density.total() == expected.total()
    assert stored_counts(world, now, now + 28 * 3_600) is None
    assert stored_counts(world, now - WINDOW_S, now + WINDOW_S) is None


def test_counts_are_made_again_within_an_hour_and_replace_those_before(world: World) -> None:
    world.registry.create("alice", "hourly", job(cron="0 * * * *"))
    count(world)
    now = window_start(int(world.clock.now()))
    world.store.delete("alice", "hourly")
    world.registry.create("bob", "often", job(cron="*/10 * * * *"))
    world.clock.sleep(WINDOW_S)
    assert count(world).partitions == []
    stale = stored_counts(world, now + 2 * WINDOW_S, now + DAY_S)
    assert stale
    assert stale.density.total().tenants == Counter(alice=24)
    assert stale.counted_at == int(world.clock.now()) - WINDOW_S
    world.clock.sleep(5 * WINDOW_S)
    assert len(count(world).partitions) == PARTITIONS
    fresh = stored_counts(world, now + 12 * WINDOW_S, now + 18 * WINDOW_S)
    assert fresh
    assert fresh.density.total().tenants == Counter(bob=6)
    items = list(world.tables.runs.query(Query(keys.PROJECTION, sk_prefix="COMING")))
    assert len(items) == PARTITIONS + 1  # the heads, and one portion: nothing is left of the counts before
    world.clock.sleep(MAX_AGE_S + 1)
    assert stored_counts(world, now + 12 * WINDOW_S, now + 18 * WINDOW_S) is None


def test_nobody_asked_and_ticks_count_nothing() -> None:
    db = MemoryDynamoDB()
    world = make_world(db, "2026-11-21T03:12:00Z")
    world.registry.create("alice", "hourly", job(cron="0 * * * *"))
    requests: list[str] = []
    db.before = requests.append
    for asked_at in (0, world.clock.now() - DAY_S - 1):
        assert counter(world).count(world.clock.now(), asked_at) == Counted()
    assert not requests


def test_what_there_is_no_time_for_is_left_and_stops_no_other_partition(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One partition has more than a tick can count; the others are counted by ticks that begin with them."""
    world.registry.create("alice", "hourly", job(cron="0 * * * *"))
    shard = next(iter(world.index.directory.all())).shard  # type: ignore[union-attr]
    hog = int(keys.directory(shard.group, shard.shard)["pk"].partition("#")[2])
    entries = world.index.entries
    monkeypatch.setattr(platform_density, "MAX_ENTRIES", 0)  # it never ends

    def slow(*args: Any, **named: Any) -> Any:
        world.clock.sleep(70)
        return entries(*args, **named)

    monkeypatch.setattr(type(world.index), "entries", lambda self, *args, **named: slow(*args, **named))
    remaining = []
    for _ in range(PARTITIONS):
        remaining.append(count(world).remaining)
        world.clock.sleep(60)
    assert set(counter(world).counts.counted_at()) == set(range(PARTITIONS)) - {hog}
    assert any(remaining)


def test_a_window_names_the_tenants_with_most_executions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coming_file, "_TENANTS", 2)
    for number, tenant in enumerate(("alice", "bob", "carol"), 1):
        for n in range(number):
            world.registry.create(tenant, f"job-{n}", job(cron="0 * * * *"))
    count(world)
    start = window_start(int(world.clock.now()))
    stored = stored_counts(world, start, start + DAY_S)
    assert stored
    assert stored.density.total().tenants == Counter(carol=72, bob=48)
    assert stored.density.total().minutes.total() == 6 * 24
