"""Groups: due whenever a member is due; and no more often where clock changes are on whole hours."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.registration.cron_text import read_cron
from common.timing.fires import fires
from common.timing.groups import WINDOW_S, entry_weight, group_can_fire, group_key
from common.timing.schedule import AtTiming, EveryTiming, Schedule, Timing
from common.timing.zones import changes
from tests.timing.reference import FIRST_AT, LAST_AT, cron, expressions

WHOLE_HOURS = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Tokyo")
ODD = ("Australia/Lord_Howe", "Pacific/Chatham", "Asia/Kathmandu", "Pacific/Apia", "Africa/Monrovia")


@pytest.mark.parametrize(
    ("schedule", "key"),
    [
        (cron("5,34 3 * * *", "America/New_York"), "cron|America/New_York|0-9,30-39 3 * * *"),
        (cron("*/30 7 6 3 * *"), "cron|UTC|0-9 6 3 * *"),
        (cron("7 */12 * * *"), "cron|UTC|0-9 0,12 * * *|repeats"),
        (cron("7 0,12 * * *"), "cron|UTC|0-9 0,12 * * *"),
        (cron("*/5 * * * *"), "cron|UTC|* * * * *"),
        (cron("30 0-23 L * *"), "cron|UTC|30-39 0-23 L * *"),
        (cron("0 0 15W 1-3 *"), "cron|UTC|0-9 0 15W 1-3 *"),
        (cron("0 0 * * L5"), "cron|UTC|0-9 0 * * L5"),
        (cron("0 0 * * 1#2,1#4"), "cron|UTC|0-9 0 * * 1#2,1#4"),
        (cron("0 0 1-31 * 1-5"), "cron|UTC|0-9 0 1-31 * 1-5"),
        (Schedule.of(EveryTiming(7200, 1_700_000_000)), "every|7200|1"),
        (Schedule.of(EveryTiming(600, 599)), "every|600|0"),
        (Schedule.of(EveryTiming(59, 7)), "every|30|0"),
        (Schedule.of(EveryTiming(900, 899)), "every|900|1"),
        (Schedule.of(EveryTiming(960, 959)), "every|600|0"),
        (Schedule.of(EveryTiming(28_801, 600)), "every|28801|1"),
        (cron("* 5,6,34 3 * * *"), "cron|UTC|0-9,30-39 3 * * *|200"),
        (cron("*/2 */5 7 * * *"), "cron|UTC|* 7 * * *|repeats|60"),
        (cron("0 * * * * *"), "cron|UTC|* * * * *"),
        (Schedule.of(AtTiming(1_763_694_659)), "at|1763694600"),
    ],
)
def test_keys_are_readable(schedule: Schedule, key: str) -> None:
    assert group_key(schedule) == key


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(WHOLE_HOURS + ODD), expressions(), st.booleans(), st.data())
def test_a_group_is_due_whenever_its_member_is(
    zone: str, text: str, by_second: bool, data: st.DataObject
) -> None:
    schedule = cron(f"*/13 {text}" if by_second else text, zone)
    near = data.draw(
        st.sampled_from([change.at for change in changes(zone, FIRST_AT, LAST_AT)] or [1_700_000_000])
    )
    start = near + data.draw(st.integers(-7200, 7200))
    key = group_key(schedule)
    for at in list(fires(schedule, start, start + 7200))[:40]:
        low = at - data.draw(st.integers(0, 700))
        assert group_can_fire(key, low, at + 1)
        assert group_can_fire(key, at // WINDOW_S * WINDOW_S, at // WINDOW_S * WINDOW_S + WINDOW_S)
        assert group_can_fire(key, at, at + 1)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(WHOLE_HOURS), expressions(), st.data())
def test_in_whole_hour_zones_an_aligned_window_is_exact(zone: str, text: str, data: st.DataObject) -> None:
    schedule = cron(text, zone)
    near = data.draw(
        st.sampled_from([change.at for change in changes(zone, FIRST_AT, LAST_AT)] or [1_700_000_000])
    )
    first = (near // WINDOW_S + data.draw(st.integers(-14, 2))) * WINDOW_S
    for start in range(first, first + 12 * WINDOW_S, WINDOW_S):
        fired = any(True for _ in fires(schedule, start, start + WINDOW_S))
        assert group_can_fire(group_key(schedule), start, start + WINDOW_S) == fired


ELAPSED: st.SearchStrategy[Timing] = st.one_of(
    st.builds(
        EveryTiming, st.one_of(st.integers(1, 5000), st.integers(1, 366 * 86_400)), st.integers(0, 2**32)
    ),
    st.builds(AtTiming, st.integers(0, 2**32)),
)


@settings(max_examples=300)
@given(ELAPSED, st.integers(0, 2**32), st.integers(1, 4000))
def test_elapsed_groups_are_due_whenever_a_member_is(timing: Timing, start: int, length: int) -> None:
    schedule = Schedule.of(timing)
    key = group_key(schedule)
    near = timing.at - length // 2 if isinstance(timing, AtTiming) else start
    if any(True for _ in fires(schedule, near, near + length)):
        assert group_can_fire(key, near, near + length)


@given(st.integers(2, 1000), st.integers(0, 2**32), st.integers(0, 2**22))
def test_intervals_of_whole_windows_are_exact(tens: int, anchor_at: int, window: int) -> None:
    schedule = Schedule.of(EveryTiming(tens * WINDOW_S, anchor_at))
    start = window * WINDOW_S
    fired = any(True for _ in fires(schedule, start, start + WINDOW_S))
    assert group_can_fire(group_key(schedule), start, start + WINDOW_S) == fired


@settings(deadline=None)
@given(expressions(), st.sampled_from(["0", "7,8", "*/13", "*"]), st.integers(0, 2**22))
def test_an_entry_weighs_a_tenth_of_what_it_fires_or_more(text: str, seconds: str, window: int) -> None:
    schedule, start = cron(f"{seconds} {text}"), window * WINDOW_S
    weight = entry_weight(group_key(schedule), WINDOW_S)
    assert 60 >= weight >= sum(1 for _ in fires(schedule, start, start + WINDOW_S)) // 10


def test_a_group_of_an_earlier_version_weighs_1() -> None:
    assert (
        entry_weight("cron|UTC|* 7 * * *|repeats", WINDOW_S) == entry_weight("cron|UTC|* * * * *", 6_000) == 1
    )


def test_a_million_hashed_jobs_share_few_groups() -> None:
    keys = {group_key(cron(read_cron("H H * * *", job_key=f"tenant/{n}"))) for n in range(3000)}
    assert len(keys) == 144


def test_an_empty_window_fires_nothing_and_a_strange_key_is_an_error() -> None:
    assert not group_can_fire("every|60|0", 100, 100)
    with pytest.raises(ValueError, match="not a group key"):
        group_can_fire("lunar|1", 0, 600)
