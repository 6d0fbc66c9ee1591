"""Fire times that move from excluded dates, and calendars that include: a table, and an independent reference."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.timing.excluded_days import Dates, ExcludedDays, calendar_days
from common.timing.fires import count_fires, fires, newest_fires, next_fires
from common.timing.groups import group_can_fire, group_key
from common.timing.instants import DAY_S
from common.timing.schedule import CronTiming, Schedule
from common.timing.slots import places, places_of
from common.timing.zones import changes
from tests.timing import calendar_reference
from tests.timing.reference import cron

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "60"))
# Scoresbysund and Apia skip times across midnight.
ZONES = (
    *("America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Beirut", "UTC"),
    *("America/Scoresbysund", "Pacific/Apia", "America/Havana", "Antarctica/Troll", "Pacific/Chatham"),
)
MINUTES, HOURS = ("0", "30", "59", "*/20", "5/25", "0,45"), ("0", "2", "23", "1,23", "*", "*/6", "0-3")
DAYS, WEEKDAYS = ("*", "1", "L", "28-31", "15", "29"), ("*", "1-5", "0", "5#2", "6")
FEASTS = Dates(("2026-12-24", "2026-12-25", "2026-12-28"))
WEEKENDS = tuple(
    day.isoformat() for n in range(800) if (day := date(2026, 1, 1) + timedelta(days=n)).weekday() >= 5
)


def dates_of(schedule: Schedule, first: str, days: int) -> list[str]:
    start = int(datetime.fromisoformat(f"{first}T00:00Z").timestamp())
    excluded = calendar_days(schedule, lambda name: {"feasts": FEASTS, "weekends": Dates(WEEKENDS)}[name])
    instants = fires(schedule, start, start + days * DAY_S, excluded=excluded)
    return [f"{datetime.fromtimestamp(at, UTC):%m-%d %H:%M}" for at in instants]


NAMED = {"calendars": ("feasts", "weekends")}


@pytest.mark.parametrize(
    ("expression", "rest", "first", "days", "expected"),
    [
        # The 24th, 25th and 28th are feasts, the 26th and 27th a weekend.
        ("0 9 25 12 *", NAMED | {"on_excluded": "skip"}, "2026-12-20", 20, []),
        ("0 9 25 12 *", NAMED | {"on_excluded": "next"}, "2026-12-20", 20, ["12-29 09:00"]),
        ("0 9 25 12 *", NAMED | {"on_excluded": "previous"}, "2026-12-20", 20, ["12-23 09:00"]),
        # Dates that meet fire once.
        ("0 9 24-29 12 *", NAMED | {"on_excluded": "next"}, "2026-12-20", 20, ["12-29 09:00"]),
        # Each time of the day moves.
        ("0 9,17 25 12 *", NAMED | {"on_excluded": "next"}, "2026-12-20", 20, ["12-29 09:00", "12-29 17:00"]),
        # Bounds hold for the time to which it moves.
        ("0 9 25 12 *", NAMED | {"on_excluded": "next", "end_at": 1_798_534_800}, "2026-12-20", 20, []),
        ("0 9 25 12 *", NAMED | {"on_excluded": "previous", "start_at": 1_798_070_000}, "2026-12-20", 20, []),
        # Only on dates of a calendar.
        ("0 9 * 12 *", {"include_calendars": ("feasts",)}, "2026-12-20", 20,
         ["12-24 09:00", "12-25 09:00", "12-28 09:00"]),
        ("0 9 * 12 *", {"include_calendars": ("feasts",), "calendars": ("weekends",),
                        "exclude_dates": ("2026-12-25",)}, "2026-12-20", 20, ["12-24 09:00", "12-28 09:00"]),
        ("0 9 20 12 *", {"include_calendars": ("feasts",), "on_excluded": "next"}, "2026-12-20", 20,
         ["12-24 09:00"]),
        # A holiday's time does not move to a weekend: Friday the 25th goes to Tuesday, by the feast of Monday.
        ("0 9 25 12 *", {"calendars": ("feasts",), "exclude_weekdays": ("sat", "sun"), "on_excluded": "next"},
         "2026-12-20", 20, ["12-29 09:00"]),
        ("0 9 26 12 *", {"exclude_weekdays": ("sat", "sun"), "on_excluded": "previous"}, "2026-12-20", 20,
         ["12-25 09:00"]),
        ("0 9 * * *", {"exclude_weekdays": ("mon", "tue", "wed", "thu", "fri")}, "2026-12-20", 8,
         ["12-20 09:00", "12-26 09:00", "12-27 09:00"]),
        # 31 days are searched.
        ("0 9 22 11 *", {"include_calendars": ("feasts",), "on_excluded": "next"}, "2026-11-20", 60, []),
        ("0 9 23 11 *", {"include_calendars": ("feasts",), "on_excluded": "next"}, "2026-11-20", 60,
         ["12-24 09:00"]),
        ("0 9 28 1 *", {"include_calendars": ("feasts",), "on_excluded": "previous"}, "2026-11-20", 90,
         ["12-28 09:00"]),
        ("0 9 29 1 *", {"include_calendars": ("feasts",), "on_excluded": "previous"}, "2026-11-20", 90, []),
    ],
)  # fmt: skip
def test_where_times_of_excluded_dates_go(
    expression: str, rest: dict[str, object], first: str, days: int, expected: list[str]
) -> None:
    assert dates_of(cron(expression, **rest), first, days) == expected


def test_a_time_moves_to_its_local_date_and_follows_the_clock_there() -> None:
    """Saturday moves to the Sunday on which New York skips 02:30, and to the one on which it repeats 01:30."""
    zone = "America/New_York"
    spring = cron("30 2 * * 6", zone, exclude_dates=("2026-03-07",), on_excluded="next")
    autumn = cron("30 1 * * 6", zone, exclude_dates=("2026-10-31",), on_excluded="next")
    assert dates_of(spring, "2026-03-06", 4) == ["03-08 07:00"]
    assert dates_of(autumn, "2026-10-30", 4) == ["11-01 05:30"]


@pytest.mark.long
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_an_independent_implementation_agrees(data: st.DataObject) -> None:
    draw = data.draw
    zone = draw(st.sampled_from(ZONES))
    fields = [draw(st.sampled_from(each)) for each in (MINUTES, HOURS, DAYS)]
    weekday = draw(st.sampled_from(WEEKDAYS)) if fields[-1] == "*" else "*"
    expression = f"{' '.join(fields)} {draw(st.sampled_from(('*', '1,12', '3')))} {weekday}"
    moments = [c.at for c in changes(zone, 1_262_304_000, 1_893_456_000)] or [1_798_070_000]
    start = draw(st.sampled_from(moments)) + draw(st.integers(-30, 30)) * DAY_S // 2
    end = start + draw(st.integers(1, 50)) * DAY_S // 2
    first = datetime.fromtimestamp(start, UTC).date() - timedelta(days=70)
    bits = draw(st.integers(0, (1 << 200) - 1)) | draw(st.sampled_from((0, 0xFFFFFFFFFFFF << 60)))
    excluded = frozenset(first + timedelta(days=n) for n in range(200) if bits >> n & 1)
    including = draw(st.sampled_from((None, 0b1101, 0x3FFFFFFF, 0)))
    included = (
        None
        if including is None
        else frozenset(first + timedelta(days=60 + n) for n in range(40) if including >> n & 1)
    )
    on_excluded = draw(st.sampled_from(("skip", "next", "previous")))
    weekdays = draw(st.sampled_from(((), ("sun", "sat"), ("fri",))))
    of_weekdays = {day for n in range(300) if f"{day:= first + timedelta(days=n):%a}".lower() in weekdays}
    truth = calendar_reference.Calendars(excluded | of_weekdays, included, on_excluded)
    expected = calendar_reference.fire_times(expression, zone, truth, start, end)

    own = draw(st.integers(0, len(excluded)))  # some are the schedule's own, the others a calendar's
    texts = sorted(day.isoformat() for day in excluded)
    schedule = Schedule.of(
        CronTiming(expression, zone),
        exclude_dates=tuple(texts[:own]),
        exclude_weekdays=weekdays,
        calendars=("c",),
        include_calendars=() if included is None else ("i",),
        on_excluded=on_excluded,
    )
    dates = {"c": Dates(texts[own:]), "i": Dates(day.isoformat() for day in included or ())}
    days = calendar_days(schedule, dates.__getitem__)
    assert list(fires(schedule, start, end, excluded=days)) == expected, (schedule, zone)
    assert count_fires(schedule, start, end, excluded=days) == len(expected)
    assert newest_fires(schedule, start, end, 3, excluded=days) == expected[-3:]
    assert next_fires(schedule, start, 4, end, excluded=days) == expected[:4]
    cut = start + draw(st.integers(0, (end - start) // 600)) * 600
    pieces = [fires(schedule, *piece, excluded=days) for piece in ((start, cut), (cut, end))]
    assert [at for piece in pieces for at in piece] == expected
    for at in expected[:3] + expected[-3:]:
        window = at - at % 600
        key = group_key(schedule)
        assert group_can_fire(key, window, window + 600)
        assert set(places(key)) & set(places_of(window, window + 600))
        assert list(fires(schedule, at, at + 1, excluded=days)) == [at]


@pytest.mark.parametrize("on_excluded", ["next", "previous"])
def test_a_search_ends_where_nothing_is_allowed(on_excluded: str) -> None:
    """An empty calendar includes no date: 41 years are searched, and nothing is found."""
    schedule = cron("0 0 * * *", include_calendars=("none",), on_excluded=on_excluded)
    nothing = calendar_days(schedule, lambda name: Dates(()))
    assert next_fires(schedule, 1_798_070_000, 1, excluded=nothing) == []
    every = Schedule.of(
        CronTiming("0 0 1 1 *", "UTC"), on_excluded=on_excluded, exclude_dates=tuple(WEEKENDS)
    )
    assert next_fires(every, 1_798_070_000, 3, excluded=ExcludedDays())


def test_elapsed_time_is_searched_to_an_end_too() -> None:
    from common.timing.schedule import EveryTiming

    schedule = Schedule.of(EveryTiming(3600, 0), include_calendars=("feasts",))
    days = calendar_days(schedule, lambda name: FEASTS)
    start = int(datetime(2026, 12, 28, 22, tzinfo=UTC).timestamp())
    assert next_fires(schedule, start, 5, excluded=days) == [start, start + 3600]
    assert count_fires(schedule, start - 30 * DAY_S, start + DAY_S, excluded=days) == 72


def test_a_year_that_a_cron_names_is_found_past_its_end() -> None:
    timing = CronTiming("0 9 31 12 ? 2199", "UTC", "eventbridge", "eventbridge")
    schedule = Schedule.of(timing, exclude_dates=("2199-12-31", "2200-01-01"), on_excluded="next")
    (at,) = next_fires(schedule, 1_798_070_000, 2)
    assert datetime.fromtimestamp(at, UTC).isoformat() == "2200-01-02T09:00:00+00:00"
