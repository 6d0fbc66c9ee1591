"""`minute8 preview` with calendars from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Desk

ICALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:x
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20261225
SUMMARY:Christmas
END:VEVENT
END:VCALENDAR
"""


@pytest.mark.parametrize(
    "text", ["2026-12-25\n2026-12-26\n", ICALENDAR, json.dumps({"name": "x", "dates": ["2026-12-25"]})]
)
def test_calendars_come_from_files(desk: Desk, tmp_path: Path, text: str) -> None:
    (tmp_path / "feasts").write_text(text)
    options = ("--from", "2026-12-01T00:00:00Z", "-n", "1", "--exclude-calendar", str(tmp_path / "feasts"))
    shown = desk("preview", "0 9 25 12 *", "--on-excluded", "previous", *options)
    assert (shown.code, "2026-12-24T09:00:00Z" in shown.out) == (0, True), shown
    skipped = desk("preview", "0 9 25 12 *", *options)
    assert "2027-12-25T09:00:00Z" in skipped.out


def test_only_the_dates_of_a_file(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "days").write_text("2026-12-02 2026-12-09")
    shown = desk(
        *("preview", "0 9 * * *", "--from", "2026-12-01T00:00:00Z", "--json"),
        *("--include-calendar", str(tmp_path / "days"), "--exclude-date", "2026-12-09"),
    )
    assert [fire["utc"] for fire in json.loads(shown.out)["fires"]] == ["2026-12-02T09:00:00Z"]


def test_a_file_that_is_no_calendar_is_refused(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("tomorrow")
    for path, part in (("odd", "'tomorrow'"), ("gone", "cannot be read")):
        shown = desk("preview", "0 9 * * *", "--include-calendar", str(tmp_path / path))
        assert (shown.code, part in shown.err) == (2, True), shown


@pytest.mark.parametrize(
    ("cron", "replacement"),
    [
        ("0 */24 * * *", "0 0 * * *"),
        ("*/60 * * * *", "0 * * * *"),
        ("0 0 1 */12 *", "0 0 1 1 *"),
        ("5/90 * * * *", "5 * * * *"),
    ],
)
def test_a_step_that_fires_once_is_refused_with_what_cron_makes_of_it(
    desk: Desk, cron: str, replacement: str
) -> None:
    assert f"accepted: what cron makes of it: {replacement}\n" in desk("preview", cron).err
