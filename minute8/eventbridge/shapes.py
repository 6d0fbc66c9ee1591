"""What EventBridge Scheduler's API takes, with its limits, in botocore's words. Pure.

A test compares these shapes with botocore's description. That description is not in the Lambda package, and botocore
checks neither patterns nor greatest lengths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from common.errors import InvalidInput, together
from minute8.eventbridge.errors import Violation
from minute8.eventbridge.names import NAME_CHARS, NAME_PATTERN


class Shape(Protocol):
    """The rules for a value."""

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        """All problems of the value, whose dotted name is `path`."""


@dataclass(frozen=True, slots=True)
class String:
    """A text. `pattern` must match the whole text. `enum` has all accepted values, if there is such a list."""

    max: int | None = None
    min: int = 1
    pattern: str = ""
    enum: tuple[str, ...] = ()

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if not isinstance(value, str):
            yield InvalidInput(path, "must be a text", value=value, accepted="a text")
        elif self.enum and value not in self.enum:
            known = ", ".join(self.enum)
            constraint = f"satisfy enum value set: [{known}]"
            yield Violation(path, "is not a known value", constraint, value=value, accepted=known)
        else:
            yield from self._length(value, path)
            # An overlong text is not searched.
            is_short = self.max is None or len(value) <= self.max
            if self.pattern and is_short and not re.fullmatch(self.pattern, value, re.ASCII):
                constraint = f"satisfy regular expression pattern: ^{self.pattern}$"
                yield Violation(
                    path, "does not have the right form", constraint, value=value, accepted=self.pattern
                )

    def _length(self, value: str, path: str) -> Iterator[InvalidInput]:
        accepted = f"{self.min} to {self.max}" if self.max is not None else f"at least {self.min}"
        if bound := _broken_length(len(value), self.min, self.max):
            message = f"has {len(value)} characters"
            yield Violation(path, message, bound, value=value, accepted=accepted)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number, both ends included."""

    min: int
    max: int

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        accepted = f"a whole number from {self.min} to {self.max}"
        if isinstance(value, bool) or not isinstance(value, int):
            yield InvalidInput(path, "is not in range", value=value, accepted=accepted)
        elif not self.min <= value <= self.max:
            bound = f"less than or equal to {self.max}" if value > self.max else ""
            constraint = f"have value {bound or f'greater than or equal to {self.min}'}"
            yield Violation(path, "is not in range", constraint, value=value, accepted=accepted)


@dataclass(frozen=True, slots=True)
class Boolean:
    """true or false."""

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if not isinstance(value, bool):
            yield InvalidInput(path, "must be true or false", value=value, accepted="true or false")


@dataclass(frozen=True, slots=True)
class TextMap:
    """An object whose members are texts, such as a tag of ECS: `{"key": "team", "value": "billing"}`."""

    key: String
    value: String

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if not isinstance(value, Mapping):
            yield InvalidInput(path, "must be an object of texts", value=value, accepted="an object of texts")
            return
        for name, member in value.items():
            yield from self.key.problems(name, f"{path}.key")
            yield from self.value.problems(member, f"{path}.value")


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Epoch seconds, as rest-json has times."""

    # Year 9999.
    max: int = 253_402_300_799

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= self.max:
            yield InvalidInput(
                path, "must be a time", value=value, accepted="epoch seconds, such as 1795305600"
            )


@dataclass(frozen=True, slots=True)
class Structure:
    """An object with only these members."""

    members: Mapping[str, Shape]
    required: tuple[str, ...] = ()
    # AWS's members that are refused here: name -> why.
    refused: Mapping[str, str] = field(default_factory=dict)

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if not isinstance(value, Mapping):
            yield InvalidInput(path or "body", "must be an object", value=value, accepted="a JSON object")
            return
        before = f"{path}." if path else ""
        for name, member in value.items():
            if name in self.members:
                yield from self.members[name].problems(member, before + name)
            elif name in self.refused:
                yield InvalidInput(before + name, self.refused[name], value=member)
            else:
                accepted = ", ".join(self.members)
                yield InvalidInput(
                    before + str(name), "is not a known field", value=member, accepted=accepted
                )
        for name in self.required:
            if name not in value:
                yield Violation(before + name, "is missing", "not be null")


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of at most `max`."""

    member: Shape
    max: int
    min: int = 0

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if not isinstance(value, list):
            yield InvalidInput(path, "must be a list", value=value, accepted="a list")
        elif bound := _broken_length(len(value), self.min, self.max):
            yield Violation(
                path, f"has {len(value)} items", bound, value=value, accepted=f"{self.min} to {self.max}"
            )
        else:
            for number, member in enumerate(value):
                yield from self.member.problems(member, f"{path}.{number}")


def _broken_length(length: int, least: int, most: int | None) -> str:
    """The constraint that a length breaks, in AWS's words; empty if it breaks none."""
    if most is not None and length > most:
        return f"have length less than or equal to {most}"
    return f"have length greater than or equal to {least}" if length < least else ""


def check(shape: Shape, value: object, path: str = "") -> None:
    """Raises InvalidInput, with the first problem and the others in `also`."""
    if error := together(shape.problems(value, path)):
        raise error


def check_name(label: str) -> None:
    """Whether the name in a path is one. `.` and `..` have another meaning in a path. Raises InvalidInput."""
    check(NAME, "/" if label in (".", "..") else label, "Name")


def without_nulls(value: Any) -> Any:
    """The value without null members, which count as absent in AWS's JSON."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


NAME: Final = String(NAME_CHARS, pattern=NAME_PATTERN)
GROUP_ARN: Final = String(
    1_011, pattern=r"arn:aws(-[a-z]+)?:scheduler:[a-z0-9\-]+:\d{12}:schedule-group\/[0-9a-zA-Z-_.]+"
)
CLIENT_TOKEN: Final = String(64, pattern="[a-zA-Z0-9-_]+")
STATE: Final = String(enum=("ENABLED", "DISABLED"))
MAX_RESULTS: Final = Integer(1, 100)
NEXT_TOKEN: Final = String(2_048)
TAG_KEY: Final = String(128)
MAX_TAGS: Final = 200
TAGS: Final = ListOf(Structure({"Key": TAG_KEY, "Value": String(256)}, ("Key", "Value")), MAX_TAGS)
DESCRIPTION_CHARS: Final = 512
_ECS: Final = Structure(
    {
        "CapacityProviderStrategy": ListOf(
            Structure(
                {"base": Integer(0, 100_000), "capacityProvider": String(255), "weight": Integer(0, 1_000)},
                ("capacityProvider",),
            ),
            6,
        ),
        "EnableECSManagedTags": Boolean(),
        "EnableExecuteCommand": Boolean(),
        "Group": String(255),
        "LaunchType": String(enum=("EC2", "FARGATE", "EXTERNAL")),
        "NetworkConfiguration": Structure(
            {
                "awsvpcConfiguration": Structure(
                    {
                        "AssignPublicIp": String(enum=("ENABLED", "DISABLED")),
                        "SecurityGroups": ListOf(String(1_000), 5, 1),
                        "Subnets": ListOf(String(1_000), 16, 1),
                    },
                    ("Subnets",),
                )
            }
        ),
        "PlacementConstraints": ListOf(
            Structure(
                {"expression": String(2_000, 0), "type": String(enum=("distinctInstance", "memberOf"))}
            ),
            10,
        ),
        "PlacementStrategy": ListOf(
            Structure({"field": String(255, 0), "type": String(enum=("random", "spread", "binpack"))}), 5
        ),
        "PlatformVersion": String(64),
        "PropagateTags": String(enum=("TASK_DEFINITION",)),
        "ReferenceId": String(1_024, 0),
        "Tags": ListOf(TextMap(TAG_KEY, String(256)), 50),
        "TaskCount": Integer(1, 10),
        "TaskDefinitionArn": String(1_600),
    },
    ("TaskDefinitionArn",),
)
_PIPELINE_PARAMETER: Final = Structure(
    {"Name": String(256, pattern=r"[A-Za-z0-9\-_]*"), "Value": String(1_024)}, ("Name", "Value")
)

TARGET: Final = Structure(
    {
        "Arn": String(1_600),
        "RoleArn": String(1_600, pattern=r"arn:aws(-[a-z]+)?:iam::\d{12}:role\/[\w+=,.@\/-]+"),
        "Input": String(),
        "RetryPolicy": Structure(
            {"MaximumRetryAttempts": Integer(0, 185), "MaximumEventAgeInSeconds": Integer(60, 86_400)}
        ),
        "DeadLetterConfig": Structure(
            {"Arn": String(1_600, pattern=r"arn:aws(-[a-z]+)?:sqs:[a-z0-9\-]+:\d{12}:[a-zA-Z0-9\-_]+")}
        ),
        "EcsParameters": _ECS,
        "KinesisParameters": Structure({"PartitionKey": String(256)}, ("PartitionKey",)),
        "SageMakerPipelineParameters": Structure({"PipelineParameterList": ListOf(_PIPELINE_PARAMETER, 200)}),
        "SqsParameters": Structure({"MessageGroupId": String(128)}),
        "EventBridgeParameters": Structure(
            {
                "DetailType": String(128),
                "Source": String(
                    256,
                    pattern=r"(?=[/\.\-_A-Za-z0-9]+)((?!aws\.).*)|(\$(\.[\w_-]+(\[(\d+|\*)\])*)*)",
                ),
            },
            ("DetailType", "Source"),
        ),
    },
    ("Arn", "RoleArn"),
)

SCHEDULE: Final = Structure(
    {
        "ActionAfterCompletion": String(enum=("NONE", "DELETE")),
        "ClientToken": CLIENT_TOKEN,
        "Description": String(DESCRIPTION_CHARS, 0),
        "EndDate": Timestamp(),
        "FlexibleTimeWindow": Structure(
            {"Mode": String(enum=("OFF", "FLEXIBLE")), "MaximumWindowInMinutes": Integer(1, 1_440)},
            ("Mode",),
        ),
        "GroupName": NAME,
        "ScheduleExpression": String(256),
        "ScheduleExpressionTimezone": String(50),
        "StartDate": Timestamp(),
        "State": STATE,
        "Target": TARGET,
    },
    ("FlexibleTimeWindow", "ScheduleExpression", "Target"),
    {"KmsKeyArn": "is not taken: the deployment's own key encrypts its tables"},
)
GROUP: Final = Structure({"ClientToken": CLIENT_TOKEN, "Tags": TAGS})
TAGGING: Final = Structure({"Tags": TAGS}, ("Tags",))
