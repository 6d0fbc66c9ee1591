"""Universal targets become Minute8's kinds of target, or are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.errors import InvalidInput
from common.registration.definition import Limits, parse_definition
from minute8.eventbridge.names import AwsAccount
from minute8.eventbridge.universal import from_universal, is_universal

ROLE = "arn:aws:iam::123456789012:role/scheduler"
ACCOUNT = AwsAccount("eu-west-1", "123456789012")
SDK = "arn:aws:scheduler:::aws-sdk:"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:report"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:news"
MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:nightly"
ENTRY = {"Source": "com.example", "DetailType": "Close", "Detail": '{"at": "<aws.scheduler.scheduled-time>"}'}

MAPPED: list[tuple[str, dict[str, Any], dict[str, Any], str | None]] = [
    ("lambda:invoke", {"FunctionName": FUNCTION, "InvocationType": "Event", "Payload": '{"a": 1}'},
     {"kind": "lambda", "arn": FUNCTION, "invocation": "Event"}, '{"a": 1}'),
    ("lambda:invoke", {"FunctionName": "report", "Qualifier": "live"},
     {"kind": "lambda", "arn": f"{FUNCTION}:live", "invocation": "RequestResponse"}, None),
    ("sqs:sendMessage", {"QueueUrl": QUEUE, "MessageBody": "<aws.scheduler.execution-id>"},
     {"kind": "sqs", "arn": "arn:aws:sqs:eu-west-1:123456789012:jobs"}, "<aws.scheduler.execution-id>"),
    ("sqs:sendMessage",
     {"QueueUrl": f"{QUEUE}.fifo", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"},
     {"kind": "sqs", "arn": "arn:aws:sqs:eu-west-1:123456789012:jobs.fifo", "message_group_id": "g",
      "deduplication_id": "d"}, "x"),
    ("sns:publish", {"TopicArn": TOPIC, "Message": "m", "Subject": "s"},
     {"kind": "sns", "arn": TOPIC, "subject": "s"}, "m"),
    ("eventbridge:putEvents", {"Entries": [{**ENTRY, "EventBusName": "orders"}]},
     {"kind": "event_bus", "arn": "arn:aws:events:eu-west-1:123456789012:event-bus/orders",
      "source": "com.example", "detail_type": "Close"}, ENTRY["Detail"]),
    ("eventbridge:putEvents", {"Entries": [ENTRY]},
     {"kind": "event_bus", "arn": "arn:aws:events:eu-west-1:123456789012:event-bus/default",
      "source": "com.example", "detail_type": "Close"}, ENTRY["Detail"]),
    ("sfn:startExecution", {"StateMachineArn": MACHINE, "Input": '{"n": 1}'},
     {"kind": "step_functions", "arn": MACHINE}, '{"n": 1}'),
    ("sfn:startExecution", {"StateMachineArn": MACHINE}, {"kind": "step_functions", "arn": MACHINE}, "{}"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "parameters", "target", "text"), MAPPED)
def test_the_same_call_is_made(
    operation: str, parameters: dict[str, Any], target: dict[str, Any], text: str | None
) -> None:
    call = from_universal(SDK + operation, json.dumps(parameters), ACCOUNT)
    assert (call.target, call.text) == (target, text)
    parse_definition({"schedule": {"every": "1h"}, "target": dict(call.target), "payload": text}, Limits())


REFUSED: list[tuple[str, object, str, str]] = [
    ("sqs:sendMessage", {"QueueUrl": QUEUE}, "Target.Input.MessageBody", "text"),
    ("sqs:sendMessage", {"QueueUrl": QUEUE, "MessageBody": {"a": 1}}, "Target.Input.MessageBody", "text"),
    ("sqs:sendMessage", {"QueueUrl": "https://evil.example/1/q", "MessageBody": "x"}, "Target.Input.QueueUrl", "as"),
    ("sqs:sendMessage", {"QueueUrl": QUEUE, "MessageBody": "x", "MessageGroupId": "<aws.scheduler.attempt-number>"},
     "Target.Input.MessageGroupId", "context attributes"),
    ("lambda:invoke", {"FunctionName": FUNCTION, "InvocationType": "DryRun"}, "Target.Input.InvocationType", "DryRun"),
    ("sqs:sendMessage", [], "Target.Input", "JSON object"),
    ("sqs:sendMessage", "no parameters", "Target.Input", "JSON object"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "parameters", "field", "part"), REFUSED)
def test_an_unsupported_parameter_is_refused_by_name(
    operation: str, parameters: object, field: str, part: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_universal(SDK + operation, json.dumps(parameters), ACCOUNT)
    assert caught.value.field == field
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("sqs:sendMessage", {"QueueUrl": QUEUE, "MessageBody": "x", "DelaySeconds": 5}),
        (
            "sns:publish",
            {
                "TopicArn": TOPIC,
                "Message": "m",
                "MessageAttributes": {"a": {"DataType": "String", "StringValue": "b"}},
            },
        ),
        ("lambda:invoke", {"FunctionName": FUNCTION, "ClientContext": "e30="}),
        ("eventbridge:putEvents", {"Entries": [ENTRY, ENTRY]}),
        ("eventbridge:putEvents", {"Entries": [{**ENTRY, "Resources": ["a"]}]}),
        ("sfn:startExecution", {"StateMachineArn": MACHINE, "Name": "<aws.scheduler.execution-id>"}),
        ("ecs:runTask", {"Cluster": "c", "TaskDefinition": "t", "Overrides": {"ContainerOverrides": []}}),
        ("ec2:stopInstances", {"InstanceIds": ["i-1"]}),
    ],
)
def test_what_no_kind_expresses_is_the_operation_itself(operation: str, parameters: object) -> None:
    text = json.dumps(parameters)
    call = from_universal(SDK + operation, text, ACCOUNT, ROLE)
    assert call.target == {"kind": "aws_operation", "arn": SDK + operation, "role_arn": ROLE}
    assert call.text == text


@pytest.mark.parametrize("text", [None, "", "{", "[" * 100_000, "1", "null"])
def test_an_input_that_holds_no_parameters(text: str | None) -> None:
    with pytest.raises(InvalidInput):
        from_universal(f"{SDK}sqs:sendMessage", text, ACCOUNT)


def test_which_targets_are_universal() -> None:
    assert is_universal(f"{SDK}sqs:sendMessage")
    assert is_universal("arn:aws-cn:scheduler:::aws-sdk:sqs:sendMessage")
    assert not is_universal(FUNCTION)


@pytest.mark.parametrize(
    ("url", "arn"),
    [
        (
            "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q",
            "arn:aws-cn:sqs:cn-north-1:123456789012:q",
        ),
        (
            "https://us-gov-west-1.queue.amazonaws.com/123456789012/q",
            "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q",
        ),
        (
            "https://sqs.eusc-de-east-1.amazonaws.eu/123456789012/q",
            "arn:aws-eusc:sqs:eusc-de-east-1:123456789012:q",
        ),
    ],
)
def test_a_queue_of_another_partition(url: str, arn: str) -> None:
    call = from_universal(f"{SDK}sqs:sendMessage", json.dumps({"QueueUrl": url, "MessageBody": "x"}), ACCOUNT)
    assert call.target["arn"] == arn


def test_a_queue_with_the_domain_of_another_partition_is_refused() -> None:
    url = "https://sqs.eu-west-1.amazonaws.eu/123456789012/q"
    with pytest.raises(InvalidInput, match=r"must end with amazonaws\.com in eu-west-1"):
        from_universal(f"{SDK}sqs:sendMessage", json.dumps({"QueueUrl": url, "MessageBody": "x"}), ACCOUNT)
