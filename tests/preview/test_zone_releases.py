"""What a tzdata update moved: the zones of earlier releases beside the present ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from common.errors import InvalidInput
from common.preview import zone_releases
from common.preview.zone_releases import FILE, Moved, check_release, moved, releases
from common.timing.instants import DAY_S
from common.timing.schedule import CronTiming, EveryTiming, Schedule
from common.timing.zones import TZDATA_VERSION, changes, offset_at
from tests.worlds import at

NOW = at("2026-11-22T03:00:00Z")
HOUR = 3_600


@pytest.fixture
def winter_all_year(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier release in which Paris stayed at its winter time."""
    stored = {"current": "x", "releases": {"2001a": {"Europe/Paris": [[NOW - 40 * DAY_S, HOUR]]}}}
    monkeypatch.setattr(zone_releases, "_file", lambda: stored)
    zone_releases._moved.cache_clear()


def of(expression: str, zone: str = "Europe/Paris") -> Moved | None:
    return moved(Schedule.of(CronTiming(expression, zone)), "2001a", NOW)


def test_a_job_is_moved_if_it_fires_while_the_offsets_differ(winter_all_year: None) -> None:
    summer = at("2027-03-28T01:00:00Z")
    assert of("30 9 * * *") == Moved(at("2027-03-28T08:30:00Z"), at("2027-03-28T07:30:00Z"))
    assert of("0 9 1 1 *") is None  # in winter
    assert of("0 * * * *") is None  # each hour, in either release
    assert of("30 9 * * *", "Europe/Berlin") is None
    job = of("30 2 * * *")  # the gap: it fires at its end now, and was to fire half an hour later
    assert job == Moved(summer + HOUR // 2, summer)
    assert moved(Schedule.of(EveryTiming(60, 0)), "2001a", NOW) is None


def test_the_file_is_of_the_installed_release() -> None:
    current = json.loads(FILE.read_text())["current"]
    assert current == TZDATA_VERSION, (
        "after a tzdata update: python -m scripts.former_zones (its docstring says how)"
    )
    assert check_release(None) == releases()[0]
    with pytest.raises(InvalidInput, match="2026"):
        check_release("1999z")


def test_the_kept_zones_differ_from_the_present_rules() -> None:
    for release in releases():
        for zone, offsets in zone_releases._file()["releases"][release].items():
            assert datetime.fromtimestamp(offsets[0][0], UTC).year >= 2026
            first, last = offsets[0][0], offsets[0][0] + 4 * 366 * DAY_S
            present = [[first, offset_at(zone, first)]]
            present += [[change.at, change.after] for change in changes(zone, first + 1, last)]
            assert [offset for offset in offsets if offset[0] < last] != present
