"""Refusals: each names the field, the place and what would be accepted."""

from __future__ import annotations

import pytest

from common.errors import InvalidInput
from common.registration.cron_text import read_cron
from common.registration.schedule_text import parse_schedule
from common.timing.schedule import Schedule


def refusal(**raw: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parse(**raw)
    return caught.value


def parse(**raw: object) -> Schedule:
    return parse_schedule(raw, job_key="alice/report", now=1_763_694_600, shortest_interval_s=10)


@pytest.mark.parametrize(
    ("raw", "field", "part"),
    [
        ({"on_excluded": "nearest"}, "on_excluded", "skip, next or previous"),
        ({"on_excluded": True}, "on_excluded", "skip, next or previous"),
        ({"cron": None, "every": "1h", "on_excluded": "next"}, "on_excluded", "goes with `cron` only"),
        ({"cron": None, "at": "2026-12-24T08:00:00Z", "on_excluded": "next"}, "on_excluded", "`cron` only"),
        ({"cron": "0 0 0,12 1 * *", "on_excluded": "next"}, "cron", ""),
        ({"include_calendars": "feasts"}, "include_calendars", "must be a list"),
        ({"include_calendars": ["a/b"]}, "include_calendars.0", "letters, digits, ._-"),
        ({"include_calendars": [f"c{n}" for n in range(11)]}, "include_calendars", "at most 10"),
    ],
)
def test_calendars_and_moves_are_refused_by_field(raw: dict[str, object], field: str, part: str) -> None:
    raw = {"cron": "0 3 * * *"} | raw
    if not part:  # on consecutive dates, to which times move, it would fire too often
        assert parse(cron=raw["cron"]).timing
        with pytest.raises(InvalidInput) as caught:
            parse_schedule(raw, job_key="alice/report", now=0, shortest_interval_s=43_201)
        assert caught.value.field == "schedule.cron"
        return
    error = refusal(**raw)
    assert (error.field, part in str(error)) == (f"schedule.{field}", True), error


@pytest.mark.parametrize(
    ("expression", "position", "part"),
    [
        # croniter accepts these and reads them as something else
        ("0 0 1 * 1#2", 4, "combined"),
        ("0 0 15W * 1", 4, "combined"),
        ("0 0 1 * L5", 4, "combined"),
        ("0 23-3/2 * * *", 2, "wraps"),
        ("0 0 * * sat-tue/2", 8, "wraps"),
        ("0 0 * NOV-FEB/2 *", 6, "wraps"),
        ("*/60 * * * *", 0, "step 60"),
        ("5/100 * * * *", 0, "step 100"),
        ("0 */24 * * *", 2, "step 24"),
        ("0 3-23/25 * * *", 2, "step 25"),
        ("0 0 */31 * *", 4, "step 31"),
        ("0 0 * */12 *", 6, "step 12"),
        ("0 0 * * */7", 8, "step 7"),
        ("*/0 * * * *", 0, "step 0"),
        ("0-30/0 * * * *", 0, "step 0"),
        ("H/60 * * * *", 0, "step 60"),
        ("H(0-30)/0 * * * *", 0, "step 0"),
        ("R * * * *", 0, "random"),
        ("0 R(1-5) * * *", 2, "random"),
        ("0 0 * * R/2", 8, "random"),
        ("0 0 31 2 *", None, "never"),
        ("0 0 30,31 2 *", None, "never"),
        ("0 0 31 4,6,9,11 *", None, "never"),
        ("0" * 5000 + " * * * *", 256, "5008 characters"),
        ("00005 * * * *", 0, "4 digits"),
        ("0 0 * * " + ",".join(["1"] * 200), 256, "characters"),
        ("0 0 * * * ٣", 10, "ASCII"),
        ("0\u00a00 * * *", 1, "ASCII"),
        ("0 0 *\n* *", 5, "ASCII"),
        ("@reboot", 0, "has 1 field"),
        ("@every 5m", 0, "has 2 fields"),
        # plain mistakes
        ("", 0, "has 0 fields"),
        ("* * * *", 0, "has 4 fields"),
        ("0 0 0 1 1 * 2025", 0, "has 7 fields"),
        ("60 * * * *", 0, "60 is out of range"),
        ("0 24 * * *", 2, "24 is out of range"),
        ("0 0 0 * *", 4, "0 is out of range"),
        ("0 0 32 * *", 4, "32 is out of range"),
        ("0 0 * 13 *", 6, "13 is out of range"),
        ("0 0 * * 8", 8, "8 is out of range"),
        ("0 0 * * 1,2,9", 12, "9 is out of range"),
        ("0 9 * * MONDAY", 8, "'MONDAY'"),
        ("0 MON * * *", 2, "'MON'"),
        ("0 9,,10 * * *", 4, "empty"),
        ("-5 * * * *", 0, "cannot be read"),
        ("*-5 * * * *", 0, "cannot begin"),
        ("? * * * *", 0, "day only"),
        ("0 0 5L * *", 4, "cannot be read"),
        ("0 0 * * 5L", 8, "cannot be read"),
        ("0 0 L-3 * *", 4, "not a name"),
        ("0 0 LW * *", 4, "not a name"),
        ("0 0 * * 1#6", 8, "week"),
        ("0 0 * * 1#2,3", 8, "listed"),
        ("0 0 1,15W * *", 6, "listed"),
        ("0 0 1-5W * *", 4, "cannot be read"),
        ("H(5-5) * * * *", 0, "rise"),
        ("H(5-99) * * * *", 0, "99 is out of range"),
        ("0.5 * * * *", 0, "cannot be read"),
        ("*/5 * * * * *", None, "5 s apart"),
    ],
)
def test_cron(expression: str, position: int | None, part: str) -> None:
    error = refusal(cron=expression)
    assert error.field == "schedule.cron"
    assert part in str(error)
    assert error.position == position
    assert error.accepted
    assert error.value


@pytest.mark.parametrize(
    "expression", ["0 0 31 2 1", "0 0 29 2 *", "0 0 * 2 1#5", "0 0 31W 2 *", "0 0 31 1-2 *"]
)
def test_rare_dates_are_no_refusals(expression: str) -> None:
    assert parse(cron=expression)


@pytest.mark.parametrize("value", [None, 5, 1.5, b"* * * * *", ["*"], {"a": 1}, object(), True])
def test_cron_that_is_no_text(value: object) -> None:
    with pytest.raises(InvalidInput):
        read_cron(value, job_key="a")


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({}, "schedule"),
        ({"cron": "* * * * *", "every": "1h"}, "schedule"),
        ({"cron": "* * * * *", "tz": "UTC"}, "schedule.tz"),
        ({"cron": "* * * * *", "anchor": "2025-01-01T00:00:00Z"}, "schedule.anchor"),
        ({"cron": "* * * * *", "timezone": "Europe/Belin"}, "schedule.timezone"),
        ({"cron": "* * * * *", "timezone": "europe/berlin"}, "schedule.timezone"),
        ({"cron": "* * * * *", "timezone": "../../etc/passwd"}, "schedule.timezone"),
        ({"cron": "* * * * *", "timezone": "Europe"}, "schedule.timezone"),
        ({"cron": "* * * * *", "timezone": 1}, "schedule.timezone"),
        ({"every": "1h", "timezone": "UTC"}, "schedule.timezone"),
        ({"every": "0s"}, "schedule.every"),
        ({"every": ""}, "schedule.every"),
        ({"every": "P"}, "schedule.every"),
        ({"every": "PT"}, "schedule.every"),
        ({"every": "P1D T1H"}, "schedule.every"),
        ({"every": "P1M"}, "schedule.every"),
        ({"every": "P1Y"}, "schedule.every"),
        ({"every": "1.5h"}, "schedule.every"),
        ({"every": "90"}, "schedule.every"),
        ({"every": "-5m"}, "schedule.every"),
        ({"every": "٥m"}, "schedule.every"),
        ({"every": True}, "schedule.every"),
        ({"every": 10.0}, "schedule.every"),
        ({"every": 10**5000}, "schedule.every"),
        ({"every": "3661d"}, "schedule.every"),
        ({"every": "9s"}, "schedule.every"),
        ({"at": "2025-01-01T00:00:00"}, "schedule.at"),
        ({"at": "2025-01-01"}, "schedule.at"),
        ({"at": "2025-02-29T00:00:00Z"}, "schedule.at"),
        ({"at": "2025-01-01T00:00:60Z"}, "schedule.at"),
        ({"at": "2025-01-01T00:00:00.5Z"}, "schedule.at"),
        ({"at": "2025-01-01T00:00:00+25:00"}, "schedule.at"),
        ({"at": "0001-01-01T00:00:00+23:00"}, "schedule.at"),
        ({"at": "9999-01-01T00:00:00Z"}, "schedule.at"),
        ({"at": 1_700_000_000}, "schedule.at"),
        ({"at": "2025-01-01T00:00:00Z", "timezone": "UTC"}, "schedule.timezone"),
        ({"every": "1h", "start_at": "now"}, "schedule.start_at"),
        (
            {"every": "1h", "start_at": "2025-01-01T00:00:00Z", "end_at": "2025-01-01T00:00:00Z"},
            "schedule.end_at",
        ),
        ({"every": "1h", "jitter_s": -1}, "schedule.jitter_s"),
        ({"every": "1h", "jitter_s": "5"}, "schedule.jitter_s"),
        ({"every": "1h", "jitter_s": 86_401}, "schedule.jitter_s"),
        ({"every": "1h", "spread_s": -1}, "schedule.spread_s"),
        ({"every": "1h", "spread_s": True}, "schedule.spread_s"),
        ({"every": "1h", "spread_s": 3601}, "schedule.spread_s"),
        ({"every": "1h", "pace": 5}, "schedule.pace"),
        ({"every": "1h", "pace": {}}, "schedule.pace.per_second"),
        ({"every": "1h", "pace": {"per_second": 5, "per_minute": 9}}, "schedule.pace.per_minute"),
        ({"every": "1h", "pace": {"per_second": 0}}, "schedule.pace.per_second"),
        ({"every": "1h", "pace": {"per_second": True}}, "schedule.pace.per_second"),
        ({"every": "1h", "pace": {"per_second": 1_001}}, "schedule.pace.per_second"),
        ({"every": "1h", "pace": {"per_second": 5, "tolerance_s": 0}}, "schedule.pace.tolerance_s"),
        ({"every": "1h", "pace": {"per_second": 5, "tolerance_s": 601}}, "schedule.pace.tolerance_s"),
        ({"every": "1h", "pace": {"per_second": 5, "key": ""}}, "schedule.pace.key"),
        ({"every": "1h", "pace": {"per_second": 5, "key": "a" * 65}}, "schedule.pace.key"),
        ({"every": "1h", "pace": {"per_second": 5, "key": "arn:aws:sqs"}}, "schedule.pace.key"),
        ({"every": "1h", "exclude": ["2025-01-01"]}, "schedule.exclude"),
        ({"every": "1h", "exclude": {"day": []}}, "schedule.exclude.day"),
        ({"every": "1h", "exclude": {"dates": "2025-01-01"}}, "schedule.exclude.dates"),
        ({"every": "1h", "exclude": {"dates": ["2025-1-1"]}}, "schedule.exclude.dates.0"),
        ({"every": "1h", "exclude": {"dates": ["2025-02-30"]}}, "schedule.exclude.dates.0"),
        ({"every": "1h", "exclude": {"dates": ["2025-01-01"] * 401}}, "schedule.exclude.dates"),
        ({"every": "1h", "exclude": {"dates": [["2025-01-01"]]}}, "schedule.exclude.dates.0"),
        ({"every": "1h", "exclude": {"calendars": ["a b"]}}, "schedule.exclude.calendars.0"),
    ],
)
def test_the_rest_of_a_schedule(raw: dict[str, object], field: str) -> None:
    error = refusal(**raw)
    assert error.field == field
    assert error.accepted


def test_a_misspelt_zone_gets_a_suggestion() -> None:
    assert "Europe/Berlin" in str(refusal(cron="* * * * *", timezone="europe/berln"))


def test_a_schedule_that_is_no_object() -> None:
    for raw in (None, [], "cron", 5):
        with pytest.raises(InvalidInput):
            parse_schedule(raw, job_key="a", now=0)  # type: ignore[arg-type]
