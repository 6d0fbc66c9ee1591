"""Universal targets, `arn:aws:scheduler:::aws-sdk:<service>:<operation>`, as Minute8's kinds of target. Pure.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
Their Input holds the parameters of the operation. What a kind of target cannot express is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.errors import InvalidInput
from common.storage.domains import DOMAINS, domain_of, partition_of
from minute8.eventbridge.names import AwsAccount

_UNIVERSAL: Final = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([A-Za-z0-9]+):([A-Za-z0-9]+)", re.ASCII)
_DOMAIN: Final = "|".join(map(re.escape, DOMAINS.values()))
_QUEUE_URL: Final = re.compile(
    rf"https://(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.({_DOMAIN})/([0-9]{{12}})/([A-Za-z0-9_.-]+)",
    re.ASCII,
)
_ATTRIBUTE: Final = "<aws.scheduler."
_INPUT: Final = "Target.Input"


@dataclass(frozen=True, slots=True)
class TargetCall:
    """A target as a client of Minute8 would write it, and the text that the target gets."""

    target: Mapping[str, Any]
    text: str | None


def is_universal(arn: str) -> bool:
    """Whether a target's ARN names an operation of the SDK."""
    return ":scheduler:::aws-sdk:" in arn


def from_universal(arn: str, text: str | None, account: AwsAccount, role_arn: str = "") -> TargetCall:
    """The target that makes the same call. `text` is the schedule's Input; names without an ARN are of `account`.

    Raises InvalidInput.
    """
    match = _UNIVERSAL.fullmatch(arn)
    operation = f"{match[1]}:{match[2]}" if match else ""
    if operation in _OPERATIONS:
        try:
            return _OPERATIONS[operation](_Parameters.read(text), account)
        except _OtherParameters:
            pass
    return any_operation(arn, role_arn, text)


def any_operation(arn: str, role_arn: str, text: str | None) -> TargetCall:
    """The operation itself, called with the rights of the role. The registration checks its parameters."""
    return TargetCall({"kind": "aws_operation", "arn": arn, "role_arn": role_arn}, text)


class _OtherParameters(InvalidInput):
    """Parameters that the kind of target for this operation does not take."""


class _Parameters:
    """The parameters of an operation. Each is taken once; `done` refuses the others."""

    def __init__(self, values: dict[str, Any], path: str = _INPUT) -> None:
        self._values = values
        self._path = path

    @classmethod
    def read(cls, text: str | None) -> _Parameters:
        try:
            values = json.loads(text or "")
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise InvalidInput(
                _INPUT, "must be the operation's parameters", value=text, accepted="a JSON object"
            )
        return cls(values)

    def take(self, name: str, *, required: bool = False, attributes: bool = False) -> str | None:
        """A text; with `attributes` context attributes may be in it."""
        value = self._values.pop(name, None)
        if value is None and not required:
            return None
        if not isinstance(value, str) or not value:
            raise self.refused(name, "must be a text", value)
        if _ATTRIBUTE in value and not attributes:
            raise self.refused(name, "cannot hold context attributes here", value)
        return value

    def required(self, name: str, *, attributes: bool = False) -> str:
        return self.take(name, required=True, attributes=attributes) or ""

    def only_entry(self, name: str) -> _Parameters:
        entries = self._values.pop(name, None)
        if not isinstance(entries, list) or len(entries) != 1 or not isinstance(entries[0], dict):
            raise self.other(name, "must hold exactly one entry", entries)
        return _Parameters(entries[0], f"{self._path}.{name}.0")

    def done(self) -> None:
        for name, value in self._values.items():
            raise self.other(name, "cannot be given to a target of Minute8", value)

    def other(self, name: str, message: str, value: object) -> _OtherParameters:
        return _OtherParameters(f"{self._path}.{name}", message, value=value)

    def refused(self, name: str, message: str, value: object) -> InvalidInput:
        return InvalidInput(f"{self._path}.{name}", message, value=value)


def _function(parameters: _Parameters, account: AwsAccount) -> TargetCall:
    name, qualifier = parameters.required("FunctionName"), parameters.take("Qualifier")
    arn = name if name.startswith("arn:") else account.arn("lambda", f"function:{name}")
    invocation = parameters.take("InvocationType") or "RequestResponse"
    if invocation not in ("RequestResponse", "Event"):
        raise parameters.refused("InvocationType", "must be RequestResponse or Event", invocation)
    payload = parameters.take("Payload", attributes=True)
    parameters.done()
    target = {"kind": "lambda", "arn": f"{arn}:{qualifier}" if qualifier else arn, "invocation": invocation}
    return TargetCall(target, payload)


def _queue(parameters: _Parameters, account: AwsAccount) -> TargetCall:
    url = parameters.required("QueueUrl")
    if not (match := _QUEUE_URL.fullmatch(url)):
        raise parameters.refused(
            "QueueUrl", "must be such as https://sqs.eu-west-1.amazonaws.com/123456789012/q", url
        )
    region = match[1] or match[2]
    partition = partition_of(region)
    if match[3] != domain_of(partition):
        raise parameters.refused("QueueUrl", f"must end with {domain_of(partition)} in {region}", url)
    arn = f"arn:{partition}:sqs:{region}:{match[4]}:{match[5]}"
    body = parameters.required("MessageBody", attributes=True)
    return TargetCall({"kind": "sqs", "arn": arn} | _order(parameters), body)


def _topic(parameters: _Parameters, account: AwsAccount) -> TargetCall:
    target = {"kind": "sns", "arn": parameters.required("TopicArn")}
    message, subject = parameters.required("Message", attributes=True), parameters.take("Subject")
    return TargetCall(target | ({"subject": subject} if subject else {}) | _order(parameters), message)


def _order(parameters: _Parameters) -> dict[str, str]:
    names = {"MessageGroupId": "message_group_id", "MessageDeduplicationId": "deduplication_id"}
    order = {field: value for name, field in names.items() if (value := parameters.take(name))}
    parameters.done()
    return order


def _bus(parameters: _Parameters, account: AwsAccount) -> TargetCall:
    entry = parameters.only_entry("Entries")
    parameters.done()
    bus = entry.take("EventBusName") or "default"
    target = {
        "kind": "event_bus",
        "arn": bus if bus.startswith("arn:") else account.arn("events", f"event-bus/{bus}"),
        "source": entry.required("Source"),
        "detail_type": entry.required("DetailType"),
    }
    detail = entry.required("Detail", attributes=True)
    entry.done()
    return TargetCall(target, detail)


def _state_machine(parameters: _Parameters, account: AwsAccount) -> TargetCall:
    target = {"kind": "step_functions", "arn": parameters.required("StateMachineArn")}
    text = parameters.take("Input", attributes=True)
    parameters.done()
    return TargetCall(target, text or "{}")


_OPERATIONS: Final[Mapping[str, Callable[[_Parameters, AwsAccount], TargetCall]]] = {
    "lambda:invoke": _function,
    "sqs:sendMessage": _queue,
    "sns:publish": _topic,
    "eventbridge:putEvents": _bus,
    "sfn:startExecution": _state_machine,
}
