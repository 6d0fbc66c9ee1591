"""`minute8 calendars`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Desk
from tests.worlds import job

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


def test_a_dry_run_shows_the_fire_times_that_a_calendar_changes(desk: Desk) -> None:
    desk("calendars", "put", "closed", "--date", "2026-11-22")
    for name, schedule in {
        "skips": {"cron": "0 4 * * *", "exclude": {"calendars": ["closed"]}},
        "moves": {"cron": "0 9 24 11 *", "exclude": {"calendars": ["closed"]}, "on_excluded": "next"},
        "paused": {"cron": "0 4 * * *", "exclude": {"calendars": ["closed"]}},
        "other": {"cron": "0 4 * * *"},
    }.items():
        desk.office.alice("PUT", f"/v1/jobs/{name}", job() | {"schedule": schedule})
    desk.office.alice("POST", "/v1/jobs/paused/pause")
    same = desk("calendars", "put", "closed", "--date", "2026-11-22", "--dry-run")
    assert (same.code, same.out) == (0, "no fire time changes\n")
    changed = desk("calendars", "put", "closed", "--date", "2026-11-24", "--dry-run")
    assert changed.code == 2
    assert [line.split(" until ")[0] if " until " in line else line for line in changed.out.splitlines()] == [
        "~ moves",
        "    1 fire time",
        "    1 fire time",
        "~ skips",
        "    1 fire time",
        "    1 fire time",
    ]
    skips = desk("calendars", "put", "closed", "--date", "2026-11-24", "--dry-run", "--json").json[1]
    assert (skips["appear"], skips["vanish"]) == (["2026-11-22T04:00:00Z"], ["2026-11-24T04:00:00Z"])
    assert desk("calendars", "show", "closed").out == "2026-11-22\n"


def test_an_invalid_calendar_is_refused(desk: Desk, tmp_path: Path) -> None:
    assert desk("calendars", "put", "none").code == 2
    refused = desk("calendars", "put", "none", "--icalendar", str(tmp_path / "missing.ics"))
    assert (refused.code, "missing.ics" in refused.err) == (2, True)
    assert desk("calendars", "put", "none", "--country", "Atlantis").code == 2
