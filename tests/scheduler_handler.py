"""The scheduler's handler over a world."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from common.planning.chores import Done, Steps
from common.platform.deletion import Deletions
from common.storage import keys
from common.storage.table import Table
from eventbridge.group_deletion import GroupDeletions
from scheduler import handler
from scheduler.chores import Parts
from scheduler.removal import Removal
from scheduler.removal_lease import RemovalLease
from tests.worlds import World


def serve(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the handler plan, compare and delete in this world."""
    deletions = Deletions(world.table("tenants"), world.table("jobs"), world.table("runs"), world.index)
    lease = RemovalLease(world.table("due"))
    removal = Removal(world.completion, GroupDeletions(world.store), deletions, lease, world.clock)
    monkeypatch.setattr(handler, "scheduler", lambda: world.scheduler)
    monkeypatch.setattr(handler, "parts", lambda: Parts(world.tables, world.queue, world.clock))
    monkeypatch.setattr(
        handler, "_is_removal_due", lambda: handler.is_removal_due(world.table("due"), world.table("tenants"))
    )
    monkeypatch.setattr(handler, "_removal", lambda: removal)


def go_on(world: World, steps: Steps, name: str = "chore", seconds: float = 200) -> Done:
    """A round of one chore in this world."""
    return world.round(name, steps, seconds)


def put_position(due: Table, name: str, position: Mapping[str, object]) -> None:
    """A chore has come to this position."""
    due.put({**keys.chore(name), "at": position})
