"""Reasons why a schedule does not fire: there is one exactly if it does not, and it names the right thing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from common.history import expected, explain
from common.history.explain import schedule_reasons
from common.timing.excluded_days import Dates, calendar_days
from common.timing.fires import fires
from common.timing.schedule import AtTiming, CronTiming, EveryTiming, Schedule
from common.timing.zones import changes
from tests.worlds import at

ZONES = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu")
MINUTES, HOURS = ("0", "30", "*", "*/20", "15,45"), ("*", "1-3", "2", "*/2", "0,1")
DAYS, WEEKDAYS = ("*", "25", "L", "15W", "1-7"), ("*", "0", "1-5", "0#1", "L0")


# The dates around the clock changes of 2026.
CHANGES = [f"2026-{day}" for day in ("03-09", "03-29", "04-05", "10-04", "10-25", "11-01", "11-02", "12-24")]


def dates_of(name: str) -> Dates:
    return Dates({"feasts": ["2026-12-24"], "changes": CHANGES}[name])


def codes(schedule: Schedule, instant: str) -> list[tuple[str, str]]:
    return [
        (reason.code, str(reason.data.get("field", "")))
        for reason in schedule_reasons(schedule, at(instant), dates_of)
    ]


@pytest.mark.long
def test_there_is_a_reason_exactly_if_it_does_not_fire() -> None:
    rng, fired = random.Random(8), 0
    for _ in range(4_000):
        zone = rng.choice(ZONES)
        expression = " ".join(
            (rng.choice(MINUTES), rng.choice(HOURS), rng.choice(DAYS), "*", rng.choice(WEEKDAYS))
        )
        if rng.random() < 0.2:
            expression = f"{rng.choice(('0', '*/30', '15'))} {expression}"
        schedule = Schedule.of(
            CronTiming(expression, zone),
            exclude_dates=("2026-10-26", "2026-03-08", "2026-10-31"),
            calendars=("feasts",),
            include_calendars=rng.choice(((), ("changes",))),
            on_excluded=rng.choice(("skip", "next", "previous")),
        )
        moments = [
            change.at for change in changes(zone, at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"))
        ]
        around = rng.choice(moments or [at("2026-12-24T12:00:00Z")])
        instant = around + rng.randrange(-180, 180) * 60 + rng.choice((0, 0, 15, 30))
        excluded = calendar_days(schedule, dates_of)
        does = any(True for _ in fires(schedule, instant, instant + 1, excluded=excluded))
        fired += does
        assert does is not any(True for _ in schedule_reasons(schedule, instant, dates_of)), (
            schedule,
            instant,
        )
    assert fired > 40


@pytest.mark.parametrize(
    ("expression", "instant", "expected"),
    [
        ("30 2 * * *", "2026-11-21T02:30:00Z", []),
        ("30 2 * * *", "2026-11-21T02:30:07Z", [("not_matched", "second")]),
        (
            "30 2 * * 1-5",
            "2026-11-21T03:31:00Z",
            [("not_matched", name) for name in ("minute", "hour", "weekday")],
        ),
        ("0 0 1 1 *", "2026-11-21T00:00:00Z", [("not_matched", "month"), ("not_matched", "day")]),
        ("0 0 1 * 1", "2026-11-21T00:00:00Z", [("not_matched", "day")]),
    ],
)
def test_each_field_that_does_not_match_is_named(
    expression: str, instant: str, expected: list[tuple[str, str]]
) -> None:
    assert codes(Schedule.of(CronTiming(expression, "UTC")), instant) == expected


def test_clock_changes_dates_and_bounds() -> None:
    paris = Schedule.of(CronTiming("30 2 * * *", "Europe/Paris"))
    assert codes(paris, "2026-10-25T00:30:00Z") == []
    assert codes(paris, "2026-10-25T01:30:00Z") == [("clock_change", "")]
    (reason,) = schedule_reasons(paris, at("2026-10-25T01:30:00Z"), dates_of)
    assert reason.data == {"first_at": "2026-10-25T00:30:00Z", "changed_at": "2026-10-25T01:00:00Z"}
    assert codes(paris, "2026-03-29T01:00:00Z") == []  # the first instant after the gap
    hourly = CronTiming("0 * * * *", "UTC")
    dated = Schedule.of(
        hourly, exclude_dates=("2026-11-21",), calendars=("feasts",), end_at=at("2027-01-01T00:00:00Z")
    )
    assert codes(dated, "2026-11-21T03:00:00Z") == [("excluded_date", "")]
    assert codes(dated, "2026-12-24T03:00:00Z") == [("calendar", "")]
    assert codes(dated, "2027-01-01T00:00:00Z") == [("bounds", "")]
    assert codes(Schedule.of(hourly, start_at=at("2027-01-01T00:00:00Z")), "2026-11-21T03:00:00Z") == [
        ("bounds", "")
    ]


def test_intervals_and_one_offs() -> None:
    every = Schedule.of(EveryTiming(600, at("2026-11-21T00:00:05Z")))
    assert codes(every, "2026-11-21T03:10:05Z") == []
    (reason,) = schedule_reasons(every, at("2026-11-21T03:12:00Z"), dates_of)
    assert reason.data["values"] == ["2026-11-21T03:10:05Z", "2026-11-21T03:20:05Z"]
    once = Schedule.of(AtTiming(at("2026-11-21T03:00:00Z")))
    assert codes(once, "2026-11-21T03:00:00Z") == []
    assert codes(once, "2026-11-21T03:00:01Z") == [("not_matched", "at")]


CODES = {
    explain.NOT_MATCHED: "the schedule does not name this time; `field` says which part",
    explain.CLOCK_CHANGE: (
        "the clock shows the time twice, and it fires the first time; or skips it, by EventBridge's rule"
    ),
    explain.EXCLUDED_DATE: "the schedule excludes the date",
    explain.CALENDAR: "a calendar that the job names excludes the date",
    explain.BOUNDS: "it is before `start_at`, or at or after `end_at`",
    explain.PAUSED: "the job was paused; by whom, when, and the note",
    explain.NO_JOB: "the job did not exist",
    explain.NOT_YET: "the job was created, resumed or rescheduled within this second; it fires from the next one on",
    explain.UNKNOWN: "what the job's times were is not known",
    explain.SUSPENDED: "the platform has suspended the tenant now",
    explain.TARGET_NOT_ALLOWED: "the platform does not allow the tenant the job's target now",
    explain.BLOCKED: "the platform blocks the job's target now, for all tenants",
}


STATUSES = {
    expected.ON_TIME: "it started at most 10 s after it was due",
    expected.LATE: "it started later than that, by `late_s`",
    expected.RUNNING: "it runs, waits for a callback of its target, or for its next attempt",
    expected.QUEUED: "it waits for the job's previous run to end, or for a place of its concurrency key",
    expected.SKIPPED: "it did not run; `reason` says why",
    expected.MISSED: "no tick planned it in time",
    expected.CANCELLED: "a person or program cancelled it",
    expected.TO_COME: "it is not due yet, or was due at most 10 s ago and nothing is recorded yet",
    expected.OVERDUE: "it was due `late_s` ago and has not started",
    expected.NO_RECORD: "it was planned and due over an hour ago, and nothing is recorded: this must never be",
    expected.NOT_KEPT: "it is older than runs are kept",
}


def test_codes_and_statuses_are_documented() -> None:
    assert tuple(STATUSES) == expected.STATUSES
    docs = Path(__file__).resolve().parents[2] / "docs"
    for page, meanings in (("why-nothing.md", CODES), ("insight.md", STATUSES)):
        text = (docs / page).read_text()
        for name, meaning in meanings.items():
            assert f"| `{name}` | {meaning} |" in text
