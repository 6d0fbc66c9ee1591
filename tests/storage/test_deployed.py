"""A function without one of its environment variables fails when its parts are wired, and names the variable."""

from __future__ import annotations

import pytest

from common.config import Config, MissingSetting
from common.storage import deployed
from scheduler import wiring
from tests.worlds import World


def test_a_missing_table_is_named_when_the_parts_are_wired(world: World) -> None:
    tables = deployed.tables(Config.from_env({"DUE_TABLE": "due", "JOBS_TABLE": "jobs"}))
    with pytest.raises(MissingSetting, match="RUNS_TABLE is not set"):
        wiring.scheduler(tables, world.queue, world.clock, world.scheduler.events)
