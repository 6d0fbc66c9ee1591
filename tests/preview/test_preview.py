"""The preview: times, words, warnings, the bulk form, the picture, the command."""

from __future__ import annotations

import json
import time

import pytest
import typer
from typer.testing import CliRunner

from common.errors import InvalidInput
from common.preview.preview import preview as look_ahead
from common.timing.durations import parse_instant
from minute8.cli.clock_picture import clock_pictures
from minute8.cli.commands.preview import answer_line, draw_rows, preview
from tests.cli.clock_change_picture import IMAGE, image
from tests.timing.reference import cron

NOW = parse_instant("2026-01-01T00:00:00Z", "now")
APP = typer.Typer()
APP.command()(preview)


def test_times_in_utc_and_in_the_zone() -> None:
    ahead = look_ahead({"cron": "30 9 * * MON-FRI", "timezone": "Europe/Berlin"}, now=NOW, count=2)
    assert [(fire.utc, fire.local) for fire in ahead.fires] == [
        ("2026-01-01T08:30:00Z", "2026-01-01T09:30:00+01:00"),
        ("2026-01-02T08:30:00Z", "2026-01-02T09:30:00+01:00"),
    ]
    assert ahead.sentence == "At 09:30, Monday through Friday, in Europe/Berlin"
    assert ahead.warnings == ()


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"cron": "9 2-23/24 * * *"}, "At 02:09, in UTC"),
        ({"cron": "0 0 * * L5"}, "At 00:00, on the last Friday of the month, in UTC"),
        (
            {"cron": "0 0 * * 1#2,3#4"},
            "At 00:00, on the second Monday and the fourth Wednesday of the month, in UTC",
        ),
        ({"cron": "0 0 15W * *"}, "At 00:00, on the weekday nearest day 15 of the month, in UTC"),
        ({"every": "90m"}, "Every 1h30m of elapsed time, in step with 2026-01-01T00:00:00Z"),
        ({"at": "2026-03-29T02:30:00", "timezone": "Europe/Berlin"}, "Once, at 2026-03-29T01:00:00Z"),
        (
            {
                "every": "1h",
                "start_at": "2026-01-01T00:00:00Z",
                "exclude": {"dates": ["2026-01-01"]},
                "jitter_s": 9,
            },
            "Every 1h of elapsed time, in step with 2026-01-01T00:00:00Z, from 2026-01-01T00:00:00Z, "
            "except on 1 date, each up to 9 s later",
        ),
    ],
)
def test_sentences(raw: dict[str, object], sentence: str) -> None:
    assert look_ahead(raw, now=NOW).sentence == sentence


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ({"cron": "30 2 * * *", "timezone": "America/New_York"}, "2026-03-08, 02:00 -> 03:00 (1h forward)"),
        ({"cron": "30 1 * * *", "timezone": "America/New_York"}, "comes twice: it fires the first time only"),
        ({"cron": "*/30 1 * * *", "timezone": "America/New_York"}, "both passes"),
        ({"cron": "0 0 1 * 1"}, "when either matches"),
        ({"cron": "0 0 29 2 *"}, "rarely"),
        ({"cron": "0 0 31 * *"}, "Months without a day 31"),
        ({"cron": "9 2-23/24 * * *"}, "means just 2"),
        ({"cron": "*/7 * * * *"}, "not divisible by 7"),
        ({"every": "1m", "jitter_s": 90}, "may swap"),
        ({"at": "2025-12-31T23:59:59Z"}, "any more"),
        ({"cron": "0 9 * * 1-5", "on_excluded": "next"}, 'exclude.weekdays ["sat", "sun"] keeps it off'),
        ({"every": "1h", "exclude": {"calendars": ["holidays"]}}, "holidays"),
    ],
)
def test_warnings(raw: dict[str, object], part: str) -> None:
    assert any(part in warning for warning in look_ahead(raw, now=NOW).warnings)


@pytest.mark.parametrize(
    "expression", ["*/15 * * * *", "30 12 * * *", "0 * * * *", "0 9 * * 1-5", "0 0 L * *"]
)
def test_plain_schedules_have_no_warnings(expression: str) -> None:
    assert look_ahead({"cron": expression, "timezone": "Europe/Berlin"}, now=NOW).warnings == ()


@pytest.mark.parametrize("count", [0, 10_001, True, "5", None])
def test_counts_are_bounded(count: int) -> None:
    with pytest.raises(InvalidInput):
        look_ahead({"every": "1h"}, now=NOW, count=count)


def test_lines() -> None:
    line = {
        "id": 7,
        "every": "30m",
        "from": "2025-01-01T00:00:00Z",
        "until": "2025-01-01T01:30:00Z",
        "timezone": None,
    }
    assert json.loads(answer_line(json.dumps(line), now=NOW)) == {
        "id": 7,
        "fire_times": ["2025-01-01T00:00:00Z", "2025-01-01T00:30:00Z", "2025-01-01T01:00:00Z"],
    }
    inclusive = {
        "id": "a",
        "cron": "0 3 * * *",
        "timezone": "America/New_York",
        "from": "2025-03-09T07:00:00Z",
        "count": 1,
    }
    assert json.loads(answer_line(json.dumps(inclusive), now=NOW))["fire_times"] == ["2025-03-09T07:00:00Z"]


@pytest.mark.parametrize(
    "line",
    [
        "nope",
        "[1]",
        "",
        "null",
        b"\xff\xfe",
        "[" * 100_000,
        '{"id": ' + "9" * 5000 + "}",
        '{"id": "x", "cron": "R * * * *"}',
        '{"every": "1h", "count": -1}',
        '{"every": "1h", "from": 5}',
        '{"every": "1h", "extra": 1}',
        '{"at": {}}',
    ],
)
def test_lines_that_are_refused(line: str | bytes) -> None:
    answer = json.loads(answer_line(line, now=NOW))
    assert answer["error"]["type"] == "InvalidInput"
    assert answer["error"]["message"]


def test_thousands_of_lines_a_second() -> None:
    lines = [
        json.dumps({"id": n, "cron": f"{n % 60} {n // 60 % 24} * * *", "timezone": "Europe/Berlin"})
        for n in range(1000)
    ]
    began = time.process_time()
    for line in lines:
        answer_line(line, now=NOW)
    assert time.process_time() - began < 1


def _rows(expression: str, zone: str, now: int = NOW) -> list[list[str]]:
    pictures = clock_pictures(cron(expression, zone), zone, now)
    return [[row.plain.rstrip() for row in draw_rows(picture)] for picture in pictures]


def test_the_picture_shows_the_gap_and_both_passes() -> None:
    spring, autumn = _rows("30 1,2 * * *", "America/New_York")
    assert spring == [
        "clock 23    00    01    02    03    04    05",
        "fires ···············●··░░░○░░●·················",
        "UTC   04    05    06          07    08    09",
    ]
    assert autumn == [
        "                        1─────2─────",
        "clock 22    23    00    01    01    02    03    04",
        "fires ·····················●·····○·····●··············",
        "UTC   02    03    04    05    06    07    08    09",
    ]


def test_the_picture_of_a_free_schedule_has_nothing_owed_and_nothing_left_out() -> None:
    autumn, spring = _rows("*/15 * * * *", "Australia/Lord_Howe")
    assert spring[1] == "fires ●●·●●·●●·●●·●●·●●·░░░●●·●●·●●·●●·●●·●●·"
    assert autumn[0].strip() == "1──2──"
    assert "○" not in autumn[2]


def test_the_picture_names_hours_that_begin_inside_a_cell_and_cuts_a_skipped_day_short() -> None:
    assert _rows("0 3 * * *", "Pacific/Chatham")[1][0] == "clock  00    01    02    03    04    05    06"
    apia = _rows("0 12 * * *", "Pacific/Apia", parse_instant("2011-12-01T00:00:00Z", "now"))[0]
    assert apia[1] == "fires ··················░░░○░░●·················"


@pytest.mark.parametrize(
    ("expression", "verdicts"),
    [
        ("30 1,2 * * *", ["a time in it fires once, at its end", "it fires the first time only"]),
        ("0 * * * *", ["nothing is lost and nothing doubled", "it fires in both passes"]),
        ("0 12 * * *", ["nothing fires near", "nothing fires near"]),
    ],
)
def test_the_picture_says_what_it_shows(expression: str, verdicts: list[str]) -> None:
    pictures = clock_pictures(cron(expression, "America/New_York"), "America/New_York", NOW)
    assert [picture.verdict for picture in pictures] == verdicts


def test_the_command() -> None:
    run = CliRunner().invoke(
        APP, ["30 2 * * *", "--tz", "America/New_York", "--year", "--from", "2026-01-01T00:00:00Z"]
    )
    assert run.exit_code == 0, run.output
    for part in ("At 02:30", "2026-01-01T07:30:00Z", "fires once", "░░░○░░●", "tzdata"):
        assert part in run.output
    assert "does not change" in CliRunner().invoke(APP, ["--every", "1h", "--year"]).output
    as_json = CliRunner().invoke(APP, ["--every", "1h", "--json", "-n", "3"])
    assert len(json.loads(as_json.output)["fires"]) == 3


def test_the_command_refuses_with_a_sentence() -> None:
    run = CliRunner().invoke(APP, ["*/60 * * * *"])
    assert run.exit_code == 2
    assert "step 60 is out of range" in run.output


def test_the_command_answers_lines() -> None:
    lines = '{"id": 1, "every": "1h", "count": 2}\n\n{"id": 2, "cron": "x"}\n'
    run = CliRunner().invoke(APP, ["--stdin"], input=lines)
    first, second = map(json.loads, run.output.splitlines())
    assert len(first["fire_times"]) == 2
    assert second["error"]["type"] == "InvalidInput"


def test_the_picture_in_the_docs_is_what_the_command_draws() -> None:
    assert IMAGE.read_text("utf-8") == image(), "python -m tests.cli.clock_change_picture"


def the_warnings(**raw: object) -> list[str]:
    return list(look_ahead(raw, now=NOW).warnings)


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        ("0 9 * * tue/2", "`2/2` of weekdays means Tuesday, Thursday, Saturday, and begins anew each week."),
        ("0 9 */2 * *", "`*/2` of days begins anew each month, so the last gap of a month is not 2 days."),
        ("* 3 * * *", "It fires in each minute of the hours 3; `0 3` fires once in each."),
        (
            "* */15 * * * *",
            "It fires in each second of the minutes */15; `0 */15` fires once in each.",
        ),
    ],
)
def test_steps_and_stars_that_mean_something_else_are_warned_of(expression: str, warning: str) -> None:
    assert warning in the_warnings(cron=expression)


@pytest.mark.parametrize(
    "expression", ["0 9 * * 1-5", "0 9 1,15 * *", "*/5 * * * *", "* * * * *", "0 0 12 * * *"]
)
def test_usual_expressions_have_no_such_warning(expression: str) -> None:
    words = ("begins anew", "fires in each")
    assert not [text for text in the_warnings(cron=expression) if any(word in text for word in words)]


@pytest.mark.parametrize(
    ("local", "warning"),
    [
        (
            "2027-03-14T02:30",
            "On 2027-03-14, 02:00 -> 03:00 (1h forward) the time it names is skipped: "
            "it fires at 2027-03-14T03:00:00-04:00.",
        ),
        (
            "2027-11-07T01:30",
            "On 2027-11-07, 02:00 -> 01:00 (1h back) the time it names comes twice: "
            "it fires the first time, at 2027-11-07T01:30:00-04:00.",
        ),
        ("2027-03-14T03:00", ""),
        ("2027-03-14T01:59", ""),
        ("2027-11-07T02:00", ""),
        ("2027-11-07T00:59", ""),
    ],
)
def test_a_single_local_time_that_a_clock_change_moves_is_warned_of(local: str, warning: str) -> None:
    assert "".join(the_warnings(at=local, timezone="America/New_York")) == warning


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("0 30 9 ? * 2-6", "`2-6`"),
        ("0 9 ? * 6#3", "`6#3`"),
        ("0 9 ? * MON#1", ""),
        ("0 9 1 * ?", ""),
        ("0 9 * * 2-6", ""),
    ],
)
def test_numbers_of_weekdays_beside_a_question_mark_are_warned_of(expression: str, numbers: str) -> None:
    """Quartz and AWS count Sunday as 1."""
    shown = look_ahead({"schedules": [{"cron": expression}]}, now=NOW).warnings
    warned = [numbers in warning for warning in shown if "Quartz" in warning]
    assert warned == ([True] if numbers else [])


def test_preview_refuses_what_a_registration_refuses() -> None:
    with pytest.raises(InvalidInput, match="elapsed time"):
        the_warnings(every="24h", timezone="America/Los_Angeles")
