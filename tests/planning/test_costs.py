"""The reads and writes of a tick for a tenant that makes planning as expensive as the quotas allow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from common.planning.directory import Listing, Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex
from common.planning.packs import lines
from common.planning.quarantine import Quarantine
from common.runs.records import Runs
from common.storage import keys
from common.storage.transactions import Transaction
from common.timing.groups import group_key
from common.timing.schedule import CronTiming, EveryTiming, Schedule, Timing
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

NOW = at("2026-11-21T03:18:00Z")
NEXT_YEAR = at("2027-11-21T00:00:00Z")
REGISTERED = 2_000


@pytest.fixture
def world() -> World:
    """A world with a planned_until, over a DynamoDB that stores thousands of entries fast."""
    world = make_world(MemoryDynamoDB(), "2026-11-21T03:18:00Z")
    world.scheduler.tick()
    return world


def store(world: World, timing: Timing, number: int) -> None:
    """A job's entry that has no fire time before next year."""
    schedule = Schedule.of(timing, start_at=NEXT_YEAR)
    tx, group = Transaction(world.dynamodb), group_key(schedule)
    world.index.directory.open([Listing(Shard(group, 0))])
    world.index.put_entry(
        tx, DueEntry("alice", f"job-{number}", schedule, int(NOW) - 60, 1, "latest"), group, 0
    )
    world.index.directory.count(tx, group, 0, 1)
    tx.commit()


def counted(world: World) -> Counter[str]:
    calls: Counter[str] = Counter()
    world.dynamodb.before = lambda name: calls.update([name])
    return calls


def odd() -> Iterator[tuple[int, int]]:
    """All intervals over ten minutes that are not whole minutes, in each of their phases."""
    return ((s, tens * 600) for s in range(601, 10_000) if s % 600 for tens in range(-(-s // 600)))


def round_ones() -> Iterator[tuple[int, int]]:
    return ((s, tens * 600) for s in range(900, 10**6, 600) for tens in range(-(-s // 600)))


def long_ones() -> Iterator[tuple[int, int]]:
    return ((s, tens * 600) for s in range(28_801, 10**6) if s % 600 for tens in range(-(-s // 600)))


def short_ones() -> Iterator[tuple[int, int]]:
    return ((1 + n % 600, n) for n in range(REGISTERED))


@pytest.mark.long
@pytest.mark.parametrize(
    ("intervals", "most_queries"), [(odd, 60), (round_ones, 200), (long_ones, 200), (short_ones, 60)]
)
def test_distinct_intervals_cost_few_queries_where_nothing_is_due(
    world: World, intervals: Callable[[], Iterator[tuple[int, int]]], most_queries: int
) -> None:
    for number, (timing, _) in enumerate(zip(intervals(), range(REGISTERED), strict=False)):
        store(world, EveryTiming(*timing), number)
    for _ in range(3):
        world.clock.sleep(600)
        calls = counted(world)
        summary = world.scheduler.tick()
        assert (summary.planned, calls["query"] <= most_queries) == (0, True), calls
        assert summary.shards_due <= most_queries - 40


def test_jobs_with_seconds_fill_shards_and_shares_by_what_they_fire(world: World) -> None:
    each_second = group_key(Schedule.of(CronTiming("* * * * * *", "UTC")))
    world.table("due").put({**keys.directory(each_second, 0), "jobs": 33})
    assert world.index.directory.pick(each_second, random.Random(1)).shard == (each_second, 0, 33)
    world.table("due").put({**keys.directory(each_second, 0), "jobs": 34})
    assert world.index.directory.pick(each_second, random.Random(1)).shard == (each_second, 1, 0)


def test_jobs_in_groups_of_earlier_versions_fire_and_move(world: World) -> None:
    """Earlier versions gave each interval separate groups, which did not name seconds."""
    definitions = {"odd": job(every="16m"), "seconds": job(cron="*/10 * * * * *")}
    for job_id, former in (("odd", "every|960|0"), ("seconds", "cron|UTC|* * * * *")):
        created = world.registry.create("alice", job_id, definitions[job_id])
        tx, due = Transaction(world.dynamodb), world.index
        due.delete_entry(tx, created.group, created.shard, "alice", job_id)
        due.directory.count(tx, created.group, created.shard, -1)
        due.put_entry(tx, created.due_entry(), former, 0)
        due.directory.open([Listing(Shard(former, 0))])
        due.directory.count(tx, former, 0, 1)
        tx.commit()
        world.table("jobs").put(
            {**keys.job("alice", job_id), **created.to_item(), "group": former, "shard": 0}
        )
    world.run_until("2026-11-21T04:00:30Z", ticks=True)
    assert len(world.target.fire_times("odd")) == 2
    fired = world.target.fire_times("seconds")
    assert len(fired) == len(set(fired)) == 255
    for job_id, definition in definitions.items():
        world.registry.put("alice", job_id, definition | {"name": "moved"})
    listings = list(world.index.directory.all())
    assert sorted(
        listing.shard for listing in listings if isinstance(listing, Listing) and listing.shard.jobs
    ) == [
        Shard("cron|UTC|* * * * *|60", 0, 1),
        Shard("every|600|0", 0, 1),
    ]


def test_registrations_that_were_cut_off_are_handed_over_in_batches(world: World) -> None:
    index = DueIndex(world.table("due"))
    schedule = Schedule.of(EveryTiming(10**6, int(NOW) + 120))
    for number in range(501):
        tx = Transaction(world.dynamodb)
        index.put_pending(tx, DueEntry("alice", f"job-{number}", schedule, int(NOW), 1, "latest"), 1)
        tx.commit()
    world.table("due").put({**keys.pending("alice", "bad", 1), "entry": "[]"})
    calls, send = counted(world), world.sqs.send_message_batch

    def sending(**request: Any) -> dict[str, Any]:
        calls["send_message_batch"] += 1
        return send(**request)

    world.sqs.send_message_batch = sending  # type: ignore[method-assign]
    summary = world.scheduler.tick()
    assert (summary.pending, summary.planned) == (501, 501)
    assert sum(len(lines(body)) for body in world.sqs.bodies) == 501
    assert (summary.bad_entries, len(list(index.pending()))) == (1, 0)
    assert calls["send_message_batch"] == 11  # in packs of ten, after fifty wakes
    assert calls["batch_write_item"] + calls["delete_item"] == 21


def test_a_cut_off_registration_that_cannot_be_read_is_set_aside_until_another_version_tries_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = keys.pending("alice", "bad", 1)
    world.table("due").put({**key, "entry": "[]"})
    assert [world.scheduler.tick().bad_entries for _ in range(3)] == [1, 0, 0]
    assert world.statuses("alice", "bad") == ["skipped(invalid)"]
    assert world.table("due").get(key) is None
    [record] = Quarantine(world.table("due")).waiting()
    assert (record.kind, record.name) == ("item", f"{key['pk']} {key['sk']}")
    monkeypatch.setattr("scheduler.planner.VERSION", "1.0.1")
    world.scheduler.tick()
    assert world.table("due").get(key) == {**key, "entry": "[]"}
    assert list(Quarantine(world.table("due")).waiting()) == []
    assert world.scheduler.tick().bad_entries == 1


def test_an_unreadable_item_is_reported_again_if_its_record_was_not_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.table("due").put({**keys.pending("alice", "bad", 1), "entry": "[]"})
    with monkeypatch.context() as failing:
        failing.setattr(Runs, "skip", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.scheduler.tick()
    assert world.scheduler.tick().bad_entries == 1
    assert world.statuses("alice", "bad") == ["skipped(invalid)"]
