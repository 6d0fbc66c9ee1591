"""An import reports all changes: every field of a source is mapped, or named in a note or a refusal."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.jobs.placeholders import check_payload, render
from common.jobs.stored_text import StoredText
from common.registration.definition import Limits, parse_definition
from common.registration.schedule_text import parse_schedule
from common.timing.fires import fires
from minute8.cli.commands.transfer import READERS
from minute8.cli.sources import cronjob_yaml
from minute8.cli.sources.source_job import Defaults, SourceJob, literal, payload_of
from minute8.eventbridge.moving import importing
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS
from tests.worlds import ARN, at

TARGET = {"kind": "lambda", "arn": ARN}
DEFAULTS = Defaults(TARGET, "UTC")
IMPORTING = (Path(__file__).parents[2] / "docs/importing.md").read_text()
# A few seconds in CI; a longer run: MINUTE8_FUZZ=100000
EXAMPLES = int(os.environ.get("MINUTE8_FUZZ", "150"))


def read(name: str, text: str, defaults: Defaults = DEFAULTS) -> list[SourceJob]:
    return list(READERS[name](text, defaults))


def crontab(text: str) -> SourceJob:
    (imported_job,) = read("crontab", text)
    return imported_job


def schedule(**fields: Any) -> dict[str, Any]:
    target = {"Arn": ARN, "RoleArn": "arn:aws:iam::1:role/r", "Input": "{}"} | fields.pop("Target", {})
    return {
        "Name": "nightly",
        "Arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/default/nightly",
        "ScheduleExpression": "cron(0 3 * * ? *)",
        "Target": target,
        **fields,
    }


def imported(**fields: Any) -> SourceJob:
    (imported_job,) = read("eventbridge", json.dumps(schedule(**fields)), Defaults())
    return imported_job


def rendered(payload: Any, values: Mapping[str, str]) -> Any:
    """What a target gets of the payload."""
    return json.loads(render(StoredText.of(payload).text or "", values))


def replaced(text: str) -> SourceJob:
    """With --target, Input is a payload with placeholders."""
    (imported_job,) = read("eventbridge", json.dumps(schedule(Target={"Input": text})), DEFAULTS)
    return imported_job


def cron_job(
    spec: Mapping[str, Any] = {}, job: Mapping[str, Any] = {}, pod: Mapping[str, Any] = {}
) -> SourceJob:
    containers = [{"name": "main", "image": "a"}]
    template = {"spec": {"template": {"spec": {"containers": containers, **pod}}, **job}}
    document = {
        "kind": "CronJob",
        "metadata": {"name": "report"},
        "spec": {"schedule": "0 9 * * *", "jobTemplate": template, **spec},
    }
    (imported_job,) = read("cronjob", yaml.safe_dump(document))
    return imported_job


def messages(source_job: SourceJob) -> str:
    return " | ".join((source_job.refusal, *source_job.notes))


# crontab


def test_tz_is_the_commands_and_cron_tz_the_times() -> None:
    jobs = read(
        "crontab", "TZ=Asia/Tokyo\n0 3 * * * a\nCRON_TZ=Europe/Paris\n0 3 * * * b\n", Defaults(TARGET)
    )
    assert [source_job.definition["schedule"].get("timezone") for source_job in jobs] == [
        None,
        "Europe/Paris",
    ]
    assert [source_job.definition["payload"]["environment"] for source_job in jobs] == [
        {"TZ": "Asia/Tokyo"}
    ] * 2
    assert "TZ of line 1: the command's zone only" in messages(jobs[0])
    assert "read as UTC" in messages(jobs[0])
    assert jobs[1].notes == ()


@pytest.mark.parametrize("name", ["SHELL", "MAILTO", "HOME", "RANDOM_DELAY", "MAILFROM", "CONTENT_TYPE"])
def test_a_variable_that_is_not_taken_is_named_once(name: str) -> None:
    first, second = read("crontab", f"{name}=x\n0 3 * * * a\n0 4 * * * b\n")
    assert any(note.startswith(f"{name} of line 1") for note in first.notes)
    assert second.notes == ()


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 9 * * MON", "0 9 * * MON"),
        ("0 9 1 * MON", "0 9 1 * MON"),
        ("0 9 */1 * MON", "0 9 * * MON"),
        ("0 9 *,5 * 1-5", "0 9 * * 1-5"),
        ("0 9 1,15 * */1", "0 9 1,15 * *"),
        ("0 9 1-7 * */7", "0 9 * * 0#1"),
        ("0 9 1-7,15-21 * */3", "0 9 * * 0#1,3#1,6#1,0#3,3#3,6#3"),
    ],
)
def test_both_day_fields(cron: str, expected: str) -> None:
    assert crontab(f"{cron} x").definition["schedule"]["cron"] == expected


@pytest.mark.parametrize("cron", ["0 9 */2 * MON", "0 9 1 * */2", "0 9 *,2 * */2", "0 9 1-8 * */7"])
def test_both_day_fields_that_cannot_be_written_here_are_refused(cron: str) -> None:
    refused = crontab(f"{cron} x").refusal
    assert bool(refused) == (cron != "0 9 *,2 * */2")
    assert not refused or (cron in refused and "both have to match" in refused)


DAY_FIELDS = st.sampled_from(
    ["*", "*/2", "*/7", "*/1", "1-7", "8-14,22-28", "1", "13", "29-31", "*,3", "1-31"]
)
WEEKDAY_FIELDS = st.sampled_from(
    ["*", "*/2", "*/7", "*/3", "1", "1-5", "0,6", "7", "MON", "0-6", "*/1", "5-7"]
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(DAY_FIELDS, WEEKDAY_FIELDS)
def test_a_crontab_fires_on_the_days_on_which_cron_does(day: str, weekday: str) -> None:
    source_job = crontab(f"0 12 {day} * {weekday} x")
    if source_job.refusal:
        assert (day[0] == "*") != (weekday[0] == "*") or "/" in day + weekday
        return
    try:
        written = parse_schedule(source_job.definition["schedule"], job_key="a/b", now=0)
    except InvalidInput:
        assert "*/7" in (day, weekday)
        return
    start, days = date(2026, 1, 1), 366
    times = fires(written, at("2026-01-01T00:00:00Z"), at("2027-01-02T00:00:00Z"))
    dates = {datetime.fromtimestamp(t, UTC).date() for t in times}
    expected = {on for n in range(days) if vixie(day, weekday, on := start + timedelta(n))}
    assert dates == expected


def vixie(day: str, weekday: str, on: date) -> bool:
    """Vixie cron's rule (find_jobs in cron.c): both days must match if a field begins with `*`, else one of them."""
    in_month = on.day in numbers(day, 1, 31)
    in_week = on.isoweekday() % 7 in {number % 7 for number in numbers(weekday, 0, 7)}
    return (in_month and in_week) if "*" in (day[0], weekday[0]) else (in_month or in_week)


def numbers(field: str, low: int, high: int) -> set[int]:
    values: set[int] = set()
    for item in field.replace("MON", "1").split(","):
        span, _, step = item.partition("/")
        first, _, last = span.replace("*", f"{low}-{high}").partition("-")
        values.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return values


def test_kubernetes_counts_a_step_as_no_star() -> None:
    assert cron_job({"schedule": "0 9 */2 * MON"}).definition["schedule"]["cron"] == "0 9 */2 * MON"
    assert cron_job({"schedule": "0 9 */1 * MON"}).definition["schedule"]["cron"] == "0 9 * * MON"
    assert (
        "both have to match" in cron_job({"schedule": "0 9 5 * 1,*"}).refusal
        or not cron_job({"schedule": "0 9 5 * 1,*"}).refusal
    )


# text that looks like a placeholder


@pytest.mark.parametrize(
    "text", ["{{.Names}}", "{{{{", "{{{", "a {{fire_time}} b", "{{ job_id }}", "{", "}}{{"]
)
def test_text_of_a_source_reaches_the_target_as_it_was(text: str) -> None:
    payloads = [
        crontab(f"X={text}\n0 3 * * * echo {text}").definition["payload"],
        replaced(json.dumps({"a": [text]})).definition["payload"],
        replaced(f"text {text}").definition["payload"],
        cron_job(pod={"containers": [{"args": [text]}]}).definition["payload"],
    ]
    expected: list[Any] = [
        {"command": f"echo {text}", "environment": {"X": text}},
        {"a": [text]},
        f"text {text}",
        {"container": {"args": [text]}},
    ]
    for payload, arrives in zip(payloads, expected, strict=True):
        check_payload(payload)
        assert rendered(payload, dict.fromkeys(("fire_time", "job_id"), "REPLACED")) == arrives


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(st.sampled_from("{} abjo_d")) | st.text())
def test_a_literal_is_given_back_by_the_executor(text: str) -> None:
    assert rendered(literal(text), dict.fromkeys(("job_id", "attempt"), "REPLACED")) == text


# EventBridge Scheduler


def described(shape: Any, within: str = "") -> Iterator[str]:
    for name, member in shape.members.items():
        path = f"{within}{name}"
        yield path
        if member.type_name == "structure" and path.count(".") < 2:
            yield from described(member, f"{path}.")


def fields_of(known: Mapping[str, Any], within: str = "") -> Iterator[str]:
    for name, inner in known.items():
        yield f"{within}{name}"
        yield from fields_of(inner or {}, f"{within}{name}.")


API = set(
    described(botocore.session.get_session().get_service_model("scheduler").shape_for("GetScheduleOutput"))
)


def test_the_fields_that_an_import_reads_are_awss() -> None:
    assert set(fields_of(importing.KNOWN)) <= API


@pytest.mark.parametrize("path", sorted(API))
def test_every_field_of_the_api_is_in_the_documentation(path: str) -> None:
    assert f"`{path.split('.')[-1]}`" in IMPORTING or f"`{'.'.join(path.split('.')[:2])}`" in IMPORTING


@pytest.mark.parametrize(
    "path",
    [
        *sorted({path for path in API if path.count(".") < 2} - set(fields_of(importing.KNOWN))),
        *("Invented", "Target.Invented", "FlexibleTimeWindow.Invented"),
    ],
)
def test_a_field_that_is_not_read_is_named(path: str) -> None:
    outer, _, name = path.rpartition(".")
    base = {"FlexibleTimeWindow": {"Mode": "OFF"}}
    source_job = imported(**({outer: {**base.get(outer, {}), name: {"x": 1}}} if outer else {name: "x"}))
    assert any(note.startswith(f"{path} is left out") for note in source_job.notes), source_job


def test_what_an_eventbridge_schedule_says_about_its_queue() -> None:
    queue = {"Arn": "arn:aws:sqs:us-east-1:123456789012:q.fifo", "SqsParameters": {"MessageGroupId": "g"}}
    target = imported(Target=queue).definition["target"]
    own = {"schedule_arn": schedule()["Arn"]}
    assert target == {"kind": "sqs", "arn": queue["Arn"], "message_group_id": "g", **own}
    bus = {
        "Arn": "arn:aws:events:us-east-1:123456789012:event-bus/b",
        "EventBridgeParameters": {"DetailType": "Close", "Source": "com.example"},
    }
    source_job = imported(Target=bus)
    assert source_job.definition["target"] == {
        "kind": "event_bus",
        "arn": bus["Arn"],
        **own,
        "source": "com.example",
        "detail_type": "Close",
    }
    parse_definition(source_job.definition, Limits(payload_formats=PAYLOAD_FORMATS))
    assert "SqsParameters" in imported(Target={"SqsParameters": {"MessageGroupId": "g"}}).refusal


def test_a_cut_text_has_a_note() -> None:
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 90}
    source_job = imported(FlexibleTimeWindow=window, Description="x" * 300, Target={"RetryPolicy": {}})
    assert source_job.definition["schedule"]["jitter_s"] == 5_399
    assert source_job.definition["retry"] == {"max_attempts": 186, "max_age_s": 86_400}
    assert "Description is cut" in messages(source_job)
    assert not re.search("MaximumRetryAttempts|MaximumWindowInMinutes", messages(source_job))
    assert "'WIDE'" in imported(FlexibleTimeWindow={"Mode": "WIDE"}).refusal
    assert "StartDate is left out" in messages(
        imported(ScheduleExpression="at(2027-01-01T00:00:00)", StartDate="2026-01-01T00:00:00Z")
    )
    assert "Europe/Paris is left out" in messages(
        imported(ScheduleExpression="rate(1 day)", ScheduleExpressionTimezone="Europe/Paris")
    )
    assert "Target.RoleArn is left out" in messages(imported())
    assert imported(Target={"Input": None}).definition["payload"] is None
    for action, after in (("DELETE", "delete"), ("NONE", "keep")):
        source_job = imported(ActionAfterCompletion=action)
        assert "ActionAfterCompletion" not in messages(source_job)
        assert (source_job.definition or {}).get("after_completion", "keep") == after
    assert f"Target.Arn {ARN} is left out" in messages(
        read("eventbridge", json.dumps(schedule()), DEFAULTS)[0]
    )


def test_context_attributes_become_placeholders() -> None:
    text = json.dumps(
        {
            "at": "on <aws.scheduler.scheduled-time>",
            "id": "<aws.scheduler.execution-id>/<aws.scheduler.attempt-number>",
            "of": ["{{<aws.scheduler.schedule-arn>}}"],
        }
    )
    assert imported(Target={"Input": text}).definition["payload"] == text
    source_job = replaced(text)
    values = {"fire_time": "T", "execution_id": "E", "attempt": "1"}
    check_payload(source_job.definition["payload"])
    assert rendered(source_job.definition["payload"], values) == {
        "at": "on T",
        "id": "E/1",
        "of": ["{{" + schedule()["Arn"] + "}}"],
    }
    assert "execution-id" in messages(source_job)
    for text, words in (
        ('"<aws.scheduler.moon>"', "<aws.scheduler.moon> has no equal"),
        ('{"n": <aws.scheduler.attempt-number>}', "quote them"),
        ('"{<aws.scheduler.attempt-number>}"', "right before"),
    ):
        assert words in replaced(text).refusal


# Kubernetes


def test_a_deadline_of_zero_becomes_the_shortest() -> None:
    source_job = cron_job({"startingDeadlineSeconds": 0})
    assert source_job.definition["start_deadline_s"] == 1
    assert "startingDeadlineSeconds 0 becomes 1" in messages(source_job)
    assert "start_deadline_s" not in cron_job({"startingDeadlineSeconds": None}).definition


@pytest.mark.parametrize(
    ("source_job", "path"),
    [
        (cron_job({"successfulJobsHistoryLimit": 3}), "spec.successfulJobsHistoryLimit"),
        (cron_job({"invented": 3}), "spec.invented"),
        (cron_job(job={"activeDeadlineSeconds": 60}), "spec.jobTemplate.spec.activeDeadlineSeconds"),
        (cron_job(pod={"volumes": []}), "spec.jobTemplate.spec.template.spec.volumes"),
    ],
)
def test_a_field_of_a_cronjob_that_is_not_read_is_named(source_job: SourceJob, path: str) -> None:
    assert any(note.startswith(f"{path} is left out") for note in source_job.notes), source_job


def test_defaults_of_kubernetes_have_a_note() -> None:
    assert cron_job().definition["retry"] == {"max_attempts": 7}
    assert "backoffLimit 500 becomes 185" in messages(cron_job(job={"backoffLimit": 500}))
    assert "TZ=Asia/Tokyo in the schedule is left out" in messages(
        cron_job({"schedule": "TZ=Asia/Tokyo 0 9 * * *", "timeZone": "Europe/Paris"})
    )
    assert "counts from the first import" in messages(cron_job({"schedule": "@every 90m"}))
    assert "quote it" in cron_job(pod={"containers": [{"args": [date(2026, 1, 1)]}]}).refusal


@pytest.mark.parametrize("path", sorted({path.split(".")[-1] for path in fields_of(cronjob_yaml.KNOWN)}))
def test_every_field_that_is_read_of_a_cronjob_is_in_the_documentation(path: str) -> None:
    assert f"`{path}`" in IMPORTING


# NDJSON


def test_a_doubled_name_is_refused_since_one_of_them_would_be_dropped() -> None:
    (source_job,) = read("ndjson", '{"job_id": "a", "schedule": {"every": 60, "every": 90}}')
    assert "'every' appears twice" in source_job.refusal


# of any input, a reader makes jobs that can be sent, or refusals

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
EXPRESSIONS = st.sampled_from(
    ["cron(0 3 * * ? *)", "rate(5 minutes)", "at(2027-01-01T00:00:00)", "cron(1/0 ? L W #)"]
)
SCHEDULES = st.dictionaries(
    st.sampled_from([path for path in API if "." not in path]), JSON | EXPRESSIONS, max_size=4
)
TARGETS = st.dictionaries(
    st.sampled_from([path.removeprefix("Target.") for path in API if path.count(".") == 1]), JSON, max_size=4
)
SPECS = st.dictionaries(
    st.sampled_from(
        ["schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend", "jobTemplate"]
    ),
    JSON | st.sampled_from(["0 9 * * *", "@every 1h", "TZ=a 0 9 * * *"]),
    max_size=4,
)
LINES = st.lists(
    st.text(max_size=40)
    | st.builds(
        "{} {} {} {} {} {}".format,
        *[st.sampled_from(["*", "*/2", "1-7", "5", "MON", "L", "99", "*/0"])] * 5,
        st.text(min_size=1, max_size=20),
    ),
    max_size=5,
).map("\n".join)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(list(READERS)), st.text() | LINES | JSON.map(json.dumps))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    for source_job in read(name, text):
        assert_sendable(source_job)


@settings(max_examples=EXAMPLES, deadline=None)
@given(SCHEDULES, TARGETS, st.booleans())
def test_any_schedule_is_read_or_refused(
    fields: dict[str, Any], target: dict[str, Any], replaced: bool
) -> None:
    for source_job in read(
        "eventbridge", json.dumps(schedule(Target=target) | fields), DEFAULTS if replaced else Defaults()
    ):
        assert_sendable(source_job)


@settings(max_examples=EXAMPLES, deadline=None)
@given(SPECS, JSON)
def test_any_cronjob_is_read_or_refused(spec: dict[str, Any], container: Any) -> None:
    assert_sendable(cron_job(spec, pod={"containers": [container]}))


def assert_sendable(source_job: SourceJob) -> None:
    assert source_job.where
    if not source_job.refusal:
        json.dumps({"job_id": source_job.job_id, **source_job.definition})
        assert all(isinstance(note, str) for note in source_job.notes)


def test_nesting_is_refused() -> None:
    deep = "[" * 100_000
    for name in ("ndjson", "eventbridge"):
        assert "nests too deeply" in read(name, f'{{"job_id": {deep}')[0].refusal
    (looped,) = read("cronjob", yaml_loop())
    assert "nests too deeply" in looped.refusal


def yaml_loop() -> str:
    return """
kind: CronJob
metadata: {name: a}
spec:
  schedule: "0 9 * * *"
  jobTemplate: {spec: {template: {spec: {containers: [&c {name: a, me: [*c]}]}}}}
"""


def test_payload_of_keeps_json() -> None:
    value = {"a": [1, 1.5, None, True, "x"], "": {}}
    assert payload_of(value) == value


def aliases(first: str, each: str) -> str:
    """Ten lines that stand for nine to the power of nine values."""
    lines = [f"  x0: &x0 {first}"]
    lines += [f"  x{n}: &x{n} {each % ','.join([f'*x{n - 1}'] * 9)}" for n in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "fields",
    [
        aliases("[a]", "[%s]"),
        aliases("{k: v}", "{<<: [%s]}"),
        "  x9: &x9 [a, *x9]",
    ],
)
@pytest.mark.parametrize("where", ["args", "env", "image"])
def test_aliases_that_multiply_are_refused_at_once(fields: str, where: str) -> None:
    container = f"{{name: c, {where}: *x9}}"
    text = f"kind: CronJob\nmetadata:\n  name: x\n{fields}\nspec:\n  schedule: '0 3 * * *'\n"
    text += f"  jobTemplate: {{spec: {{template: {{spec: {{containers: [{container}]}}}}}}}}\n"
    (source_job,) = read("cronjob", text)
    assert source_job.refusal and source_job.refusal.startswith("not YAML"), source_job


def test_an_alias_that_repeats_a_little_is_read() -> None:
    text = "kind: CronJob\nmetadata: {name: x, labels: &l {a: b}, annotations: *l}\nspec:\n  schedule: '0 3 * * *'\n"
    text += "  jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}\n"
    (source_job,) = read("cronjob", text)
    assert not source_job.refusal.startswith("not YAML")
