"""EventBridge's rule for clock changes, around real changes: what the clock skips is lost, what it repeats fires once.

"When time shifts forward in the Spring, if a cron expression falls on a non-existent date and time, your schedule
invocation is skipped. When time shifts backwards in the Fall, your schedule runs only once and does not repeat its
invocation."
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
"""

from __future__ import annotations

import pytest

from common.history.explain import CLOCK_CHANGE, schedule_reasons
from common.preview.preview import next_clock_change, preview
from common.registration.schedule_text import parse_schedule
from common.timing.durations import parse_instant
from common.timing.fires import count_fires, fires
from common.timing.instants import DAY_S, rfc3339
from common.timing.schedule import Schedule
from minute8.cli.clock_picture import clock_pictures
from tests.timing import eventbridge_reference as reference

HOUR_S = 3600

# (zone, "the change in UTC", {expression of Minute8's dialect: fire times within 3 hours of the change})
GAPS = [
    ("America/New_York", "2025-03-09T07:00:00Z", {
        "30 2 * * *": [],
        "0 3 * * *": ["07:00:00"],
        "30 2,3 * * *": ["07:30:00"],
        "30 * * * *": ["04:30:00", "05:30:00", "06:30:00", "07:30:00", "08:30:00", "09:30:00"],
        "0 */2 * * *": ["05:00:00", "08:00:00"],
        "15 30 2 * * *": [],
        "5 0 2-3 * * *": ["07:00:05"],
    }),
    ("Europe/London", "2025-03-30T01:00:00Z", {"30 1 * * *": [], "0 2 * * *": ["01:00:00"]}),
    ("Australia/Lord_Howe", "2025-10-04T15:30:00Z", {"15 2 * * *": [], "30 2 * * *": ["15:30:00"]}),
    ("Pacific/Chatham", "2025-09-27T14:00:00Z", {
        "0 3 * * *": [], "40 2 * * *": ["13:55:00"], "50 3 * * *": ["14:05:00"]}),
    ("Antarctica/Troll", "2025-03-30T01:00:00Z", {"30 1,2 * * *": [], "0 3 * * *": ["01:00:00"]}),
    ("America/Havana", "2025-03-09T05:00:00Z", {"0 0 * * *": [], "0 1 9 3 *": ["05:00:00"]}),
    ("Africa/Cairo", "2025-04-24T22:00:00Z", {"30 0 * * 5": [], "0 1 * * 5": ["22:00:00"]}),
    ("Pacific/Apia", "2011-12-30T10:00:00Z", {"0 12 30 12 *": [], "0 0 31 12 *": ["10:00:00"]}),
]  # fmt: skip
OVERLAPS = [
    ("America/New_York", "2025-11-02T06:00:00Z", {
        "30 1 * * *": ["05:30:00"],
        "30 * * * *": ["03:30:00", "04:30:00", "05:30:00", "07:30:00", "08:30:00"],
        "*/30 1 * * *": ["05:00:00", "05:30:00"],
        "0 1/2 * * *": ["03:00:00", "05:00:00", "08:00:00"],
        "*/30 0 1 * * *": ["05:00:00", "05:00:30"],
    }),
    ("Europe/London", "2025-10-26T01:00:00Z", {"30 1 * * *": ["00:30:00"], "0 2 * * *": ["02:00:00"]}),
    ("Australia/Lord_Howe", "2025-04-05T15:00:00Z", {
        "45 1 * * *": ["14:45:00"], "*/15 1 * * *": ["14:00:00", "14:15:00", "14:30:00", "14:45:00"]}),
    ("Pacific/Chatham", "2025-04-05T14:00:00Z", {"0 3 * * *": ["13:15:00"]}),
    ("Antarctica/Troll", "2025-10-26T01:00:00Z", {
        "30 1 * * *": ["23:30:00"], "*/30 2 * * *": ["00:00:00", "00:30:00"]}),
    ("Africa/Cairo", "2025-10-30T21:00:00Z", {"*/30 23 * * *": ["20:00:00", "20:30:00"]}),
]  # fmt: skip


def by_rule(expression: str, zone: str, dialect: str = "minute8") -> Schedule:
    raw = {"cron": expression, "timezone": zone, "dst": "eventbridge", "dialect": dialect}
    return parse_schedule(raw, job_key="a/b", now=0)


@pytest.mark.parametrize(("zone", "change", "expected"), GAPS + OVERLAPS)
def test_around_a_change(zone: str, change: str, expected: dict[str, list[str]]) -> None:
    at = parse_instant(change, "change")
    start, end = at - 3 * HOUR_S, at + 3 * HOUR_S
    for expression, times in expected.items():
        schedule = by_rule(expression, zone)
        fire_times = list(fires(schedule, start, end))
        assert [rfc3339(fire_at)[11:19] for fire_at in fire_times] == times, expression
        assert count_fires(schedule, start, end) == len(times)
        if len(expression.split()) == 5:
            six_fields = f"{' '.join(expression.split()[:2])} * * ? *"
            minutes = range(start, end, 60)
            if expression.endswith("* * *"):
                assert reference.matching(six_fields, zone, minutes) == fire_times
                assert list(fires(by_rule(six_fields, zone, "eventbridge"), start, end)) == fire_times


def test_a_skipped_time_fires_at_the_next_regular_time() -> None:
    at = parse_instant("2025-03-09T00:00:00Z", "at")
    previewed = preview(
        {"cron": "30 2 * * ? *", "timezone": "America/New_York", "dialect": "eventbridge", "dst": "eventbridge"},
        now=at, count=2,
    )  # fmt: skip
    assert [fire.local for fire in previewed.fires] == [
        "2025-03-10T02:30:00-04:00",
        "2025-03-11T02:30:00-04:00",
    ]
    assert (
        "On 2025-03-09, 02:00 -> 03:00 (1h forward) the time it names is skipped: it does not fire."
        in previewed.warnings
    )


def test_the_words_say_the_rule_where_it_matters() -> None:
    raw = {"cron": "30 2 * * ? *", "dialect": "eventbridge", "dst": "eventbridge"}
    assert preview(raw, now=0).sentence == "At 02:30, in UTC"
    sentence = preview({**raw, "timezone": "Europe/Paris"}, now=0).sentence
    assert sentence == "At 02:30, in Europe/Paris, skipping times that the clock skips and repeating none"


def test_explain_says_clock_change_in_both() -> None:
    schedule = by_rule("30 1,2 * * *", "America/New_York")
    (gap,) = schedule_reasons(schedule, parse_instant("2025-03-09T07:00:00Z", "at"), lambda _: ())
    assert gap.code == CLOCK_CHANGE
    assert "skipped the time that it names; by EventBridge's rule it does not fire then" in gap.text
    assert gap.data["changed_at"] == "2025-03-09T07:00:00Z"
    (overlap,) = schedule_reasons(schedule, parse_instant("2025-11-02T06:30:00Z", "at"), lambda _: ())
    assert overlap.code == CLOCK_CHANGE
    assert overlap.data["first_at"] == "2025-11-02T05:30:00Z"


def test_explain_names_the_year() -> None:
    schedule = by_rule("0 9 1 1 ? 2027", "UTC", "eventbridge")
    (reason,) = schedule_reasons(schedule, parse_instant("2028-01-01T09:00:00Z", "at"), lambda _: ())
    assert reason.data == {"field": "year", "values": [2028]}
    assert list(schedule_reasons(schedule, parse_instant("2027-01-01T09:00:00Z", "at"), lambda _: ())) == []


def test_the_next_clock_change_that_matters_is_known() -> None:
    schedule = by_rule("30 2 * * *", "America/New_York")
    now = parse_instant("2025-01-01T00:00:00Z", "now")
    assert next_clock_change(schedule, now) == (
        parse_instant("2025-03-09T07:00:00Z", "at"),
        "On 2025-03-09, 02:00 -> 03:00 (1h forward) the time it names is skipped: it does not fire.",
    )


def test_the_picture_says_that_it_does_not_fire() -> None:
    now = parse_instant("2025-01-01T00:00:00Z", "now")
    spring, autumn = clock_pictures(by_rule("30 1,2 * * *", "America/New_York"), "America/New_York", now)
    assert spring.verdict == "a time in it does not fire"
    assert not any(cell.instead for cell in spring.cells)
    assert autumn.verdict == "it fires the first time only"


def test_elapsed_time_and_years_of_fires_are_the_same_however_time_is_split() -> None:
    schedule = by_rule("*/20 0-4 * * *", "Europe/Berlin")
    start = parse_instant("2025-01-01T00:00:00Z", "start")
    year = list(fires(schedule, start, start + 366 * DAY_S))
    parts = [
        at for day in range(366) for at in fires(schedule, start + day * DAY_S, start + (day + 1) * DAY_S)
    ]
    assert year == parts
    assert len(year) == 366 * 15 - 3  # 2:00, 2:20 and 2:40 of one day
