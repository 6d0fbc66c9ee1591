"""The scheduler's handler over a world."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from common.planning.chores import Done, Steps
from common.storage import keys
from common.storage.table import Table
from scheduler import handler
from tests.worlds import World


def serve(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the handler plan, compare and delete in this world."""
    monkeypatch.setattr(handler, "scheduler", lambda: world.scheduler)
    monkeypatch.setattr(handler, "deployment", lambda: world.deployment)


def go_on(world: World, steps: Steps, name: str = "chore", seconds: float = 200) -> Done:
    """A round of one chore in this world."""
    return world.round(name, steps, seconds)


def put_position(due: Table, name: str, position: Mapping[str, object]) -> None:
    """A chore has come to this position."""
    due.put({**keys.chore(name), "at": position})
