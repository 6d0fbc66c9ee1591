"""A group is listed wherever one of its members can fire, in every season and after every clock change."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.timing import slots
from common.timing.fires import fires
from common.timing.groups import group_key
from common.timing.schedule import AtTiming, EveryTiming, Schedule
from common.timing.slots import places, places_of
from common.timing.windows import WINDOW_S
from common.timing.zones import changes, zone_names
from tests.timing.reference import cron, expressions

MAX_PLACES = 16

FIRST_AT, LAST_AT = 1_577_836_800, 4_102_444_800  # 2020 to 2100
ODD = ("Australia/Lord_Howe", "Pacific/Chatham", "Asia/Kathmandu", "Africa/Casablanca", "Antarctica/Troll")
ZONES = st.sampled_from((*ODD, "America/New_York", "Europe/Berlin")) | st.sampled_from(sorted(zone_names()))
NIGHT = " ".join(sorted([*(f"w{144 * day + slot}" for day in range(7) for slot in (39, 45)), "w474"]))


@pytest.mark.parametrize(
    ("group", "where"),
    [
        ("cron|UTC|0-9 3 * * *", "s18"),
        ("cron|America/New_York|0-9 3 * * *", "s42 s48"),
        # In spring the clock skips 2:00 to 3:00 on a Sunday, and what it skips runs at 3:00.
        ("cron|America/New_York|30-39 2 * * *", NIGHT),
        ("cron|Asia/Kathmandu|0-9 3 * * *", "s127 s128"),
        ("cron|UTC|0-9 3 1 1 *", "s18"),
        ("cron|UTC|0-9 3 * * 1", "w594"),
        ("cron|UTC|0-9 3 1 * 1", "s18"),
        ("cron|Asia/Tokyo|0-9 3 * * 1#2,L1", "w540"),
        ("cron|UTC|0-9 3 * * 1-5", "w162 w18 w594 w738 w882"),
        ("cron|UTC|0-9,30-39 0-23 * * *", "t0 t3"),
        ("cron|UTC|0-9,30-39 * * * *", "t0 t3"),
        ("cron|UTC|* 3-5 * * *", "h3 h4 h5"),
        ("cron|UTC|* * * * *", "t0 t1 t2 t3 t4 t5"),
        ("every|600|0", "t0 t1 t2 t3 t4 t5"),
        ("every|7200|4", "s100 s112 s124 s136 s16 s28 s4 s40 s52 s64 s76 s88"),
        ("every|86400|4", "s4"),
        ("every|604800|1000", "w1000"),
        ("every|100000|0", "t0 t1 t2 t3 t4 t5"),
        ("at|1763694600", ""),
    ],
)
def test_where_groups_are_listed(group: str, where: str) -> None:
    assert " ".join(sorted(places(group))) == where


@pytest.mark.parametrize("text", ["lunar|full", "cron|Mars/Olympus|0-9 3 * * *", "every|x|0", ""])
def test_text_that_is_no_group_has_no_places(text: str) -> None:
    with pytest.raises((ValueError, KeyError, OSError)):
        places(text)


@settings(max_examples=80, deadline=None)
@given(ZONES, expressions(), st.integers(FIRST_AT, LAST_AT), st.integers(0, 4_000), st.data())
def test_a_tick_looks_where_each_of_its_fires_is_listed(
    zone: str, text: str, anywhere: int, earlier_s: int, data: st.DataObject
) -> None:
    schedule = cron(text, zone)
    listed = set(places(group_key(schedule)))
    assert 1 <= len(listed) <= MAX_PLACES
    years = changes(zone, anywhere, min(LAST_AT, anywhere + 3 * 366 * 86_400))
    near = data.draw(st.sampled_from([change.at - 7_200 for change in years] or [anywhere]))
    for start in (near, anywhere):
        for at in list(fires(schedule, start, start + 4 * 3_600))[:40]:
            assert listed & set(places_of(at, at + 1))
            # The window of a late tick, or of a catch-up.
            assert listed & set(places_of(at - earlier_s, at + 1))


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5_000) | st.integers(1, 366 * 86_400), st.integers(0, 2**32), st.integers(0, 2**22))
def test_intervals_are_listed_where_they_fire(interval_s: int, anchor_at: int, window: int) -> None:
    schedule = Schedule.of(EveryTiming(interval_s, anchor_at))
    listed = set(places(group_key(schedule)))
    assert 1 <= len(listed) <= MAX_PLACES
    for nth in range(5):
        at = window * WINDOW_S // interval_s * interval_s + anchor_at + nth * interval_s
        assert listed & set(places_of(at, at + 1))


def test_skipped_times_are_listed_where_they_fire() -> None:
    """A skipped time fires after the gap, which may be in a slot that the expression does not name."""
    rng = random.Random(8)
    for zone in rng.sample(sorted(zone_names()), 60):
        for change in changes(zone, 1_750_000_000, 1_790_000_000):
            local = (
                change.at + change.before + rng.randrange(max(60, change.after - change.before))
            ) % 86_400
            schedule = cron(f"{local % 3600 // 60} {local // 3600} * * *", zone)
            listed = places(group_key(schedule))
            for at in fires(schedule, change.at - 90_000, change.at + 90_000):
                assert set(listed) & set(places_of(at, at + 1)), (zone, at)


def test_clock_changes_after_those_that_count_are_repetitions() -> None:
    """Of some zones; all were looked at once."""
    rng = random.Random(8)
    for zone in ["Africa/Casablanca", "Asia/Gaza", *rng.sample(sorted(zone_names()), 3)]:
        offsets, gaps = slots._clock(zone)
        for change in changes(zone, slots._CHANGES_UNTIL, LAST_AT):
            assert change.after in offsets
            assert change.after < change.before or change.at // WINDOW_S % 1008 in {at for at, _ in gaps}


def test_one_off_groups_are_listed_nowhere() -> None:
    assert places(group_key(Schedule.of(AtTiming(1_763_694_659)))) == ()
