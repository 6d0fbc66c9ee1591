"""`minute8 calendars`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Desk

ICALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//EN
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20261224
DTEND;VALUE=DATE:20261227
END:VEVENT
END:VCALENDAR
"""


def test_dates_a_file_and_a_country(desk: Desk, tmp_path: Path) -> None:
    assert (
        desk("calendars", "put", "own", "--date", "2026-12-24", "--date", "2026-12-31").out
        == "own: 2 dates\n"
    )
    file = tmp_path / "closed.ics"
    file.write_text(ICALENDAR)
    stored = desk("calendars", "put", "closed", "--icalendar", str(file), "--json").json
    assert stored["dates"] == ["2026-12-24", "2026-12-25", "2026-12-26"]
    bavarian = desk("calendars", "put", "bavaria", "--country", "DE", "--subdivision", "BY", "--json").json
    assert "2027-01-06" in bavarian["dates"]  # Epiphany, a holiday there
    listed = desk("calendars", "list")
    assert [name in listed.out for name in ("own", "closed", "bavaria")] == [True] * 3
    assert desk("calendars", "show", "own").out == "2026-12-24\n2026-12-31\n"
    desk("calendars", "delete", "own")
    assert desk("calendars", "show", "own").code == 3


def test_an_invalid_calendar_is_refused(desk: Desk, tmp_path: Path) -> None:
    assert desk("calendars", "put", "none").code == 2
    refused = desk("calendars", "put", "none", "--icalendar", str(tmp_path / "missing.ics"))
    assert (refused.code, "missing.ics" in refused.err) == (2, True)
    assert desk("calendars", "put", "none", "--country", "Atlantis").code == 2
