"""The sources of a calendar's dates, and their refusals, in bounded time."""

from __future__ import annotations

import subprocess
import time
from datetime import date, timedelta
from typing import Any

import pytest

from common.errors import InvalidInput
from minute8.cli.calendar_sources import resolved
from minute8.cli.icalendar_dates import all_day_dates
from tests.worlds import at

NOW = at("2026-11-21T03:12:00Z")


def ics(*events: str) -> str:
    """iCalendar text of events; each is given by its lines without UID."""
    body = "".join(f"BEGIN:VEVENT\r\nUID:{n}\r\n{event}\r\nEND:VEVENT\r\n" for n, event in enumerate(events))
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:test\r\n{body}END:VCALENDAR\r\n"


def dates(*events: str) -> list[str]:
    return list(resolved({"icalendar": ics(*(event.replace("|", "\r\n") for event in events))}, NOW)[0])


def test_own_dates_are_stored_once_each_and_ascending() -> None:
    read_dates, source = resolved({"dates": ["2027-01-01", "2026-12-24", "2027-01-01"]}, NOW)
    assert read_dates == ("2026-12-24", "2027-01-01")
    assert source == {"kind": "dates"}


def test_dates_that_a_client_resolved_say_where_they_are_from() -> None:
    source = {"kind": "holidays", "country": "DE", "from_year": 2026}
    assert resolved({"dates": ["2026-12-25"], "source": source}, NOW)[1] == source


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ("DTSTART;VALUE=DATE:20261224", ["2026-12-24"]),
        ("DTSTART;VALUE=DATE:20261224|DTEND;VALUE=DATE:20261227", ["2026-12-24", "2026-12-25", "2026-12-26"]),
        ("DTSTART;VALUE=DATE:20261224|DTEND;VALUE=DATE:20261224", ["2026-12-24"]),
        ("DTSTART;VALUE=DATE:20261224|DURATION:P2D", ["2026-12-24", "2026-12-25"]),
        ("DTSTART;VALUE=DATE:20251230|DTEND;VALUE=DATE:20260103", ["2026-01-01", "2026-01-02"]),
        ("DTSTART;VALUE=DATE:20200704|RRULE:FREQ=YEARLY", [f"{year}-07-04" for year in range(2026, 2032)]),
        ("DTSTART;VALUE=DATE:20270101|RRULE:FREQ=YEARLY;COUNT=2", ["2027-01-01", "2028-01-01"]),
        ("DTSTART;VALUE=DATE:20270101|RRULE:FREQ=YEARLY;UNTIL=20280101", ["2027-01-01", "2028-01-01"]),
        ("DTSTART;VALUE=DATE:20270101|RRULE:FREQ=YEARLY;UNTIL=20280101T000000Z", ["2027-01-01", "2028-01-01"]),
        (
            "DTSTART;VALUE=DATE:20270118|RRULE:FREQ=YEARLY;BYMONTH=1;BYDAY=3MO;COUNT=3",
            ["2027-01-18", "2028-01-17", "2029-01-15"],
        ),
        (
            "DTSTART;VALUE=DATE:20270104|RRULE:FREQ=WEEKLY;COUNT=4|EXDATE;VALUE=DATE:20270111,20270118",
            ["2027-01-04", "2027-01-25"],
        ),
        ("DTSTART;VALUE=DATE:20270104|RDATE;VALUE=DATE:20270204,20270304", ["2027-01-04", "2027-02-04", "2027-03-04"]),
        ("DTSTART;VALUE=DATE:20270104|STATUS:CANCELLED", []),
        ("DTSTART:20270104T090000Z|DTEND:20270104T100000Z", []),
    ],
)  # fmt: skip
def test_all_day_events_become_dates(event: str, expected: list[str]) -> None:
    assert dates(event) == expected


def test_a_moved_occurrence_has_its_new_date() -> None:
    weekly = "DTSTART;VALUE=DATE:20270104\r\nRRULE:FREQ=WEEKLY;COUNT=2"
    moved = "UID:0\r\nRECURRENCE-ID;VALUE=DATE:20270111\r\nDTSTART;VALUE=DATE:20270113"
    text = ics(weekly, moved).replace("UID:1\r\n", "")
    assert resolved({"icalendar": text}, NOW)[0] == ("2027-01-04", "2027-01-13")


def test_timed_events_are_passed_over_and_counted() -> None:
    _, source = resolved({"icalendar": ics("DTSTART;VALUE=DATE:20261224", "DTSTART:20261224T090000Z")}, NOW)
    assert (source["events"], source["timed_events_ignored"]) == (1, 1)


def test_a_countrys_holidays_for_this_year_and_five_more() -> None:
    read_dates, source = resolved({"country": "de", "subdivision": "BY"}, NOW)
    assert {"2026-01-06", "2026-12-25", "2031-10-03"} <= set(read_dates)
    assert (read_dates[0][:4], read_dates[-1][:4]) == ("2026", "2031")
    assert (source["country"], source["subdivision"], source["to_year"]) == ("DE", "BY", 2031)
    assert (
        "2026-01-06" not in resolved({"country": "DE", "subdivision": "BE"}, NOW)[0]
    )  # Epiphany: not in Berlin
    assert {day[:4] for day in resolved({"country": "US", "years": [2027, 2026]}, NOW)[0]} == {"2026", "2027"}


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (None, "calendar"),
        ([], "calendar"),
        ({}, "calendar"),
        ({"dates": [], "country": "DE"}, "calendar"),
        ({"dates": ["2026-12-24"], "country": None, "colour": "red"}, "calendar"),
        ({"dates": "2026-12-24"}, "dates"),
        ({"dates": ["2026-02-30"]}, "dates.0"),
        ({"dates": ["2026-12-24", "２０２６-12-24"]}, "dates.1"),
        ({"dates": ["2026-12-24", 5]}, "dates.1"),
        ({"dates": ["2026-12-24"] * 2_501}, "dates"),
        ({"dates": [], "source": {"kind": ["x"]}}, "source"),
        ({"dates": [], "source": {"kind": "x" * 501}}, "source"),
        ({"country": "XX"}, "country"),
        ({"country": "../etc"}, "country"),
        ({"country": 49}, "country"),
        ({"country": "DE", "subdivision": "CA"}, "subdivision"),
        ({"country": "DE", "years": [2026, 2028]}, "years"),
        ({"country": "DE", "years": [10**30]}, "years"),
        ({"country": "DE", "years": [True]}, "years"),
        ({"country": "DE", "years": "2026"}, "years"),
        ({"icalendar": 5}, "icalendar"),
        ({"icalendar": ""}, "icalendar"),
        ({"icalendar": "x"}, "icalendar"),
        ({"icalendar": "\0\ud800"}, "icalendar"),
        ({"icalendar": "x" * 300_000}, "icalendar"),
        ({"icalendar": ics("SUMMARY:no start")}, "icalendar"),
        ({"icalendar": ics("DTSTART;VALUE=DATE:20261399")}, "icalendar"),
        ({"icalendar": ics("DTSTART;VALUE=DATE:20261224\r\nRRULE:FREQ=SECONDLY")}, "icalendar"),
        ({"icalendar": ics("DTSTART;VALUE=DATE:20261224\r\nRRULE:FREQ=FOO")}, "icalendar"),
        ({"icalendar": ics("DTSTART;VALUE=DATE:20260101\r\nDTEND;VALUE=DATE:20990101")}, "icalendar"),
        ({"icalendar": "BEGIN:VCALENDAR\r\n" * 9_000}, "icalendar"),
        ({"icalendar": ics(*["DTSTART;VALUE=DATE:20261224"] * 2_001)}, "icalendar"),
    ],
)
def test_an_unreadable_source_is_refused_by_its_field(raw: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        resolved(raw, NOW)
    assert refused.value.field == field


@pytest.mark.parametrize("took_s", [4.999, 5.0, 5.001])
def test_icalendar_text_is_read_for_five_seconds(monkeypatch: pytest.MonkeyPatch, took_s: float) -> None:
    run = subprocess.run

    def takes_its_time(command: list[str], *, timeout: float, **fields: Any) -> Any:
        if took_s > timeout:
            raise subprocess.TimeoutExpired(command, timeout)
        return run(command, **fields)

    monkeypatch.setattr(subprocess, "run", takes_its_time)
    text = ics("DTSTART;VALUE=DATE:20261224")
    if took_s <= 5:
        assert all_day_dates(text, date(2026, 1, 1), date(2026, 12, 31)).dates == {date(2026, 12, 24)}
        return
    with pytest.raises(InvalidInput, match="too long to follow") as refused:
        all_day_dates(text, date(2026, 1, 1), date(2026, 12, 31))
    assert refused.value.accepted == "what can be read in 5 s"


@pytest.mark.long
def test_a_rule_that_takes_hours_is_refused_when_its_time_is_up() -> None:
    never = "DTSTART;VALUE=DATE:20260101\r\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"
    began = time.monotonic()
    with pytest.raises(InvalidInput, match="too long to follow"):
        all_day_dates(ics(*[never] * 500), date(2026, 1, 1), date(2031, 12, 31), timeout_s=1)
    assert time.monotonic() - began < 30


def test_every_day_of_the_horizon_fits() -> None:
    read_dates = dates("DTSTART;VALUE=DATE:20000101|RRULE:FREQ=DAILY")
    days = (date(2031, 12, 31) - date(2026, 1, 1)) // timedelta(days=1) + 1
    assert len(read_dates) == days == 2_191
