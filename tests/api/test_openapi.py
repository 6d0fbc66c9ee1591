"""The OpenAPI document says what the API does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from openapi_spec_validator import validate

from common.registration.definition import JobDefinition
from common.version import VERSION
from minute8.api.app import ROUTES
from minute8.api.http.problems import KINDS
from minute8.api.http.routing import NDJSON, Route
from minute8.api.shapes import SHAPES
from minute8.api.shapes.definitions import JobPatch
from tests.api.calls import Office, send
from tests.api.conftest import settle
from tests.api.shapes import check_shape, fields_of
from tests.api.walk import Call, calls_of_document, the_document

DOCUMENT = the_document()


def test_the_document_is_served_without_a_key(office: Office) -> None:
    served = send("GET", "/v1/openapi.json")
    assert (served.status, served.json) == (200, DOCUMENT)
    assert served.json["openapi"] == "3.1.0"


def test_the_version_is_served_to_everybody(office: Office) -> None:
    served = send("GET", "/v1")
    assert (served.status, served.json) == (200, {"version": VERSION})
    check_shape("Version", served.json)


def test_all_references_lead_somewhere() -> None:
    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    collected = references(DOCUMENT)
    assert len(collected) > 15
    assert collected <= {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}


def test_the_document_is_valid_openapi() -> None:
    validate(DOCUMENT)
    assert DOCUMENT["servers"]


def test_no_part_is_a_schema_that_generators_of_clients_refuse() -> None:
    """openapi-python-client ends at `"items": false`."""
    assert '"items": false' not in json.dumps(DOCUMENT)


def test_every_shape_and_every_field_is_described() -> None:
    """Each shape, with the fields of its own."""
    schemas = {
        name: schema for name, schema in DOCUMENT["components"]["schemas"].items() if name != "JsonValue"
    }
    undescribed = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, value in schema.get("properties", {}).items()
        if not any("description" in part or "$ref" in part for part in (value, *value.get("anyOf", ())))
    ]
    assert undescribed == [], "describe the field in its shape"
    assert [name for name, schema in schemas.items() if not schema.get("description")] == []


def test_operations_have_names_and_declared_parameters() -> None:
    operations = [
        (path, operation) for path, methods in DOCUMENT["paths"].items() for operation in methods.values()
    ]
    assert len({operation["operationId"] for _, operation in operations}) == len(operations) == len(ROUTES)
    for path, operation in operations:
        declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
        assert declared == set(re.findall(r"\{(\w+)\}", path))
        assert operation["summary"]


def test_every_operation_says_what_it_does_needs_and_costs_and_which_problems_it_has() -> None:
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            does, needs_and_costs, problems = operation["description"].rsplit("\n\n", 2)
            assert len(does.split()) >= 5, operation["operationId"]
            assert needs_and_costs.startswith("Needs ") and (
                "counted" in needs_and_costs or "counts" in needs_and_costs
            )
            assert "`invalid-input`" in problems
            statuses = {str(kind.status.value) for kind in KINDS.values() if f"`{kind.name}`" in problems}
            refusals = {status for status in operation["responses"] if int(status) >= 400}
            assert refusals == statuses, operation["operationId"]


def test_a_bulk_request_is_ndjson_or_an_array() -> None:
    content = DOCUMENT["paths"]["/v1/jobs/_bulk"]["post"]["requestBody"]["content"]
    job = content[NDJSON]["schema"]
    assert content["application/json"]["schema"] == {"type": "array", "items": job}


def test_the_weight_of_an_operation_is_in_its_description() -> None:
    operations = [operation for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    weights = {operation["operationId"]: operation["description"] for operation in operations}
    assert (
        "role `write` or higher. It counts as 20 requests, or as more by what it costs."
        in weights["pause_jobs"]
    )
    assert (
        "role `admin`. It counts as one request, or as more by what it costs. A suspended tenant may call it."
        in weights["list_keys"]
    )
    assert "Needs an operator key. It is not counted." in weights["list_tenants"]
    for name in ("delete_calendar", "delete_secret"):  # they look for jobs that name it
        assert "It counts as 20 requests" in weights[name]


@pytest.mark.parametrize("with_a", ["key", "token"])
@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.role and route.response in SHAPES],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_answers_have_the_shape_that_is_promised(office: Office, route: Route, with_a: str) -> None:
    settle(office, office.alice)
    call = next(c for c in calls_of_document() if (c.method, c.path) == (route.method, route.path))
    admin = office.alice_admin if with_a == "key" else office.alice_tokens["admin"]
    caller = office.operator if call.role == "operator" else admin
    if call.path.endswith("/deletion"):
        caller("DELETE", "/v1/tenants/alice")
    answer = caller(call.method, call.url, call.body)
    assert answer.status in (route.status, route.other_status)
    assert answer.headers["content-type"] == route.response_type
    if route.response_type == NDJSON:
        assert answer.text.endswith("\n")
        for line in answer.text.splitlines():
            check_shape(route.response, json.loads(line))
        return
    check_shape(route.response, answer.json)
    for job in answer.json.get("jobs", []) if route.response == "JobPage" else ():
        check_shape("Job", job)


def test_a_patch_can_say_all_that_a_job_can() -> None:
    assert JobPatch.__struct_fields__ == JobDefinition.__struct_fields__


# Fields that are not part of a job's definition, and are read before it.
BESIDE: dict[str, Any] = {"job_id": "report", "state": "paused", "note": "maintenance", "eventbridge": {}}


@pytest.mark.parametrize("call", [call for call in calls_of_document() if call.body is not None], ids=str)
def test_a_body_has_the_fields_of_its_shape_and_no_others(settled: Office, call: Call) -> None:
    """Routes do not read bodies through the document's models, so the two lists of names must be the same."""
    (shape,) = [route.body for route in ROUTES if (route.method, route.path) == (call.method, call.path)]
    assert shape
    shape_fields = fields_of(shape)
    accepted = set(_about_unknown(settled, call, {})["accepted"].removeprefix("the fields ").split(", "))
    assert accepted <= shape_fields
    apart = {name: BESIDE[name] for name in shape_fields - accepted}
    assert _about_unknown(settled, call, apart)


def _about_unknown(office: Office, call: Call, more: dict[str, Any]) -> dict[str, Any]:
    """The one error of the walk's body with a field that no shape has. The fields in `more` cause no error."""
    many = isinstance(call.body, tuple)
    body = {**(call.body[0] if many else call.body), **more, "no_such_field": 1}
    caller = office.operator if call.role == "operator" else office.alice_admin
    answer = caller(call.method, call.url, (body,) if many else body)
    problem = answer.json["results"][0]["problem"] if many else answer.json
    (error,) = problem["errors"]
    assert "no_such_field" in str(error)
    collected: dict[str, Any] = error
    return collected


def test_refusals_have_their_shape(office: Office) -> None:
    refused = office.alice("POST", "/v1/jobs", {"schedule": {"cron": "61 * * * *"}, "target": _TARGET})
    check_shape("Problem", refused.json)


_TARGET = {"kind": "lambda", "arn": "arn:aws:lambda:us-east-1:123456789012:function:target"}
