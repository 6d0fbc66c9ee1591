"""The scheduler's handler over a world."""

from __future__ import annotations

import pytest

from common.platform.deletion import Deletions
from common.truth.truth import Truth
from eventbridge.group_deletion import GroupDeletions
from scheduler import handler
from scheduler.listed_outcomes import OutcomesMaker
from scheduler.removal import Removal
from scheduler.removal_lease import RemovalLease
from scheduler.sealing import Sealer
from tests.worlds import World


def serve(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the handler plan, compare and delete in this world."""
    deletions = Deletions(world.table("tenants"), world.table("jobs"), world.table("runs"), world.index)
    lease = RemovalLease(world.table("due"))
    removal = Removal(world.completion, GroupDeletions(world.store), deletions, lease, world.clock)
    monkeypatch.setattr(handler, "scheduler", lambda: world.scheduler)
    monkeypatch.setattr(handler, "projector", lambda: world.projector)
    monkeypatch.setattr(handler, "reconciler", lambda: world.reconciler)
    maker = OutcomesMaker.of(world.tables, world.clock)
    monkeypatch.setattr(handler, "outcomes_maker", lambda: maker)
    monkeypatch.setattr(
        handler, "_is_removal_due", lambda: handler.is_removal_due(world.table("due"), world.table("tenants"))
    )
    truth = Truth(world.tables, world.queue, world.clock)
    monkeypatch.setattr(handler, "truth", lambda: truth)
    sealer = Sealer(world.tables, world.clock)
    monkeypatch.setattr(handler, "sealer", lambda: sealer)
    monkeypatch.setattr(handler, "_removal", lambda: removal)
