"""The embedded AWS keeps the alarms of a template, and moves them by what its services emit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scripts.embedded import cloudwatch as ours
from scripts.embedded.cloudwatch import Emitted
from tests.alarms import template

ministack = pytest.importorskip("ministack.services.cloudwatch")
from ministack.services.cloudformation import provisioners  # type: ignore[import-untyped]  # noqa: E402

NOW = 1_795_000_020.0
TOPIC = "arn:aws:sns:us-east-1:000000000000:pager"


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """ministack's CloudWatch, changed as in the server, with the alarms of stage prod; nothing evaluates by itself."""
    record = provisioners._cw_metric_alarm_record
    monkeypatch.setattr(provisioners, "_cw_metric_alarm_record", record)
    monkeypatch.setattr(ministack, "_evaluate_alarm", lambda _alarm: None)
    ours._take_expressions(provisioners)
    alarms = template.alarms().values()
    for alarm in [alarm for alarm in alarms if "AlarmRule" not in alarm]:
        alarm = {name: value for name, value in alarm.items() if not name.endswith("Actions")}
        provisioners._cw_metric_alarm_create("Alarm", {**alarm, "AlarmActions": [TOPIC]}, "minute8-prod")
    for alarm in [alarm for alarm in alarms if "AlarmRule" in alarm]:
        ours._put_composite(ministack, {**alarm, "AlarmActions": [TOPIC], "OKActions": []})
    yield ministack
    ministack.reset()


def states(cloudwatch: Any) -> dict[str, str]:
    every = [*cloudwatch._alarms.values(), *cloudwatch._composite_alarms.values()]
    return {alarm["AlarmName"].removeprefix("minute8-prod-"): alarm["StateValue"] for alarm in every}


def test_alarms_move_with_what_is_emitted_and_say_so(
    cloudwatch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    notified: list[tuple[str, str, str]] = []
    monkeypatch.setattr(
        cloudwatch,
        "_dispatch_alarm_actions",
        lambda alarm, before, after, _reason: notified.append((alarm["AlarmName"], before, after)),
    )
    emitted = Emitted(lambda: NOW - 60)
    emitted.queue("minute8-prod-executions-dead", [{"visible_at": 0.0, "sent_at": 0.0}], NOW)
    ours.evaluate(cloudwatch, emitted, NOW)
    state_by_alarm = states(cloudwatch)
    assert [name for name, state in state_by_alarm.items() if state == "ALARM"] == ["dead-letters"]
    assert ("minute8-prod-dead-letters", "INSUFFICIENT_DATA", "ALARM") in notified
    ours.evaluate(cloudwatch, emitted, NOW + 240)
    assert states(cloudwatch)["dead-letters"] == "OK"
    assert notified[-1] == ("minute8-prod-dead-letters", "ALARM", "OK")


def test_an_alarm_of_two_windows_follows_its_parts(cloudwatch: Any) -> None:
    late = '{"_aws":{"Timestamp":0,"CloudWatchMetrics":[{"Namespace":"Minute8","Dimensions":[["service","stage"]],'
    late += (
        '"Metrics":[{"Name":"ServiceGood"},{"Name":"ServiceTotal"}]}]},"service":"minute8","stage":"prod",'
    )
    late += '"ServiceGood":[0],"ServiceTotal":[10]}'
    emitted = Emitted(lambda: NOW - 60)
    emitted.invocation("minute8-prod-executor", late, error=False, duration_ms=50, in_flight=1)
    ours.evaluate(cloudwatch, emitted, NOW)
    assert states(cloudwatch)["burn-fast"] == "ALARM"
    ours.evaluate(cloudwatch, emitted, NOW + 1_200)
    state_by_alarm = states(cloudwatch)
    assert state_by_alarm["burn-fast-hour"] == "ALARM"
    assert (state_by_alarm["burn-fast-now"], state_by_alarm["burn-fast"]) == ("OK", "OK")


def test_a_composite_alarm_of_unknown_parts_is_refused(cloudwatch: Any) -> None:
    with pytest.raises(ValueError, match="do not exist"):
        ours._put_composite(cloudwatch, {"AlarmName": "x", "AlarmRule": 'ALARM("nothing")'})


def test_requests_to_the_api_and_throttles_are_counted() -> None:
    emitted = Emitted(lambda: NOW)
    emitted.request("api", 502, 20.0)
    emitted.request("api", 404, 20.0)
    series_by_name = {
        metric.name: emitted.metrics.series(metric, "Sum", 60, [int(NOW // 60 * 60)])
        for metric in emitted.metrics.names
    }
    minute = int(NOW // 60 * 60)
    assert series_by_name == {"Count": {minute: 2}, "5xx": {minute: 1}, "Latency": {minute: 40}}
