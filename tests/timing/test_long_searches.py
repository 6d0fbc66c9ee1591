"""A search over decades takes few steps, whatever calendars exclude. A step is a call of a Python function."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.timing.excluded_days import Dates, ExcludedDays
from common.timing.fires import fires, next_fires
from common.timing.schedule import CronTiming, EveryTiming, Schedule
from common.timing.zones import iso_date
from tests.timing.reference import cron
from tests.timing.test_windows import CRONS, NEAR_A_CHANGE

# 23 November 2026, a Monday.
NOW = 1_795_392_000
TODAY = date(2026, 11, 23).toordinal()
DAY_S = 86_400
# The bounds of a job: ten calendars of 2,500 dates each.
CALENDARS, DATES = 10, 2_500


def calendars(days_apart: int) -> ExcludedDays:
    """The calendars with every `days_apart`-th date from today on. Successive dates are in different calendars."""
    dates = (
        Dates(iso_date(TODAY + days_apart * (CALENDARS * n + calendar)) for n in range(DATES))
        for calendar in range(CALENDARS)
    )
    return ExcludedDays(dates)


def steps_of(work: Callable[[], Any]) -> int:
    steps = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal steps
        steps += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize(
    ("schedule", "days_apart"),
    [
        (cron("0 0 * * *"), 1),
        (cron("0 0 * * *", "Europe/Berlin"), 1),
        (cron("30 2 * * 1", "Europe/Berlin"), 7),
        (cron("*/5 * * * * *"), 1),
        (cron("0 0 * 2 1#5"), 7),
        (Schedule.of(EveryTiming(1, 0)), 1),
        (Schedule.of(EveryTiming(2 * DAY_S, NOW)), 1),
        (Schedule.of(EveryTiming(70 * DAY_S, NOW)), 7),
    ],
)
def test_a_job_that_never_fires_is_known_in_few_steps(schedule: Schedule, days_apart: int) -> None:
    excluded = calendars(days_apart)
    search = partial(next_fires, schedule, NOW, 1, excluded=excluded)
    assert search() == []
    assert steps_of(search) < 2_000


def test_calendars_are_merged_once() -> None:
    """The first search merges the years. The second finds them."""
    excluded = calendars(1)
    search = partial(next_fires, cron("0 0 * * *"), NOW, 1, excluded=excluded)
    search()
    again = steps_of(search)
    excluded = calendars(1)
    assert steps_of(partial(next_fires, cron("0 0 * * *"), NOW, 1, excluded=excluded)) > 2 * again


def test_a_tick_merges_no_year() -> None:
    """A window of ten minutes looks for its date in each calendar, also if the date is excluded."""
    excluded = calendars(1)
    for timing in (CronTiming("* * * * *", "UTC"), EveryTiming(60, 0)):
        window = partial(fires, Schedule.of(timing), NOW, NOW + 600, excluded=excluded)
        assert steps_of(lambda window=window: list(window())) < 200


@settings(max_examples=100, deadline=None)
@given(NEAR_A_CHANGE, CRONS, st.integers(366 * DAY_S + 1, 900 * DAY_S), st.integers(0, 2**32))
def test_long_searches_find_what_short_ones_do(
    place: tuple[str, int], expression: str, length: int, seed: int
) -> None:
    """Years are skipped by their dates only. Clock changes move fires to other dates, and even to other years."""
    zone, change_at = place
    rng = random.Random(seed)
    start = change_at - rng.randrange(length)
    first = start // DAY_S + date(1970, 1, 1).toordinal()
    share = rng.choice((0.5, 0.99, 1.0))
    days = [day for day in range(first - 2, first + length // DAY_S + 3) if rng.random() < share]
    excluded = ExcludedDays.of(map(iso_date, days[: rng.choice((len(days), len(days) // 2))]))
    every = EveryTiming(rng.randrange(3_600, 10 * DAY_S), start + 17)
    for schedule in (cron(expression, zone), Schedule.of(every)):
        short = (
            at
            for low in range(start, start + length, 300 * DAY_S)
            for at in fires(schedule, low, min(low + 300 * DAY_S, start + length), excluded=excluded)
        )
        long = fires(schedule, start, start + length, excluded=excluded)
        for _ in range(300):
            expected = next(short, None)
            assert next(long, None) == expected
            if expected is None:
                break


@pytest.mark.long
def test_a_search_ends_with_the_years_that_dates_have() -> None:
    schedule = Schedule.of(CronTiming("0 3 29 2 *", "UTC"))
    fire_times = next_fires(schedule, NOW, 10_000)
    assert fire_times[-1] > (date(9990, 1, 1) - date(1970, 1, 1)).days * DAY_S
    assert next_fires(schedule, fire_times[-1] + 1, 1) == []
