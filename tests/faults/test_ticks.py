"""Every fault at every AWS call of a tick. The following ticks complete its work."""

from __future__ import annotations

import pytest

from common.planning.due_index import Window
from common.registration.calendar_store import CalendarStore
from common.storage import keys
from common.storage.table import Query
from common.timing.slots import places
from tests.faults.stage import Stage, killed_after, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, OUTAGE_ENDS = "2026-11-21T02:12:00Z", "2026-11-21T03:18:00Z"
LAST_TICK, END = "2026-11-21T03:28:30Z", "2026-11-21T03:45:00Z"
# 2:21 to 3:01 are missed at 3:18, 3:11 is late, 3:21 and 3:31 are to come. At 3:28 3:11 would be missed too.
TENS = [at("2026-11-21T02:21:00Z") + 600 * n for n in range(8)]
FIRES = {
    ("alice", "none"): TENS,
    ("alice", "latest"): [at("2026-11-21T02:40:00Z"), at("2026-11-21T03:00:00Z")],
    ("bob", "once"): [at("2026-11-21T03:25:30Z")],
    ("bob", "cut-off"): [at("2026-11-21T03:19:00Z")],
    ("carol", "moved"): [at("2026-11-21T03:23:00Z")],
    ("carol", "fortnight"): [at("2026-11-21T03:24:00Z")],
    ("carol", "twice"): [at("2026-11-21T03:26:00Z"), at("2026-11-21T03:29:00Z")],
}


def after_an_outage(stage: Stage) -> None:
    """An hour without ticks, a registration killed before its hand-over, and a shard that has become empty."""
    world = stage.world
    world.registry.create("alice", "none", job(cron="1-59/10 * * * *", catch_up="none", invocation="Event"))
    world.registry.create(
        "alice", "latest", job(cron="0,40 0-3 * * *", end_at="2026-11-21T03:39:00Z", invocation="Event")
    )
    world.registry.create("bob", "once", job(at="2026-11-21T03:25:30Z", invocation="Event"))
    world.registry.create("bob", "gone", job(cron="0 12 * * *"))
    world.store.delete("bob", "gone")
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    calendars.put("carol", "feasts", {"dates": ["2026-11-20"]}, world.clock.now())
    feasts = {"exclude": {"calendars": ["feasts"]}, "on_excluded": "next"}
    for name, schedule in {
        "moved": {"cron": "23 3 20 11 *", **feasts},
        "fortnight": {"every": "2w", "timezone": "Asia/Tokyo", "anchor": "2026-11-07T12:24:00"},
        "twice": {"cron": "26-59/3 3 * * *", "max_runs": 2},
    }.items():
        world.registry.create("carol", name, job(**schedule, invocation="Event"))
    world.run_until("2026-11-21T03:17:30Z")
    killed_after(stage, "transact_write_items", cut_off, nth=2)  # the first opens its shard
    world.clock.move_to(at(OUTAGE_ENDS))
    stage.save()


def cut_off(world: World) -> None:
    world.registry.create("bob", "cut-off", job(cron="19 3 * * *", invocation="Event"))


def tick(world: World) -> None:
    world.scheduler.tick()


@pytest.mark.parametrize("fault", Fault)
def test_a_tick_meets_a_fault_at_each_of_its_calls(fault: Fault) -> None:
    def carries_on(world: World, died: BaseException | None) -> None:
        world.clock.sleep(1)
        world.run_until(LAST_TICK, ticks=True)
        world.run_until(END)
        everything_explained(world, FIRES)
        index_is_right(world)

    with staged(BEGIN) as stage:
        after_an_outage(stage)
        assert stage.each_call(tick, fault, carries_on, flow="tick") > 12


def after_a_rollback(stage: Stage) -> None:
    """A tick could not read a group, and set it aside; the next one can."""
    world = stage.world
    world.registry.create(
        "alice", "tokyo", job(cron="1-59/10 * * * *", timezone="Asia/Tokyo", invocation="Event")
    )
    name = f"{group_of(world)}#0"
    pks = [keys.directory_partition(group_of(world)), *map(keys.listings, places(group_of(world)))]
    items = [item for pk in pks for item in world.table("due").query(Query(pk)) if item["sk"] == name]
    for item in items:
        world.table("due").delete(keys.key_of(item))
    world.run_until("2026-11-21T03:18:00Z")
    progress = world.index.ensure_progress(world.clock.now())
    world.scheduler.tick()
    window = Window(progress.planned_until, progress.planned_until + 600, progress.decided_at)
    world.scheduler.planner.quarantine.add_group(name, window, "unreadable", world.clock.now())
    for item in items:
        world.table("due").put(item)
    world.run_until("2026-11-21T03:28:00Z")
    stage.save()


def group_of(world: World) -> str:
    return world.store.get("alice", "tokyo").group


@pytest.mark.parametrize("fault", [Fault.FAILED, Fault.LOST, Fault.KILLED_AFTER])
def test_a_tick_that_plans_what_was_set_aside_meets_a_fault_at_each_of_its_calls(fault: Fault) -> None:
    def carries_on(world: World, died: BaseException | None) -> None:
        world.run_until("2026-11-21T03:38:30Z", ticks=True)
        world.run_until(END)
        everything_explained(world, {("alice", "tokyo"): [*TENS[6:], TENS[7] + 600]})
        index_is_right(world)
        # A chunk of the log that a fault lost is recorded there, and holds nobody up.
        quarantine = world.scheduler.planner.quarantine
        records = [*quarantine.bad_entries(), *quarantine.waiting()]
        assert [record for record in records if not record.name.startswith("#log-")] == []

    with staged("2026-11-21T03:12:00Z") as stage:
        after_a_rollback(stage)
        assert stage.each_call(tick, fault, carries_on, flow="set aside") > 12
