"""The metrics name their stage; the log has the level of the parameter."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from common import telemetry
from common.config import config


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STAGE", "prod")
    for cached in (telemetry.metrics, telemetry.logger, config):
        cached.cache_clear()
    yield
    for cached in (telemetry.metrics, telemetry.logger, config):
        cached.cache_clear()


def test_each_flush_names_the_stage(fresh: None, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        telemetry.metrics().add_metric(telemetry.BAD_ENTRIES, "Count", 1)
        telemetry.metrics().flush_metrics()
    for line in capsys.readouterr().out.splitlines():
        record = json.loads(line)
        assert record["stage"] == "prod"
        assert set(record["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0]) == {"stage", "service"}


def test_the_level_is_the_parameters_whatever_lambdas_own_filter_lets_pass(
    fresh: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("LOG_LEVEL", "WARNING")
    config.cache_clear()
    telemetry.logger().info("left out")
    telemetry.logger().warning("kept")
    assert telemetry.logger().log_level == logging.WARNING
