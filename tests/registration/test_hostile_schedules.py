"""No input raises anything but InvalidInput, and none takes long.

CPU time is measured, since others share the machine; the limit is generous against 50 ms on a slow core. A longer run:
MINUTE8_TIMING_EXAMPLES=20000 pytest tests/registration/test_hostile_schedules.py
"""

from __future__ import annotations

import gc
import os
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.registration.schedule_text import parse_schedule
from common.timing.fires import limited, next_fires
from common.timing.groups import group_can_fire, group_key
from common.timing.schedule import Schedule

MAX_RUNS = 1_000

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "400"))
LIMIT_S = 0.05
# Of storing a job with `max_runs`.
COUNT_LIMIT_S = 0.2
NOW = 1_763_694_600

CRONISH = st.text("0123456789*/,-#?@LWHRlwhr()MONFEB \t", max_size=60)
FIELDS = st.lists(st.text("0123456789*/,-#LWH?", min_size=1, max_size=12), min_size=5, max_size=6).map(
    " ".join
)
ANY_TEXT = st.one_of(CRONISH, FIELDS, st.text(max_size=300), st.text("PTDHMSWYwdhms0123456789.", max_size=30))
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.binary(max_size=20), ANY_TEXT),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "cron",
        "every",
        "at",
        "timezone",
        "anchor",
        "start_at",
        "end_at",
        "exclude",
        "jitter_s",
        "spread_s",
        "pace",
        "include_calendars",
        "on_excluded",
        "max_runs",
        "schedules",
        "x",
        "",
    ]
)
SETTINGS = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _try(raw: dict[str, object]) -> Schedule | None:
    """Parse, up to three times if it seems slow: a pause of the garbage collector does not count."""
    for attempt in range(3):
        began = time.process_time()
        schedule = _parse(raw)
        if time.process_time() - began < LIMIT_S:
            return schedule
        gc.collect()
        assert attempt < 2, f"slow: {raw!r}"
    return None


def _parse(raw: dict[str, object]) -> Schedule | None:
    try:
        return parse_schedule(raw, job_key="alice/report", now=1_763_694_600)
    except InvalidInput as error:
        assert len(str(error)) < 1500
        return None


# The first parse of a process reads zone names and builds the table of dates, which is no input's cost.
_try({"cron": "0 0 31 2 *", "timezone": "Nowhere/Land"})


@SETTINGS
@given(ANY_TEXT)
@example("*/1,2-3,H(0-5)/2 " * 5)
@example("0 0 31 2 *")
@example("1-" * 128)
@example("9999 9999 9999 9999 9999")
@example("0,1,2,3,4,5,6,7,8,9 " * 12)
@example(",".join(["0-59/1"] * 34) + " * * * *")
@example("* * * * " + ",".join(["0-6#5"] * 40))
def test_any_text_as_cron(text: str) -> None:
    schedule = _try({"cron": text})
    if schedule is not None:
        assert next_fires(schedule, 1_763_694_600, 1), "accepted, so it must fire"
        assert isinstance(group_can_fire(group_key(schedule), 0, 600), bool)


@SETTINGS
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_text_as_the_rest(every: str, zone: str, at: str) -> None:
    _try({"every": every, "anchor": at, "timezone": zone or None})
    _try({"at": at, "timezone": zone})
    _try({"cron": "* * * * *", "timezone": zone, "start_at": at, "end_at": every})


@SETTINGS
@given(st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_anything_as_a_schedule(raw: dict[str, object]) -> None:
    _try(raw)


ZONES = ("Europe/Paris", "Asia/Tokyo", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo")
DATES = [f"20{n // 28 + 30}-01-{n % 28 + 1:02}" for n in range(40)]
RARE = {"cron": "0 0 29 2 *", "exclude": {"dates": DATES}, "on_excluded": "next"}
# What takes longest to count to: rare dates, dates that move, intervals of years, and all that fires at one instant.
COUNTED = {
    "each second": {"cron": "* * * * * *"},
    "a leap day that moves": RARE,
    "ten leap days": {"schedules": [RARE | {"timezone": ZONES[n % 5]} for n in range(10)]},
    "ten equal ones": {"schedules": [{"cron": "0 0 * * *", "exclude": {"dates": DATES}}] * 10},
    "ten intervals": {
        "schedules": [
            {"every": f"{n + 100}mo", "timezone": ZONES[n % 5], "anchor": f"2026-01-31T0{n}:00:00"}
            for n in range(10)
        ]
    },
    "each day of ten zones, moved": {
        "schedules": [
            {
                "cron": f"{n} 2 * * 1",
                "timezone": ZONES[n % 5],
                "exclude": {"dates": DATES},
                "on_excluded": "previous",
            }
            for n in range(10)
        ]
    },
    "an end long before": {"cron": "0 0 * * *", "start_at": "2199-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_end_of_max_runs_is_found_soon(name: str) -> None:
    """It is found at each registration, pause and change of a job: 1,000 fire times, or 41 years."""
    raw = {**COUNTED[name], "max_runs": MAX_RUNS}
    schedule = parse_schedule(raw, job_key="alice/report", now=NOW)
    limited(schedule, raw, 0, NOW)  # builds the tables of years, which all share
    took_s = []
    for _ in range(3):
        began = time.process_time()
        limited(schedule, raw, 0, NOW)
        took_s.append(time.process_time() - began)
    assert min(took_s) < COUNT_LIMIT_S
