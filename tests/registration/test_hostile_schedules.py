"""No input raises anything but InvalidInput, and none takes long.

CPU time is measured, since others share the machine; the limit is generous against 50 ms on a slow core. A longer run:
MINUTE8_TIMING_EXAMPLES=20000 pytest tests/registration/test_hostile_schedules.py
"""

from __future__ import annotations

import gc
import os
import time

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.registration.schedule_text import parse_schedule
from common.timing.fires import next_fires
from common.timing.groups import group_can_fire, group_key
from common.timing.schedule import Schedule

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "400"))
LIMIT_S = 0.05

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
