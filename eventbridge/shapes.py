"""What EventBridge Scheduler's API takes, with its limits; a test compares it with botocore's description. Pure.

Not botocore's own: its description is not in the Lambda package, and it checks neither patterns nor longest lengths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from common.errors import InvalidInput, together
from eventbridge.names import NAME_CHARS, NAME_PATTERN


class Shape(Protocol):
    """What a value has to be."""

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        """All that is wrong with the value; `path` is its dotted name."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text; `pattern` must match the whole of it. `choices` are all accepted values, if they are few."""

    most: int | None = None
    least: int = 1
    pattern: str = ""
    choices: tuple[str, ...] = ()

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if not isinstance(value, str):
            yield InvalidInput(path, "must be a text", value=value, accepted="a text")
        elif self.choices and value not in self.choices:
            yield InvalidInput(path, "is not a known value", value=value, accepted=", ".join(self.choices))
        elif len(value) < self.least or (self.most is not None and len(value) > self.most):
            accepted = f"{self.least} to {self.most}" if self.most is not None else f"at least {self.least}"
            yield InvalidInput(path, f"has {len(value)} characters", value=value, accepted=accepted)
        elif self.pattern and not re.fullmatch(self.pattern, value, re.ASCII):
            yield InvalidInput(path, "does not have the right form", value=value, accepted=self.pattern)


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number, both ends included."""

    least: int
    most: int

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            accepted = f"a whole number from {self.least} to {self.most}"
            yield InvalidInput(path, "is not in range", value=value, accepted=accepted)


@dataclass(frozen=True, slots=True)
class Instant:
    """Epoch seconds, as rest-json has times."""

    # Year 9999.
    most: int = 253_402_300_799

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= self.most:
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
        for name, one in value.items():
            if name in self.members:
                yield from self.members[name].problems(one, before + name)
            elif name in self.refused:
                yield InvalidInput(before + name, self.refused[name], value=one)
            else:
                accepted = ", ".join(self.members)
                yield InvalidInput(before + str(name), "is not a known field", value=one, accepted=accepted)
        for name in self.required:
            if name not in value:
                yield InvalidInput(before + name, "is missing")


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of at most `most`."""

    item: Shape
    most: int

    def problems(self, value: object, path: str) -> Iterator[InvalidInput]:
        if not isinstance(value, list):
            yield InvalidInput(path, "must be a list", value=value, accepted="a list")
        elif len(value) > self.most:
            yield InvalidInput(path, f"has {len(value)} items", accepted=f"at most {self.most}")
        else:
            for number, one in enumerate(value):
                yield from self.item.problems(one, f"{path}.{number}")


def check(shape: Shape, value: object, path: str = "") -> None:
    """Raises InvalidInput, with the first problem and the others in `also`."""
    if found := together(shape.problems(value, path)):
        raise found


def without_nulls(value: Any) -> Any:
    """The value without members that are null: in AWS's JSON they count as absent."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


NAME: Final = Text(NAME_CHARS, pattern=NAME_PATTERN)
CLIENT_TOKEN: Final = Text(64, pattern="[a-zA-Z0-9-_]+")
STATE: Final = Text(choices=("ENABLED", "DISABLED"))
MAX_RESULTS: Final = Number(1, 100)
NEXT_TOKEN: Final = Text(2_048)
TAG_KEY: Final = Text(128)
MAX_TAGS: Final = 200
TAGS: Final = Listed(Structure({"Key": TAG_KEY, "Value": Text(256)}, ("Key", "Value")), MAX_TAGS)
_NOT_CALLED: Final = "belongs to a target that Minute8 does not call"

TARGET: Final = Structure(
    {
        "Arn": Text(1_600),
        "RoleArn": Text(1_600, pattern=r"arn:aws(-[a-z]+)?:iam::\d{12}:role\/[\w+=,.@\/-]+"),
        "Input": Text(),
        "RetryPolicy": Structure(
            {"MaximumRetryAttempts": Number(0, 185), "MaximumEventAgeInSeconds": Number(60, 86_400)}
        ),
        "DeadLetterConfig": Structure(
            {"Arn": Text(1_600, pattern=r"arn:aws(-[a-z]+)?:sqs:[a-z0-9\-]+:\d{12}:[a-zA-Z0-9\-_]+")}
        ),
        "SqsParameters": Structure({"MessageGroupId": Text(128)}),
        "EventBridgeParameters": Structure(
            {
                "DetailType": Text(128),
                "Source": Text(
                    256,
                    pattern=r"(?=[/\.\-_A-Za-z0-9]+)((?!aws\.).*)|(\$(\.[\w_-]+(\[(\d+|\*)\])*)*)",
                ),
            },
            ("DetailType", "Source"),
        ),
    },
    ("Arn", "RoleArn"),
    dict.fromkeys(("EcsParameters", "KinesisParameters", "SageMakerPipelineParameters"), _NOT_CALLED),
)

SCHEDULE: Final = Structure(
    {
        "ActionAfterCompletion": Text(choices=("NONE", "DELETE")),
        "ClientToken": CLIENT_TOKEN,
        "Description": Text(512, 0),
        "EndDate": Instant(),
        "FlexibleTimeWindow": Structure(
            {"Mode": Text(choices=("OFF", "FLEXIBLE")), "MaximumWindowInMinutes": Number(1, 1_440)},
            ("Mode",),
        ),
        "GroupName": NAME,
        "ScheduleExpression": Text(256),
        "ScheduleExpressionTimezone": Text(50),
        "StartDate": Instant(),
        "State": STATE,
        "Target": TARGET,
    },
    ("FlexibleTimeWindow", "ScheduleExpression", "Target"),
    {"KmsKeyArn": "is not taken: the deployment's own key encrypts its tables"},
)
GROUP: Final = Structure({"ClientToken": CLIENT_TOKEN, "Tags": TAGS})
TAGGING: Final = Structure({"Tags": TAGS}, ("Tags",))
