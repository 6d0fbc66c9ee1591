"""The targets that registration accepts, and the messages of refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidInput
from common.jobs.placeholders import MAX_VALUE_CHARS
from common.registration.definition import Limits, parse_definition
from common.registration.target_definitions import MODELS, stored

US = "us-east-1:123456789012"
LAMBDA = f"arn:aws:lambda:{US}:function:report"
QUEUE, FIFO = f"arn:aws:sqs:{US}:jobs", f"arn:aws:sqs:{US}:jobs.fifo"
TOPIC, BUS = f"arn:aws:sns:{US}:news", f"arn:aws:events:{US}:event-bus/default"
MACHINE = f"arn:aws:states:{US}:stateMachine:nightly"
ROLE = "arn:aws:iam::210987654321:role/minute8/caller"
URL = "https://hooks.example.com/run?a=1"


def parsed(target: object, limits: Limits | None = None, **fields: Any) -> Any:
    raw = {"schedule": {"cron": "* * * * *"}, "target": target, **fields}
    return stored(parse_definition(raw, limits or Limits()).target)


def refusal(target: object, **fields: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        parsed(target, **fields)
    return caught.value


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "lambda", "arn": LAMBDA},
        {"kind": "lambda", "arn": f"{LAMBDA}:$LATEST", "invocation": "Event"},
        {"kind": "lambda", "arn": f"{LAMBDA}:live", "role_arn": ROLE, "external_id": "s3cret"},
        {"kind": "lambda", "arn": "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:report"},
        {"kind": "sqs", "arn": QUEUE},
        {"kind": "sqs", "arn": QUEUE, "message_group_id": "fair"},
        {"kind": "sqs", "arn": FIFO, "message_group_id": "a", "deduplication_id": "b"},
        {"kind": "sns", "arn": TOPIC, "subject": "Nightly report"},
        {"kind": "sns", "arn": f"{TOPIC}.fifo"},
        {"kind": "event_bus", "arn": BUS, "source": "com.example", "detail_type": "Close the day"},
        {"kind": "step_functions", "arn": MACHINE},
        {"kind": "step_functions", "arn": f"{MACHINE}:live"},
        {"kind": "http", "url": URL},
        {"kind": "http", "url": "https://8.8.8.8/", "method": "GET"},
        {
            "kind": "http",
            "url": "https://[2606:4700:4700::1111]:8443",
            "headers": {"Authorization": "Bearer x"},
        },
    ],
)
def test_accepted(target: dict[str, Any]) -> None:
    item = parsed(target)
    assert item.items() >= target.items()
    assert "envelope" not in item, "older jobs do not have it, and are equal"
    assert parsed(item) == item, "what is stored can be sent again"


@pytest.mark.parametrize(
    ("target", "field", "accepted"),
    [
        (5, "target", ""),
        (None, "target", ""),
        ({}, "target.kind", "lambda, sqs, sns"),
        ({"kind": "ftp"}, "target.kind", "lambda, sqs, sns"),
        ({"kind": ["lambda"]}, "target.kind", "lambda, sqs, sns"),
        ({"kind": "lambda"}, "target.arn", ""),
        ({"kind": "lambda", "arn": QUEUE}, "target.arn", "arn:aws:lambda:"),
        ({"kind": "lambda", "arn": "report"}, "target.arn", "arn:aws:lambda:"),
        ({"kind": "lambda", "arn": LAMBDA + "\n"}, "target.arn", "arn:aws:lambda:"),
        ({"kind": "lambda", "arn": LAMBDA + ":a:b"}, "target.arn", "arn:aws:lambda:"),
        ({"kind": "lambda", "arn": LAMBDA.replace("1234", "١٢٣٤")}, "target.arn", "arn:aws:lambda:"),
        ({"kind": "lambda", "arn": LAMBDA, "invocation": "DryRun"}, "target.invocation", ""),
        (
            {"kind": "lambda", "arn": LAMBDA, "queue": 1},
            "target.queue",
            "kind, envelope, role_arn, external_id, schedule_arn, arn",
        ),
        ({"kind": "lambda", "arn": LAMBDA, "role_arn": LAMBDA}, "target.role_arn", "arn:aws:iam:"),
        ({"kind": "lambda", "arn": LAMBDA, "external_id": "x"}, "target", ""),
        ({"kind": "lambda", "arn": LAMBDA, "role_arn": ROLE, "external_id": "a b"}, "target.external_id", ""),
        ({"kind": "sqs", "arn": LAMBDA}, "target.arn", "arn:aws:sqs:"),
        ({"kind": "sqs", "arn": QUEUE, "deduplication_id": "x"}, "target", ""),
        ({"kind": "sqs", "arn": FIFO, "message_group_id": "a b"}, "target.message_group_id", ""),
        ({"kind": "sqs", "arn": FIFO, "message_group_id": "a" * 129}, "target.message_group_id", ""),
        ({"kind": "sns", "arn": TOPIC, "subject": "a\r\nBcc: b@c.d"}, "target.subject", ""),
        ({"kind": "event_bus", "arn": BUS, "source": "aws.ec2"}, "target.source", "neither"),
        ({"kind": "event_bus", "arn": BUS, "source": "minute8"}, "target.source", "neither"),
        ({"kind": "event_bus", "arn": BUS, "source": "Minute8.runs"}, "target.source", "neither"),
        (
            {"kind": "step_functions", "arn": MACHINE.replace("stateMachine", "express")},
            "target.arn",
            "arn:aws:states:",
        ),
        ({"kind": "http", "url": "http://hooks.example.com/"}, "target.url", "https://"),
        ({"kind": "http", "url": "ftp://hooks.example.com/"}, "target.url", "https://"),
        ({"kind": "http", "url": "https://10.0.0.1/"}, "target.url", "https://"),
        ({"kind": "http", "url": URL, "method": "TRACE"}, "target.method", ""),
        ({"kind": "http", "url": URL, "headers": {"a": 5}}, "target.headers.a", ""),
        (
            {"kind": "http", "url": URL, "role_arn": ROLE},
            "target.role_arn",
            "kind, envelope, url, method, headers",
        ),
    ],
)
def test_refused_with_the_field_and_what_would_be_accepted(target: object, field: str, accepted: str) -> None:
    error = refusal(target)
    assert error.field == field
    assert accepted in error.accepted


@pytest.mark.parametrize(
    "headers",
    [
        *(
            {name: "x"}
            for name in ("Host", "Content-Length", "TRANSFER-ENCODING", "Connection", "TE", "Upgrade")
        ),
        *(
            {name: "x"}
            for name in ("webhook-signature", "Minute8-Tenant", "X-Forwarded-For", "X-Amzn-Trace-Id")
        ),
        {"a\r\nHost": "x"},
        {"a:b": "x"},
        {"": "x"},
        {"a b": "x"},
        {"ä": "x"},
        {"a" * 65: "x"},
        {"a": "x\r\nHost: evil"},
        {"a": "x\nAuthorization: evil"},
        {"a": "x\r"},
        {"a": "x\0"},
        {"a": "x\r\n folded"},
        {"a": ""},
        {"a": " x"},
        {"a": "ü"},
        {"a": "x" * 1025},
        {"a": "x", "A": "y"},
        {f"a{n}": "x" for n in range(21)},
    ],
)
def test_a_header_can_smuggle_nothing(headers: dict[str, str]) -> None:
    assert refusal({"kind": "http", "url": URL, "headers": headers}).field == "target.headers"


def test_plain_http_is_taken_where_the_deployment_allows_it() -> None:
    target = {"kind": "http", "url": "http://hooks.example.com/"}
    assert parsed(target, Limits(plain_http=True))["url"] == target["url"]


def test_a_payload_with_an_unknown_placeholder_is_refused() -> None:
    error = refusal({"kind": "lambda", "arn": LAMBDA}, payload={"a": "at {{time}}"})
    assert (error.field, error.position) == ("payload.a", 3)


@pytest.mark.parametrize("payload", ["\ud800", {"a": [float("nan")]}, float("inf"), {"\udfff": 1}])
def test_a_payload_that_is_no_json_text_is_refused_and_does_not_fail(payload: Any) -> None:
    assert refusal({"kind": "lambda", "arn": LAMBDA}, payload=payload).field.startswith("payload")


def test_a_payload_that_nests_without_end_is_refused() -> None:
    payload: Any = "x"
    for _ in range(100):
        payload = [payload]
    assert refusal({"kind": "lambda", "arn": LAMBDA}, payload=payload).field.startswith("payload")


def test_the_targets_and_placeholders_of_the_documentation_are_the_ones_there_are() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "targets.md").read_text()
    examples = re.findall(r"^(\{\"kind\".*\})$", text, re.MULTILINE)
    payload = {"taskDefinition": "t"}  # the operation of the example needs one
    assert {parsed(json.loads(example), payload=payload)["kind"] for example in examples} == set(MODELS)
    named = set(re.findall(r"\{\{([a-z_]+)\}\}", text))
    assert named - {"started"} == set(MAX_VALUE_CHARS)  # `stop` of an operation has a mark of its own


LOCAL = ("http://localhost:8000/", "http://127.0.0.1:8000/", "http://[::1]:8000/")


@pytest.mark.parametrize("url", LOCAL)
def test_this_machine_is_a_target_of_the_embedded_aws_alone(url: str) -> None:
    assert parsed({"kind": "http", "url": url}, Limits(plain_http=True, loopback=True))["url"] == url
    assert refusal({"kind": "http", "url": url}).field == "target.url"
    if "localhost" not in url:
        assert refusal({"kind": "http", "url": url.replace("http:", "https:")}).field == "target.url"
    private = {"kind": "http", "url": "http://10.0.0.1:8000/"}
    with pytest.raises(InvalidInput, match="not public"):
        parsed(private, Limits(plain_http=True, loopback=True))


@pytest.mark.parametrize(
    ("target", "payload", "fits"),
    [
        ({"kind": "event_bus", "arn": BUS}, {"a": 1}, True),
        ({"kind": "event_bus", "arn": BUS}, [1], False),
        ({"kind": "event_bus", "arn": BUS}, None, False),
        ({"kind": "sqs", "arn": QUEUE}, "text", True),
        ({"kind": "sqs", "arn": QUEUE}, "", False),
        ({"kind": "sns", "arn": TOPIC}, None, False),
        ({"kind": "sns", "arn": TOPIC}, 0, True),
        ({"kind": "http", "url": URL}, None, True),
        ({"kind": "lambda", "arn": LAMBDA}, None, True),
        ({"kind": "step_functions", "arn": MACHINE}, "text", True),
    ],
)
def test_a_payload_without_envelope_is_one_that_the_target_takes(
    target: dict[str, Any], payload: Any, fits: bool
) -> None:
    assert parsed(target, payload=payload)
    bare = {**target, "envelope": False}
    if fits:
        assert parsed(bare, payload=payload) == parsed(target) | {"envelope": False}
    else:
        assert refusal(bare, payload=payload).field == "payload"
