"""GetSchedule returns what was created: for any schedule, also after the job was stored and read again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from common.errors import InvalidInput
from common.ids import check_id
from common.jobs.job import Job
from common.registration.definition import Limits, build_job, parse_definition
from common.registration.registry import split_initial_state
from common.storage.wire import from_wire, item_to_wire
from minute8.eventbridge import shapes
from minute8.eventbridge.imported_from import (
    changed_parts,
    imported_from_of,
    is_known,
    request_in,
    texts_of_request,
    with_hashes,
    with_known,
)
from minute8.eventbridge.mapping import definition_of
from minute8.eventbridge.names import job_id_of, job_id_prefixes
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS
from minute8.eventbridge.shapes import check

JOB_ID_CHARS = 128

NOW = 1_795_305_600
NAMES = st.text("abYZ09-_.", min_size=1, max_size=64)
SLOW = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
ARNS = {
    "lambda": "arn:aws:lambda:us-east-1:123456789012:function:f",
    "sqs": "arn:aws:sqs:us-east-1:123456789012:q.fifo",
    "sns": "arn:aws:sns:us-east-1:123456789012:t",
    "states": "arn:aws:states:us-east-1:123456789012:stateMachine:m",
    "events": "arn:aws:events:us-east-1:123456789012:event-bus/b",
}
INPUTS = st.sampled_from(
    [
        *(
            '{"a": 1.50, "b": [null, true]}',
            ' { "a" : "{{ x" }\n',
            '{"at": "<aws.scheduler.scheduled-time>"}',
        ),
        *(
            '{"id": "<aws.scheduler.execution-id>", "n": "<aws.scheduler.attempt-number>"}',
            "{}",
            '{"ü": "🕗"}',
        ),
    ]
)


def optional(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.just({}), values.map(lambda value: {name: value}))


@st.composite
def targets(draw: st.DrawFn) -> dict[str, Any]:
    service = draw(st.sampled_from(sorted(ARNS)))
    parameters: dict[str, Any] = {}
    if service == "sqs":
        parameters = draw(optional("SqsParameters", st.just({"MessageGroupId": "orders"})))
    if service == "events":
        parameters = {"EventBridgeParameters": {"DetailType": "nightly run", "Source": "my.app"}}
    text = st.one_of(INPUTS, st.text('a{}<>\n"\\ ü', min_size=1)) if service in ("sqs", "sns") else INPUTS
    retry = st.fixed_dictionaries(
        {},
        optional={
            "MaximumRetryAttempts": st.integers(0, 185),
            "MaximumEventAgeInSeconds": st.integers(60, 86_400),
        },
    )
    return {
        "Arn": ARNS[service],
        "RoleArn": "arn:aws:iam::123456789012:role/r",
        **parameters,
        **draw(optional("Input", text)),
        **draw(optional("RetryPolicy", retry)),
    }


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    start = draw(optional("StartDate", st.integers(NOW, NOW + 10**6) | st.floats(NOW, NOW + 10**6)))
    end = draw(optional("EndDate", st.integers(NOW + 2 * 10**6, NOW + 10**8)))
    window = {"Mode": "OFF"}
    if draw(st.booleans()):
        window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": draw(st.integers(1, 1_440))}  # type: ignore[dict-item]
    expressions = [
        "cron(0/5 9-17 ? * MON-FRI *)",
        "cron(0 3 L-2 * ? 2027-2030)",
        "rate(1 minute)",
        "rate(7 days)",
    ]
    return {
        "FlexibleTimeWindow": window,
        "ScheduleExpression": draw(st.sampled_from([*expressions, "at(2026-12-01T03:00:00)"])),
        "Target": draw(targets()),
        **draw(
            optional("ScheduleExpressionTimezone", st.sampled_from(["UTC", "Europe/Paris", "Asia/Tokyo"]))
        ),
        **draw(optional("Description", st.text(max_size=512))),
        **draw(optional("ActionAfterCompletion", st.sampled_from(["NONE", "DELETE"]))),
        **start,
        **end,
    }


def stored_job(group: str, name: str, request: dict[str, Any]) -> Job:
    """The job of a request, as CreateSchedule makes it, after it was stored and read."""
    check(shapes.SCHEDULE, request)
    raw, initial = split_initial_state(
        definition_of(request, f"arn:aws:scheduler:us-east-1:123456789012:schedule/{group}/{name}")
    )
    limits = Limits(past_at=True, payload_formats=PAYLOAD_FORMATS)
    definition = parse_definition(raw, limits)
    job = initial.applied_to(build_job("alice", job_id_of(group, name), definition, None, NOW, limits))
    item = {**job.to_item(), "imported_from": imported_from_of(group, name, request, job.payload.value, None)}
    return Job.from_item(from_wire(item_to_wire(item)))


@SLOW
@given(NAMES, NAMES, requests())
def test_get_is_create(group: str, name: str, request: dict[str, Any]) -> None:
    assume("ü" not in json.dumps(request.get("Description", "")))
    job = stored_job(group, name, request)
    assert job.imported_from is not None
    assert request_in(*(text.text or "" for text in texts_of_request(job))) == request
    assert not changed_parts(structs.replace(job, imported_from=with_hashes(job.imported_from, job)))
    assert (job.imported_from["group"], job.imported_from["name"]) == (group, name)


@settings(max_examples=500, deadline=None)
@given(NAMES, NAMES, NAMES, NAMES)
def test_ids_are_valid_different_and_found_by_their_prefixes(
    group: str, name: str, other_group: str, other_name: str
) -> None:
    job_id = job_id_of(group, name)
    check_id("job_id", job_id, JOB_ID_CHARS)
    assert (job_id == job_id_of(other_group, other_name)) == ((group, name) == (other_group, other_name))
    for name_prefix in ("", name[:1], name[:3], name):
        for prefixes in (job_id_prefixes(group, name_prefix), job_id_prefixes(None, name_prefix)):
            assert sum(job_id.startswith(prefix) for prefix in prefixes) == 1
            assert list(prefixes) == sorted(prefixes)


def test_known_requests_are_few_and_forgotten() -> None:
    imported_from: Any = {"known": ""}
    for n in range(40):
        imported_from = with_known(imported_from, f"{n:02}", NOW + n)
    known = [is_known(imported_from, f"{n:02}") for n in range(40)]
    assert known == [False] * 8 + [True] * 32
    assert with_known(imported_from, "late", NOW + 2_000)["known"] == f"late@{NOW + 2_000}"
    assert not is_known(None, "7")


def test_a_refusal_has_awss_name_of_the_field() -> None:
    request = {
        "FlexibleTimeWindow": {"Mode": "OFF", "MaximumWindowInMinutes": 5},
        "ScheduleExpression": "rate(1 minute)",
        "Target": {"Arn": ARNS["sns"], "RoleArn": "arn:aws:iam::123456789012:role/r"},
    }
    try:
        stored_job("default", "a", request)
    except InvalidInput as error:
        assert error.field == "FlexibleTimeWindow.MaximumWindowInMinutes"
    else:
        raise AssertionError
