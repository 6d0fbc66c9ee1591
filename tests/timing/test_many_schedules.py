"""Several schedules in one: their union, against an independent reference of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from common.errors import InvalidInput
from common.history.explain import schedule_reasons
from common.jobs.ended import fires_again
from common.jobs.ledger import most_per_day
from common.preview.preview import preview, resolved_as_given
from common.registration.schedule_text import parse_schedule
from common.timing.excluded_days import Dates, calendar_days
from common.timing.fires import count_fires, fires, first_firing, newest_fires, next_fires
from common.timing.groups import entry_weight, group_can_fire, group_key
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule
from common.timing.slots import places, places_of
from common.timing.zones import changes
from minute8.api.views import schedule_view
from tests.timing import calendar_reference
from tests.timing.test_moved_days import ZONES

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "60"))
NOW = 1_795_230_000  # 2026-11-21T03:00:00Z


def parse(*schedules: object, spread_s: int = 0, **of_all: object) -> Schedule:
    raw = {"schedules": list(schedules), **of_all}
    return parse_schedule(
        raw, job_key="alice/job", now=NOW, shortest_interval_s=10, default_spread_s=spread_s
    )


def text(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


@st.composite
def part(draw: st.DrawFn, start: int, end: int) -> tuple[dict[str, Any], list[int], dict[str, list[str]]]:
    """A schedule as written, its fire times by the reference, and the dates of its calendars."""
    first = datetime.fromtimestamp(start, UTC).date() - timedelta(days=40)
    kind = draw(st.sampled_from(("cron", "cron", "cron", "every", "at")))
    if kind == "at":
        at = draw(st.integers(start - 3_600, end + 3_600))
        return {"at": text(at)}, [at] if start <= at < end else [], {}
    if kind == "every":
        every = draw(st.sampled_from((600, 5_400, 86_400)))
        anchor = draw(st.integers(start, end)) // 60 * 60
        steps = range(start + (anchor - start) % every, end, every)
        return {"every": every, "anchor": text(anchor)}, list(steps), {}
    zone = draw(st.sampled_from(ZONES))
    expression = draw(
        st.sampled_from(
            ("0 9 * * *", "30 2 * * *", "0,30 1,2 * * 0", "0 0 1,15 * *", "*/20 * * * 6", "0 */6 * * *")
        )
    )
    bits = draw(st.integers(0, (1 << 110) - 1))
    excluded = frozenset(first + timedelta(days=n) for n in range(110) if bits >> n & 1)
    on_excluded = draw(st.sampled_from(("skip", "next", "previous")))
    name = draw(st.sampled_from(("a", "b", "c")))
    truth = calendar_reference.Calendars(excluded, None, on_excluded)
    raw = {"cron": expression, "timezone": zone, "on_excluded": on_excluded}
    times = calendar_reference.fire_times(expression, zone, truth, start, end)
    if draw(st.booleans()):
        return raw | {"exclude": {"dates": sorted(map(str, excluded))}}, times, {}
    return raw | {"exclude": {"calendars": [name]}}, times, {name: sorted(map(str, excluded))}


@pytest.mark.long
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_the_union_of_each_by_an_independent_implementation(data: st.DataObject) -> None:
    draw = data.draw
    moments = [c.at for c in changes(draw(st.sampled_from(ZONES)), 1_577_836_800, 1_893_456_000)] or [NOW]
    start = draw(st.sampled_from(moments)) - draw(st.integers(0, 12)) * DAY_S // 2
    end = start + draw(st.integers(1, 40)) * DAY_S // 2
    drawn = draw(st.lists(part(start, end), min_size=1, max_size=5))
    calendars: dict[str, list[str]] = {}
    parts = []
    for raw, times, dates in drawn:
        if dates.keys() & calendars.keys():
            continue  # a calendar has one list of dates
        calendars |= dates
        parts.append((raw, times))
    schedule = parse(*(raw for raw, _ in parts))
    days = calendar_days(schedule, lambda name: Dates(calendars[name]))
    expected = sorted({at for _, times in parts for at in times})
    assert list(fires(schedule, start, end, excluded=days)) == expected, parts
    assert count_fires(schedule, start, end, excluded=days) == len(expected)
    assert newest_fires(schedule, start, end, 3, excluded=days) == expected[-3:]
    assert next_fires(schedule, start, 4, end, excluded=days) == expected[:4]
    assert convert(to_builtins(schedule), Schedule) == schedule
    resolved = parse_schedule(resolved_as_given(schedule_view(schedule)), job_key="a/b", now=0)
    assert list(fires(resolved, start, end, excluded=days)) == expected
    cut = start + draw(st.integers(0, (end - start) // 600)) * 600
    pieces = [fires(schedule, *piece, excluded=days) for piece in ((start, cut), (cut, end))]
    assert [at for piece in pieces for at in piece] == expected
    for at in [*expected[:3], *expected[-2:], start, end - 1]:
        firing = [place for place, (_, times) in enumerate(parts) if at in times]
        assert first_firing(schedule, at, excluded=days) == (firing[0] if firing else None)
        reasons = list(schedule_reasons(schedule, at, lambda name: Dates(calendars[name])))
        assert bool(reasons) is not bool(firing)
        window = at - at % 600
        key = group_key(schedule)
        assert group_can_fire(key, window, window + 600) or not firing
        assert set(places(key)) & set(places_of(window, window + 600)) or not firing


def test_of_each_schedule_no_more_fire_times_are_found_than_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenant's ten schedules with `max_runs` 1,000 cost as much as one, and not ten times that."""
    found_fires = 0

    def counted(*args: Any, **named: Any) -> Iterator[int]:
        nonlocal found_fires
        for at in fires(*args, **named):
            found_fires += 1
            yield at

    monkeypatch.setattr("common.timing.fires.fires", counted)
    schedule = parse(*({"cron": f"{n} 2 * * 1"} for n in range(10)))
    assert len(next_fires(schedule, NOW, 1_000)) == 1_000
    assert found_fires <= 1_000 + 10


def test_schedules_in_another_order_share_a_group() -> None:
    nine, noon = {"cron": "3 9 * * *"}, {"cron": "7 12 * * *", "timezone": "Europe/Paris"}
    assert group_key(parse(nine, noon)) == group_key(parse({**noon, "cron": "1 12 * * *"}, nine))
    assert group_key(parse(nine, nine)) == f"many|{group_key(parse(nine).parts[0])}"


def test_a_key_fits_into_a_sort_key_and_a_longer_one_is_due_in_each_window() -> None:
    parts = [
        {
            "cron": f"0,20,40 {','.join(map(str, range(n % 2, 24, 2)))} {','.join(map(str, range(1 + n, 32, 2)))} * *",
            "timezone": "America/Argentina/ComodRivadavia",
        }
        for n in range(10)
    ]
    key = group_key(parse(*parts))
    assert key == "every|5|0"  # they fire ten times in ten minutes at most
    assert len(group_key(parse(*parts[:4]))) <= 900
    assert entry_weight(group_key(parse(*parts[:4])), 600) == 4
    assert entry_weight(key, 600) == 12
    assert group_can_fire(key, NOW - NOW % 600, NOW - NOW % 600 + 600)


def test_it_ends_with_the_last_of_them() -> None:
    soon, late = {"at": text(NOW + 60)}, {"at": "2150-01-01T00:00:00Z"}
    schedule = parse(soon, late)
    far = schedule.parts[1].timing.at  # type: ignore[union-attr]
    assert next_fires(schedule, NOW, 5) == [NOW + 60, far]
    assert fires_again(schedule, NOW + 60, ())
    assert not fires_again(schedule, far, ())
    assert fires_again(parse(soon, {"cron": "0 9 * * *"}), NOW + 60, ())
    assert not fires_again(parse({"cron": "0 9 * * *"}, end_at=text(NOW + 60)), NOW, ())


def test_bounds_of_all_are_within_those_of_each() -> None:
    hourly = {"every": "1h", "anchor": text(NOW), "start_at": text(NOW + 2 * 3600)}
    daily = {"cron": "30 * * * *", "end_at": text(NOW + 4 * 3600)}
    schedule = parse(hourly, daily, start_at=text(NOW + 3600), end_at=text(NOW + 5 * 3600))
    hours = [(at - NOW) / 3600 for at in fires(schedule, NOW, NOW + DAY_S)]
    assert hours == [1.5, 2, 2.5, 3, 3.5, 4]
    assert [(at - NOW) / 3600 for at in next_fires(schedule, NOW, 9)] == hours
    assert most_per_day(schedule) == 24 + 24


def test_the_default_spread_is_that_of_the_one_with_the_least() -> None:
    assert parse({"cron": "0 9 * * *"}, {"cron": "*/5 * * * *"}, spread_s=600).spread_s == 299
    assert parse({"cron": "0 9 * * *"}, {"every": "1h"}, spread_s=600).spread_s == 0
    assert parse({"cron": "0 9 * * *"}, {"cron": "0 8 * * *"}, spread_s=600, jitter_s=5).jitter_s == 5


NINE = {"cron": "0 9 * * *"}


@pytest.mark.parametrize(
    ("raw", "field", "accepted"),
    [
        ({"schedules": []}, "schedule.schedules", "1 to 10"),
        ({"schedules": [NINE] * 11}, "schedule.schedules", "1 to 10"),
        ({"schedules": NINE}, "schedule.schedules", "1 to 10"),
        ({"schedules": ["0 9 * * *"]}, "schedule.schedules.0", "an object"),
        ({"schedules": [NINE, {}]}, "schedule.schedules.1", "exactly one of"),
        ({"schedules": [NINE, {"cron": "0 25 * * *"}]}, "schedule.schedules.1.cron", "0-23"),
        ({"schedules": [NINE], "cron": "0 9 * * *"}, "schedule.cron", "no cron beside schedules"),
        ({"schedules": [NINE], "timezone": "UTC"}, "schedule.timezone", "no timezone beside"),
        ({"schedules": [NINE | {"spread_s": 5}]}, "schedule.schedules.0.spread_s", "the fields cron"),
        ({"schedules": [NINE | {"max_runs": 5}]}, "schedule.schedules.0.max_runs", "the fields cron"),
        ({"schedules": [{"schedules": [NINE]}]}, "schedule.schedules.0.schedules", "the fields cron"),
        ({"schedules": [{"every": "5s"}]}, "schedule.schedules.0.every", "at least 10 s"),
        (
            {"schedules": [NINE | {"exclude": {"calendars": ["c"]}}], "max_runs": 2},
            "schedule.max_runs",
            "no calendars",
        ),
        (
            {"schedules": [{**NINE, "exclude": {"dates": [f"{1990 + d}-01-01" for d in range(45)]}}] * 9},
            "schedule.schedules",
            "at most 400 in all",
        ),
        (
            {"schedules": [NINE | {"include_calendars": [f"c{n}-{m}" for m in range(3)]} for n in range(7)]},
            "schedule.schedules",
            "at most 20 in all",
        ),
    ],
)  # fmt: skip
def test_refusals(raw: dict[str, object], field: str, accepted: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_schedule(raw, job_key="a/b", now=NOW, shortest_interval_s=10)
    assert caught.value.field == field
    assert accepted in caught.value.accepted


def test_a_preview_says_it_in_words() -> None:
    raw = {
        "schedules": [{"cron": "0 9 * * 1-5", "timezone": "Europe/Paris"}, {"cron": "30 2 * * 6"}],
        "max_runs": 3,
    }
    shown = preview(raw, now=NOW, count=5)
    assert shown.sentence == (
        "At 09:00, Monday through Friday, in Europe/Paris; and at 02:30, on Saturday, in UTC; "
        "all together, 3 times in all, before 2026-11-25T20:00:01Z"
    )
    assert [fire.local for fire in shown.fires] == [
        "2026-11-23T09:00:00+01:00",
        "2026-11-24T09:00:00+01:00",
        "2026-11-25T09:00:00+01:00",
    ]
    rare = preview({"schedules": [NINE, {"cron": "0 0 31 * *"}]}, now=NOW, count=1)
    assert [warning.partition(":")[0] for warning in rare.warnings] == ["schedules.1"]
