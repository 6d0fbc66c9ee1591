"""A healthy stage of which faults can be made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from common import config, telemetry
from minute8.canary import handler as canary
from minute8.cli.doctor.canary import definition
from tests.alarms.stage import Watched
from tests.scheduler_handler import serve
from tests.worlds import ARN, World, job


@pytest.fixture
def stage(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """A healthy stage with a canary and a tenant's job, twenty minutes old."""
    monkeypatch.setenv("STAGE", "prod")
    serve(world, monkeypatch)
    for cached in (config.config, telemetry.metrics, telemetry.logger):
        cached.cache_clear()
    world.registry.put(canary.TENANT, canary.JOB_ID, definition(ARN))
    world.registry.put("alice", "often", job(every="20s"))
    watched = Watched(world)
    watched.run(22)
    yield watched
    for cached in (config.config, telemetry.metrics, telemetry.logger):
        cached.cache_clear()
