"""Two ticks, two executors, a registration and a tick, at once: in every order of their calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from common.runs.outcome import Outcome
from common.storage import keys
from executor.pipeline import Message
from tests.faults.interleaving import Apart, Choose, anywhere, every_order, play, some_orders
from tests.faults.stage import Stage, killed_after, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import Fault, Touched
from tests.worlds import Killed, World, at, job

BEGIN, TICK, END = "2026-11-21T03:12:00Z", "2026-11-21T03:18:00Z", "2026-11-21T03:36:00Z"
SAMPLE = 10


def at_calls(*names: str) -> Apart:
    """Where the order matters: items that one process writes and the other reads. The other calls commute."""
    return lambda call: call.startswith(names)


def orders(*names: str, every: bool = True, sample: int = SAMPLE) -> Iterator[tuple[Choose, Apart]]:
    """All orders of the calls of these names, then a sample of the orders of all calls."""
    if every:
        for choose in every_order():
            yield choose, at_calls(*names)
    for choose in some_orders(sample):
        yield choose, anywhere


@pytest.fixture(autouse=True)
def one_partition(few_partitions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "SPREAD", 1)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(BEGIN) as stage:
        stage.world.index.ensure_progress(at(BEGIN))  # so that there is a window to plan at 3:18
        yield stage


def minutes(*numbers: int) -> list[int]:
    return [at(f"2026-11-21T03:{minute:02}:00Z") for minute in numbers]


def settled(world: World) -> World:
    """The next tick, and everything delivered."""
    world.clock.move_to(at("2026-11-21T03:28:00Z"))
    world.deliver()
    world.scheduler.tick()
    world.run_until("2026-11-21T03:45:00Z")
    return world


def test_two_ticks_at_once(stage: Stage) -> None:
    world = stage.world
    world.registry.create("alice", "a", job(cron="5-59/10 * * * *", invocation="Event", end_at=END))
    world.clock.move_to(at(TICK))
    stage.save()
    played = 0
    for choose, apart in orders("get_item PROGRESS", "update_item PROGRESS"):
        world, played = stage.restore(), played + 1
        died = play(stage.wire, {"one": world.scheduler.tick, "two": world.scheduler.tick}, choose, apart)
        assert died == {"one": None, "two": None}
        if not stage.is_new("two ticks"):
            continue
        everything_explained(settled(world), {("alice", "a"): minutes(15, 25, 35)})
        index_is_right(world)
    assert played > SAMPLE + 10


@pytest.mark.parametrize("kind", ["sync", "failing", "Event", "skip"])
def test_two_executors_with_one_execution(stage: Stage, kind: str) -> None:
    """Two messages of the execution, or one message delivered twice."""
    world = stage.world
    world.registry.create(
        "alice",
        "a",
        job(
            at="2026-11-21T03:15:00Z",
            invocation="Event" if kind == "Event" else "RequestResponse",
            retry={"max_attempts": 2, "base_s": 10},
        ),
    )
    world.clock.move_to(at("2026-11-21T03:15:00Z"))
    if kind == "skip":
        world.store.delete("alice", "a")
    if kind == "failing":
        world.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    message = world.sqs.receive()
    assert message
    stage.save()
    played = 0
    for other in (message, Message("another", message.body)):
        for choose, apart in orders("update_item", "put_item", "target", every=kind != "failing"):
            world, played = stage.restore(), played + 1
            two = {"one": message, "two": other}
            died = play(
                stage.wire,
                {name: partial(world.execute, m) for name, m in two.items()},
                choose,
                apart,
            )
            for name in died:
                if died[name]:
                    world.sqs.give_back(two[name])
            world.run_until("2026-11-21T03:40:00Z")
            # An `Event` run has one write: after its lease, a second delivery cannot know that the call was made.
            again = kind == "Event" and other is message
            everything_explained(world, {("alice", "a"): minutes(15)}, twice=again)
            assert again or len(world.target.calls) == {"skip": 0, "failing": 2}.get(kind, 1)
    assert played >= 2 * SAMPLE


CHANGES = {
    "create": (lambda world: None, lambda world: world.registry.create("alice", "a", JOB)),
    "resume": (
        lambda world: (world.registry.create("alice", "a", JOB), world.store.pause("alice", "a")),
        lambda world: world.store.resume("alice", "a"),
    ),
    "put": (
        lambda world: world.registry.create("alice", "a", job(cron="0 12 * * *")),
        lambda world: world.registry.put("alice", "a", JOB),
    ),
}
JOB = job(cron="5-59/10 * * * *", invocation="Event", end_at=END)


@pytest.mark.parametrize("name", CHANGES)
def test_a_registration_races_a_tick(stage: Stage, name: str) -> None:
    before, change = CHANGES[name]
    before(stage.world)
    stage.world.run_until(TICK)
    stage.save()
    played = 0
    # The rest commutes: a registration's calls before its commit; reading a shard, which a tick does only if it has
    # seen the shard in the directory; and the two hand-overs, since the execution's id identifies a message.
    shared = ["transact_write_items", "update_item PROGRESS"]
    if name == "create":
        shared += ["get_item PROGRESS", "query LISTED", "batch_get_item"]
    for choose, apart in orders(*shared):
        world, played = stage.restore(), played + 1
        died = play(
            stage.wire, {"tick": world.scheduler.tick, "change": partial(change, world)}, choose, apart
        )
        assert died == {"tick": None, "change": None}
        if not stage.is_new(f"race {name}"):
            continue
        earlier = minutes(15) if name == "resume" else []
        everything_explained(settled(world), {("alice", "a"): earlier + minutes(25, 35)})
        index_is_right(world)
    assert played > SAMPLE + 3


def test_two_ticks_and_a_registration_of_which_two_are_killed(stage: Stage) -> None:
    """The registration is killed after its commit, one tick anywhere; the other tick and the next complete both."""
    stage.world.run_until(TICK)
    stage.save()
    for seed, choose in enumerate(some_orders(3 * SAMPLE)):
        world = stage.restore()
        killed_at = 1 + seed % 12
        tick, registers = world.scheduler.tick, partial(CHANGES["create"][1], world)
        stage.wire.kill_in({"registration": ("transact_write_items", 2), "tick": ("", killed_at)})
        play(stage.wire, {"registration": registers, "tick": tick, "other": tick}, choose)
        stage.wire.kill_in({})
        everything_explained(settled(world), {("alice", "a"): minutes(25, 35)})
        index_is_right(world)


def test_a_tick_that_read_the_mark_too_early_loses_no_registration(stage: Stage) -> None:
    """It stalls. Another tick plans, and meanwhile a registration commits and is killed. The first tick continues,
    enqueues the registration's executions and is killed. The other tick finishes the window without these.
    """
    world, calls = stage.world, list[str]()
    world.run_until(TICK)

    def of_the_other(call: str, touched: Touched) -> None:
        calls.append(call)
        if call == "update_item PROGRESS" and calls.count(call) == 2:
            stage.wire.turn = lambda call, touched: None
            killed_after(stage, "transact_write_items", CHANGES["create"][1], nth=2)
            stage.wire.turn = of_the_other

    def of_the_first(call: str, touched: Touched) -> None:
        if call == "query PENDING":
            stage.wire.turn = of_the_other
            world.scheduler.tick()
            stage.wire.turn = lambda call, touched: None
            stage.wire.arm(1, Fault.KILLED_AFTER, only="delete_item")

    stage.wire.turn = of_the_first
    assert isinstance(stage.attempt(lambda world: world.scheduler.tick()), Killed)
    everything_explained(settled(world), {("alice", "a"): minutes(25, 35)})


def test_two_changes_at_once_leave_one_entry(stage: Stage) -> None:
    """A job moved to two other groups and deleted, by three clients at once."""
    world = stage.world
    world.registry.create("alice", "a", job(cron="0 12 * * *"))
    stage.save()
    for choose in some_orders(2 * SAMPLE):
        world = stage.restore()
        died = play(
            stage.wire,
            {
                "one": partial(world.registry.put, "alice", "a", job(cron="0 13 * * *")),
                "two": partial(world.registry.put, "alice", "a", job(every="3h")),
                "three": partial(world.store.delete, "alice", "a"),
            },
            choose,
        )
        assert set(died.values()) == {None}
        index_is_right(world)


def test_an_emptied_shard_is_filled_while_a_tick_drops_it(stage: Stage) -> None:
    world = stage.world
    world.registry.create("alice", "gone", JOB)
    world.store.delete("alice", "gone")
    world.clock.move_to(at(TICK))
    stage.save()
    for choose in every_order():
        world = stage.restore()
        died = play(
            stage.wire,
            {"tick": world.scheduler.tick, "change": partial(world.registry.create, "alice", "a", JOB)},
            choose,
            at_calls("transact_write_items", "update_item", "delete_item"),
        )
        assert died == {"tick": None, "change": None}
        if not stage.is_new("emptied shard"):
            continue
        settled(world)
        everything_explained(world, {("alice", "a"): minutes(25, 35), ("alice", "gone"): minutes(15)})
        index_is_right(world)
