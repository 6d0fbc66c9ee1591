"""The metrics name their stage."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from common import telemetry
from common.config import config


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STAGE", "prod")
    for cached in (telemetry.metrics, config):
        cached.cache_clear()
    yield
    for cached in (telemetry.metrics, config):
        cached.cache_clear()


def test_each_flush_names_the_stage(fresh: None, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        telemetry.metrics().add_metric(telemetry.BAD_ENTRIES, "Count", 1)
        telemetry.metrics().flush_metrics()
    for line in capsys.readouterr().out.splitlines():
        told = json.loads(line)
        assert told["stage"] == "prod"
        assert set(told["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0]) == {"stage", "service"}
