"""What cannot be planned is quarantined. Other tenants' executions continue, and it is planned as soon as possible."""

from __future__ import annotations

from typing import Any

import pytest

from common.jobs.calendars import Calendars
from common.planning.directory import Shard
from common.planning.due_index import Window
from common.planning.quarantine import ENTRY, GROUP, SHARE, Quarantine, QuarantinedRecord
from common.planning.shares import ShareDraft, Shares
from common.storage import keys
from common.timing import groups
from scheduler import due, planner
from scheduler.due import ShardWork
from tests.flows.test_ticks import minutes
from tests.planning.test_shares import END, Died, Fleet, mark_at
from tests.worlds import World, at, damage_entry, job, put_in_directory

SPLIT_PARTS = 16


def quarantined(world: World) -> list[QuarantinedRecord]:
    quarantine = Quarantine(world.table("due"))
    return [*quarantine.bad_entries(), *quarantine.waiting()]


def without_tokyo(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version whose tzdata does not know a zone."""

    def can_fire(key: str, start: int, end: int) -> bool:
        if "Asia/Tokyo" in key:
            raise KeyError("No time zone found with key Asia/Tokyo")
        return groups.group_can_fire(key, start, end)

    for module in (due, planner):
        monkeypatch.setattr(module, "group_can_fire", can_fire)


def test_a_group_that_cannot_be_read_stops_nobody_and_is_planned_when_it_can_be(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.registry.create("alice", "quiet", job(cron="* * * * *"))
    world.registry.create("bob", "tokyo", job(cron="* * * * *", timezone="Asia/Tokyo", catch_up="all"))
    with monkeypatch.context() as rolled_back:
        without_tokyo(rolled_back)
        world.run_until("2026-11-21T03:39:30Z", ticks=True)
        assert mark_at(world) == at("2026-11-21T03:50:00Z")
        [record] = quarantined(world)
        assert (record.kind, record.shards, record.start_at, record.end_at) == (
            GROUP,
            1,
            at("2026-11-21T03:20:00Z"),
            mark_at(world),
        )
        assert "No time zone found with key Asia/Tokyo" in record.reason
        assert world.scheduler.tick().set_aside == 1
    assert world.target.fire_times("quiet") == minutes(13, 39)
    assert world.target.fire_times("tokyo") == minutes(13, 19)
    world.run_until("2026-11-21T04:49:30Z", ticks=True)
    assert sorted(world.target.fire_times("tokyo")) == minutes(13, 59) + minutes(0, 49, 4)
    assert quarantined(world) == []


def test_nothing_that_cannot_be_tried_takes_the_place_of_what_can(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number of bad entries or unreadable groups delays the valid ones that are listed after them."""
    monkeypatch.setattr(planner, "MAX_RETRIED_RECORDS", 5)
    window = Window(at("2026-11-21T03:10:00Z"), at(END), world.clock.now())
    world.registry.create("bob", "tokyo", job(cron="* * * * *", timezone="Asia/Tokyo", catch_up="all"))
    with monkeypatch.context() as rolled_back:
        without_tokyo(rolled_back)
        world.run_until("2026-11-21T03:19:30Z", ticks=True)
    quarantine = world.scheduler.planner.quarantine
    for n in range(6):
        quarantine.add_entry(f"alice#j{n}", "unreadable", world.clock.now())
    for n in range(5):
        quarantine.add_group(f"cron|Aaa/Unknown|0-9 3 * * *#{n}", window, "no such zone", world.clock.now())
    assert world.scheduler.tick().set_aside == 6
    assert {record.name for record in quarantine.waiting() if "Tokyo" in record.name} == set()
    world.run_until("2026-11-21T03:29:30Z")
    assert set(world.target.fire_times("tokyo")) >= set(minutes(20, 29))


@pytest.mark.parametrize(
    "sk", ["lunar|full#0", "no-number", "cron|Mars/Olympus|0-9 3 * * *#0", "every|x|0#0"]
)
def test_a_directory_item_of_a_later_version_stops_nobody(world: World, sk: str) -> None:
    world.registry.create("alice", "quiet", job(cron="* * * * *"))
    put_in_directory(world.table("due"), sk)
    world.run_until("2026-11-21T03:39:30Z", ticks=True)
    assert world.target.fire_times("quiet") == minutes(13, 39)
    assert [(record.kind, record.name) for record in quarantined(world)] == [(GROUP, sk)]


def test_a_bad_entry_is_made_known_for_a_day(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    damage_entry(world, "alice", "job")
    world.run_until("2026-11-21T03:18:00Z")
    summary = world.scheduler.tick()
    assert (summary.bad_entries, summary.set_aside) == (1, 0)
    [record] = quarantined(world)
    assert (record.kind, record.name, record.seen_at) == (ENTRY, "alice#job", at("2026-11-21T03:18:00Z"))
    assert record.reason.startswith("unreadable due entry")


def test_many_bad_entries_are_all_recorded_and_the_first_of_them_made_known(world: World) -> None:
    world.registry.create("alice", "quiet", job(cron="25 * * * *"))
    group = world.store.get("alice", "quiet").group
    for n in range(130):
        world.table("due").put({**keys.due_entry(group, 0, "zoe", f"j{n:03}"), "entry": "[9]"})
    world.run_until("2026-11-21T03:18:00Z")
    summary = world.scheduler.tick()
    assert (summary.bad_entries, len(summary.bad), len(quarantined(world))) == (130, 100, 100)
    assert {world.statuses("zoe", f"j{n:03}")[0] for n in range(130)} == {"skipped(invalid)"}


def test_an_aws_error_at_a_calendar_is_no_fault_of_its_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.table("jobs").put({**keys.calendar("alice", "c"), "dates": "2026-01-01"})
    world.registry.create("alice", "job", job(cron="25 3 * * *", exclude={"calendars": ["c"]}))
    world.run_until("2026-11-21T03:18:00Z")

    def throttled(*_: object) -> Any:
        raise world.dynamodb.exceptions.ProvisionedThroughputExceededException({"Error": {}}, "GetItem")

    with monkeypatch.context() as throttling:
        throttling.setattr(Calendars, "dates", throttled)
        with pytest.raises(world.dynamodb.exceptions.ProvisionedThroughputExceededException):
            world.scheduler.tick()
    world.scheduler.tick()
    world.run_until("2026-11-21T03:30:00Z")
    assert world.statuses("alice", "job") == ["succeeded"]


# A share that ends its planner


def shards_of(fleet: Fleet, count: int) -> None:
    """This many shards due at 3:25, each with one job; and a job of bob at 3:35."""
    for n in range(count):
        fleet.world.registry.create(
            "alice", f"j{n:02}", job(cron=f"25 3 * * {n % 6},6", timezone=ZONES[n // 6])
        )
    fleet.world.registry.create("bob", "later", job(cron="35 3 * * *"))
    fleet.world.run_until("2026-11-21T03:18:00Z")


ZONES = ("UTC", "Africa/Abidjan", "Africa/Accra", "Iceland", "Etc/GMT")


def test_a_share_that_ends_its_planners_is_parted_until_only_its_cause_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(world, share_entries=1_000)
    shards_of(fleet, 18)
    deadly = Shard(world.store.get("alice", "j07").group, 0)
    plan_shards = planner.Planner.plan_shards

    def dies(self: planner.Planner, work: ShardWork, *rest: Any) -> None:
        if any(shard.group == deadly.group for shard in work.shards):
            raise Died
        plan_shards(self, work, *rest)

    def planners_work() -> None:
        bodies, fleet.queue.bodies = fleet.queue.bodies, []
        for body in bodies:
            try:
                fleet.plan(body)
            except Died:
                continue

    with monkeypatch.context() as deadly_one:
        deadly_one.setattr(planner.Planner, "plan_shards", dies)
        for _ in range(2):  # Lambda's own retries of the tick
            with pytest.raises(Died):
                fleet.tick()
        fleet.tick()  # which stops planning it itself
        assert fleet.queue.bodies
        planners_work()
        for minute in (28, 38, 48, 58):
            world.run_until(f"2026-11-21T03:{minute}:00Z")
            fleet.tick()
            planners_work()
            assert mark_at(world) >= at(f"2026-11-21T03:{minute}:00Z")
        [record] = quarantined(world)
        assert (record.kind, record.shards, record.start_at, record.end_at) == (
            SHARE,
            1,
            *map(at, ("2026-11-21T03:20:00Z", END)),
        )
    ran = {context["job_id"]: called_at for called_at, context in world.target.calls}
    assert ran["later"] == at("2026-11-21T03:35:00Z")
    assert sorted(ran) == sorted({"later", *(f"j{n:02}" for n in range(18))} - {"j07"})
    world.run_until("2026-11-21T04:08:00Z")
    fleet.tick()
    planners_work()
    assert quarantined(world) == []
    world.deliver()
    assert len(world.target.fire_times("j07")) == 1
    assert SPLIT_PARTS < 18


def test_a_planner_whose_time_is_up_leaves_the_rest_to_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "MAX_PLANNER_S", -1)  # each does one entry
    fleet = Fleet(world, share_entries=20)
    for n in range(3):
        world.registry.create("alice", f"same{n}", job(cron="25 3 * * *"))
    world.registry.create("alice", "other", job(cron="26 12 * * *", timezone="Asia/Tokyo"))
    world.registry.create("alice", "third", job(cron="26 * * * *"))
    world.run_until("2026-11-21T03:18:00Z")
    fleet.tick()
    planned = []
    while fleet.queue.bodies:
        planned.append(fleet.plan(fleet.queue.bodies.pop()).planned)
    assert sum(planned) == 5
    assert max(planned) == 1
    assert mark_at(world) == at(END)
    world.run_until("2026-11-21T03:29:30Z")
    assert len(world.target.calls) == 5


def test_a_planner_that_is_overtaken_does_not_bring_its_share_back(world: World) -> None:
    shares, quarantine = Shares(world.table("due")), Quarantine(world.table("due"))
    now = world.clock.now()
    announced = world.index.begin_planning(world.index.ensure_progress(now), at(END), now)
    progress = shares.record(
        announced.window, [ShareDraft([Shard("every|60|0", 0, 1), Shard("every|61|0", 0, 1)])]
    )
    share = shares.load(progress.planning_until, shares.unconfirmed(progress)[0])
    assert share
    quarantine.add_share(share, "too long", 5)
    assert not shares.advance(share, share.shards[1:], "")
    assert shares.unconfirmed(progress) == []
    assert [record.shards for record in quarantined(world)] == [2]
