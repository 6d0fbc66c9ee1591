"""A world whose ticks are the handler's: they plan, compare, follow the runs and walk over the tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler import handler
from tests.scheduler_handler import serve
from tests.truth.damage import small_world
from tests.worlds import World


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose ticks are the handler's."""
    world = small_world()
    serve(world, monkeypatch)
    world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment, return-value]
    yield world
