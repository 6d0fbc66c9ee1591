"""Our table of what EventBridge Scheduler's API takes, compared with botocore's own description."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from minute8.eventbridge import shapes
from minute8.eventbridge.api.endpoint import OPERATIONS
from minute8.eventbridge.shapes import (
    Boolean,
    Integer,
    ListOf,
    String,
    Structure,
    Timestamp,
    check,
)

MAX_TAGS = 200

MODEL = botocore.session.get_session().get_service_model("scheduler")
# Members of requests that are in the path, or that our table has elsewhere.
IN_PATH = {"Name", "ResourceArn"}


def differences(shape: Any, model: Any, path: str) -> list[str]:
    """Where our shape differs from botocore's model. Our table names the members that it refuses."""
    limits = model.metadata
    if model.type_name == "structure":
        members = {
            name: member for name, member in model.members.items() if "location" not in member.serialization
        }
        paths = [f"{path}.{name}" for name in set(members) ^ (set(shape.members) | set(shape.refused))]
        required = [name for name in model.required_members if name in members]
        if sorted(required) != sorted(shape.required):
            paths.append(f"{path}: {required}")
        for name in members.keys() & shape.members.keys():
            paths += differences(shape.members[name], members[name], f"{path}.{name}")
        return paths
    expected: Any = {
        "string": lambda: String(
            limits.get("max"),
            limits.get("min", 1),
            str(limits.get("pattern", "")).removeprefix("^").removesuffix("$"),
            tuple(limits.get("enum", ())),
        ),
        "integer": lambda: Integer(limits["min"], limits["max"]),
        "timestamp": Timestamp,
        "boolean": Boolean,
    }
    if model.type_name == "list":
        assert isinstance(shape, ListOf), path
        of_length = [path] if (shape.min, shape.max) != (limits["min"], limits["max"]) else []
        return of_length + differences(shape.member, model.member, f"{path}[]")
    if model.type_name == "map":
        return [
            difference
            for part in ("key", "value")
            for difference in differences(getattr(shape, part), getattr(model, part), f"{path}.{part}")
        ]
    botocores = expected[model.type_name]()
    return [] if shape == botocores else [f"{path}: {shape} is not {botocores}"]


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        ("CreateSchedule", shapes.SCHEDULE),
        ("UpdateSchedule", shapes.SCHEDULE),
        ("CreateScheduleGroup", shapes.GROUP),
        ("TagResource", shapes.TAGGING),
    ],
)
def test_bodies_are_botocores(operation: str, shape: Structure) -> None:
    assert differences(shape, MODEL.operation_model(operation).input_shape, operation) == []


def test_all_operations_are_there_with_their_routes_and_parameters() -> None:
    operations = {operation.name: operation for operation in OPERATIONS}
    assert set(operations) == set(MODEL.operation_names)
    for name in MODEL.operation_names:
        model, operation = MODEL.operation_model(name), operations[name]
        label = operation.has_label and ("/{ResourceArn}" if operation.collection == "tags" else "/{Name}")
        assert model.http["requestUri"] == f"/{operation.collection}{label or ''}"
        assert model.http["method"] == operation.method
        in_query = {
            shape.serialization["name"]: shape
            for shape in model.input_shape.members.values()
            if shape.serialization.get("location") == "querystring"
        }
        assert set(in_query) == set(operation.query), name
        for parameter, shape in in_query.items():
            assert differences(operation.query[parameter], shape, parameter) == []
        body = [
            member
            for member, shape in model.input_shape.members.items()
            if "location" not in shape.serialization
        ]
        assert operation.takes_body == bool(body)
    assert shapes.MAX_TAGS == MAX_TAGS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*shapes.SCHEDULE.members, "KmsKeyArn", "Other"]), JSON))
def test_any_json_is_checked_without_another_error(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(shapes.SCHEDULE, {**body, "Target": {**_object(body.get("Target")), "Other": 1}})
    assert refused.value.field


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
