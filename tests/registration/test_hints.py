"""A usual mistake is answered by what to write instead, and what is proposed is accepted."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.hints import duration_hint, instant_hint
from common.jobs.spec import Retry
from common.registration.definition import (
    JobDefinition,
    Limits,
    ScheduleDefinition,
    parse_definition,
)
from common.registration.schedule_text import parse_schedule
from common.registration.target_definitions import MODELS
from common.timing.durations import parse_duration, parse_instant


def accepted(**raw: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse_schedule(raw, job_key="alice/report", now=1_763_694_600)
    return caught.value.accepted


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("@every 5m", '"every": "5m" in the place of cron'),
        ("every 90 minutes", '"every": "1h30m" in the place of cron'),
        ("rate(5 minutes)", '"every": "5m" in the place of cron'),
        ("RATE(1 day)", '"every": "1d" in the place of cron'),
        ("5m", '"every": "5m" in the place of cron'),
        ("at(2026-12-24T08:00:00)", '"at": "2026-12-24T08:00:00Z" in the place of cron'),
        ("cron(0 9 * * ? *)", "without the year: 0 9 * * ?"),
        ("cron(0 9 ? * 2-6 *)", "without the year, and with Sunday as 0: 0 9 ? * 1-5"),
        ("0 9 * * ? *", "without the year: 0 9 * * ?"),
        ("0 9 * * * 2026", "without the year 2026, for which start_at and end_at stand: 0 9 * * *"),
        (
            "30 0 12 ? * 2-6 2027",
            "without the year 2027, for which start_at and end_at stand, and with Sunday as 0: 30 0 12 ? * 1-5",
        ),
        ('"0 9 * * *"', "without the quotes: 0 9 * * *"),
        ("'@daily'", "without the quotes: @daily"),
        ("daily", "@daily"),
        ("0 9 * * MONDAY", "names have three letters: 0 9 * * MON"),
        ("0 9 * * monday-Friday", "names have three letters: 0 9 * * MON-FRI"),
        ("0 9 * JANUARY,may *", "names have three letters: 0 9 * JAN,may *"),
        ("0 9 * * Tues", "names have three letters: 0 9 * * TUE"),
        ("9:30", "minute and hour first: 30 9 * * *"),
        ("9am", "minute and hour first: 0 9 * * *"),
        ("12 AM", "minute and hour first: 0 0 * * *"),
        ("12pm", "minute and hour first: 0 12 * * *"),
        ("CRON_TZ=Europe/Paris 0 9 * * *", "the zone as timezone (Europe/Paris), and as cron: 0 9 * * *"),
        ("0 9 * * * Asia/Kuala_Lumpur", "the zone as timezone (Asia/Kuala_Lumpur), and as cron: 0 9 * * *"),
        (
            "0 9 * * MON-FRI America/New_York",
            "the zone as timezone (America/New_York), and as cron: 0 9 * * MON-FRI",
        ),
        (
            "CRON_TZ=GMT+5 0 9 * * *",
            "the zone as timezone (an IANA time zone name, perhaps 'Etc/GMT-5', which is UTC+5 all year), "
            "and as cron: 0 9 * * *",
        ),
        ("0 9 ? * 2-6 *", "without the year, and with Sunday as 0: 0 9 ? * 1-5"),
        ("0 9 ? * 2#1 *", "without the year, and with Sunday as 0: 0 9 ? * 1#1"),
        ("cron(0 9 ? * 6L *)", "without the year, and with Sunday as 0: 0 9 ? * L5"),
        ("cron(0 9 ? * L *)", "without the year, and with Sunday as 0: 0 9 ? * 6"),
        ("0 0 12 * * 1-5 *", "without the year: 0 0 12 * * 1-5"),
        ("0 9 * * FRIL", "the last Friday of the month: 0 9 * * L5"),
        (
            "0 9 * * 6L",
            "if 0 is Sunday, the last Saturday: 0 9 * * L6; if 1 is Sunday, the last Friday: 0 9 * * L5",
        ),
        (
            "0 9 * * 1L",
            "if 0 is Sunday, the last Monday: 0 9 * * L1; if 1 is Sunday, the last Sunday: 0 9 * * L0",
        ),
        (
            "0 9 * * L",
            "the last day of the month: 0 9 L * *; or Saturday, as AWS reads L: 0 9 * * 6",
        ),
        (
            "CRON_TZ=America/New_York 0 9 ? * 2-6 *",
            "the zone as timezone (America/New_York), and as cron: "
            "without the year, and with Sunday as 0: 0 9 ? * 1-5",
        ),
        *(
            (cron, f"what cron makes of it: {instead}")
            for cron, instead in (
                ("0 */24 * * *", "0 0 * * *"),
                ("*/60 * * * *", "0 * * * *"),
                ("*/90 * * * *", "0 * * * *"),
                ("0 0 1 */12 *", "0 0 1 1 *"),
                ("0 0 * * */7", "0 0 * * 0"),
                ("0 0 */31 * *", "0 0 1 * *"),
                ("5/100 1-3/30,7 * * *", "5 1,7 * * *"),
                ("H/60 * * * *", "H * * * *"),
                ("*/60 0 9 * * *", "0 0 9 * * *"),
            )
        ),
        (
            "0 */24 * * * Europe/Paris",
            "the zone as timezone (Europe/Paris), and as cron: what cron makes of it: 0 0 * * *",
        ),
        ("Mon *-*-* 09:00:00", "minute and hour first: 0 9 * * MON"),
        ("Mon,Fri *-*-8..14 12:00", "minute and hour first: 0 12 * * MON#2,FRI#2"),
        ("OnCalendar=weekly", "without the key: 0 0 * * 1"),
        ("quarterly", "0 0 1 1,4,7,10 *"),
        ("2027-01-01 12:00:00", '"at": "2027-01-01T12:00:00Z" in the place of cron'),
        ("every day at 9", "minute and hour first: 0 9 * * *"),
        ("daily at noon", "minute and hour first: 0 12 * * *"),
        ("on Tuesday and thursday at 8", "minute and hour first: 0 8 * * TUE,THU"),
        ("monday to friday, at 9 and 17", "minute and hour first: 0 9,17 * * MON-FRI"),
        ("every hour", "0 * * * *"),
        ("0 9 * * 1–5", "in plain characters: 0 9 * * 1-5"),
        ("“0 9 * * 1-5”\n", "in plain characters: 0 9 * * 1-5"),
        ("cron ('0 9 * * ? *'", "without the year: 0 9 * * ?"),
        ("0 9 * * Asia/Kuala_Lumpur", "the zone as timezone (Asia/Kuala_Lumpur), and as cron: 0 9 * * *"),
        ("Europe/Berlin 0 9 * * *", "the zone as timezone (Europe/Berlin), and as cron: 0 9 * * *"),
        ("0 9 * * * Etc/GMT-3", "the zone as timezone (Etc/GMT-3), and as cron: 0 9 * * *"),
        ("Mon..Fri *-*-* 09:00:30", "minute and hour first: 30 0 9 * * MON-FRI"),
        ("*-*-01 04:05", "minute and hour first: 5 4 1 * *"),
        ("*-*-* *:0/15:00", "minute and hour first: 0/15 * * * *"),
        ("OnCalendar=hourly", "without the key: @hourly"),
        ("every day 09:00", "minute and hour first: 0 9 * * *"),
        ("every monday 09:00", "minute and hour first: 0 9 * * MON"),
        ("every weekday at 17:05", "minute and hour first: 5 17 * * MON-FRI"),
        ("Hourly at :30", "minute and hour first: 30 * * * *"),
        ("Daily at 7:30 AM UTC", "the zone as timezone (UTC), and as cron: minute and hour first: 30 7 * * *"),
        ("1.day at: '4:30 am'", "minute and hour first: 30 4 * * *"),
        ("every 1.day, at: '4:30 pm'", "minute and hour first: 30 16 * * *"),
        ("every 5.minutes", '"every": "5m" in the place of cron'),
        ("1st monday of month 09:00", "minute and hour first: 0 9 * * MON#1"),
        (
            "2nd,third mon,wednesday of march,jul 17:05",
            "minute and hour first: 5 17 * MAR,JUL MON#2,WED#2,MON#3,WED#3",
        ),
        ("1,15 of month 09:00", "minute and hour first: 0 9 1,15 * *"),
        ("crontab(minute=0, hour='9-17')", "the five fields: 0 9-17 * * *"),
        ("crontab(0, 7, day_of_week=\"mon, fri\",)", "the five fields: 0 7 * * mon,fri"),
        ("crontab(minute='*/60')", "the five fields: what cron makes of it: 0 * * * *"),
        ("crontab()", "the five fields: * * * * *"),
        ('{"cron": "*/5 * * * *"}', "without the key: */5 * * * *"),
        ('schedule: "*/5 * * * *"', "without the key: */5 * * * *"),
        ("- cron: '0 9 * * *'", "without the key: 0 9 * * *"),
        ("2#1", "a time before the day, such as midnight: 0 0 * * 2#1"),
        (
            "1L",
            "a time before the day, such as midnight: if 0 is Sunday, the last Monday: 0 0 * * L1; "
            "if 1 is Sunday, the last Sunday: 0 0 * * L0",
        ),
        ("@once", '"at" with a time in the place of cron; or any cron with "max_runs": 1'),
        ("None", '"state": "paused" with any cron, such as @yearly: nothing fires by itself'),
        ("@continuous", '"every" with a duration in the place of cron, and "overlap": "skip"'),
        ("'0 9 * * MONDAY'", "without the quotes: names have three letters: 0 9 * * MON"),
    ],
)  # fmt: skip
def test_a_cron_mistake(expression: str, instead: str) -> None:
    assert accepted(cron=expression) == instead
    if not instead.startswith('"'):
        proposed = re.sub(r"^.*: ", "", instead)
        assert parse_schedule({"cron": proposed}, job_key="a/b", now=0)


@pytest.mark.parametrize("expression", ["0 9 LW * *", "cron(0 9 LW * ? *)", "0 9 LW * ? *"])
def test_what_only_the_other_dialect_has(expression: str) -> None:
    assert accepted(cron=expression) == '"cron": "0 9 LW * ? *" with "dialect": "eventbridge"'
    assert parse_schedule({"cron": "0 9 LW * ? *", "dialect": "eventbridge"}, job_key="a/b", now=0)


@pytest.mark.parametrize("expression", ["~ 3 * * *", "0~30 3 * * *", "R 3 * * *"])
def test_a_random_time_has_an_equal(expression: str) -> None:
    assert accepted(cron=expression).startswith("`H`")


@pytest.mark.parametrize(
    ("expression", "of_aws"),
    [
        ("cron(0 9 ? * 2#1 2026)", "0 9 ? * 2#1 2026"),
        ("cron(15 12 * * ? 2027)", "15 12 * * ? 2027"),
        ("0 0 9 ? * MON-FRI 2026-2030", "0 9 ? * MON-FRI 2026-2030"),
        ("0 15 10 L-2 * ?", "15 10 L-2 * ? *"),
    ],
)
def test_years_and_counted_last_days_keep_the_dialect(expression: str, of_aws: str) -> None:
    assert accepted(cron=expression) == f'"cron": "{of_aws}" with "dialect": "eventbridge"'
    assert parse_schedule({"cron": of_aws, "dialect": "eventbridge"}, job_key="a/b", now=0)


@pytest.mark.parametrize(
    ("every", "instead"),
    [("24h", "1d"), (172_800, "2d"), ("1 month", "1mo"), ("1h", "whole days, such as 2w or 3mo")],
)
def test_a_zone_needs_whole_days(every: str | int, instead: str) -> None:
    assert f"; or {instead}, at the same local time" in accepted(every=every, timezone="America/New_York")


@pytest.mark.parametrize(
    "text",
    [
        "crontab(day_of_month=1, day_of_week=1)",
        "crontab(minute=x)",
        "crontab(0, 1, 2)",
        "6th fri of x 9:00",
        # Both have to match in systemd; no weekday begins like these; the fifteenth is not the fifth.
        "Fri *-*-13 00:00",
        "every month at 9:00",
        "sunrise 9:00",
        "fifteenth of month 09:00",
    ],
)
def test_other_schedulers_words_without_an_equal_are_no_guess(text: str) -> None:
    assert accepted(cron=text).startswith(("5 fields", "0-59"))


def test_a_time_without_an_offset_beside_a_zone_keeps_the_zone() -> None:
    fields = {"cron": "0 9 * * *", "timezone": "America/New_York", "start_at": "2027-01-01T00:00:00"}
    assert accepted(**fields) == "2027-01-01T00:00:00-05:00"
    assert parse_schedule(fields | {"start_at": "2027-01-01T00:00:00-05:00"}, job_key="a/b", now=0)


@pytest.mark.parametrize(
    "expression", ["0", "0 9 * *", "60 * * * *", "0 9 31 2 *", "@reboot", "cron()", "", "'"]
)
def test_a_refusal_without_a_hint_keeps_its_text(expression: str) -> None:
    assert "in the place" not in accepted(cron=expression)
    assert "without" not in accepted(cron=expression)


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        ("5 minutes", "5m"),
        ("5min", "5m"),
        ("1.5h", "1h30m"),
        ("@every 10s", "10s"),
        ("300", "5m"),
        ("1M", "1m for minutes; 1mo with a timezone for months"),
        ("often", "whole seconds as a number, `90m`"),
    ],
)
def test_a_duration(value: str, instead: str) -> None:
    assert accepted(every=value).startswith(instead)


@pytest.mark.parametrize(
    ("fields", "instead"),
    [
        ({"at": "2026-12-24"}, "2026-12-24T00:00:00Z, or a local time with a timezone"),
        ({"at": "2026-12-24 08:00"}, "2026-12-24T08:00Z, or a local time with a timezone"),
        ({"at": "1795230900"}, "2026-11-21T03:15:00Z, or a local time with a timezone"),
        ({"at": "2026-12-24T08:00:00+01"}, "2026-12-24T08:00:00+01:00, or a local time with a timezone"),
        ({"at": "2026-12-24", "timezone": "Europe/Paris"}, "2026-12-24T00:00:00"),
        ({"at": "2026-12-24T08:00:00.123Z"}, "2026-12-24T08:00:00Z, or a local time with a timezone"),
        ({"at": "2026-02-30"}, "an RFC 3339 time of 1970-2199"),
        ({"at": "2200-01-01"}, "an RFC 3339 time of 1970-2199"),
        ({"every": "1h", "end_at": "2026-12-24"}, "2026-12-24T00:00:00Z"),
        ({"at": "tomorrow"}, "an RFC 3339 time"),
    ],
)
def test_a_time(fields: dict[str, object], instead: str) -> None:
    assert accepted(**fields).startswith(instead)


@given(st.text(max_size=140) | st.integers() | st.none() | st.booleans())
def test_a_hint_is_always_acceptable_and_nothing_fails(value: object) -> None:
    for key in ("cron", "every", "at"):
        with suppress(InvalidInput):
            parse_schedule({key: value}, job_key="a/b", now=0)
    if (duration := duration_hint(value)) and not duration.startswith("the number"):
        parse_duration(duration)
    if instant := instant_hint(value):
        try:
            parse_instant(instant, "at")
        except InvalidInput as error:
            assert "time" in error.message or "year" in error.message  # a date that no calendar has


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10**7) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_INNER = {name for model in (ScheduleDefinition, Retry, *MODELS.values()) for name in model.__struct_fields__}
_FIELD = st.sampled_from([*JobDefinition.__struct_fields__, "cron"])


@given(
    st.dictionaries(
        _FIELD, _ANY | st.dictionaries(st.sampled_from(sorted(_INNER)), _ANY, max_size=4), max_size=5
    )
)
def test_no_words_of_a_library_reach_a_client(raw: dict[str, object]) -> None:
    try:
        parse_definition(raw, Limits())
    except InvalidInput as refusal:
        refusals = (refusal, *refusal.also)
    else:
        return
    for error in refusals:
        assert not re.search(r"\b[Ii]nput|pydantic|[Vv]alidat|\bshould\b|dictionary", error.message), error
        assert not re.search(r"\b[Ii]nput|pydantic|[Vv]alidat|\bshould\b", error.accepted), error


@pytest.mark.parametrize(
    ("zone", "instead"),
    [
        ("paris", "perhaps 'Europe/Paris'"),
        ("New York", "perhaps 'America/New_York'"),
        ("US/New_York", "perhaps 'America/New_York'"),
        ("Europe/Belin", "perhaps 'Europe/Berlin'"),
        ("CEST", "perhaps 'Europe/Berlin'"),
        ("UTC+2", "perhaps 'Etc/GMT-2', which is UTC+2 all year"),
        ("-05:00", "perhaps 'Etc/GMT+5', which is UTC-5 all year"),
        ("+05:30", "such as 'Europe/Berlin' or 'UTC'"),
        ("", "such as 'Europe/Berlin' or 'UTC'"),
    ],
)
def test_a_zone(zone: str, instead: str) -> None:
    assert accepted(cron="0 9 * * *", timezone=zone).endswith(instead)


@pytest.mark.parametrize(
    ("definition", "field", "instead"),
    [
        ({"schedule": "0 9 * * *"}, "schedule", '{"cron": "0 9 * * *"}'),
        ({"schedule": "90m"}, "schedule", '{"every": "90m"}'),
        ({"schedule": "2027-01-01T00:00:00Z"}, "schedule", '{"at": "2027-01-01T00:00:00Z"}'),
        ({"schedule": "every day at 9"}, "schedule", 'an object with "cron"; minute and hour first: 0 9 * * *'),
        ({"schedule": "every 2 hours"}, "schedule", '{"every": "2h"}'),
        ({"schedule": "cron(0 9 ? * 2 2027)"}, "schedule", '{"cron": "0 9 ? * 2 2027", "dialect": "eventbridge"}'),
        ({"schedule": "soon"}, "schedule", 'an object such as {"every": "90m"}'),
        ({"schedule": {"cron": "0 9 * * *", "tz": "UTC"}}, "schedule.tz", "timezone, perhaps; the fields cron,"),
        ({"schedule": {"every": "5m", "anchor_at": "x"}}, "schedule.anchor_at", "anchor, perhaps; the fields"),
        ({"schedule": {"schedules": [{"every": "1h", "cap": 2}]}}, "schedule.schedules.0.cap", "the fields cron,"),
        ({"timeout_s": "5m"}, "timeout_s", "the number of seconds, 300"),
        ({"timout_s": 5}, "timout_s", "timeout_s, perhaps; the fields name,"),
        ({"retry": {"max_age_s": "1 hour"}}, "retry.max_age_s", "the number of seconds, 3600"),
    ],
)  # fmt: skip
def test_a_definition_mistake(definition: dict[str, object], field: str, instead: str) -> None:
    target = {"kind": "lambda", "arn": "arn:aws:lambda:eu-west-1:123456789012:function:report"}
    with pytest.raises(InvalidInput) as caught:
        parse_definition({"schedule": {"every": "1h"}, "target": target} | definition, Limits())
    assert caught.value.field == field
    assert caught.value.accepted.startswith(instead)


@pytest.mark.parametrize(
    ("zone", "meant"),
    [
        ("Pacific Time", "America/Los_Angeles"),
        ("eastern standard time", "America/New_York"),
        ("US Mountain", "America/Denver"),
        ("W. Europe Standard Time", "Europe/Berlin"),
        ("Central European Summer Time", "Europe/Berlin"),
    ],
)
def test_a_zone_as_people_say_it(zone: str, meant: str) -> None:
    assert accepted(cron="0 9 * * *", timezone=zone) == f"an IANA time zone name, perhaps '{meant}'"
