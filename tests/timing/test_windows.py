"""Windows: half-open, in order, and any split of a span gives the same fires as the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.timing.cron import compile_cron
from common.timing.fires import count_fires, cron_fires, due_at, fires, local_date, newest_fires, next_fires
from common.timing.schedule import AtTiming, EveryTiming, Schedule
from common.timing.zones import changes, iso_date
from tests.timing.reference import FIRST_AT, HOUR_S, LAST_AT, cron, expressions

ZONES = (
    "UTC",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Monrovia",
    "America/Sao_Paulo",
)
NEAR_A_CHANGE = st.sampled_from(ZONES).flatmap(
    lambda zone: st.tuples(
        st.just(zone),
        st.sampled_from([change.at for change in changes(zone, FIRST_AT, LAST_AT)] or [1_700_000_000]),
    )
)
CRONS = st.one_of(
    expressions(), st.builds(lambda text, n: f"*/{n} {text}", expressions(), st.sampled_from([7, 20, 59]))
)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(NEAR_A_CHANGE, CRONS, st.integers(1, 48 * HOUR_S), st.data())
def test_any_split_gives_the_whole(
    place: tuple[str, int], expression: str, length: int, data: st.DataObject
) -> None:
    zone, change_at = place
    start = change_at - data.draw(st.integers(0, length))
    end = start + length
    schedule = cron(expression, zone)
    all_fires = list(fires(schedule, start, end))
    cuts = data.draw(st.lists(st.integers(start, end), max_size=8))
    edges = sorted({start, end, change_at if start < change_at < end else start, *cuts})
    assert [at for low, high in pairwise(edges) for at in fires(schedule, low, high)] == all_fires
    assert all(start <= at < end for at in all_fires)
    assert all(earlier < later for earlier, later in pairwise(all_fires))


@settings(max_examples=50, deadline=None)
@given(NEAR_A_CHANGE, CRONS, st.integers(0, 20 * 86_400))
def test_ten_minute_windows_equal_the_long_walk(place: tuple[str, int], expression: str, before: int) -> None:
    zone, change_at = place
    schedule = cron(expression, zone)
    start = (change_at - before) // 600 * 600
    end = start + 24 * HOUR_S
    windowed = [at for low in range(start, end, 600) for at in fires(schedule, low, low + 600)]
    assert windowed == list(fires(schedule, start, end))


@given(st.integers(1, 366 * 86_400), st.integers(0, 2**32), st.integers(0, 2**32), st.integers(1, 50))
def test_every_keeps_its_phase(interval_s: int, anchor_at: int, start: int, count: int) -> None:
    end = start + interval_s * count
    fire_times = list(fires(Schedule.of(EveryTiming(interval_s, anchor_at)), start, end))
    assert len(fire_times) == count
    assert all((at - anchor_at) % interval_s == 0 for at in fire_times)
    assert all(later - earlier == interval_s for earlier, later in pairwise(fire_times))


def test_every_does_not_drift_over_years_nor_at_a_clock_change() -> None:
    schedule = Schedule.of(EveryTiming(5_400, 1_700_000_000))
    assert next_fires(schedule, 1_700_000_000 + 10 * 365 * 86_400, 1) == [1_700_000_000 + 5_400 * 58_400]


def test_at_fires_once_and_bounds_are_half_open() -> None:
    assert list(fires(Schedule.of(AtTiming(1_000)), 1_000, 1_001)) == [1_000]
    assert list(fires(Schedule.of(AtTiming(1_000)), 999, 1_000)) == []
    bounded = cron("* * * * *", start_at=120, end_at=240)
    assert list(fires(bounded, 0, 600)) == [120, 180]


def test_an_excluded_date_is_local() -> None:
    schedule = cron("0 23 * * *", "America/New_York", exclude_dates=("2025-12-24",))
    christmas_eve_11pm = 1_766_635_200  # 2025-12-25T04:00:00Z
    assert list(fires(schedule, christmas_eve_11pm - 86_400, christmas_eve_11pm + 86_401)) == [
        christmas_eve_11pm - 86_400,
        christmas_eve_11pm + 86_400,
    ]
    everything = list(
        fires(schedule, christmas_eve_11pm - 86_400, christmas_eve_11pm, excluded={"2025-12-23"})
    )
    assert everything == []


def test_excluded_days_are_passed_over_not_walked() -> None:
    """A year of excluded days of a job that runs each second: 31 million fires must not be counted one by one."""
    new_year = 1_735_689_600
    year = tuple(iso_date(date(2025, 1, 1).toordinal() + day) for day in range(365))
    for schedule in (
        cron("* * * * * *", exclude_dates=year),
        Schedule.of(EveryTiming(1, 0), exclude_dates=year),
    ):
        assert next_fires(schedule, new_year, 1) == [new_year + 365 * 86_400]


@given(st.integers(0, 3600), st.integers(0, 2**32), st.text(max_size=30))
def test_jitter_is_bounded_and_always_the_same(jitter_s: int, fire_at: int, job_key: str) -> None:
    schedule = cron("* * * * *", jitter_s=jitter_s)
    due = due_at(schedule, job_key, fire_at)
    assert fire_at <= due <= fire_at + jitter_s
    assert due == due_at(schedule, job_key, fire_at)


def test_next_fires_begins_at_the_instant_and_ends_before_until() -> None:
    assert next_fires(cron("* * * * *"), 120, 3) == [120, 180, 240]
    assert next_fires(cron("* * * * *"), 120, 9, until=240) == [120, 180]
    assert next_fires(Schedule.of(AtTiming(100)), 101, 5) == []


def test_the_rarest_date_is_found() -> None:
    """A fifth Monday of February: 2044-02-29, then 2072."""
    assert next_fires(cron("0 0 * 2 1#5"), 1_456_790_400, 2) == [2_340_316_800, 3_223_929_600]


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(NEAR_A_CHANGE, CRONS, st.integers(1, 40 * 86_400), st.integers(0, 3), st.data())
def test_counted_and_newest_as_if_all_were_listed(
    place: tuple[str, int], expression: str, length: int, days: int, data: st.DataObject
) -> None:
    zone, change_at = place
    start = change_at - data.draw(st.integers(0, length))
    end, most = start + length, data.draw(st.integers(1, 5))
    every = EveryTiming(data.draw(st.integers(600, 100_000)), start + 17)
    for schedule in (cron(expression, zone), Schedule.of(every), Schedule.of(AtTiming(change_at))):
        excluded = {iso_date(date_of(schedule, change_at) + n) for n in range(days)}
        listed = list(fires(schedule, start, end, excluded=excluded))
        assert count_fires(schedule, start, end, excluded=excluded) == len(listed)
        assert newest_fires(schedule, start, end, most, excluded=excluded) == listed[-most:]


def date_of(schedule: Schedule, at: int) -> int:
    return date.fromisoformat(local_date(schedule, at)).toordinal()


def test_ten_years_of_seconds_are_counted_and_not_listed() -> None:
    start = 1_700_000_000
    end = start + 10 * 366 * 86_400
    for schedule in (Schedule.of(EveryTiming(1, 0)), cron("* * * * * *", "America/New_York")):
        assert count_fires(schedule, start, end) == end - start
        assert newest_fires(schedule, start, end, 2) == [end - 2, end - 1]


class Walked(tuple[int, ...]):
    """Seconds that count how often they are walked: once for each minute."""

    minutes = 0

    def __iter__(self) -> Iterator[int]:
        Walked.minutes += 1
        return super().__iter__()


def test_a_day_is_not_walked_up_to_its_last_second() -> None:
    """The next executions of a thousand jobs that fire each second took 4 s."""
    every_second = compile_cron("* * * * * *")
    walks = replace(every_second, seconds=Walked(every_second.seconds))
    last = 1_795_046_400 - 2  # before midnight in UTC
    assert last % 86_400 == 86_398
    assert list(islice(cron_fires(walks, "UTC", last, last + 86_400), 4)) == [last + n for n in range(4)]
    assert Walked.minutes <= 62
