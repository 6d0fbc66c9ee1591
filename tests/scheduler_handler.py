"""The scheduler's handler over a world."""

from __future__ import annotations

import pytest

from common.jobs.group_deletion import GroupDeletions
from common.platform.deletion import Deletions
from scheduler import handler
from scheduler.leftovers import anything_left
from scheduler.removal import Removal
from tests.worlds import World


def serve(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the handler plan, compare and delete in this world."""
    deletions = Deletions(w.table("tenants"), w.table("jobs"), w.table("runs"), w.index)
    removal = Removal(w.completion, GroupDeletions(w.store), deletions, w.clock)
    monkeypatch.setattr(handler, "scheduler", lambda: w.scheduler)
    monkeypatch.setattr(handler, "reconciler", lambda: w.reconciler)
    monkeypatch.setattr(
        handler, "_is_anything_left", lambda: anything_left(w.table("due"), w.table("tenants"))
    )
    monkeypatch.setattr(handler, "_removal", lambda: removal)
