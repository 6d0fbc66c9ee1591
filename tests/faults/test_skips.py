"""Skips and their undoing, with other calls in between, faults, and commits that take long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from common.errors import Conflict
from common.planning.execution import Execution
from common.tenants.audit import Audit
from tests.faults.interleaving import every_order, play, some_orders
from tests.faults.stage import Stage, staged
from tests.faults.wire import Fault, Touched
from tests.worlds import World, at, job

MAX_SKIPPED = 50
MIN_NOTICE_S = 60
SKIPPED_AHEAD_S = 31_622_400

KEY, CRON = ("alice", "job"), "*/10 * * * *"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as stage:
        stage.world.registry.create(*KEY, job(cron=CRON))
        stage.save()
        yield stage


def skip(world: World, count: int = 1) -> None:
    world.manual.skip_next(*KEY, count, "")


def unskip(world: World) -> None:
    world.manual.take_back(world.manual.skipped(*KEY))


def cancelled(world: World) -> list[int]:
    now = int(world.clock.now())
    runs = world.manual.runs.cancelled(*KEY, now, now + SKIPPED_AHEAD_S, 10 * MAX_SKIPPED)
    return [run.fire_at for run in runs]


def noted(world: World) -> list[int]:
    return list(world.store.get(*KEY).skips)


def apart(call: str) -> bool:
    """Where the order matters."""
    return call.startswith(("transact_write_items", "update_item alice", "query alice"))


def played(stage: Stage, before: int, *calls: str) -> Iterator[World]:
    """Two calls in every order, or in a sample; `before` fire times are skipped before them."""
    steps = {
        "skip": lambda: skip(stage.world),
        "unskip": lambda: unskip(stage.world),
        "patch": lambda: stage.world.registry.put(*KEY, job(cron=CRON, name="another")),
    }
    if before:
        skip(stage.world, before)
    stage.save()
    for choose in every_order() if "patch" in calls else some_orders(60):
        world = stage.restore()
        assert set(play(stage.wire, {name: steps[name] for name in calls}, choose, apart).values()) == {None}
        yield world


@pytest.mark.parametrize(("before", "other"), [(0, "skip"), (1, "unskip")])
def test_a_change_of_the_job_meanwhile_loses_no_note(stage: Stage, before: int, other: str) -> None:
    orders = 0
    for world in played(stage, before, other, "patch"):
        orders += 1
        assert (noted(world), len(noted(world))) == (cancelled(world), 1 - before)
        assert world.store.get(*KEY).spec.name == "another"
    assert orders >= 4


@pytest.mark.parametrize("before", [0, 1])
def test_a_skip_and_an_unskip_at_once_note_what_is_cancelled(stage: Stage, before: int) -> None:
    counts = set()
    for world in played(stage, before, "skip", "unskip"):
        assert noted(world) == cancelled(world)
        counts.add(len(noted(world)))
    assert counts == {0, 1}


def test_fifty_are_skipped_and_taken_back_in_one_transaction_each(stage: Stage) -> None:
    for step, action, remaining in ((skip, "run.cancelled", MAX_SKIPPED), (unskip, "run.restored", 0)):
        stage.wire.arm(0, None, only="transact_write_items")
        step(stage.world, MAX_SKIPPED) if step is skip else step(stage.world)
        assert len(stage.wire.calls) == 1
        assert (len(cancelled(stage.world)), noted(stage.world)) == (remaining, cancelled(stage.world))
        entries = Audit(stage.world.table("tenants")).newest("alice", 1_000)
        assert sum(entry.action == action for entry in entries) == MAX_SKIPPED


def test_a_fire_time_taken_back_by_another_call_does_not_stop_the_others(stage: Stage) -> None:
    skip(stage.world, 3)
    skipped = stage.world.manual.skipped(*KEY)
    stage.world.manual.take_back(skipped[1:2])
    restored = stage.world.manual.take_back(skipped)
    assert restored == [skipped[0], skipped[2]]
    assert (cancelled(stage.world), noted(stage.world)) == ([], [])


@pytest.mark.parametrize("fault", [Fault.FAILED, Fault.LOST])
def test_an_error_in_the_middle_leaves_no_stale_note(stage: Stage, fault: Fault) -> None:
    """Four transactions: of all three, which is refused, since one is restored already; and of each by itself."""
    skip(stage.world, 3)
    skipped = stage.world.manual.skipped(*KEY)
    stage.world.manual.take_back(skipped[1:2])
    stage.save()
    counts = []
    for nth in (1, 2, 3, 4):
        world = stage.restore()
        stage.wire.arm(nth, fault, only="transact_write_items")
        stage.attempt(lambda world: world.manual.take_back(skipped))
        assert stage.wire.hit
        assert noted(world) == cancelled(world)
        counts.append(len(noted(world)))
    assert counts == ([2, 2, 1, 1] if fault is Fault.FAILED else [0, 1, 0, 0])


def test_a_cancelled_fire_time_is_noted_after_a_lost_answer_and_by_a_repeated_call(stage: Stage) -> None:
    def cancel(world: World) -> None:
        world.manual.cancel("alice", "alice:job:20261121T032000Z", "")

    stage.wire.arm(1, Fault.LOST, only="transact_write_items")
    assert stage.attempt(cancel)
    assert noted(stage.world) == cancelled(stage.world) == [at("2026-11-21T03:20:00Z")]
    world = stage.restore()
    stage.wire.arm(1, Fault.KILLED_BEFORE, only="update_item")
    assert stage.attempt(cancel)
    assert (len(cancelled(world)), noted(world)) == (1, [])
    assert isinstance(stage.attempt(cancel), Conflict)
    assert noted(world) == cancelled(world)


def enqueued_and_skipped(stage: Stage) -> tuple[World, Execution]:
    """At the bound: the fire time is as far away as the least notice."""
    world = stage.world
    skip(world)
    world.clock.move_to(at("2026-11-21T03:19:00Z"))
    world.scheduler.tick()
    (skipped,) = world.manual.skipped(*KEY)
    assert (skipped.fire_at - world.clock.now(), len(world.sqs)) == (MIN_NOTICE_S, 1)
    return world, skipped


@pytest.mark.parametrize("fault", [None, Fault.LOST])
def test_a_commit_that_takes_longer_than_the_notice_loses_no_run(stage: Stage, fault: Fault | None) -> None:
    """The message comes, and goes as cancelled, while the commit is under way."""
    world, skipped = enqueued_and_skipped(stage)

    def slow(call: str, touched: Touched) -> None:
        if call.startswith("transact_write_items"):
            stage.wire.turn = lambda call, touched: None
            stage.wire.disarm()
            world.clock.move_to(skipped.fire_at + 5)
            world.deliver()
            assert (len(world.sqs), world.statuses(*KEY)) == (0, ["skipped(cancelled)"])
            stage.wire.arm(1, fault)

    stage.wire.turn = slow
    died = stage.attempt(lambda world: world.manual.take_back([skipped]))
    assert (died is None) == (fault is None)
    world.deliver()
    assert (world.statuses(*KEY), len(world.target.calls)) == (["succeeded"], 1)


def test_a_message_that_is_sent_again_beside_the_first_runs_once(stage: Stage) -> None:
    world, skipped = enqueued_and_skipped(stage)

    def slow(call: str, touched: Touched) -> None:
        if call.startswith("transact_write_items"):
            world.clock.move_to(skipped.fire_at - 1)

    stage.wire.turn = slow
    assert world.manual.take_back([skipped]) == [skipped]
    stage.wire.turn = lambda call, touched: None
    assert len(world.sqs) == 2
    world.run_until("2026-11-21T03:21:00Z")
    assert (world.statuses(*KEY), len(world.target.calls)) == (["succeeded"], 1)
