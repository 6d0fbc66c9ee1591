"""AWS's cron dialect: its documented examples, what others wrote down about it, and a brute-force evaluator."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from common.errors import InvalidInput
from common.registration.schedule_text import parse_schedule
from common.timing.compiled import compiled, in_all_clocks
from common.timing.cron import compile_cron, ever_fires
from common.timing.fires import count_fires, fires, newest_fires, next_fires
from common.timing.groups import group_can_fire, group_key
from common.timing.instants import DAY_S, rfc3339
from common.timing.schedule import EVENTBRIDGE, CronTiming, Schedule
from common.timing.slots import places, places_of
from common.timing.windows import WINDOW_S
from common.timing.zones import changes
from minute8.eventbridge.mapping import as_minute8
from tests.timing import eventbridge_reference as reference

EXAMPLES = int(os.environ.get("MINUTE8_TIMING_EXAMPLES", "100"))
ZONES = (
    "America/New_York", "Europe/London", "Australia/Lord_Howe", "Pacific/Chatham", "Antarctica/Troll",
    "America/Havana", "Asia/Beirut", "Africa/Cairo", "America/Asuncion", "America/Sao_Paulo",
)  # fmt: skip
_SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]


def by_eventbridge(expression: str, zone: str = "UTC") -> Schedule:
    raw = {"cron": expression, "timezone": zone, "dialect": "eventbridge", "dst": "eventbridge"}
    return parse_schedule(raw, job_key="a/b", now=0)


def times(expression: str, after: str, count: int = 2, zone: str = "UTC") -> list[str]:
    at = int(datetime.fromisoformat(after).replace(tzinfo=UTC).timestamp())
    return [rfc3339(fire_at)[:16] for fire_at in next_fires(by_eventbridge(expression, zone), at, count)]


# The examples of https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cron-expressions.html and of EventBridge
# Scheduler's user guide, with the times that their words give; and of the tests of pyawscron and aws-cron-parser.
DOCUMENTED = [
    ("0 10 * * ? *", ["2026-11-22T10:00", "2026-11-23T10:00"]),
    ("15 12 * * ? *", ["2026-11-22T12:15", "2026-11-23T12:15"]),
    ("0 18 ? * MON-FRI *", ["2026-11-23T18:00", "2026-11-24T18:00"]),
    ("0 8 1 * ? *", ["2026-12-01T08:00", "2027-01-01T08:00"]),
    ("0/15 * * * ? *", ["2026-11-22T00:00", "2026-11-22T00:15"]),
    ("0/10 * ? * MON-FRI *", ["2026-11-23T00:00", "2026-11-23T00:10"]),
    ("0/5 8-17 ? * MON-FRI *", ["2026-11-23T08:00", "2026-11-23T08:05"]),
    ("0/30 20-2 ? * MON-FRI *", ["2026-11-23T00:00", "2026-11-23T00:30"]),
    ("15 10 ? * 6L 2019-2032", ["2026-11-27T10:15", "2026-12-25T10:15"]),
    ("0 9 ? * 2#1 *", ["2026-12-07T09:00", "2027-01-04T09:00"]),
    ("0 0 ? * 3#2 *", ["2026-12-08T00:00", "2027-01-12T00:00"]),
    ("1/10 * * * ? *", ["2026-11-22T00:01", "2026-11-22T00:11"]),
    ("0 0 3W * ? *", ["2026-12-03T00:00", "2027-01-04T00:00"]),
    ("0 0 L * ? *", ["2026-11-30T00:00", "2026-12-31T00:00"]),
    ("0 0 ? * L *", ["2026-11-28T00:00", "2026-12-05T00:00"]),
    ("23,24 17 25 MAR/4 ? 2020,2027,2028", ["2027-03-25T17:23", "2027-03-25T17:24"]),
    ("0 */9 */1 * ? *", ["2026-11-22T00:00", "2026-11-22T09:00"]),
    ("15 12 ? * sun,mon *", ["2026-11-22T12:15", "2026-11-23T12:15"]),
    ("0-29/20 22 09 05 ? 2027", ["2027-05-09T22:00", "2027-05-09T22:20"]),
    ("30 9 L-2 * ? *", ["2026-11-28T09:30", "2026-12-29T09:30"]),
    ("0 0 LW 1,2 ? *", ["2027-01-29T00:00", "2027-02-26T00:00"]),
    ("0 0 31W 2 ? *", ["2027-02-26T00:00", "2028-02-29T00:00"]),
    ("0 0 1W 8 ? *", ["2027-08-02T00:00", "2028-08-01T00:00"]),
    ("55-5/5 0 1 1 ? *", ["2027-01-01T00:00", "2027-01-01T00:05"]),
    ("0 0 ? * FRI-SUN *", ["2026-11-22T00:00", "2026-11-27T00:00"]),
    ("0 0 ? * FRIL *", ["2026-11-27T00:00", "2026-12-25T00:00"]),
    ("0 0 29 2 ? *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
    ("0 0 1 1 ? 2199", ["2199-01-01T00:00"]),
    ("0 0 31 12 ? 2199", ["2199-12-31T00:00"]),
    ("0 0 1 1 ? 2026", []),
    ("0 0 1 1 ? 1970-2020", []),
    ("0 0 29 2 ? 2100-2110", ["2104-02-29T00:00", "2108-02-29T00:00"]),
    ("0 0 1 1 ? 2026/50", ["2076-01-01T00:00", "2126-01-01T00:00"]),
    ("  0  10\t* * ? * ", ["2026-11-22T10:00", "2026-11-23T10:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), DOCUMENTED)
def test_documented_expressions(expression: str, expected: list[str]) -> None:
    assert times(expression, "2026-11-22T00:00") == expected


REFUSED = [
    ("0 10 * * * *", 5, "exactly one"),
    ("0 10 ? * ? *", 5, "exactly one"),
    ("0 1 * * *", 0, "has 5 fields"),
    ("0 0 1 * * ? *", 0, "has 7 fields"),
    ("", 0, "has 0 fields"),
    ("cron(0 10 * * ? *)", None, "begins with"),
    ("60 * * * ? *", 0, "60 is out of range"),
    ("* 24 * * ? *", 2, "24 is out of range"),
    ("0 0 0 * ? *", 4, "0 is out of range"),
    ("0 0 32 * ? *", 4, "32 is out of range"),
    ("0 0 32W * ? *", 4, "32 is out of range"),
    ("0 0 L-0 * ? *", 4, "in no month"),
    ("0 0 L-31 * ? *", 4, "in no month"),
    ("0 0 1 13 ? *", 6, "13 is out of range"),
    ("0 0 1 0 ? *", 6, "0 is out of range"),
    ("0 0 ? * 0 *", 8, "0 is out of range"),
    ("0 0 ? * 8 *", 8, "8 is out of range"),
    ("0 0 ? * 3#6 *", 8, "no such week"),
    ("0 0 ? * 3#0 *", 8, "no such week"),
    ("0 0 ? * 3#1,6#3 *", 8, "alone"),
    ("0 0 L,15 * ? *", 4, "alone"),
    ("0 0 1,15W * ? *", 6, "alone"),
    ("0 0 L-3W * ? *", 4, "alone"),
    ("0 0 ? * 2,6L *", 10, "alone"),
    ("0 0 W * ? *", 4, "alone"),
    ("0 0 1 * ? 1969", 10, "1969 is out of range"),
    ("0 0 1 * ? 2200", 10, "2200 is out of range"),
    ("0 0 1 * ? 2030-2020", 10, "falls"),
    ("0 0 1 * ? ?", 10, "day only"),
    ("? 0 1 * ? *", 0, "day only"),
    ("0/0 * * * ? *", 0, "step 0"),
    ("0/60 * * * ? *", 0, "step 60"),
    ("5/2/3 * * * ? *", 0, "cannot be read"),
    ("0,,5 * * * ? *", 2, "empty"),
    (",5 * * * ? *", 0, "empty"),
    ("5, * * * ? *", 2, "empty"),
    ("*-5 * * * ? *", 0, "cannot begin"),
    ("-1 * * * ? *", 0, "cannot be read"),
    ("0.5 * * * ? *", 0, "cannot be read"),
    ("0 9 ? * MONDAY *", 8, "'MONDAY'"),
    ("0 9 ? FOO 1 *", 6, "'FOO'"),
    ("0 9 MON * ? *", 4, "'MON'"),
    ("H 9 1 * ? *", 0, "'H'"),
    ("0 0 31 2 ? *", None, "never fires"),
    ("0 0 29 2 ? 2199", None, "never fires"),
    ("0 0 31 4,6 ? 2026-2199", None, "never fires"),
    ("٣ * * * ? *", 0, "printable ASCII"),
    ("00000 * * * ? *", 0, "4 digits"),
    ("0 0 1 * ? " + "2026," * 60 + "2026", 256, "characters"),
]


@pytest.mark.parametrize(("expression", "position", "part"), REFUSED)
def test_refusals_name_the_place_and_what_is_accepted(
    expression: str, position: int | None, part: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        by_eventbridge(expression)
    error = caught.value
    assert error.field == "schedule.cron"
    assert part in str(error)
    assert error.position == position
    assert error.accepted


@pytest.mark.parametrize("value", [None, 5, 1.5, b"0 0 1 * ? *", ["*"], {"a": 1}, object(), True])
def test_a_cron_that_is_no_text(value: object) -> None:
    with pytest.raises(InvalidInput):
        parse_schedule({"cron": value, "dialect": "eventbridge"}, job_key="a", now=0)


@pytest.mark.parametrize("key", ["dialect", "dst"])
@pytest.mark.parametrize("value", ["quartz", "", 1, True, ["minute8"], {}])
def test_rules_that_are_not_known(key: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_schedule({"cron": "* * * * *", key: value}, job_key="a", now=0)
    assert caught.value.field == f"schedule.{key}"
    assert "minute8 or eventbridge" in caught.value.accepted


@pytest.mark.parametrize("timing", [{"every": "1h"}, {"at": "2026-11-22T00:00:00Z"}])
@pytest.mark.parametrize("key", ["dialect", "dst"])
def test_rules_go_with_cron_only(key: str, timing: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="goes with `cron` only"):
        parse_schedule({**timing, key: "eventbridge"}, job_key="a", now=0)


@pytest.mark.long
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=_SLOW)
@given(reference.expressions(), st.integers(1970, 2198))
def test_dates_agree_with_brute_force_in_any_two_years(expression: str, year: int) -> None:
    expression = " ".join(["0", "12", *expression.split()[2:]])
    expected = reference.dates(expression, (year, year + 1))
    try:
        schedule = by_eventbridge(expression)
    except InvalidInput as error:
        assert "never fires" in str(error)
        assert expected == []
        return
    start, end = (int(datetime(begin_year, 1, 1, tzinfo=UTC).timestamp()) for begin_year in (year, year + 2))
    assert [rfc3339(at)[:10] for at in fires(schedule, start, end)] == expected
    assert count_fires(schedule, start, end) == len(expected)
    if expected:
        assert rfc3339(next_fires(schedule, start, 1)[0])[:10] == expected[0]
        assert rfc3339(newest_fires(schedule, start, end, 1)[0])[:10] == expected[-1]


@pytest.mark.long
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=_SLOW)
@given(st.sampled_from(ZONES), st.integers(0, 10_000), reference.expressions(any_date=True))
def test_times_agree_with_brute_force_around_clock_changes(zone: str, nth: int, expression: str) -> None:
    zone_changes = changes(zone, 946_684_800, 2_145_916_800)
    change = zone_changes[nth % len(zone_changes)]
    start, end = change.at - 10_800, change.at + 10_800
    start -= start % 60
    minutes = range(start, end, 60)
    schedule = by_eventbridge(expression, zone)
    assert list(fires(schedule, start, end)) == reference.matching(expression, zone, minutes)
    assert count_fires(schedule, start, end) == len(list(fires(schedule, start, end)))
    for first in range(start, end, WINDOW_S):
        part = list(fires(schedule, first, first + WINDOW_S))
        assert part == reference.matching(expression, zone, range(first, first + WINDOW_S, 60))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=_SLOW)
@given(reference.expressions(), st.sampled_from(ZONES), st.integers(1_600_000_000, 2_300_000_000))
def test_a_group_is_due_and_listed_whenever_a_member_fires(expression: str, zone: str, after: int) -> None:
    try:
        schedule = by_eventbridge(expression, zone)
    except InvalidInput:
        assume(False)
    key = group_key(schedule)
    for at in next_fires(schedule, after, 3):
        if at < 2_366_841_600:
            start = at // WINDOW_S * WINDOW_S
            assert group_can_fire(key, start, start + WINDOW_S)
            assert set(places(key)) & set(places_of(start, start + WINDOW_S))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=_SLOW)
@given(reference.expressions())
def test_minute8s_own_expression_has_the_same_masks(expression: str) -> None:
    known = as_minute8(expression)
    if known is not None:
        timing = parse_schedule({"cron": known}, job_key="a", now=0).timing
        assert compiled(timing) == in_all_clocks(by_eventbridge(expression).timing)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "expression", ["0 0 ? * 2#1 *", "0 0 LW * ? *", "0/5 22-2 ? * FRIL *", "0 9 ? * L *"]
)
def test_expressions_that_minute8s_dialect_has(expression: str) -> None:
    assert as_minute8(expression)


@pytest.mark.parametrize("expression", ["0 0 L-3 * ? *", "0 0 1 * ? 2027", "0 23-3/2 * * ? *"])
def test_expressions_that_minute8s_dialect_lacks(expression: str) -> None:
    assert as_minute8(expression) is None


def test_the_stored_form_is_canonical() -> None:
    schedule = by_eventbridge(" 0  9 ? * mon-fri 2027", "Europe/Paris")
    item = to_builtins(schedule)
    assert item == {
        "cron": "0 9 ? * MON-FRI 2027",
        "timezone": "Europe/Paris",
        "dialect": "eventbridge",
        "dst": "eventbridge",
    }
    assert convert(item, Schedule) == schedule


def test_the_rule_for_clock_changes_alone_is_stored() -> None:
    schedule = Schedule.of(CronTiming("30 2 * * *", "Europe/Paris", dst=EVENTBRIDGE))
    assert to_builtins(schedule) == {
        "cron": "30 2 * * *", "timezone": "Europe/Paris", "dst": "eventbridge"
    }  # fmt: skip
    assert convert(to_builtins(schedule), Schedule) == schedule


def test_a_year_far_away_costs_little_to_find() -> None:
    """Years in between are not walked through, also where nothing comes."""
    schedule = by_eventbridge("0 0 29 2 ? 2196")
    assert rfc3339(next_fires(schedule, 0, 5)[0]) == "2196-02-29T00:00:00Z"
    assert next_fires(by_eventbridge("0 0 1 1 ? 1971"), 1_800_000_000, 5) == []
    assert newest_fires(by_eventbridge("0 0 1 1 ? 1971"), 0, 7 * 10**9, 3) == [31_536_000]
    assert list(compiled(schedule.timing).stretches(0, 10**9)) == []  # type: ignore[arg-type]


def test_ordinary_crons_have_no_years() -> None:
    cron = compile_cron("0 0 * * *")
    assert list(cron.stretches(5, 10)) == [(5, 10)]
    assert type(compiled(by_eventbridge("0 0 * * ? *").timing)) is type(cron)  # type: ignore[arg-type]
    assert ever_fires(cron)


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_a_year_is_a_local_one(zone: str) -> None:
    schedule = by_eventbridge("0 0 1 1 ? 2027", zone)
    first = next_fires(schedule, 1_700_000_000, 3)
    minutes = range(1_798_761_600 - 2 * DAY_S, 1_798_761_600 + 2 * DAY_S, 60)
    assert first == reference.matching("0 0 1 1 ? 2027", zone, minutes)
    schedule = by_eventbridge("59 23 31 12 ? 2026", zone)
    assert next_fires(schedule, 1_700_000_000, 3) == reference.matching("59 23 31 12 ? 2026", zone, minutes)
