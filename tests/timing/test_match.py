"""The evaluator agrees with croniter.match at each UTC minute, except in the second pass of fixed times."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.timing.fires import fires
from common.timing.zones import Change, changes, zone_names
from tests.timing.reference import (
    FIRST_AT,
    HOUR_S,
    LAST_AT,
    cron,
    expressions,
    matching,
    stated_changes,
    telling_minutes,
)

NAMED = (
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Antarctica/Troll",
    "America/Havana",
    "Asia/Beirut",
    "Africa/Cairo",
    "America/Asuncion",
    "America/Sao_Paulo",
    "Africa/Monrovia",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Asia/Kathmandu",
)
EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "150"))


def _moderate(zone: str) -> list[Change]:
    """Without the skipped days (Apia 2011 and others), on which croniter takes minutes."""
    return [
        change
        for change in changes(zone, FIRST_AT, LAST_AT)
        if abs(change.after - change.before) < 12 * HOUR_S
    ]


@pytest.mark.long
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(NAMED), st.integers(0, 10_000), expressions())
def test_generated_expressions_around_transitions(zone: str, nth: int, expression: str) -> None:
    zone_changes = _moderate(zone)
    _check(zone, zone_changes[nth % len(zone_changes)], expression)


@pytest.mark.long
@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(zone_names())), st.integers(0, 10_000), expressions())
def test_generated_expressions_in_any_zone(zone: str, nth: int, expression: str) -> None:
    zone_changes = _moderate(zone)
    if zone_changes:
        _check(zone, zone_changes[nth % len(zone_changes)], expression)


def _check(zone: str, change: Change, expression: str) -> None:
    start, end = change.at - 6 * HOUR_S, change.at + 6 * HOUR_S
    fire_times = list(fires(cron(expression, zone), start, end))
    minutes = [at for at in telling_minutes(change, fire_times) if start <= at < end]
    assert [at for at in minutes if at in set(fire_times)] == matching(expression, zone, minutes)


EVERY_MINUTE = [
    "30 2 * * *",
    "15,45 1-3 * * *",
    "*/15 * * * *",
    "0 */2 * * *",
    "*/20 1 * * *",
    "5 0-23 * * *",
    "10 0 * * *",
]


@pytest.mark.parametrize("zone", NAMED[:10])
def test_every_minute_around_the_latest_gap_and_overlap(zone: str) -> None:
    zone_changes = _moderate(zone)
    gap = [change for change in zone_changes if change.after > change.before][-1]
    overlap = [change for change in zone_changes if change.after < change.before][-1]
    for change in (gap, overlap):
        for expression in EVERY_MINUTE[change.at // 86_400 % 3 :: 3]:
            start, end = change.at - 2 * HOUR_S, change.at + 2 * HOUR_S
            expected = matching(expression, zone, range(start, end, 60))
            assert list(fires(cron(expression, zone), start, end)) == expected, expression


@pytest.mark.long
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(expressions(), st.integers(0, 67 * 366 * 1440))
def test_dates_agree_far_from_clock_changes(expression: str, minute: int) -> None:
    """Days of month and week, `L`, `W` and `#`, in UTC on days of many years."""
    at = minute * 60
    fire_times = list(fires(cron(expression), at, at + 86_400 * 40))[:3]
    minutes = sorted({at} | {near + 60 * n for near in fire_times for n in (-1440, -60, -1, 0, 1, 60, 1440)})
    minutes = [minute for minute in minutes if minute >= at and (not fire_times or minute <= fire_times[-1])]
    assert [minute for minute in minutes if minute in fire_times] == matching(expression, "UTC", minutes)


@pytest.mark.parametrize(
    "zone", [*NAMED, "Pacific/Apia", "Pacific/Kwajalein", "America/Recife", "Pacific/Galapagos"]
)
def test_every_stated_change_is_found(zone: str) -> None:
    instants = {change.at for change in changes(zone, FIRST_AT, LAST_AT)}
    assert instants >= set(stated_changes(zone))
