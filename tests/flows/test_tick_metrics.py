"""The metrics of a tick, also of one that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from common import config, telemetry
from common.planning.log import PlannedWindows
from common.planning.queue import HandOverFailed
from scheduler import handler
from tests.scheduler_handler import serve
from tests.worlds import World, at, job, put_in_directory


@pytest.fixture
def deployed(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The handler over this world, in the stage `prod`."""
    monkeypatch.setenv("STAGE", "prod")
    serve(world, monkeypatch)
    for cached in (config.config, telemetry.metrics):
        cached.cache_clear()
    yield world
    for cached in (config.config, telemetry.metrics):
        cached.cache_clear()


def printed_metrics(printed: str) -> dict[str, float]:
    """The metrics that were printed, each of stage prod."""
    metric_values: dict[str, float] = {}
    for line in printed.splitlines():
        metrics = json.loads(line)
        if "_aws" not in metrics:
            continue
        assert (metrics["stage"], metrics["service"]) == ("prod", "minute8")
        for name in (metric["Name"] for metric in metrics["_aws"]["CloudWatchMetrics"][0]["Metrics"]):
            metric_values[name] = metrics[name][0] if isinstance(metrics[name], list) else metrics[name]
    return metric_values


def test_a_tick_that_succeeds_says_what_it_did(deployed: World, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.registry.create("alice", "minutely", job(cron="* * * * *"))
    put_in_directory(deployed.table("due"), "lunar|full#0")
    deployed.run_until("2026-11-21T03:28:00Z")
    handler.handle({}, None)
    metric_values = printed_metrics(capsys.readouterr().out)
    assert metric_values == {
        "PlanningLagSeconds": 480.0,
        "ExecutionsPlanned": 20.0,
        "ExecutionsMissed": 0.0,
        "BadDueEntries": 0.0,
        "SetAside": 1.0,
        "ExecutionsWithoutRecord": 0.0,
    }
    (window,) = deployed.index.windows.newest(5)
    assert (window.planned, window.ticks, window.end) == (20, 1, at("2026-11-21T03:40:00Z"))


def test_a_tick_whose_record_is_not_written_has_planned_all_the_same(
    deployed: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException"}}, "UpdateItem")

    monkeypatch.setattr(PlannedWindows, "add", fails)
    deployed.registry.create("alice", "minutely", job(cron="* * * * *"))
    deployed.run_until("2026-11-21T03:28:00Z")
    assert handler.handle({}, None)["end"] == at("2026-11-21T03:40:00Z")
    assert "its figures are lost" in caplog.text


def test_a_tick_that_fails_says_how_late_planning_is(
    deployed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> object:
        raise HandOverFailed("SQS takes nothing")

    deployed.registry.create("alice", "minutely", job(cron="* * * * *"))
    deployed.run_until("2026-11-21T03:38:00Z")
    deployed.sqs.send_message_batch = fails  # type: ignore[method-assign, assignment]
    with pytest.raises(HandOverFailed):
        handler.handle({}, None)
    assert printed_metrics(capsys.readouterr().out) == {"PlanningLagSeconds": 1080.0}
