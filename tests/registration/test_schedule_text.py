"""Reading schedules: the accepted text, its meaning, and its stored form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from common.registration.cron_text import read_cron
from common.registration.schedule_text import parse_schedule
from common.storage.wire import from_wire, to_wire
from common.timing.cron import compile_cron, shortest_interval_s
from common.timing.durations import duration_text, parse_duration
from common.timing.schedule import AtTiming, CronTiming, EveryTiming, Pace, Schedule
from common.timing.zones import TZDATA_VERSION, zone_names
from tests.timing.real_schedules import CRON, EVERY

NOW = 1_763_694_600


def parse(**raw: object) -> Schedule:
    return parse_schedule(raw, job_key="alice/report", now=NOW)


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("0 9 * * MON", "0 9 * * 1"),
        ("0  9 * * mon-fri ", "0 9 * * 1-5"),
        ("00 09 01 JAN sun", "0 9 1 1 0"),
        ("9 2-23/24 * * *", "9 2-23/24 * * *"),
        ("5-5 * * * *", "5 * * * *"),
        ("0 5-5/3 * * *", "0 5 * * *"),
        ("0 22-2 * * *", "0 22-2 * * *"),
        ("0 0 * NOV-FEB FRI-SUN", "0 0 * 11-2 5-7"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 0-7", "0 0 * * 0-6"),
        ("0 0 * * 7-2", "0 0 * * 0-2"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 0 * * 7-0", "0 0 * * 0"),
        ("0 0 ? * 5", "0 0 * * 5"),
        ("0 0 15w * ?", "0 0 15W * *"),
        ("0 0 W15 * *", "0 0 15W * *"),
        ("0 0 L * *", "0 0 L * *"),
        ("0 0 1,L * *", "0 0 1,L * *"),
        ("0 0 20-L * *", "0 0 20-31 * *"),
        ("0 0 * * L5", "0 0 * * L5"),
        ("0 0 * * fri#2", "0 0 * * 5#2"),
        ("0 0 * * mon-wed#1", "0 0 * * 1#1,2#1,3#1"),
        ("0 0 * * 1#1,L5", "0 0 * * 1#1,L5"),
        ("*,5 * * * *", "* * * * *"),
        ("*/15 0 9 * * *", "*/15 0 9 * * *"),
        ("5/15 * * * *", "5/15 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@MIDNIGHT", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_canonical_text(typed: str, canonical: str) -> None:
    assert read_cron(typed, job_key="a/b") == canonical
    assert read_cron(canonical, job_key="a/b") == canonical


@pytest.mark.parametrize("first", range(8))
def test_ranges_to_sunday_keep_their_step(first: int) -> None:
    """croniter counts Sunday as 0 and so sees `5-7/2` as a range that wraps; its phase must be that of the text."""
    for step in range(1, 8):
        weekdays = compile_cron(read_cron(f"0 0 * * {first}-7/{step}", job_key="a/b")).weekdays
        expected = {day % 7 for day in range(first, 8, step)}
        assert {day for day in range(7) if weekdays >> 64 + 6 * day & 0b111110} == expected


def test_h_is_the_jobs_own_and_stays() -> None:
    first = read_cron("H H(0-5) H * H/3", job_key="alice/report")
    assert first == read_cron("H H(0-5) H * H/3", job_key="alice/report")
    assert first != read_cron("H H(0-5) H * H/3", job_key="alice/other")
    minute, hour, day, _month, weekday = first.split()
    assert 0 <= int(minute) < 60
    assert 0 <= int(hour) <= 5
    assert 1 <= int(day) <= 28
    assert weekday.endswith("/3")
    assert compile_cron(read_cron("H/15 4 * * *", job_key="x")).repeats


def test_h_spreads_over_the_whole_day() -> None:
    """One checksum for both fields would reach 240 of the 1,440 minutes."""
    assert len({read_cron("H H * * *", job_key=f"t/{n}") for n in range(20_000)}) > 1_430


def test_all_real_schedules_are_accepted() -> None:
    assert sum(CRON.values()) + sum(EVERY.values()) == 688
    for expression in CRON:
        assert isinstance(parse(cron=expression).timing, CronTiming)
    for interval in EVERY:
        assert parse(every=interval).timing == EveryTiming(parse_duration(interval), NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90), ("90m", 5400), ("1h30m", 5400), ("45s", 45), ("2w", 1_209_600), ("4h0m0s", 14_400),
        ("PT90M", 5400), ("P1DT2H", 93_600), ("P2W", 1_209_600), ("PT1S", 1), ("366d", 31_622_400), ("744h", 2_678_400),
    ],
)  # fmt: skip
def test_durations(text: object, seconds: int) -> None:
    assert parse_duration(text) == seconds


@given(st.integers(1, 366 * 86_400))
def test_duration_text_is_read_back(seconds: int) -> None:
    assert parse_duration(duration_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("* * * * *", 60),
        ("* * * * * *", 1),
        ("0,50 * * * * *", 10),
        ("*/7 * * * *", 240),
        ("0 0,1 * * *", 3600),
        ("0,59 0,23 * * *", 60),
        ("0,59 0,23 1 * *", 3540),
        ("0 12 * * *", 86_400),
        ("0 12 1 * *", None),
        ("59 0 0 1 1 *", None),
    ],
)
def test_shortest_interval(expression: str, seconds: int | None) -> None:
    assert shortest_interval_s(compile_cron(expression)) == seconds


def test_everything_together() -> None:
    schedule = parse(
        cron="0 9 * * MON-FRI",
        timezone="Europe/Berlin",
        start_at="2025-01-01T00:00:00+01:00",
        end_at="2026-01-01T00:00:00Z",
        exclude={"dates": ["2025-12-24", "2025-05-01"], "calendars": ["holidays-de"]},
        jitter_s=30,
    )
    assert schedule == Schedule.of(
        CronTiming("0 9 * * 1-5", "Europe/Berlin"),
        start_at=1_735_686_000,
        end_at=1_767_225_600,
        exclude_dates=("2025-05-01", "2025-12-24"),
        calendars=("holidays-de",),
        jitter_s=30,
    )
    assert parse(at="2025-03-09T02:30:00", timezone="America/New_York").timing == AtTiming(1_741_503_600)
    assert parse(at="2025-03-09T02:30:00+01:00").timing == AtTiming(1_741_483_800)
    assert parse(every="1h", anchor="2025-01-01T00:00:00Z", timezone=None).timing == EveryTiming(
        3600, 1_735_689_600
    )


TIMINGS = st.one_of(
    st.builds(CronTiming, st.just("0 9 * * 1-5"), st.sampled_from(sorted(zone_names()))),
    st.builds(EveryTiming, st.integers(1, 10**7), st.integers(0, 2**33)),
    st.builds(AtTiming, st.integers(0, 2**33)),
)
SCHEDULES = st.builds(
    Schedule.of,
    TIMINGS,
    start_at=st.none() | st.integers(0, 2**33),
    end_at=st.none() | st.integers(0, 2**33),
    exclude_dates=st.lists(st.dates().map(str), max_size=3).map(tuple),
    calendars=st.lists(st.text("abc", min_size=1), max_size=3).map(tuple),
    jitter_s=st.integers(0, 3600),
    spread_s=st.integers(0, 3600),
    pace=st.none()
    | st.builds(Pace, st.sampled_from(["", "crm"]), st.integers(1, 1_000), st.integers(1, 600)),
)


@given(SCHEDULES)
def test_the_stored_form_is_read_back(schedule: Schedule) -> None:
    item = to_builtins(schedule)
    assert convert(item, Schedule) == schedule
    assert convert(from_wire(to_wire(item)), Schedule) == schedule
    assert None not in item.values()


def test_the_stored_form_is_compact() -> None:
    assert to_builtins(parse(cron="@daily")) == {"cron": "0 0 * * *"}


def test_the_zone_data_is_the_pinned_package() -> None:
    import zoneinfo

    assert zoneinfo.TZPATH == ()
    assert TZDATA_VERSION.startswith("20")
