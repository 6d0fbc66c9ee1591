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

_UNIVERSAL: Final = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([A-Za-z0-9]+):([A-Za-z0-9]+)", re.ASCII)
_QUEUE_URL: Final = re.compile(
    r"https://(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.amazonaws\.com(\.cn)?/([0-9]{12})/([A-Za-z0-9_.-]+)",
    re.ASCII,
)
_ATTRIBUTE: Final = "<aws.scheduler."
_INPUT: Final = "Target.Input"


@dataclass(frozen=True, slots=True)
class Home:
    """The region and account of the schedule, where names without an ARN are."""

    region: str
    account: str
    partition: str = "aws"

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


@dataclass(frozen=True, slots=True)
class Universal:
    """A target as a client of Minute8 would write it, and the text that it gets."""

    target: Mapping[str, Any]
    text: str | None


def is_universal(arn: str) -> bool:
    """Whether a target's ARN names an operation of the SDK."""
    return ":scheduler:::aws-sdk:" in arn


def from_universal(arn: str, text: str | None, home: Home) -> Universal:
    """The target that makes the same call. `text` is the schedule's Input. Raises InvalidInput."""
    match = _UNIVERSAL.fullmatch(arn)
    operation = f"{match[1]}:{match[2]}" if match else ""
    if operation not in _OPERATIONS:
        accepted = ", ".join(_OPERATIONS)
        raise InvalidInput("Target.Arn", "is no operation that can be called", value=arn, accepted=accepted)
    return _OPERATIONS[operation](_Parameters.read(text), home)


class _Parameters:
    """The parameters of an operation. Each is taken once; `done` refuses what is left."""

    def __init__(self, given: dict[str, Any], where: str = _INPUT) -> None:
        self._given = given
        self._where = where

    @classmethod
    def read(cls, text: str | None) -> _Parameters:
        try:
            given = json.loads(text or "")
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InvalidInput(
                _INPUT, "must be the operation's parameters", value=text, accepted="a JSON object"
            )
        return cls(given)

    def take(self, name: str, *, required: bool = False, attributes: bool = False) -> str | None:
        """A text; with `attributes` it may hold context attributes."""
        value = self._given.pop(name, None)
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
        entries = self._given.pop(name, None)
        if not isinstance(entries, list) or len(entries) != 1 or not isinstance(entries[0], dict):
            raise self.refused(name, "must hold exactly one entry", entries)
        return _Parameters(entries[0], f"{self._where}.{name}.0")

    def done(self) -> None:
        for name, value in self._given.items():
            raise self.refused(name, "cannot be given to a target of Minute8", value)

    def refused(self, name: str, message: str, value: object) -> InvalidInput:
        return InvalidInput(f"{self._where}.{name}", message, value=value)


def _function(given: _Parameters, home: Home) -> Universal:
    name, qualifier = given.required("FunctionName"), given.take("Qualifier")
    arn = name if name.startswith("arn:") else home.arn("lambda", f"function:{name}")
    invocation = given.take("InvocationType") or "RequestResponse"
    if invocation not in ("RequestResponse", "Event"):
        raise given.refused("InvocationType", "must be RequestResponse or Event", invocation)
    payload = given.take("Payload", attributes=True)
    given.done()
    target = {"kind": "lambda", "arn": f"{arn}:{qualifier}" if qualifier else arn, "invocation": invocation}
    return Universal(target, payload)


def _queue(given: _Parameters, home: Home) -> Universal:
    url = given.required("QueueUrl")
    if not (match := _QUEUE_URL.fullmatch(url)):
        raise given.refused(
            "QueueUrl", "must be such as https://sqs.eu-west-1.amazonaws.com/123456789012/q", url
        )
    partition = "aws-cn" if match[3] else home.partition
    arn = f"arn:{partition}:sqs:{match[1] or match[2]}:{match[4]}:{match[5]}"
    body = given.required("MessageBody", attributes=True)
    return Universal({"kind": "sqs", "arn": arn} | _order(given), body)


def _topic(given: _Parameters, home: Home) -> Universal:
    target = {"kind": "sns", "arn": given.required("TopicArn")}
    message, subject = given.required("Message", attributes=True), given.take("Subject")
    return Universal(target | ({"subject": subject} if subject else {}) | _order(given), message)


def _order(given: _Parameters) -> dict[str, str]:
    names = {"MessageGroupId": "message_group_id", "MessageDeduplicationId": "deduplication_id"}
    found = {ours: value for theirs, ours in names.items() if (value := given.take(theirs))}
    given.done()
    return found


def _bus(given: _Parameters, home: Home) -> Universal:
    entry = given.only_entry("Entries")
    given.done()
    bus = entry.take("EventBusName") or "default"
    target = {
        "kind": "event_bus",
        "arn": bus if bus.startswith("arn:") else home.arn("events", f"event-bus/{bus}"),
        "source": entry.required("Source"),
        "detail_type": entry.required("DetailType"),
    }
    detail = entry.required("Detail", attributes=True)
    entry.done()
    return Universal(target, detail)


def _state_machine(given: _Parameters, home: Home) -> Universal:
    target = {"kind": "step_functions", "arn": given.required("StateMachineArn")}
    text = given.take("Input", attributes=True)
    given.done()
    return Universal(target, text or "{}")


_OPERATIONS: Final[Mapping[str, Callable[[_Parameters, Home], Universal]]] = {
    "lambda:invoke": _function,
    "sqs:sendMessage": _queue,
    "sns:publish": _topic,
    "eventbridge:putEvents": _bus,
    "sfn:startExecution": _state_machine,
}
