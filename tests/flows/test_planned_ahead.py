"""A planned_until further ahead than a tick can plan is moved back: what is due is not lost, or sent in a flood."""

from __future__ import annotations

from collections import Counter

import pytest

from common.history.expected import OVERDUE
from common.history.expected_runs import ExpectedQuery, ExpectedRuns
from common.platform.findings import Level
from common.platform.planning_checks import check_progress
from common.storage import keys
from common.storage.wire import Expression
from common.tenants.audit import Audit
from common.timing.instants import rfc3339
from tests.desk import Desk
from tests.flows.test_stopped import wrongly_recorded
from tests.worlds import World, at, job

DAY_S = 86_400


def put_ahead(world: World, seconds: int = 30 * DAY_S) -> int:
    """What a wrong clock or a person would write. Returns the instant."""
    ahead = int(world.clock.now()) + seconds
    change = Expression("SET #planned_until = :at, #planning_until = :at", {":at": ahead})
    world.table("due").update(keys.PROGRESS, change)
    return ahead


def test_a_tick_moves_the_mark_back_and_plans_what_was_missed(world: World) -> None:
    world.registry.create("alice", "minutely", job(every=60, anchor="2026-11-21T00:00:00Z"))
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    ahead = put_ahead(world)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    due = [run["due_at"] for run in world.run_items("alice", "minutely")]
    assert sorted(due) == list(range(min(due), at("2026-11-21T04:00:01Z"), 60))
    progress = world.index.progress()
    assert progress
    assert (progress.planned_until, progress.moved_back_from) == (at("2026-11-21T04:10:00Z"), ahead)


@pytest.mark.parametrize("ahead_s", [300, 600, 1_800, 7_000])
def test_a_gap_that_a_moved_mark_leaves_is_planned_by_the_next_tick(world: World, ahead_s: int) -> None:
    """Each fire time in it runs late, or is counted by a record of what was missed."""
    begin = at("2026-11-21T03:20:00Z")
    for catch_up in ("none", "all"):
        world.registry.create(
            "alice", catch_up, job(every=60, anchor="2026-11-21T00:00:00Z", catch_up=catch_up)
        )
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    progress = world.index.progress()
    assert progress
    moved = progress.planned_until + ahead_s
    world.table("due").update(
        keys.PROGRESS, Expression("SET #planned_until = :at, #planning_until = :at", {":at": moved})
    )
    messages = [finding.message for finding in check_progress(Desk(world))]
    assert ("something else has moved planned_until" in messages[0]) or "further ahead" in messages[0]
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    for name in ("none", "all"):
        covered: set[int] = set()
        for run in world.run_items("alice", name):
            covered |= set(range(run.get("skipped_from_at", run["fire_at"]), run["fire_at"] + 1, 60))
        assert set(range(begin, at("2026-11-21T04:00:00Z"), 60)) <= covered, name
    assert all(
        "ahead" not in str(finding) or finding.level == Level.WARNING
        for finding in check_progress(Desk(world))
    )


@pytest.mark.parametrize("moved_s", [600, 3_600, 30 * DAY_S, -3_600, -6 * 3_600])
def test_a_mark_that_somebody_moves_loses_and_doubles_nothing(world: World, moved_s: int) -> None:
    """Ahead or back: each fire time is in exactly one record, and called at most once."""
    for policy in ("none", "latest", "all"):
        world.registry.create("alice", policy, job(every=240, catch_up=policy))
    world.run_until("2026-11-21T10:24:30Z", ticks=True)
    progress = world.index.progress()
    assert progress
    moved = progress.planned_until + moved_s
    world.table("due").update(
        keys.PROGRESS, Expression("SET #planned_until = :at, #planning_until = :at", {":at": moved})
    )
    until = at("2026-11-21T12:30:00Z")
    world.run_until(rfc3339(until), ticks=True)
    wrong = {name: wrongly_recorded(world, "alice", name, until - 60) for name in ("none", "latest", "all")}
    assert wrong == {"none": {}, "latest": {}, "all": {}}
    calls = Counter(event["execution_id"] for _, event in world.target.calls)
    assert set(calls.values()) == {1}


def test_expected_says_planned_only_of_what_ticks_have_planned(world: World) -> None:
    world.registry.create("alice", "minutely", job(every=60, anchor="2026-11-21T00:00:00Z"))
    world.run_until("2026-11-21T03:29:30Z", ticks=True)
    put_ahead(world, 1_230)
    world.run_until("2026-11-21T03:43:30Z")
    start = at("2026-11-21T03:41:00Z")
    runs = ExpectedRuns(world.table("jobs"), world.table("runs"), Audit(world.table("tenants")), world.index)
    query = ExpectedQuery("alice", start, start + 60, world.clock.now(), 86_400)
    (instant,) = runs.of_job(query, "minutely").instants
    assert (instant.status, instant.detail) == (OVERDUE, "no tick has planned it yet")


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
    world.index.ensure_progress(world.clock.now())
    ahead = put_ahead(world, ahead_s)
    progress = world.index.ensure_progress(world.clock.now())
    assert (progress.planned_until != ahead) == is_moved


def test_a_window_recorded_ahead_is_not_believed(world: World) -> None:
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    true_end, far = at("2026-11-21T03:10:00Z"), int(world.clock.now()) + 20 * DAY_S
    for end in (true_end - 600, true_end, far):
        world.table("due").put({**keys.planned_window(end), "start": end - 600, "began_at": 0, "ended_at": 0})
    put_ahead(world)
    assert world.index.ensure_progress(world.clock.now()).planned_until == true_end


@pytest.mark.parametrize("ahead_s", [1_201, 30 * DAY_S])
def test_the_doctor_names_it_before_and_after(world: World, ahead_s: int) -> None:
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    put_ahead(world, ahead_s)
    (finding,) = check_progress(Desk(world))
    assert finding.level == Level.FAILED
    assert "further ahead than a tick can plan" in finding.message
    assert finding.repair
    finding.repair.do()
    finding, *_ = check_progress(Desk(world))
    assert finding.level == Level.WARNING
    assert "was moved back" in finding.message


@pytest.mark.parametrize("damage", [{"planned_until": "soon"}, {"planning_until": None}, {"decided_at": "?"}])
def test_a_mark_that_nobody_can_read_is_as_good_as_deleted(world: World, damage: dict[str, object]) -> None:
    world.registry.create("alice", "minutely", job(every=60, anchor="2026-11-21T00:00:00Z"))
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    item = (world.table("due").get(keys.PROGRESS) or {}) | damage
    world.table("due").put({name: value for name, value in item.items() if value is not None})
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    due = [run["due_at"] for run in world.run_items("alice", "minutely")]
    assert sorted(due) == list(range(min(due), at("2026-11-21T04:00:01Z"), 60))
