"""Real clock changes, with the expected fire times in UTC from noon to noon around each."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from common.timing.durations import parse_instant
from common.timing.fires import fires
from common.timing.instants import rfc3339
from tests.timing.reference import HOUR_S, cron

# (zone, "the change in UTC", "local before -> local after", {expression: fire times within 3 hours of the change})
GAPS = [
    ("America/New_York", "2025-03-09T07:00:00Z", "02:00 -> 03:00", {
        "30 2 * * *": ["07:00:00"],
        "0 3 * * *": ["07:00:00"],
        "30 2,3 * * *": ["07:00:00", "07:30:00"],
        "0,30 2-3 * * *": ["07:00:00", "07:30:00"],
        "30 * * * *": ["04:30:00", "05:30:00", "06:30:00", "07:30:00", "08:30:00", "09:30:00"],
        "30 0-23 * * *": ["04:30:00", "05:30:00", "06:30:00", "07:30:00", "08:30:00", "09:30:00"],
        "*/40 2 * * *": ["07:00:00"],
        "0 */2 * * *": ["05:00:00", "07:00:00", "08:00:00"],
        "15 30 2 * * *": ["07:00:00"],
        "*/20 30 2 * * *": ["07:00:00"],
        "5 0 3 * * *": ["07:00:05"],
        "5 0 2-3 * * *": ["07:00:00", "07:00:05"],
    }),
    ("Europe/London", "2025-03-30T01:00:00Z", "01:00 -> 02:00", {
        "30 1 * * *": ["01:00:00"], "0 2 * * *": ["01:00:00"]}),
    ("Australia/Lord_Howe", "2025-10-04T15:30:00Z", "02:00 -> 02:30", {
        "15 2 * * *": ["15:30:00"], "30 2 * * *": ["15:30:00"], "45 2 * * *": ["15:45:00"]}),
    ("Pacific/Chatham", "2025-09-27T14:00:00Z", "02:45 -> 03:45", {
        "0 3 * * *": ["14:00:00"], "40 2 * * *": ["13:55:00"], "50 2 * * *": ["14:00:00"]}),
    ("Antarctica/Troll", "2025-03-30T01:00:00Z", "01:00 -> 03:00", {"30 1,2 * * *": ["01:00:00"]}),
    ("America/Havana", "2025-03-09T05:00:00Z", "00:00 -> 01:00", {
        "0 0 * * *": ["05:00:00"], "0 0 9 3 *": ["05:00:00"]}),
    ("Asia/Beirut", "2025-03-29T22:00:00Z", "00:00 -> 01:00", {"30 0 * * *": ["22:00:00"], "0 0 29 3 *": []}),
    ("Africa/Cairo", "2025-04-24T22:00:00Z", "00:00 -> 01:00", {"30 0 * * 5": ["22:00:00"], "30 0 * * 4": []}),
    ("America/Asuncion", "2023-10-01T04:00:00Z", "00:00 -> 01:00", {"0 0 1 * *": ["04:00:00"]}),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z", "00:00 -> 01:00", {"15 0 * * *": ["03:00:00"]}),
]  # fmt: skip
OVERLAPS = [
    ("America/New_York", "2025-11-02T06:00:00Z", "02:00 -> 01:00", {
        "30 1 * * *": ["05:30:00"],
        "0,30 1 * * *": ["05:00:00", "05:30:00"],
        "30 1-2 * * *": ["05:30:00", "07:30:00"],
        "30 0-23 * * *": ["03:30:00", "04:30:00", "05:30:00", "07:30:00", "08:30:00"],
        "30 * * * *": ["03:30:00", "04:30:00", "05:30:00", "06:30:00", "07:30:00", "08:30:00"],
        "30 */1 * * *": ["03:30:00", "04:30:00", "05:30:00", "06:30:00", "07:30:00", "08:30:00"],
        "*/30 1 * * *": ["05:00:00", "05:30:00", "06:00:00", "06:30:00"],
        "10/30 1 * * *": ["05:10:00", "05:40:00", "06:10:00", "06:40:00"],
        "10-59/30 1 * * *": ["05:10:00", "05:40:00"],
        "0 1/2 * * *": ["03:00:00", "05:00:00", "06:00:00", "08:00:00"],
        "*/30 0 1 * * *": ["05:00:00", "05:00:30"],
        "*/30 0/45 1 * * *": ["05:00:00", "05:00:30", "05:45:00", "05:45:30", "06:00:00", "06:00:30", "06:45:00",
                              "06:45:30"],
    }),
    ("Europe/London", "2025-10-26T01:00:00Z", "02:00 -> 01:00", {
        "30 1 * * *": ["00:30:00"], "0 2 * * *": ["02:00:00"]}),
    ("Australia/Lord_Howe", "2025-04-05T15:00:00Z", "02:00 -> 01:30", {
        "45 1 * * *": ["14:45:00"],
        "*/15 1 * * *": ["14:00:00", "14:15:00", "14:30:00", "14:45:00", "15:00:00", "15:15:00"]}),
    ("Pacific/Chatham", "2025-04-05T14:00:00Z", "03:45 -> 02:45", {"0 3 * * *": ["13:15:00"]}),
    ("Antarctica/Troll", "2025-10-26T01:00:00Z", "03:00 -> 01:00", {
        "30 1 * * *": ["23:30:00"], "30 2 * * *": ["00:30:00"], "30 3 * * *": ["03:30:00"]}),
    ("America/Havana", "2025-11-02T05:00:00Z", "01:00 -> 00:00", {"30 0 * * *": ["04:30:00"]}),
    ("Asia/Beirut", "2025-10-25T21:00:00Z", "00:00 -> 23:00", {
        "30 23 25 10 *": ["20:30:00"], "0 0 * * *": ["22:00:00"]}),
    ("Africa/Cairo", "2025-10-30T21:00:00Z", "00:00 -> 23:00", {"30 23 * * *": ["20:30:00"]}),
    ("America/Asuncion", "2024-03-24T03:00:00Z", "00:00 -> 23:00", {"30 23 * * 6": ["02:30:00"]}),
    ("America/Sao_Paulo", "2018-02-18T02:00:00Z", "00:00 -> 23:00", {"30 23 17 2 *": ["01:30:00"]}),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "change", "clock", "expected"), GAPS + OVERLAPS)
def test_around_a_change(zone: str, change: str, clock: str, expected: dict[str, list[str]]) -> None:
    at = parse_instant(change, "change")
    for expression, times in expected.items():
        fire_times = [
            rfc3339(fire) for fire in fires(cron(expression, zone), at - 3 * HOUR_S, at + 3 * HOUR_S)
        ]
        assert [text[11:19] for text in fire_times] == times, f"{expression} in {zone}, {clock}"


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("0 12 * * *", ["2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]),
        ("0 12 30 12 *", ["2011-12-30T10:00:00Z"]),
        ("0 12 29 12 *", ["2011-12-29T22:00:00Z"]),
        ("0 12 * * 5", ["2011-12-30T10:00:00Z"]),  # the skipped Friday
        ("0 0,12 * * *", ["2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]),
        ("0 */6 30 * *", ["2011-12-30T10:00:00Z"]),
        ("0 * 30 * *", []),  # names no hour: no fire is made up for
    ],
)
def test_apia_crosses_the_date_line(expression: str, times: list[str]) -> None:
    """Samoa went from Thursday 29 December 2011, 24:00 at UTC-10, to Saturday 31 December, 0:00 at UTC+14."""
    start, end = parse_instant("2011-12-29T21:00:00Z", "from"), parse_instant("2011-12-31T09:59:00Z", "to")
    assert [rfc3339(at) for at in fires(cron(expression, "Pacific/Apia"), start, end)] == times


def test_an_exclusion_of_the_missing_day_takes_nothing_from_the_next() -> None:
    """The fire for the skipped 30 December is on the 31st, so excluding the 31st excludes it."""
    start, end = parse_instant("2011-12-30T09:00:00Z", "from"), parse_instant("2011-12-30T11:00:00Z", "to")
    owed = [parse_instant("2011-12-30T10:00:00Z", "owed")]
    assert (
        list(fires(cron("0 12 30 12 *", "Pacific/Apia", exclude_dates=("2011-12-30",)), start, end)) == owed
    )
    assert list(fires(cron("0 12 30 12 *", "Pacific/Apia", exclude_dates=("2011-12-31",)), start, end)) == []


@pytest.mark.parametrize(
    ("zone", "local", "instant"),
    [
        (
            "America/New_York",
            "2025-03-09T02:30:00",
            "2025-03-09T07:00:00Z",
        ),  # skipped: the first instant after the gap
        ("America/New_York", "2025-11-02T01:30:00", "2025-11-02T05:30:00Z"),  # repeated: the first pass
        ("America/New_York", "2025-11-02T02:00:00", "2025-11-02T07:00:00Z"),
        ("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z"),
        ("Pacific/Kiritimati", "2025-01-01T00:00:00", "2024-12-31T10:00:00Z"),
        ("Asia/Kathmandu", "2025-01-01T00:00", "2024-12-31T18:15:00Z"),
    ],
)
def test_a_local_time_becomes_an_instant(zone: str, local: str, instant: str) -> None:
    assert rfc3339(parse_instant(local, "at", zone)) == instant


def test_a_gap_that_ends_inside_a_minute_is_owed_in_the_next() -> None:
    """Monrovia, 1972-01-07: 0:00:00 became 0:44:30, at 00:44:30 UTC. Five fields fire on whole minutes, at 00:45."""
    gap_end = parse_instant("1972-01-07T00:44:30Z", "gap")
    for start in (gap_end - 5, gap_end, gap_end + 2, gap_end + 29, gap_end + 30):
        assert list(fires(cron("0 0 * * *", "Africa/Monrovia"), start, start + 50)) == [gap_end + 30]
    assert list(fires(cron("0 0 0 * * *", "Africa/Monrovia"), gap_end - 5, gap_end + 50)) == [gap_end]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Midway", "Europe/Berlin"])
@pytest.mark.parametrize("month", range(1, 13))
def test_no_edge_of_a_month_is_lost_over_the_years(zone: str, month: int) -> None:
    """Long walks skip spans without the month, but not their first and last minutes."""
    start, end = parse_instant("2000-01-15T00:00:00Z", "from"), parse_instant("2040-01-15T00:00:00Z", "to")
    for expression in (f"0 0 1 {month} *", f"59 23 L {month} *"):
        assert len(list(fires(cron(expression, zone), start, end))) == 40


def test_the_table_uses_the_clock_that_was() -> None:
    """The changes above, computed by the standard library."""
    from zoneinfo import ZoneInfo

    for zone, change, clock, _expected in GAPS + OVERLAPS:
        at = parse_instant(change, "change")
        before = datetime.fromtimestamp(at - 60, UTC).astimezone(ZoneInfo(zone))
        after = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone))
        minute_before = int(clock[:2]) * 60 + int(clock[3:5]) - 1
        assert (before.hour * 60 + before.minute) == minute_before % 1440, zone
        assert f"{after:%H:%M}" == clock[-5:], zone
