"""The removal of a tenant, interrupted before and after each call: continuing it always gives the same result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from common.errors import NotFound
from tests.faults.stage import Stage, staged
from tests.faults.wire import Fault
from tests.platform.leftovers import TOMBSTONE, deletions_of, directory, finish, furnish, left_of, registry_of
from tests.worlds import World, job

NOW = "2026-11-21T03:12:00Z"
# Small enough to divide every step, and large enough to avoid hundreds of calls.
FEW = 7


@contextmanager
def furnished() -> Iterator[Stage]:
    with staged(NOW) as stage:
        furnish(stage.world)
        stage.save()
        yield stage


@pytest.mark.parametrize("fault", [Fault.KILLED_AFTER, Fault.FAILED, Fault.LOST])
def test_a_slice_cut_off_anywhere_is_done_again(fault: Fault) -> None:
    with furnished() as stage:
        halves = {group: jobs // 2 for group, jobs in directory(stage.world).items()}
        bobs = left_of(stage.world, "bob")
        deletions_of(stage.world).begin("alice", stage.world.clock.now())
        stage.world.clock.sleep(60)
        stage.save()

        def remove_in_slices(world: World) -> None:
            while deletions_of(world).move_on("alice", world.clock.now(), FEW).finished_at is None:
                pass

        def check(world: World, died: BaseException | None) -> None:
            finish(world, 500)
            assert left_of(world, "alice") == TOMBSTONE
            assert left_of(world, "bob") == bobs
            assert directory(world) == halves

        assert stage.each_call(remove_in_slices, fault, check, flow="removal") > 40


@pytest.mark.parametrize("fault", [Fault.KILLED_AFTER, Fault.FAILED, Fault.LOST, Fault.THROTTLED])
def test_a_beginning_cut_off_can_be_made_again(fault: Fault) -> None:
    with furnished() as stage:

        def begin(world: World) -> None:
            deletions_of(world).begin("alice", world.clock.now())

        def check(world: World, died: BaseException | None) -> None:
            begin(world)
            finish(world)
            assert left_of(world, "alice") == TOMBSTONE

        assert stage.each_call(begin, fault, check) == 3


def test_a_registration_cut_off_before_leaves_nothing() -> None:
    """Its job may be stored, and its executions enqueued or not: all of that is removed."""
    with furnished() as stage:

        def register(world: World) -> None:
            registry_of(world).create("alice", "more", job(cron="* * * * *"))

        def check(world: World, died: BaseException | None) -> None:
            deletions_of(world).begin("alice", world.clock.now())
            with pytest.raises(NotFound):
                registry_of(world).create("alice", "another", job(cron="* * * * *"))
            finish(world)
            assert left_of(world, "alice") == TOMBSTONE

        assert stage.each_call(register, Fault.KILLED_AFTER, check, flow="registration") > 5
