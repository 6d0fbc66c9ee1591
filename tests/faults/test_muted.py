"""Muting that is cut off at any of its calls: it is done with its audit entry, or not at all, and works again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from common.errors import NotFound
from common.jobs.muted_groups import MutedGroup, MutedGroups, Mutes
from common.tenants.audit import Audit
from tests.faults.stage import Stage, staged
from tests.faults.wire import Fault
from tests.worlds import World

PRINT = "0" * 12


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as stage:
        stage.save()
        yield stage


def mutes(world: World) -> Mutes:
    return Mutes(MutedGroups(world.table("jobs")), world.store.audited)


def mute(world: World) -> None:
    mutes(world).mute(MutedGroup("alice", "bills", PRINT, int(world.clock.now())), world.clock.now())


def unmute(world: World) -> None:
    mutes(world).unmute("alice", "bills", PRINT, world.clock.now())


def actions(world: World) -> list[str]:
    return [entry.action for entry in Audit(world.table("tenants")).newest("alice", 10)]


@pytest.mark.parametrize("fault", Fault)
def test_muting_and_its_audit_entry_are_stored_together(stage: Stage, fault: Fault) -> None:
    def again(world: World, died: BaseException | None) -> None:
        is_muted = bool(mutes(world).groups.now_muted("alice", world.clock.now()).groups)
        assert is_muted == ("failures.muted" in actions(world))
        mute(world)
        unmute(world)
        assert not mutes(world).groups.stored("alice")

    assert stage.each_call(mute, fault, again) >= 3


@pytest.mark.parametrize("fault", Fault)
def test_unmuting_and_its_audit_entry_are_stored_together(stage: Stage, fault: Fault) -> None:
    mute(stage.world)
    stage.save()

    def again(world: World, died: BaseException | None) -> None:
        is_gone = not mutes(world).groups.stored("alice")
        assert is_gone == ("failures.unmuted" in actions(world))
        if is_gone:
            with pytest.raises(NotFound):
                unmute(world)
        mute(world)
        assert mutes(world).groups.stored("alice")

    assert stage.each_call(unmute, fault, again) >= 2
