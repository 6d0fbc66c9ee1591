"""The directory over time: what tenants leave behind, and what code of other versions wrote."""

from __future__ import annotations

import pytest

from common.errors import InvalidInput
from common.planning import due_index
from common.planning.directory import FILING
from common.storage import keys
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world


@pytest.fixture
def world() -> World:
    return make_world(MemoryDynamoDB(), "2026-11-21T03:12:00Z")


def stored(world: World, prefix: str) -> set[tuple[str, str]]:
    items = world.dynamodb.scan("test-due")["Items"]
    return {(item["pk"]["S"], item["sk"]["S"]) for item in items if item["pk"]["S"].startswith(prefix)}


def forget_listings(world: World) -> None:
    """As code of an earlier version would have written it all."""
    for pk, sk in stored(world, "LISTED"):
        world.table("due").delete({"pk": pk, "sk": sk})
    for pk, sk in stored(world, "DIRECTORY"):
        item = world.table("due").get({"pk": pk, "sk": sk})
        assert item
        world.table("due").put({name: value for name, value in item.items() if name != "filed"})


def announce_as_before(world: World) -> None:
    """planned_until, as ticks of an earlier version leave it."""
    progress = world.index.ensure_progress(world.clock.now())
    words = {"planned_until": progress.planned_until, "planning_until": progress.planning_until}
    world.table("due").put(
        {**keys.PROGRESS, **words, "decided_at": progress.decided_at, "tzdata": progress.tzdata}
    )


def test_a_group_is_listed_when_it_appears_and_not_with_each_job(world: World) -> None:
    for n in range(3):
        world.registry.create("alice", f"j{n}", job(cron=f"{n} 3 * * *", timezone="America/New_York"))
    group = "cron|America/New_York|0-9 3 * * *#0"
    assert stored(world, "LISTED") == {("LISTED#s42", group), ("LISTED#s48", group)}
    calls: list[str] = []
    world.dynamodb.before = calls.append
    world.registry.create("alice", "another", job(cron="3 3 * * *", timezone="America/New_York"))
    assert calls.count("transact_write_items") == 1
    world.registry.create("alice", "elsewhere", job(cron="3 4 * * *", timezone="America/New_York"))
    assert calls.count("transact_write_items") == 3


def test_a_tenant_leaves_no_empty_groups_behind(world: World) -> None:
    """Moving a job from group to group again and again, or refused changes, add no work to ticks."""
    for n in range(5):
        world.registry.put("alice", "moving", job(cron=f"0 {n} * * *", timezone="America/New_York"))
    world.registry.put("alice", "stays", job(cron="0 4 * * *", timezone="America/New_York"))
    assert {pk for pk, _ in stored(world, "LISTED")} == {"LISTED#s48", "LISTED#s54"}
    world.store.pause("alice", "moving")
    assert {pk for pk, _ in stored(world, "LISTED")} == {"LISTED#s48", "LISTED#s54"}
    world.store.delete("alice", "stays")
    assert stored(world, "LISTED") == stored(world, "DIRECTORY") == set()
    world.store.resume("alice", "moving")
    assert {pk for pk, _ in stored(world, "LISTED")} == {"LISTED#s48", "LISTED#s54"}


def test_a_change_that_is_refused_at_the_end_leaves_no_group(world: World) -> None:
    """The calendar goes after the job's shard was opened and before the job is committed."""
    with pytest.raises(InvalidInput):
        world.registry.create("alice", "dear", job(cron="0 4 * * *", exclude={"calendars": ["none"]}))
    assert stored(world, "LISTED") == stored(world, "DIRECTORY") == set()


def test_a_shard_that_a_tick_drops_meanwhile_is_opened_again(world: World) -> None:
    calls = 0

    def drop(name: str) -> None:
        nonlocal calls
        if name == "transact_write_items":
            calls += 1
            if calls == 2:  # the job's own, after the shard was opened
                world.index.directory.drop_if_empty([("cron|UTC|20-29 3 * * *", 0)])

    world.dynamodb.before = drop
    world.registry.create("alice", "daily", job(cron="25 3 * * *"))
    assert calls == 5
    assert {pk for pk, _ in stored(world, "LISTED")} == {"LISTED#s20"}
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert world.target.fire_times("daily") == ["2026-11-21T03:25:00Z"]


def test_groups_of_an_earlier_version_are_planned_and_listed(world: World) -> None:
    for minute in (25, 35, 45):
        world.registry.create("alice", f"at-{minute}", job(cron=f"{minute} 3 * * *"))
    announce_as_before(world)
    forget_listings(world)
    world.run_until("2026-11-21T03:18:00Z")
    assert (world.scheduler.tick().planned, len(stored(world, "LISTED"))) == (1, 3)
    forget_listings(world)  # an instance of the old code was still alive
    world.run_until("2026-11-21T03:38:30Z", ticks=True)
    assert len(stored(world, "LISTED")) == 3
    known = {}
    for minute in range(0, 25 * 60, 10):
        now = at("2026-11-21T03:48:00Z") + minute * 60
        world.run_until(iso(now))
        known[minute // 60] = world.scheduler.tick().groups_known
    # For a day ticks read everything; then they read what is listed, and everything once a day.
    assert [known[hour] for hour in (0, 12, 22)] == [3, 3, 3]
    assert known[24] == 0
    assert [len(world.target.fire_times(f"at-{minute}")) for minute in (25, 35, 45)] == [2, 2, 2]


def test_after_a_rollback_ticks_read_everything_again(world: World) -> None:
    world.registry.create("alice", "daily", job(cron="55 12 * * *"))
    world.run_until("2026-11-21T03:18:00Z")
    assert world.scheduler.tick().groups_known == 0
    announce_as_before(world)
    world.run_until("2026-11-21T03:28:00Z")
    assert world.scheduler.tick().groups_known == 1


def test_the_time_zones_of_another_release_list_everything_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rules may let a group fire in other slots."""
    world.registry.create("alice", "daily", job(cron="25 3 * * *"))
    [(pk, sk)] = stored(world, "DIRECTORY")
    world.table("due").put({"pk": pk, "sk": sk, "jobs": 1, "filed": "s19"})
    world.table("due").delete({"pk": "LISTED#s20", "sk": sk})
    monkeypatch.setattr(due_index, "FILING", "1/2031z")
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert world.target.fire_times("daily") == ["2026-11-21T03:25:00Z"]
    assert {pk for pk, _ in stored(world, "LISTED")} == {"LISTED#s20"}
    assert world.index.ensure_progress(world.clock.now()).filing == "1/2031z" != FILING


def test_a_group_missing_in_the_listings_is_found_within_a_day(world: World) -> None:
    world.registry.create("alice", "daily", job(cron="25 3 * * *"))
    forget_listings(world)
    world.run_until("2026-11-23T03:30:00Z", ticks=True)
    assert len(world.target.fire_times("daily")) == 2
    assert {pk for pk, _ in stored(world, "LISTED")} == {"LISTED#s20"}


def test_a_window_after_an_outage_is_planned_from_the_whole_directory(world: World) -> None:
    world.registry.create("alice", "daily", job(cron="25 4 * * *") | {"catch_up": "all"})
    world.registry.create("alice", "weekly", job(cron="25 4 * * MON") | {"catch_up": "all"})
    world.clock.move_to(at("2026-11-28T03:18:00Z"))
    assert world.scheduler.tick().groups_known == 2
    world.run_until("2026-11-28T04:20:00Z", ticks=True)
    assert (len(world.target.fire_times("daily")), len(world.target.fire_times("weekly"))) == (7, 1)


@pytest.mark.parametrize("start", ["2026-11-21T03:20:00Z", "2026-11-21T23:50:00Z", "2026-11-22T00:00:00Z"])
@pytest.mark.parametrize("length_s", [600, 1_200, 3_600])
def test_late_ticks_look_in_every_slot_of_their_window(world: World, start: str, length_s: int) -> None:
    for n in range(0, 1_440, 10):
        world.registry.create("alice", f"m{n:04}", job(cron=f"{n % 60} {n // 60} * * *"))
    names = [listing.shard for listing in world.index.directory.listed(at(start), at(start) + length_s)]  # type: ignore[union-attr]
    assert len(names) == len(set(names)) == length_s // 600


def iso(now: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(now, UTC).isoformat()


def test_the_mark_of_an_earlier_version_is_read(world: World) -> None:
    announce_as_before(world)
    progress = world.index.ensure_progress(world.clock.now())
    assert (progress.trusts_listings, progress.filed_until) == (False, 0)
    filed = world.index.distrust_listings(7)
    assert (filed.trusts_listings, filed.filed_since) == (True, 7.0)
