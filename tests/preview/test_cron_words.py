"""Cron expressions in words: the usual ones word for word, and 3,000 others, of which no two sound the same."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given, settings

from common.errors import InvalidInput
from common.preview.words import cron_words
from common.timing.cron import Cron, compile_cron
from common.timing.eventbridge_cron import compile_eventbridge, read_eventbridge
from tests.timing import eventbridge_reference, reference


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "Every minute"),
        ("* * * * * *", "Every second"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("*/5 * * * 1-5", "Every 5 minutes, Monday through Friday"),
        ("*/7 * * * *", "Every 7 minutes from minute 0 through 56 of every hour"),
        ("1-56/5 * * * *", "Every 5 minutes from minute 1 through 56 of every hour"),
        ("5 * * * *", "At minute 5 of every hour"),
        ("0 * * * *", "Every hour"),
        ("0 */2 * * *", "Every 2 hours"),
        ("30 */2 * * *", "At minute 30 of every 2nd hour"),
        ("30 */12 * * *", "At 00:30 and 12:30"),
        ("30 2 * * *", "At 02:30"),
        ("15 30 2 * * *", "At 02:30:15"),
        ("0 9,17 1,15 * *", "At 09:00 and 17:00, on days 1 and 15 of the month"),
        ("30 9-17 * * *", "Every hour from 09:30 through 17:30"),
        ("0 22-5 * * *", "Every hour from 22:00 through 05:00"),
        ("0 1-23/3 * * *", "Every 3 hours from 01:00 through 22:00"),
        ("*/15 22-3 * * *", "Every 15 minutes, between 22:00 and 03:59"),
        ("*/15 9,12,17 * * *", "Every 15 minutes of hours 9, 12 and 17"),
        ("5,20,35 1-5/2 * 2,4 *", "At minutes 5, 20 and 35 of hours 1, 3 and 5, in February and April"),
        ("0 0 * * 0,6", "At 00:00, on Saturday and Sunday"),
        ("15 */5 * * * *", "At second 15 of every 5th minute"),
        ("15 5 * * * *", "At second 15 of minute 5 of every hour"),
        ("*/10 5,20 * * * *", "Every 10 seconds of minutes 5 and 20 of every hour"),
        ("0 0 13 * 5", "At 00:00, on day 13 of the month or on Friday"),
        ("0 0 1-31 * 1", "At 00:00, on days 1 through 31 of the month or on Monday"),
        ("0 0 */2 * *", "At 00:00, on every 2nd day from 1 through 31 of the month"),
        ("0 0 15,L 1-6 *", "At 00:00, on day 15 and the last day of the month, in January through June"),
        ("0 0 31W * *", "At 00:00, on the last weekday of the month"),
        ("0 0 * * 5-7", "At 00:00, Friday through Sunday"),
        ("0 9 * * 1#2,L5", "At 09:00, on the second Monday and the last Friday of the month"),
    ],
)  # fmt: skip
def test_the_words(expression: str, words: str) -> None:
    assert cron_words(compile_cron(expression)) == words


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 0 LW * ? *", "At 00:00, on the last weekday of the month"),
        ("0 0 L-3 * ? *", "At 00:00, on the 3rd day before the last day of the month"),
        ("0 9 ? * 6L 2027", "At 09:00, on the last Friday of the month, in the year 2027"),
        ("0 9 1 * ? 2027-2030", "At 09:00, on day 1 of the month, in the years 2027 through 2030"),
        ("0 9 ? * 2#1 1970/2", "At 09:00, on the first Monday of the month, in every 2nd year from 1970 through 2198"),
    ],
)  # fmt: skip
def test_the_words_of_eventbridges_expressions(expression: str, words: str) -> None:
    assert cron_words(compile_eventbridge(expression)) == words


def test_no_two_that_fire_at_different_times_sound_the_same() -> None:
    minutes = ("*", "*/2", "*/7", "0", "5", "0,30", "5-20", "2-58/7", "0,1,2,9", "4/4")
    hours = ("*", "*/2", "*/12", "3", "9-17", "22-3", "9,12,17", "1-23/3", "4/4", "0,1,2,5,9,11,20,23")
    days = ("*", "1", "1,15", "1-31", "*/2", "L", "15,L", "15W", "31W", "1-7")
    months = ("*", "1", "1-6", "*/2", "2,4")
    weekdays = ("*", "1-5", "0", "5-7", "1,3,5", "1#2", "L5", "1#1,1#2,1#3,1#4,1#5")
    chance = random.Random(13)
    cron_by_words: dict[str, Cron] = {}
    for _ in range(3_000):
        fields = [chance.choice(field) for field in (minutes, minutes, hours, days, months, weekdays)]
        if fields[3] != "*" and any(progress in f"{fields[3]} {fields[5]}" for progress in ("W", "#", "L5")):
            fields[5] = "*"
        cron = compile_cron(" ".join(fields[chance.randint(0, 1) :]))
        assert _times(cron_by_words.setdefault(cron_words(cron), cron)) == _times(cron), fields
    assert len(cron_by_words) > 2_500


@settings(max_examples=100, deadline=None)
@given(reference.expressions(), eventbridge_reference.expressions())
def test_every_expression_has_words(expression: str, eventbridge_expression: str) -> None:
    crons = [compile_cron(expression)]
    with suppress(InvalidInput):  # some name dates that never come
        crons.append(compile_eventbridge(read_eventbridge(eventbridge_expression)))
    for cron in crons:
        words = cron_words(cron)
        assert words[0].isupper() and ", ," not in words and not words.endswith(" ")


def _times(cron: Cron) -> tuple[object, ...]:
    """What decides when it fires, apart from clock changes."""
    dates = (cron.days | cron.weekdays,) if cron.either_day else (cron.days, cron.weekdays)
    return cron.seconds, cron.minutes, cron.hours, cron.months, dates
