"""The clock and CloudWatch's metrics, with stand-ins for what moto cannot serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.platform.findings import Level
from minute8.cli.doctor.examine import CHECKS, examine
from minute8.cli.doctor.surroundings import clock_off_s
from tests.doctor.broken import FAILED, WARNING
from tests.doctor.stage import Patient


@pytest.mark.parametrize(
    ("before", "after", "off_s"),
    [
        (100.0, 100.2, 0.0),
        (100.9, 101.2, 0.0),
        (
            101.5,
            101.7,
            0.5,
        ),  # AWS wrote 100 before 101.0, so a clock at 101.5 is at least half a second ahead
        (160.0, 160.2, 59.0),
        (99.0, 99.5, -0.5),
        (40.0, 40.2, -59.8),
    ],
)
def test_a_clock_is_off_by_what_the_date_leaves_no_doubt_of(
    before: float, after: float, off_s: float
) -> None:
    assert clock_off_s(before, 100, after) == pytest.approx(off_s)


@dataclass
class Sts:
    """Sends the time, also in a refusal."""

    date: str
    refuses: bool = False

    class exceptions:
        ClientError = ClientError

    def get_caller_identity(self) -> Any:
        answer = {"ResponseMetadata": {"HTTPHeaders": {"date": self.date}}}
        if self.refuses:
            raise ClientError({"Error": {"Code": "SignatureDoesNotMatch"}, **answer}, "GetCallerIdentity")  # type: ignore[typeddict-item]
        return answer


@pytest.mark.parametrize(
    ("date", "refuses", "level", "message"),
    [
        ("Sat, 21 Nov 2026 03:20:00 GMT", False, Level.OK, "to the second"),
        ("Sat, 21 Nov 2026 03:19:30 GMT", False, WARNING, "29 s ahead of AWS's"),
        ("Sat, 21 Nov 2026 03:30:30 GMT", True, FAILED, "10 min 30 s behind AWS's"),
    ],
)
def test_the_clock(patient: Patient, date: str, refuses: bool, level: Level, message: str) -> None:
    patient.clients["sts"] = Sts(date, refuses)
    (finding,) = [f for f in examine(patient.deployment, 60) if f.check == "clock"]
    assert (finding.level, message in finding.message) == (level, True), finding


@dataclass
class Figures:
    """CloudWatch with figures of the last hour, by metric and function or queue."""

    values: dict[tuple[str, str], list[float]]

    def get_metric_data(self, MetricDataQueries: Any, **_: Any) -> Any:
        def of(query: Any) -> list[float]:
            metric = query["MetricStat"]["Metric"]
            return self.values.get((metric["MetricName"], metric["Dimensions"][0]["Value"]), [])

        return {"MetricDataResults": [{"Id": q["Id"], "Values": of(q)} for q in MetricDataQueries]}


@pytest.mark.parametrize(
    ("values", "level", "message"),
    [
        ({}, Level.NOT_CHECKED, "no figures"),
        ({("Invocations", "minute8-test-scheduler"): [1, 2, 3]}, Level.OK, "6 ticks"),
        (
            {("Invocations", "minute8-test-api"): [90], ("Errors", "minute8-test-api"): [2, 1]},
            WARNING,
            "3 of 90 invocations of api failed",
        ),
        ({("Throttles", "minute8-test-executor"): [7]}, WARNING, "7 invocations of executor were throttled"),
        (
            {("ApproximateAgeOfOldestMessage", "minute8-test-executions"): [1800.0, 5.0]},
            WARNING,
            "for 30 min",
        ),
        ({("ApproximateAgeOfOldestMessage", "minute8-test-executions"): [5.0, 1800.0]}, Level.OK, ""),
    ],
)
def test_the_last_hour(patient: Patient, values: Any, level: Level, message: str) -> None:
    patient.clients["cloudwatch"] = Figures(values)
    last_hour = [check for check in CHECKS if check.name == "last hour"]
    (finding,) = examine(patient.deployment, 60, last_hour)
    assert (finding.level, message in finding.message) == (level, True), finding
