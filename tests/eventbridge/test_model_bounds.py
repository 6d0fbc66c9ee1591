"""Each member of each request of botocore's model, at its bounds and beyond, sent by boto3's client.

The cases and AWS's words for a refusal are made from the model, not from our table of shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from tests.api.aws_schedules import QUEUE, ROLE, Aws
from tests.worlds import ARN

MODEL = botocore.session.get_session().get_service_model("scheduler")
GROUP_ARN = "arn:aws:scheduler:us-east-1:123456789012:schedule-group/default"
# Texts of the patterns, by the shape's name. Other texts have any characters.
TEXTS = {
    "TargetArn": ARN,
    "RoleArn": ROLE,
    "DeadLetterConfigArnString": QUEUE,
    "TagResourceArn": GROUP_ARN,
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/a",
    "ScheduleExpression": "rate(1 day)",
    "ScheduleExpressionTimezone": "UTC",
    "TargetInput": "1",
}
# What Minute8 refuses whatever its value is, said in docs/eventbridge.md.
NOT_TAKEN = {"KmsKeyArn"}


@dataclass(frozen=True)
class Case:
    """One member with one value. `constraint` is what AWS says of it; empty: the model allows it."""

    operation: str
    path: tuple[str | int, ...]
    value: Any
    constraint: str = ""

    @property
    def name(self) -> str:
        return f"{self.operation}.{'.'.join(map(str, self.path))}={str(self.value)[:20]}({self.constraint[-30:]})"

    @property
    def request(self) -> dict[str, Any]:
        shape: Any = MODEL.operation_model(self.operation).input_shape
        request = place = example(shape)
        *before, last = self.path
        for part in before:
            shape = shape.member if isinstance(part, int) else shape.members[part]
            if isinstance(place, dict):
                place.setdefault(part, example(shape))
            place = place[part]
        if self.value is None:
            place.pop(last, None)
        else:
            place[last] = self.value
        return request


def example(shape: Any) -> Any:
    """The least valid value."""
    if shape.type_name == "structure":
        return {name: example(shape.members[name]) for name in shape.required_members}
    if shape.type_name == "list":
        return [example(shape.member)]
    if shape.type_name == "string":
        return TEXTS.get(shape.name) or shape.enum[:1][0] if shape.enum else TEXTS.get(shape.name, "a")
    return shape.metadata.get("min", 0)


def cases_of(operation: str, shape: Any, path: tuple[str | int, ...] = ()) -> Iterator[Case]:
    for name in shape.required_members:
        if "location" not in shape.members[name].serialization:
            yield Case(operation, (*path, name), None, "not be null")
    for name, member in shape.members.items():
        if name in NOT_TAKEN:
            continue
        at = (*path, name)
        if member.type_name == "structure":
            yield from cases_of(operation, member, at)
        elif member.type_name == "list" and member.member.type_name == "structure":
            yield from cases_of(operation, member.member, (*at, 0))
        elif member.type_name == "string":
            yield from texts(operation, member, at)
        elif member.type_name == "integer":
            low, high = member.metadata["min"], member.metadata["max"]
            yield from (Case(operation, at, value) for value in (low, high))
            yield Case(operation, at, low - 1, f"have value greater than or equal to {low}")
            yield Case(operation, at, high + 1, f"have value less than or equal to {high}")


def texts(operation: str, shape: Any, path: tuple[str | int, ...]) -> Iterator[Case]:
    if shape.enum:
        yield from (Case(operation, path, value) for value in shape.enum)
        yield Case(operation, path, "Other", f"satisfy enum value set: [{', '.join(shape.enum)}]")
        return
    limits = shape.metadata
    if "max" in limits:
        longest = TEXTS.get(shape.name, "a").ljust(limits["max"], "a")
        yield Case(operation, path, longest)
        yield Case(operation, path, f"{longest}a", f"have length less than or equal to {limits['max']}")
    in_path = shape.serialization.get("location") == "uri"
    if limits.get("min") and not limits.get("pattern") and not in_path:
        yield Case(operation, path, "", f"have length greater than or equal to {limits['min']}")
    if pattern := limits.get("pattern"):
        yield Case(operation, path, "ä b", f"satisfy regular expression pattern: {pattern}")


CASES = [
    case
    for operation in MODEL.operation_names
    for case in cases_of(operation, MODEL.operation_model(operation).input_shape)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_member_is_taken_or_refused_as_the_model_says(aws: Aws, case: Case) -> None:
    client = aws(parameter_validation=False)
    call = getattr(client, _snake(case.operation))
    try:
        call(**case.request)
        message = ""
    except ClientError as error:
        message = error.response["Error"]["Message"]
        if case.constraint:
            assert error.response["Error"]["Code"] == "ValidationException"
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    if case.constraint:
        shown = "null" if case.value is None else f"'{case.value}'"
        expected = f"Value {shown} at '{_path(case.path)}' failed to satisfy constraint: Member must "
        assert f"{expected}{case.constraint}" in message, message
    else:
        assert "validation error" not in message, message


def test_each_documented_error_is_one_of_ours(aws: Aws) -> None:
    """The names and statuses of the model's errors are those of our table."""
    from eventbridge.api.endpoint import _ERRORS

    statuses = {name: status.value for status, name in _ERRORS.values()} | {"InternalServerException": 500}
    for shape in MODEL.error_shapes:
        assert statuses[shape.error_code] == shape.metadata["error"]["httpStatusCode"], shape.name
        assert set(shape.members) == {"Message"}


def _snake(operation: str) -> str:
    return botocore.xform_name(operation)


def _path(path: tuple[str | int, ...]) -> str:
    parts = [f"{part + 1}.member" if isinstance(part, int) else part[0].lower() + part[1:] for part in path]
    return ".".join(parts)
