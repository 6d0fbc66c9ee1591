"""Every so many days, weeks, months or years in local time: a table, refusals, and an independent reference."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from common.errors import InvalidInput
from common.history.explain import schedule_reasons
from common.preview.preview import preview, resolved_as_given
from common.registration.schedule_text import parse_schedule
from common.timing.excluded_days import Dates
from common.timing.fires import count_fires, fires, next_fires
from common.timing.groups import group_can_fire, group_key
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule
from common.timing.zones import changes
from tests.timing import calendar_reference
from tests.timing.test_moved_days import ZONES
from tests.worlds import at, job, open_world

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "60"))
NOW = 1_795_230_000  # 2026-11-21T03:00:00Z


def parse(**raw: object) -> Schedule:
    return parse_schedule(raw, job_key="alice/job", now=NOW, shortest_interval_s=10, default_spread_s=60)


@pytest.mark.parametrize(
    ("every", "anchor", "expected"),
    [
        # 09:00 stays 09:00: the clock of Paris changes on 2026-10-25 and 2027-03-28
        ("2w", "2026-10-12T09:00:00", ["11-23 08:00", "12-07 08:00"]),
        ("2w", "2026-10-12T07:00:00Z", ["11-23 08:00", "12-07 08:00"]),
        ("P2W", "2027-04-12T09:00:00", ["11-23 08:00", "12-07 08:00"]),  # an anchor counts backwards, too
        ("1mo", "2026-08-31T09:00:00", ["11-30 08:00", "12-31 08:00", "01-31 08:00", "02-28 08:00", "03-31 07:00"]),
        ("3mo", "2026-01-15T09:00:00", ["01-15 08:00", "04-15 07:00"]),
        ("1y", "2024-02-29T09:00:00", ["02-28 08:00", "02-29 08:00"]),
        ("1d", "2026-01-01T09:00:30", ["11-21 08:00"]),
        # 02:30 is skipped on 2027-03-28
        ("1y", "2026-03-28T02:30:00", ["03-28 01:00", "03-28 00:30"]),
    ],
)  # fmt: skip
def test_intervals_keep_the_local_time(every: str, anchor: str, expected: list[str]) -> None:
    schedule = parse(every=every, timezone="Europe/Paris", anchor=anchor)
    times = next_fires(schedule, NOW, len(expected))
    assert schedule.spread_s == 0
    assert convert(to_builtins(schedule), Schedule) == schedule
    assert [f"{datetime.fromtimestamp(time, UTC):%m-%d %H:%M}" for time in times] == expected


@pytest.mark.parametrize(
    ("raw", "field", "part"),
    [
        ({"every": "90m", "timezone": "UTC"}, "timezone", "such as 2w or 3mo"),
        ({"every": "1w2d", "timezone": "UTC"}, "timezone", "elapsed time"),
        ({"every": 86_400, "timezone": "UTC"}, "timezone", "elapsed time"),
        ({"every": "0d", "timezone": "UTC"}, "every", "1d to 3660d, 1mo to 120mo"),
        ({"every": "523w", "timezone": "UTC"}, "every", "1d to 3660d"),
        ({"every": "11y", "timezone": "UTC"}, "every", "120mo"),
        ({"every": "3mo"}, "every", "a timezone next to it"),
        ({"every": "2w", "timezone": "Mars"}, "timezone", "IANA"),
        ({"every": "2w", "timezone": "UTC", "anchor": "soon"}, "anchor", "must be a time"),
        ({"every": "2w", "timezone": "UTC", "dst": "eventbridge"}, "dst", "`cron` only"),
    ],
)
def test_refusals_say_what_is_accepted(raw: dict[str, object], field: str, part: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(**raw)
    assert (caught.value.field, part in str(caught.value)) == (f"schedule.{field}", True), caught.value


@pytest.mark.long
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_an_independent_implementation_agrees(data: st.DataObject) -> None:
    draw = data.draw
    zone = draw(st.sampled_from(ZONES))
    days, months = draw(st.sampled_from(((1, 0), (3, 0), (14, 0), (0, 1), (0, 5), (0, 12))))
    moments = [c.at for c in changes(zone, 1_262_304_000, 1_893_456_000)] or [NOW]
    start = draw(st.sampled_from(moments)) - draw(st.integers(0, 40)) * DAY_S // 2
    end = start + draw(st.integers(1, 120)) * DAY_S // 2
    anchor_at = draw(st.sampled_from(moments)) + draw(st.integers(-2_000, 2_000)) * 60
    local = datetime.fromtimestamp(anchor_at, ZoneInfo(zone))
    local -= timedelta(seconds=local.second)
    anchored = int(local.timestamp())
    every = f"{days}d" if days else f"{months}mo"
    on_excluded = draw(st.sampled_from(("skip", "next", "previous")))
    first = datetime.fromtimestamp(start, UTC).date() - timedelta(days=40)
    bits = draw(st.integers(0, (1 << 150) - 1))
    excluded = frozenset(first + timedelta(days=n) for n in range(150) if bits >> n & 1)
    raw: dict[str, Any] = {
        "every": every,
        "timezone": zone,
        "anchor": f"{datetime.fromtimestamp(anchored, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "exclude": {"dates": sorted(map(str, excluded))},
        "on_excluded": on_excluded,
    }
    schedule = parse_schedule(raw, job_key="a/b", now=NOW)
    truth = calendar_reference.Calendars(excluded, None, on_excluded)
    names = calendar_reference.in_steps(local.date(), days, months)
    clock = f"{local.minute} {local.hour} * * *"
    expected = calendar_reference.fire_times(clock, zone, truth, start, end, names)
    assert list(fires(schedule, start, end)) == expected, raw
    assert count_fires(schedule, start, end) == len(expected)
    assert next_fires(schedule, start, 3, end) == expected[:3]
    resolved = parse_schedule(resolved_as_given(to_builtins(schedule)), job_key="a/b", now=0)
    assert list(fires(resolved, start, end)) == expected
    for time in [*expected[:2], start, end - 1]:
        does = time in expected
        assert does is not any(True for _ in schedule_reasons(schedule, time, lambda name: Dates(())))
        window = time - time % 600
        assert group_can_fire(group_key(schedule), window, window + 600) or not does


@pytest.mark.long
def test_a_job_keeps_its_anchor_and_fires_on_its_dates() -> None:
    with open_world("2026-11-21T03:12:30Z") as world:
        every = {"every": "2w", "timezone": "Asia/Tokyo"}
        first = world.registry.put("alice", "job", job(**every)).schedule
        world.run_until("2026-11-22T08:00:00Z", ticks=True)
        edited = world.registry.put("alice", "job", job(**every, jitter_s=0, max_runs=2)).schedule
        assert (edited.timing, edited.interval) == (first.timing, first.interval)
        world.run_until("2026-12-05T04:00:00Z", ticks=True)
        assert world.target.fire_times("job") == ["2026-12-05T03:12:30Z"]


def test_a_preview_says_it_in_words() -> None:
    shown = preview(
        {"every": "2w", "timezone": "Europe/Paris", "anchor": "2026-10-12T09:00"}, now=NOW, count=1
    )
    assert shown.sentence == "At 09:00, in Europe/Paris, every 14 days from 2026-10-12 on"
    assert shown.fires[0].local == "2026-11-23T09:00:00+01:00"
    assert at("2026-11-23T08:00:00Z") == shown.fires[0].at
