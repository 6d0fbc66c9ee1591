"""Alarms are evaluated as CloudWatch's documents say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts.cloudwatch import expressions
from scripts.cloudwatch.alarms import ALARM, INSUFFICIENT_DATA, OK, composite_state, decided, state_of
from scripts.cloudwatch.expressions import UnknownExpression
from scripts.cloudwatch.metrics import Metric, Metrics, samples_in, statistic_of

BEFORE = "what it was"
ERRORS = Metric.of("AWS/Lambda", "Errors", FunctionName="f")


def points(text: str) -> list[bool | None]:
    """`0` does not breach, `X` does, `-` is missing."""
    return [{"0": False, "X": True, "-": None}[point] for point in text.split()]


# The tables of https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
@pytest.mark.parametrize(
    ("to_alarm", "range_", "missing", "ignore", "breaching", "not_breaching"),
    [
        (3, "0 - X - X", OK, OK, OK, OK),
        (3, "0 - - - -", OK, OK, OK, OK),
        (3, "- - - - -", INSUFFICIENT_DATA, BEFORE, ALARM, OK),
        (3, "0 X X - X", ALARM, ALARM, ALARM, ALARM),
        (3, "- - X - -", ALARM, BEFORE, ALARM, OK),
        (2, "0 - X - X", ALARM, ALARM, ALARM, ALARM),
        (2, "0 0 X 0 X", ALARM, ALARM, ALARM, ALARM),
        (2, "0 - X - -", OK, OK, ALARM, OK),
        (2, "- - - - 0", OK, OK, ALARM, OK),
        (2, "- - - X -", ALARM, BEFORE, ALARM, OK),
    ],
)
def test_missing_data(
    to_alarm: int, range_: str, missing: str, ignore: str, breaching: str, not_breaching: str
) -> None:
    treatments = {"missing": missing, "ignore": ignore, "breaching": breaching, "notBreaching": not_breaching}
    # In the first table 3 of 3, in the second M of 3.
    if to_alarm == 3 and range_ == "0 - X - X":
        treatments = dict.fromkeys(treatments, OK)
    for treatment, expected in treatments.items():
        assert decided(points(range_), 3, to_alarm, treatment, BEFORE) == expected, treatment


def alarm(**changes: Any) -> dict[str, Any]:
    return {
        "Namespace": "AWS/Lambda",
        "MetricName": "Errors",
        "Dimensions": [{"Name": "FunctionName", "Value": "f"}],
        "Statistic": "Sum",
        "Period": 300,
        "EvaluationPeriods": 2,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
        **changes,
    }


def test_the_window_slides_by_the_minute_and_ends_with_the_last_full_one() -> None:
    metrics = Metrics()
    for at in (6_000, 6_010, 6_300, 6_310):
        metrics.add(ERRORS, at, 1)
    assert state_of(alarm(), metrics, 6_359) == OK  # the second sum is not complete
    assert state_of(alarm(), metrics, 6_360) == ALARM
    assert state_of(alarm(), metrics, 6_599) == ALARM
    # The last window has no data. CloudWatch looks two periods further back before it fills that in.
    assert state_of(alarm(), metrics, 6_660) == ALARM
    assert state_of(alarm(), metrics, 6_960) == ALARM
    assert state_of(alarm(), metrics, 7_260) == OK


def test_another_function_is_another_metric() -> None:
    metrics = Metrics()
    metrics.add(Metric.of("AWS/Lambda", "Errors", FunctionName="g"), 6_000, 9)
    assert state_of(alarm(EvaluationPeriods=1), metrics, 6_300) == OK


@pytest.mark.parametrize(
    ("comparison", "value", "state"),
    [
        ("GreaterThanThreshold", 1, OK),
        ("GreaterThanOrEqualToThreshold", 1, ALARM),
        ("LessThanThreshold", 1, OK),
        ("LessThanOrEqualToThreshold", 1, ALARM),
    ],
)
def test_comparisons(comparison: str, value: int, state: str) -> None:
    metrics = Metrics()
    metrics.add(ERRORS, 6_000, value)
    assert state_of(alarm(EvaluationPeriods=1, ComparisonOperator=comparison), metrics, 6_300) == state


@pytest.mark.parametrize(
    ("statistic", "value"),
    [
        *(("Sum", 5050), ("Average", 50.5), ("Minimum", 1), ("Maximum", 100), ("SampleCount", 100)),
        *(("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 100), ("p100", 100)),
    ],
)
def test_statistics(statistic: str, value: float) -> None:
    assert statistic_of([float(sample) for sample in range(100, 0, -1)], statistic) == value


STARTS = [0, 60, 120]
A, B = {0: 6.0, 60: 4.0}, {0: 3.0, 120: 5.0}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a", A),
        ("7", {0: 7, 60: 7, 120: 7}),
        ("a + b", {0: 9}),  # without a value on one side, there is none
        ("a / (b - 3)", {}),  # a division by zero has none
        ("(a - 2) * 2 / 4", {0: 2, 60: 1}),
        ("a > 4", {0: 1, 60: 0}),
        ("FILL(b, 0)", {0: 3, 60: 0, 120: 5}),
        ("SUM(FILL(METRICS(), 0))", {0: 9, 60: 4, 120: 5}),
        ("SUM(METRICS())", {0: 9, 60: 4, 120: 5}),
        ("IF(a > 5, b, 0)", {0: 3, 60: 0}),
        ("IF(a > 3 AND FILL(b, 0) < 1, 1, 0)", {0: 0, 60: 1}),
        ("IF(a > 5 OR a == 4, 1, 0)", {0: 1, 60: 1}),
    ],
)
def test_metric_math(expression: str, value: dict[int, float]) -> None:
    assert expressions.evaluate(expression, {"a": A, "b": B}, STARTS) == value


@pytest.mark.parametrize("expression", ["c", "RATE(a)", "METRICS()", "METRICS() + 1", "FILL(a, REPEAT)"])
def test_an_expression_that_is_not_known_is_an_error_and_not_a_state(expression: str) -> None:
    with pytest.raises(UnknownExpression):
        expressions.evaluate(expression, {"a": A, "b": B}, STARTS)


def test_a_composite_alarm_needs_all_its_parts() -> None:
    rule = 'ALARM("a") AND ALARM("b")'
    assert composite_state(rule, {"a": "ALARM", "b": "ALARM"}) == ALARM
    assert composite_state(rule, {"a": "ALARM", "b": "OK"}) == OK
    assert composite_state('ALARM("a") AND NOT ALARM("b")', {"a": "ALARM", "b": "OK"}) == ALARM
    with pytest.raises(UnknownExpression):
        composite_state('ALARM("a") OR ALARM("b")', {"a": "OK", "b": "OK"})


def test_metrics_are_read_from_logs() -> None:
    group = {
        "Namespace": "Minute8",
        "Dimensions": [["stage"]],
        "Metrics": [{"Name": "Lateness"}, {"Name": "Runs"}],
    }
    line = {
        "_aws": {"Timestamp": 60_500, "CloudWatchMetrics": [group]},
        "stage": "prod",
        "Lateness": [0.1, 2],
        "Runs": 2,
    }
    lateness, runs = (Metric.of("Minute8", name, stage="prod") for name in ("Lateness", "Runs"))
    assert samples_in(json.dumps(line)) == [(lateness, 60.5, 0.1), (lateness, 60.5, 2.0), (runs, 60.5, 2.0)]
    for other in (
        "START RequestId: 1",
        '{"level": "INFO"}',
        '{"_aws": 1}',
        '{"_aws"',
        json.dumps({**line, "Runs": "x"}),
    ):
        assert samples_in(other) == []


def test_old_minutes_are_forgotten() -> None:
    metrics = Metrics()
    for at in (30, 90, 150):
        metrics.add(ERRORS, at, 1)
    metrics.forget(before=60)
    assert metrics.series(ERRORS, "Sum", 60, [0, 60, 120]) == {60: 1, 120: 1}
