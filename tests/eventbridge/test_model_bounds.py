"""Each member of each request of botocore's model, at its bounds and beyond, sent by boto3's client.

The cases and AWS's words for a refusal are made from the model, not from our table of shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from tests.api.aws_schedules import QUEUE, ROLE, Aws, refusal
from tests.api.calls import Office
from tests.worlds import ARN

MAX_GROUPS = 500

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
    # "key" or "value" of a map.
    member: str = ""

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
    if shape.type_name == "map":
        return {"k": "v"}
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
        elif member.type_name == "list":
            yield from lists(operation, member, at)
        elif member.type_name == "timestamp":
            yield from (Case(operation, at, value) for value in (1_900_000_000, 1_900_000_000.125))
        elif member.type_name == "boolean":
            yield from (Case(operation, at, value) for value in (True, False))
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


def lists(operation: str, shape: Any, path: tuple[str | int, ...]) -> Iterator[Case]:
    least, most = shape.metadata["min"], shape.metadata["max"]
    # In a query, a list without items is no list.
    if least:
        yield Case(operation, path, [], f"have length greater than or equal to {least}")
    yield Case(operation, path, different(shape.member, most))
    yield Case(
        operation, path, different(shape.member, most + 1), f"have length less than or equal to {most}"
    )
    if shape.member.type_name == "structure":
        yield from cases_of(operation, shape.member, (*path, 0))
    elif shape.member.type_name == "string":
        yield from texts(operation, shape.member, (*path, 0))
    elif shape.member.type_name == "map":
        for part, member in (("key", shape.member.key), ("value", shape.member.value)):
            for case in texts(operation, member, (*path, 0, part)):
                tag = {"k": case.value} if part == "value" else {case.value: "v"}
                yield replace(case, path=(*path, 0), value=tag, member=part)


def different(shape: Any, count: int) -> list[Any]:
    """So many least values; texts differ, since a group takes each key of a tag once."""
    if shape.type_name == "string":
        return [f"k{n}" for n in range(count)]
    if shape.type_name == "map":
        return [{"key": f"k{n}", "value": "v"} for n in range(count)]
    named = {"Key", "Name"} & shape.members.keys()
    return [{**example(shape), **dict.fromkeys(named, f"k{n}")} for n in range(count)]


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
        (text,) = case.value.items() if case.member else ((case.value, case.value),)
        value, path = text[case.member == "value"], (*case.path, *filter(None, [case.member]))
        shown = "null" if value is None else f"'{str(value)[:2_100]}'"
        expected = f"Value {shown} at '{_path(path)}' failed to satisfy constraint: Member must "
        assert f"{expected}{case.constraint}" in message, message
    else:
        assert "validation error" not in message, message


def test_each_documented_error_is_one_of_ours(aws: Aws) -> None:
    """The names and statuses of the model's errors are those of our table."""
    from minute8.eventbridge.api.endpoint import _ERRORS

    statuses = {name: status.value for status, name in _ERRORS.values()} | {"InternalServerException": 500}
    for shape in MODEL.error_shapes:
        assert statuses[shape.error_code] == shape.metadata["error"]["httpStatusCode"], shape.name
        assert set(shape.members) == {"Message"}


# What no request here is answered with, and why.
NEVER = {
    ("UpdateSchedule", "ConflictException"): "two updates at once are tried again, and throttled at last",
    ("DeleteScheduleGroup", "ConflictException"): "a group that is being deleted is deleted once more",
}
ERRORS = [
    (operation, shape.error_code)
    for operation in MODEL.operation_names
    for shape in MODEL.operation_model(operation).error_shapes
    if (operation, shape.error_code) not in NEVER
]


@pytest.mark.parametrize(("operation", "code"), ERRORS)
def test_each_documented_error_of_each_operation_is_answered(
    office: Office, aws: Aws, operation: str, code: str
) -> None:
    client = aws(parameter_validation=False)
    call = getattr(client, _snake(operation))
    request = PROVOKED[code](office, client, operation)
    # A tenant's budget of requests is spent by the first ones.
    for _ in range(3):
        with suppress(ClientError):
            call(**request)
    assert refusal(call, **request)[:2] == (STATUSES[code], code)


STATUSES = {shape.error_code: shape.metadata["error"]["httpStatusCode"] for shape in MODEL.error_shapes}


def least(operation: str, **names: str) -> dict[str, Any]:
    """The least valid request about a group and a schedule with these names."""
    shape = MODEL.operation_model(operation).input_shape
    fields = {name: value for name, value in names.items() if name in shape.members}
    return {**example(shape), **fields}


def invalid(office: Office, client: Any, operation: str) -> dict[str, Any]:
    return next(case.request for case in CASES if case.operation == operation and case.constraint)


def not_there(office: Office, client: Any, operation: str) -> dict[str, Any]:
    arn = GROUP_ARN.replace("default", "nothing")
    return least(operation, Name="nothing", GroupName="nothing", ResourceArn=arn)


def in_conflict(office: Office, client: Any, operation: str) -> dict[str, Any]:
    """What exists already, a deletion that was undone since, a group that is being deleted."""
    client.create_schedule_group(Name="g")
    for n in range(40):
        client.create_schedule(**least("CreateSchedule", Name=f"s{n}", GroupName="g"))
    if operation == "DeleteSchedule":
        request = least(operation, Name="s0", GroupName="g", ClientToken="t")
        client.delete_schedule(**request)
        client.create_schedule(**least("CreateSchedule", Name="s0", GroupName="g"), ClientToken="again")
        return request
    if operation in ("TagResource", "UntagResource"):
        client.delete_schedule_group(Name="g")
    name = "g" if operation == "CreateScheduleGroup" else "s0"
    return least(operation, Name=name, GroupName="g", ResourceArn=GROUP_ARN.replace("default", "g"))


def over_quota(office: Office, client: Any, operation: str) -> dict[str, Any]:
    if operation == "CreateScheduleGroup":
        for n in range(MAX_GROUPS):
            office.world.clock.sleep(1)
            client.create_schedule_group(Name=f"g{n}")
    else:
        office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 1}})
        office.world.clock.sleep(60)
        client.create_schedule(**least(operation, Name="first"))
    return least(operation, Name="new")


def throttled(office: Office, client: Any, operation: str) -> dict[str, Any]:
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 1}})
    office.world.clock.sleep(60)
    return least(operation, Name="any", ResourceArn=GROUP_ARN)


def failing(office: Office, client: Any, operation: str) -> dict[str, Any]:
    def before(call: str) -> None:
        raise RuntimeError("the table is gone")

    office.world.dynamodb.before = before
    return least(operation, Name="any", ResourceArn=GROUP_ARN)


PROVOKED: dict[str, Callable[[Office, Any, str], dict[str, Any]]] = {
    "ValidationException": invalid,
    "ResourceNotFoundException": not_there,
    "ConflictException": in_conflict,
    "ServiceQuotaExceededException": over_quota,
    "ThrottlingException": throttled,
    "InternalServerException": failing,
}


def _snake(operation: str) -> str:
    return botocore.xform_name(operation)


def _path(path: tuple[str | int, ...]) -> str:
    parts = [f"{part + 1}.member" if isinstance(part, int) else part[0].lower() + part[1:] for part in path]
    return ".".join(parts)
