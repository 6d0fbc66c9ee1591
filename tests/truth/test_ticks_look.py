"""What a tick finds by itself: runs that do not go on, shards that the directory does not count, a part of all jobs."""

from __future__ import annotations

import pytest
from msgspec import structs

from common.planning.chores import position_in
from common.planning.execution import Execution
from common.platform.deletion import Deletions
from common.runs.outcome import Outcome
from common.storage import keys
from common.truth import truth as checker
from common.truth.contradiction import RUN_STUCK, SHARD_COUNT, SHARD_MISSING, Contradiction, Subject
from common.truth.truth import Place
from scheduler import handler
from scheduler.comparison import least_messages, may_wait
from scheduler.summary import TickSummary
from tests.scheduler_handler import go_on, put_position
from tests.truth.damage import change, entry_key, repair_all, send_again, shard_key, small_world, truth_of
from tests.worlds import World, at, job


def listed(world: World) -> list[tuple[str, str]]:
    return [(entry.name, entry.about.name) for entry in truth_of(world).known.all()]


def test_a_lost_retry_is_found_by_the_next_tick_and_goes_on(served: World) -> None:
    served.registry.put("acme", "fails", job(at="2026-11-21T03:32:00Z", retry={"base_s": 600, "factor": 1}))
    served.target.answer = lambda _: Outcome(ok=False, error_type="Boom", error="no")
    served.run_until("2026-11-21T03:32:00Z", ticks=True)
    assert served.statuses("acme", "fails") == ["retrying"]
    served.sqs._waiting.clear()
    next_attempt_at = served.run_items("acme", "fails")[0]["next_attempt_at"]
    served.target.answer = lambda _: Outcome(ok=True)
    served.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert [(name, about) for name, about in listed(served) if name == RUN_STUCK and ":fails:" in about]
    found_at = next(entry.found_at for entry in truth_of(served).known.all() if ":fails:" in entry.about.name)
    assert found_at - next_attempt_at <= 1_260
    send_again(served)
    served.run_until("2026-11-21T04:20:00Z", ticks=True)
    assert served.statuses("acme", "fails") == ["succeeded"]
    assert listed(served) == []


def test_what_is_found_again_keeps_when_it_was_found_first(served: World) -> None:
    known = truth_of(served).known
    stuck = Contradiction(RUN_STUCK, Subject("run", "acme:often:20261121T033200Z"), "it should have gone on")
    for now in (1_000, 1_600):
        known.suspect([stuck], now)
    assert [listed.found_at for listed in known.all()] == [1_000]


def test_a_run_past_its_lease_is_sent_again_and_taken_over(served: World) -> None:
    served.registry.put("acme", "dies", job(at="2026-11-21T03:31:00Z"))
    served.run_until("2026-11-21T03:32:00Z", ticks=True)
    (run,) = served.run_items("acme", "dies")
    under_way = {name: value for name, value in run.items() if name not in ("finished_at", "attempts")}
    served.table("runs").put({**under_way, "status": "running", "lease_until": served.clock.now() - 1})
    served.run_until("2026-11-21T03:59:00Z", ticks=True)
    assert (RUN_STUCK, f"acme:dies:{run['sk']}") in listed(served)
    send_again(served)
    served.deliver()
    assert served.statuses("acme", "dies") == ["succeeded"]


def test_a_shard_without_its_directory_item_is_planned_and_listed(served: World) -> None:
    served.run_until("2026-11-21T03:19:00Z", ticks=True)
    name = shard_key(served, "often")["sk"]
    served.table("due").delete(shard_key(served, "often"))
    served.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert (SHARD_MISSING, name) in listed(served)
    fire_times = [run["fire_at"] for run in served.run_items("acme", "often")]
    assert fire_times == list(range(fire_times[0], at("2026-11-21T04:00:00Z"), 300))
    repair_all(served)
    served.run_until("2026-11-21T04:10:00Z", ticks=True)
    assert listed(served) == []


def test_a_lost_entry_is_found_when_its_shard_is_planned(
    served: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the walk: of a large stage it comes here after hours."""
    monkeypatch.setattr(checker, "EXAMINED_A_TICK", 0)
    served.run_until("2026-11-21T03:19:00Z", ticks=True)
    served.table("due").delete(entry_key(served, "often"))
    served.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (SHARD_COUNT, shard_key(served, "often")["sk"]) in listed(served)


def test_ticks_walk_over_everything_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    world = small_world()
    monkeypatch.setattr(checker, "EXAMINED_A_TICK", 3)
    world.table("tenants").delete(keys.tenant_listing("bolt"))
    world.table("due").delete(entry_key(world, "daily"))
    truth, rounds = truth_of(world), 0
    while go_on(world, truth.steps).problems == []:
        rounds += 1
        item = world.table("due").get(keys.chore("chore"))
        if Place.stored(position_in(item)) == Place():
            break
    assert rounds >= 5
    assert {("entry-missing", "acme/daily"), ("tenant-unlisted", "bolt")} <= set(listed(world))


def test_a_slice_that_fails_stops_no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    world = small_world()
    truth = truth_of(world)
    monkeypatch.setattr(checker.Walk, "go", lambda _: 1 / 0)
    assert go_on(world, truth.steps).errors == ["ZeroDivisionError('division by zero')"]


@pytest.mark.parametrize(
    ("seconds", "age_s", "visible", "in_flight", "late"),
    [
        ((1, 1, 1, 1), 700, 0, 1, 4),  # a pack
        ((1, 2, 3, 4), 700, 0, 3, 0),  # each in a message of its own
        ((1, 2, 3, 4), 700, 1, 3, 4),
        ((1,), 1_500, 0, 50, 0),  # nothing is in flight for so long
        ((1,), 1_500, 1, 0, 1),
    ],
)
def test_a_few_messages_hide_no_more_than_they_hold(
    seconds: tuple[int, ...], age_s: int, visible: int, in_flight: int, late: int
) -> None:
    now = 10_000.0
    first = Execution("acme", "often", 0, 0, 1)
    missing = [structs.replace(first, due_at=int(now) - age_s + second - 10) for second in seconds]
    assert len(may_wait(missing, visible, in_flight, now)) == late
    assert least_messages(missing) == len(set(seconds))


def test_what_a_planner_suspects_is_looked_at_by_the_next_tick(
    served: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "EXAMINED_A_TICK", 0)
    often, daily = served.store.get("acme", "often"), served.store.get("acme", "daily")
    served.table("due").delete(entry_key(served, "daily"))
    summary = TickSummary(served.clock.now(), 0, 0)
    for suspicious in (often, daily):
        summary.suspect(suspicious.group, suspicious.shard)
    handler.note_suspects(summary)
    served.tick()
    shards = [about for name, about in listed(served) if name == SHARD_COUNT]
    assert shards == [shard_key(served, "daily")["sk"]]


def test_a_removed_tenant_leaves_the_list_with_the_next_tick() -> None:
    world = small_world()
    world.clock.move_to(at("2026-11-21T03:28:00Z"))
    change(world, "tenants", keys.tenant("acme"), jobs=77)
    truth = truth_of(world)
    go_on(world, truth.steps)
    assert [entry.about.name for entry in truth.known.all()] == ["acme"]
    Deletions(world.tables.tenants, world.tables.jobs, world.tables.runs, world.index, world.clock).begin(
        "acme", world.clock.now()
    )
    go_on(world, truth.steps)
    assert truth.known.all() == []


def test_damaged_items_of_the_list_and_of_the_walk_are_left_out() -> None:
    world = small_world()
    world.table("due").put({"pk": keys.CONTRADICTIONS, "sk": "a", "name": 1})
    put_position(world.table("due"), "chore", {"of": 7, "after": []})
    world.table("tenants").delete(keys.tenant_listing("bolt"))
    done = go_on(world, truth_of(world).steps)
    assert (done.counts, done.problems) == ({"tenant-unlisted": 1}, [])
