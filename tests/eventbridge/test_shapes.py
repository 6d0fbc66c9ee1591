"""Our table of what EventBridge Scheduler's API takes, compared with botocore's own description."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import InvalidInput
from eventbridge import shapes
from eventbridge.api.endpoint import OPERATIONS
from eventbridge.groups import MAX_TAGS
from eventbridge.shapes import Instant, Listed, Number, Structure, Text, check

MODEL = botocore.session.get_session().get_service_model("scheduler")
# Members of requests that are in the path, or that a table of ours names elsewhere.
IN_PATH = {"Name", "ResourceArn"}


def differences(ours: Any, theirs: Any, path: str) -> list[str]:
    """Where a shape of ours differs from theirs. The members that we refuse are named in the table."""
    limits = theirs.metadata
    if theirs.type_name == "structure":
        members = {name: one for name, one in theirs.members.items() if "location" not in one.serialization}
        found = [f"{path}.{name}" for name in set(members) ^ (set(ours.members) | set(ours.refused))]
        required = [name for name in theirs.required_members if name in members]
        if sorted(required) != sorted(ours.required):
            found.append(f"{path}: {required}")
        for name in members.keys() & ours.members.keys():
            found += differences(ours.members[name], members[name], f"{path}.{name}")
        return found
    expected: Any = {
        "string": lambda: Text(
            limits.get("max"),
            limits.get("min", 1),
            str(limits.get("pattern", "")).removeprefix("^").removesuffix("$"),
            tuple(limits.get("enum", ())),
        ),
        "integer": lambda: Number(limits["min"], limits["max"]),
        "timestamp": Instant,
    }
    if theirs.type_name == "list":
        assert isinstance(ours, Listed), path
        wrong = [path] if ours.most != limits["max"] else []
        return wrong + differences(ours.item, theirs.member, f"{path}[]")
    return (
        []
        if ours == expected[theirs.type_name]()
        else [f"{path}: {ours} is not {expected[theirs.type_name]()}"]
    )


@pytest.mark.parametrize(
    ("operation", "ours"),
    [
        ("CreateSchedule", shapes.SCHEDULE),
        ("UpdateSchedule", shapes.SCHEDULE),
        ("CreateScheduleGroup", shapes.GROUP),
        ("TagResource", shapes.TAGGING),
    ],
)
def test_bodies_are_botocores(operation: str, ours: Structure) -> None:
    theirs = MODEL.operation_model(operation).input_shape
    found = differences(ours, theirs, operation)
    assert found == []


def test_all_operations_are_there_with_their_routes_and_parameters() -> None:
    ours = {one.name: one for one in OPERATIONS}
    assert set(ours) == set(MODEL.operation_names)
    for name in MODEL.operation_names:
        model, one = MODEL.operation_model(name), ours[name]
        label = one.has_label and ("/{ResourceArn}" if one.collection == "tags" else "/{Name}")
        assert model.http["requestUri"] == f"/{one.collection}{label or ''}"
        assert model.http["method"] == one.method
        in_query = {
            shape.serialization["name"]: shape
            for shape in model.input_shape.members.values()
            if shape.serialization.get("location") == "querystring"
        }
        assert set(in_query) == set(one.query), name
        for parameter, shape in in_query.items():
            assert differences(one.query[parameter], shape, parameter) == []
        body = [
            member
            for member, shape in model.input_shape.members.items()
            if "location" not in shape.serialization
        ]
        assert one.takes_body == bool(body)
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
