"""Every fault at every AWS call of a registration. Repeated or not, all of it happens, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from common.errors import AlreadyExists, NotFound
from tests.faults.stage import Stage, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, NOW = "2026-11-21T03:12:00Z", "2026-11-21T03:20:10Z"
LAST_TICK, END = "2026-11-21T03:28:30Z", "2026-11-21T03:45:00Z"
KEY = ("alice", "report")
OLD = job(cron="*/8 * * * *", invocation="Event", payload="x" * 2_000)
NEW = job(cron="5-59/8 * * * *", invocation="Event", payload="y" * 2_000)


COUNTED_OLD, COUNTED_NEW = (
    {**definition, "schedule": {**definition["schedule"], "max_runs": 3}} for definition in (OLD, NEW)
)


def minutes(*numbers: int) -> list[int]:
    return [at(f"2026-11-21T03:{minute:02}:00Z") for minute in numbers]


@dataclass(frozen=True)
class Registration:
    """One kind of registration: its preparation, its step, whether it has happened, and the expected fire times."""

    before: Callable[[World], object]
    step: Callable[[World], object]
    fires: Iterable[int]
    fires_if_not: Iterable[int]
    done: Callable[[World], bool]


def active(world: World) -> bool:
    return world.store.get(*KEY).state == "active"


def paused(world: World) -> bool:
    return not active(world)


def exists(world: World) -> bool:
    try:
        world.store.get(*KEY)
    except NotFound:
        return False
    return True


def nothing(world: World) -> None: ...


def registered(world: World) -> None:
    world.registry.create(*KEY, OLD)


def registered_and_paused(world: World) -> None:
    registered(world)
    world.store.pause(*KEY)


def counted(world: World) -> None:
    world.registry.create(*KEY, COUNTED_OLD)


def counted_and_paused(world: World) -> None:
    """3:16 has come; two are left."""
    counted(world)
    world.run_until("2026-11-21T03:16:30Z")
    world.store.pause(*KEY)


REGISTRATIONS = {
    "create": Registration(
        nothing, lambda world: world.registry.create(*KEY, OLD), minutes(24, 32), minutes(), exists
    ),
    "put": Registration(
        registered,
        lambda world: world.registry.put(*KEY, NEW),
        minutes(16, 24, 21, 29, 37),
        minutes(16, 24, 32),
        lambda world: world.store.get(*KEY).schedule_revision == 2,
    ),
    "pause": Registration(
        registered, lambda world: world.store.pause(*KEY), minutes(16, 24), minutes(16, 24, 32), paused
    ),
    "resume": Registration(
        registered_and_paused,
        lambda world: world.store.resume(*KEY),
        minutes(16, 24, 32),
        minutes(16),
        active,
    ),
    "delete": Registration(
        registered,
        lambda world: world.store.delete(*KEY),
        minutes(16, 24),
        minutes(16, 24, 32),
        lambda world: not exists(world),
    ),
    # Three times in all, of which 3:16 has come: 3:37 and 3:40 are one too many.
    "create with max_runs": Registration(
        nothing, lambda world: world.registry.create(*KEY, COUNTED_OLD), minutes(24, 32), minutes(), exists
    ),
    "put with max_runs": Registration(
        counted,
        lambda world: world.registry.put(*KEY, COUNTED_NEW),
        minutes(16, 24, 21, 29),
        minutes(16, 24, 32),
        lambda world: world.store.get(*KEY).schedule_revision == 2,
    ),
    "resume with max_runs": Registration(
        counted_and_paused,
        lambda world: world.store.resume(*KEY),
        minutes(16, 24, 32),
        minutes(16),
        active,
    ),
}


def before(stage: Stage, registration: Registration) -> None:
    """3:20:10, planned up to 3:30."""
    registration.before(stage.world)
    stage.world.run_until(NOW, ticks=True)
    stage.save()


# A client that repeats cannot distinguish the faults that did nothing.
FAULTS = [(fault, False) for fault in Fault] + [
    (f, True) for f in (Fault.FAILED, Fault.LOST, Fault.KILLED_AFTER)
]


@pytest.mark.parametrize(("fault", "repeats"), FAULTS)
@pytest.mark.parametrize("name", REGISTRATIONS)
def test_a_registration_meets_a_fault_at_each_of_its_calls(name: str, fault: Fault, repeats: bool) -> None:
    registration = REGISTRATIONS[name]

    def carries_on(world: World, died: BaseException | None) -> None:
        world.clock.sleep(2)
        if repeats and died:
            try:
                registration.step(world)
            except (AlreadyExists, NotFound):
                assert name.split()[0] in ("create", "delete")
        done = registration.done(world)
        assert done or (died and not repeats)
        world.run_until(LAST_TICK, ticks=True)
        world.run_until(END)
        everything_explained(world, {KEY: registration.fires if done else registration.fires_if_not})
        index_is_right(world)

    with staged(BEGIN) as stage:
        before(stage, registration)
        assert stage.each_call(registration.step, fault, carries_on, flow=f"{name} {repeats}") >= 3


def test_times_changed_twice_within_one_second_still_fire_in_the_window_under_way() -> None:
    with staged(BEGIN) as stage:
        world = stage.world
        world.clock.move_to(at(NOW))
        world.scheduler.tick()
        registered(world)
        world.clock.sleep(0.4)
        world.registry.put(*KEY, NEW)
        world.run_until("2026-11-21T03:29:30Z")
        assert world.target.fire_times("report") == ["2026-11-21T03:21:00Z", "2026-11-21T03:29:00Z"]
