"""What a target of an EventBridge schedule receives, of every kind of target."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.errors import InvalidInput
from common.registration.definition import Limits, parse_definition
from executor.targets.events import event_body, message_body
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS, input_text, is_json, max_bytes

INPUT_BYTES = 262_144

ARN = "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/report"
AT = 1_795_230_000
RUN = "alice:report:20261121T030000Z"
TARGETS = {
    "lambda": "arn:aws:lambda:eu-west-1:123456789012:function:f",
    "sqs": "arn:aws:sqs:eu-west-1:123456789012:q",
    "sns": "arn:aws:sns:eu-west-1:123456789012:t",
    "step_functions": "arn:aws:states:eu-west-1:123456789012:stateMachine:m",
    "event_bus": "arn:aws:events:eu-west-1:123456789012:event-bus/b",
}
ALL = (
    "<aws.scheduler.schedule-arn>|<aws.scheduler.scheduled-time>|"
    "<aws.scheduler.execution-id>|<aws.scheduler.attempt-number>"
)


def definition(kind: str, payload: object, **more: Any) -> object:
    target = {"kind": kind, "arn": TARGETS[kind], "schedule_arn": ARN, **more}
    raw = {"schedule": {"every": "1h"}, "target": target, "payload": payload}
    return parse_definition(raw, Limits(payload_bytes=256 * 1024, payload_formats=PAYLOAD_FORMATS))


def test_each_attribute_is_replaced_wherever_it_is() -> None:
    arn, time, execution, attempt = input_text(ALL, ARN, AT, RUN, 2).split("|")
    assert (arn, time, attempt) == (ARN, "2026-11-21T03:00:00Z", "2")
    assert len(execution) == 16
    assert execution == input_text("<aws.scheduler.execution-id>", ARN, AT, RUN, 2)
    assert execution != input_text("<aws.scheduler.execution-id>", ARN, AT, RUN, 1)
    assert input_text('{"<aws.scheduler.attempt-number>": 1}', ARN, AT, RUN, 3) == '{"3": 1}'


@pytest.mark.parametrize(
    "text",
    ["  { }\n", "{{fire_time}}", "<aws.scheduler.other>", "<aws.scheduler.schedule-arn", "1.0", "é\u2028"],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert input_text(text, ARN, AT, RUN, 1) == text


def test_without_input_the_default_notification_is_sent() -> None:
    notification = json.loads(input_text(None, ARN, AT, RUN, 1))
    assert notification.pop("id").count("-") == 4
    assert notification == {
        "version": "0", "detail-type": "Scheduled Event", "source": "aws.scheduler", "account": "123456789012",
        "time": "2026-11-21T03:00:00Z", "region": "eu-west-1", "resources": [ARN], "detail": "{}",
    }  # fmt: skip
    assert len(input_text(None, ARN, AT, RUN, 1)) < max_bytes(None)


@pytest.mark.parametrize("kind", TARGETS)
def test_every_kind_passes_the_text_alone(kind: str) -> None:
    target = {"kind": kind, "arn": TARGETS[kind], "schedule_arn": ARN}
    event = {"payload": ' {"a" : 1.0}', "minute8": {}}
    body = message_body if kind in ("sqs", "sns") else event_body
    assert body(target, event) == ' {"a" : 1.0}'


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(
    ("payload", "refused_by"),
    [
        (None, ()),
        ('{"n": <aws.scheduler.attempt-number>}', ()),
        ('{"n": "{{no placeholder}}"}', ()),
        ("[1]", ("event_bus",)),
        ("plain text", ("lambda", "step_functions", "event_bus")),
        ("[" * 100_000, ("lambda", "step_functions", "event_bus")),
        ("", tuple(TARGETS)),
        ({"a": 1}, tuple(TARGETS)),
        (5, tuple(TARGETS)),
    ],
)
def test_each_kind_takes_its_inputs_and_refuses_the_others(
    kind: str, payload: object, refused_by: tuple[str, ...]
) -> None:
    if kind not in refused_by:
        definition(kind, payload)
        return
    with pytest.raises(InvalidInput) as caught:
        definition(kind, payload)
    assert caught.value.field == "payload"
    assert caught.value.accepted


def test_the_size_of_a_rendered_input_is_bounded() -> None:
    largest = "<aws.scheduler.schedule-arn>" * (INPUT_BYTES // 200)
    definition("sqs", largest)
    with pytest.raises(InvalidInput, match="can grow"):
        definition("sqs", largest + "<aws.scheduler.schedule-arn>" * 2)
    longest = (
        "arn:aws-us-gov-secret-x:scheduler:ap-southeast-1:123456789012:schedule/" + f"{'g' * 64}/{'n' * 64}"
    )
    assert len(longest) <= 200
    assert max_bytes(ALL) >= len(input_text(ALL, longest, AT, RUN, 186))


@pytest.mark.parametrize("arn", ["arn:aws:scheduler:eu-west-1:123456789012:schedule/x", "x", f"{ARN}/y", 5])
def test_other_arns_are_refused(arn: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        definition("sqs", "x", schedule_arn=arn)
    assert caught.value.field == "target.schedule_arn"


def test_json_is_looked_for_after_the_replacement() -> None:
    assert is_json('{"n": <aws.scheduler.attempt-number>}', an_object=True)
    assert not is_json('"text"', an_object=True)
    assert not is_json("{'n': 1}")
