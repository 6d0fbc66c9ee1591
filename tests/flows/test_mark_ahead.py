"""A mark that is further ahead than a tick can plan: found, moved back, and nothing due is lost or sent in a flood."""

from __future__ import annotations

import pytest

from common.platform.findings import Level
from common.platform.planning_checks import check_mark
from common.storage import keys
from common.storage.wire import Expression
from tests.desk import Desk
from tests.worlds import World, at, job

DAY_S = 86_400


def put_ahead(world: World, seconds: int = 30 * DAY_S) -> int:
    """What a wrong clock or a person would write. Returns the instant."""
    ahead = int(world.clock.now()) + seconds
    change = Expression("SET #planned_until = :at, #planning_until = :at", {":at": ahead})
    world.table("due").update(keys.MARK, change)
    return ahead


def test_a_tick_moves_the_mark_back_and_plans_what_was_missed(world: World) -> None:
    world.registry.create("alice", "minutely", job(every=60, anchor="2026-11-21T00:00:00Z"))
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    ahead = put_ahead(world)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    due = [run["due_at"] for run in world.run_items("alice", "minutely")]
    assert sorted(due) == list(range(min(due), at("2026-11-21T04:00:01Z"), 60))
    mark = world.index.mark()
    assert mark
    assert (mark.planned_until, mark.moved_back_from) == (at("2026-11-21T04:10:00Z"), ahead)


def test_a_registration_under_a_mark_ahead_sends_no_flood(world: World) -> None:
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    put_ahead(world)
    sent = len(world.sqs.bodies)
    world.registry.create("alice", "minutely", job(every=60))
    assert len(world.sqs.bodies) - sent <= 30


@pytest.mark.parametrize(("ahead_s", "is_moved"), [(7_800, False), (7_801, True)])
def test_the_bound(world: World, ahead_s: int, is_moved: bool) -> None:
    """At :20 a tick with a clock two hours ahead of this one plans to :30 of two hours later."""
    world.clock.sleep(at("2026-11-21T03:20:00Z") - world.clock.now())
    world.index.ensure_mark(world.clock.now())
    ahead = put_ahead(world, ahead_s)
    mark = world.index.ensure_mark(world.clock.now())
    assert (mark.planned_until != ahead) == is_moved


def test_a_window_recorded_ahead_is_not_believed(world: World) -> None:
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    true_end, far = at("2026-11-21T03:10:00Z"), int(world.clock.now()) + 20 * DAY_S
    for end in (true_end - 600, true_end, far):
        world.table("due").put({**keys.planned_window(end), "start": end - 600, "began_at": 0, "ended_at": 0})
    put_ahead(world)
    assert world.index.ensure_mark(world.clock.now()).planned_until == true_end


@pytest.mark.parametrize("ahead_s", [1_201, 30 * DAY_S])
def test_the_doctor_names_it_before_and_after(world: World, ahead_s: int) -> None:
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    put_ahead(world, ahead_s)
    (finding,) = check_mark(Desk(world))
    assert finding.level == Level.FAILED
    assert "further ahead than a tick can plan" in finding.message
    assert finding.repair
    finding.repair.do()
    finding, *_ = check_mark(Desk(world))
    assert finding.level == Level.WARNING
    assert "was moved back" in finding.message


@pytest.mark.parametrize("damage", [{"planned_until": "soon"}, {"planning_until": None}, {"decided_at": "?"}])
def test_a_mark_that_nobody_can_read_is_as_good_as_deleted(world: World, damage: dict[str, object]) -> None:
    world.registry.create("alice", "minutely", job(every=60, anchor="2026-11-21T00:00:00Z"))
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    item = (world.table("due").get(keys.MARK) or {}) | damage
    world.table("due").put({name: value for name, value in item.items() if value is not None})
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    due = [run["due_at"] for run in world.run_items("alice", "minutely")]
    assert sorted(due) == list(range(min(due), at("2026-11-21T04:00:01Z"), 60))
