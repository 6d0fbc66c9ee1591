"""The alarms of deploy/alarms.yml, and when one rings: its properties evaluated over metrics. Pure but for `declared`.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from scripts.build_layer import ROOT
from scripts.cloudwatch import expressions
from scripts.cloudwatch.metrics import Metric, Metrics, Series

OK: Final = "OK"
ALARM: Final = "ALARM"
INSUFFICIENT_DATA: Final = "INSUFFICIENT_DATA"

_COMPARISONS: Final = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
# How many periods more than it evaluates CloudWatch looks at. Its documents show it for 3 of 3 alone.
_FURTHER_PERIODS: Final = 2
_STATE_OF: Final = re.compile(r'(NOT )?(OK|ALARM|INSUFFICIENT_DATA)\("([^"]+)"\)')
DECLARED: Final = ROOT / "deploy" / "alarms.yml"


def declared(text: str | None = None) -> dict[str, dict[str, Any]]:
    """Alarm, without its stage -> its properties, in the order of the file, with references as they stand there."""
    resources = yaml.safe_load(DECLARED.read_text() if text is None else text)["Resources"].values()
    properties = (resource["Properties"] for resource in resources)
    return {alarm["AlarmName"].removeprefix("minute8-${sls:stage}-"): alarm for alarm in properties}


def waits_s(name: str, alarms: Mapping[str, Mapping[str, Any]]) -> int:
    """How long a fault shows in its metric until the alarm rings. Of two windows, the short one has to pass."""
    alarm = alarms[f"{name}-now"] if "AlarmRule" in alarms[name] else alarms[name]
    return int(alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])) * period_of(alarm)


def state_of(alarm: Mapping[str, Any], metrics: Metrics, now: float, before: str = INSUFFICIENT_DATA) -> str:
    """The state of a metric alarm at `now`; `before` is the one that it has.

    `alarm` has the properties of AWS::CloudWatch::Alarm. Every reference in them is resolved.
    """
    period_s, periods = period_of(alarm), int(alarm["EvaluationPeriods"])
    # It is evaluated every minute, over the periods that end with the last full one.
    end = int(now // 60 * 60)
    starts = [end - period_s * n for n in range(periods + _FURTHER_PERIODS, 0, -1)]
    values = watched(alarm, metrics, starts)
    threshold, breaches = float(alarm["Threshold"]), _COMPARISONS[alarm["ComparisonOperator"]]
    points = [breaches(values[start], threshold) if start in values else None for start in starts]
    return decided(
        points,
        periods,
        int(alarm.get("DatapointsToAlarm", periods)),
        alarm.get("TreatMissingData", "missing"),
        before,
    )


def decided(points: Sequence[bool | None], periods: int, to_alarm: int, missing: str, before: str) -> str:
    """The state from the points of the evaluation range, oldest first: breaching or not; None: there is no data."""
    present = [point for point in points if point is not None][-periods:]
    lacking = periods - len(present)
    breaching = sum(present)
    if not lacking or missing == "notBreaching":
        return ALARM if breaching >= to_alarm else OK
    if missing == "breaching":
        return ALARM if breaching + lacking >= to_alarm else OK
    if breaching < len(present):
        return ALARM if breaching >= to_alarm else OK
    if missing == "ignore":
        return before
    return ALARM if present else INSUFFICIENT_DATA


def composite_state(rule: str, states: Mapping[str, str]) -> str:
    """The state of a composite alarm whose rule joins states of other alarms with AND."""
    parts = rule.split(" AND ")
    terms = [_STATE_OF.fullmatch(part.strip()) for part in parts]
    if not all(terms):
        raise expressions.UnknownExpression(rule)
    return ALARM if all((states[term[3]] == term[2]) is not bool(term[1]) for term in terms if term) else OK


def period_of(alarm: Mapping[str, Any]) -> int:
    """The period of its metrics, in seconds: all of them have the same."""
    if "Metrics" not in alarm:
        return int(alarm["Period"])
    [period_s] = {int(query["MetricStat"]["Period"]) for query in alarm["Metrics"] if "MetricStat" in query}
    return period_s


def watched(alarm: Mapping[str, Any], metrics: Metrics, starts: Sequence[int]) -> Series:
    """The values that are compared with the threshold."""
    period_s = period_of(alarm)
    if "Metrics" not in alarm:
        statistic = alarm.get("ExtendedStatistic") or alarm["Statistic"]
        return metrics.series(named(alarm), statistic, period_s, starts)
    read = {
        query["Id"]: metrics.series(
            named(query["MetricStat"]["Metric"]), query["MetricStat"]["Stat"], period_s, starts
        )
        for query in alarm["Metrics"]
        if "MetricStat" in query
    }
    [expression] = [query["Expression"] for query in alarm["Metrics"] if "Expression" in query]
    return expressions.evaluate(expression, read, starts)


def named(properties: Mapping[str, Any]) -> Metric:
    """The metric of an alarm, or of one of its queries."""
    dimensions = {
        dimension["Name"]: str(dimension["Value"]) for dimension in properties.get("Dimensions", ())
    }
    return Metric.of(properties["Namespace"], properties["MetricName"], **dimensions)


def metrics_of(alarm: Mapping[str, Any]) -> list[Metric]:
    """All metrics that a metric alarm reads; each is paid for."""
    if "Metrics" not in alarm:
        return [named(alarm)]
    return [named(query["MetricStat"]["Metric"]) for query in alarm["Metrics"] if "MetricStat" in query]
