"""schemathesis against the API's own OpenAPI document: every operation, with valid and invalid requests.

Deterministic, and generic over the document: an operation is tested as soon as it is in it. `make test` draws ten
requests of each kind for an operation; a release also sends each bound of each field, some ten thousand requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from urllib.parse import parse_qsl, quote_from_bytes, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core import NOT_SET
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from minute8.api import handler
from tests.api.calls import Office, event
from tests.api.conftest import open_office, serve, settle
from tests.api.walk import ROLE_OF, Call, calls_of_document, the_document
from tests.worlds import TABLES, World, open_world

CONFORMANCE = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
LINES = "application/x-ndjson"
CONFIG: dict[str, Any] = {
    "generation": {"deterministic": True, "mode": "all", "max-examples": 10, "database": "none"},
    "phases": {"stateful": {"enabled": False}, "coverage": {"enabled": False}},
    # The statuses that may refuse an invalid request; 412, since the revision is checked first.
    "checks": {
        "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 412, 413, 415, 422]}
    },
}
SCHEMA = schemathesis.openapi.from_dict(the_document(), config=SchemathesisConfig.from_dict(CONFIG))
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, operations in the_document()["paths"].items()
    for method in operations
]
# Each caller, with or without a key, gets an answer that the document describes. Every fourth case tries another one.
EVERYBODY = [other for who in ROLE_OF for other in (who, None, None, None)]
CALLS: dict[tuple[str, str], Call] = {(call.method, call.path): call for call in calls_of_document()}


@schemathesis.serializer(LINES)
def one_line(_: Any, value: Any) -> bytes:
    """A body of one line."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The Lambda as a WSGI application, which schemathesis can call."""
    url = quote_from_bytes(environ["PATH_INFO"].encode("latin-1"), safe="/") + "?" + environ["QUERY_STRING"]
    headers = {
        name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    headers.pop("ACCEPT-ENCODING", None)  # schemathesis's client of an application reads no gzip
    body = environ["wsgi.input"].read()
    raw = handler.handle(event(environ["REQUEST_METHOD"], url, headers, body or None, base64d=True), None)
    start_response(f"{raw['statusCode']} -", list(raw["headers"].items()))
    return [(raw.get("body") or "").encode()]


@dataclass
class Requests:
    """An office with everything that the walk names, and the statuses of its answers."""

    office: Office
    other_callers: Iterator[str | None] = field(default_factory=lambda: cycle(EVERYBODY))
    statuses: set[int] = field(default_factory=set)
    # Only a run's target has the token of a callback.
    can_succeed: bool = True

    def ask(self, case: Any, who: str, checks: list[Any]) -> None:
        key = self.office.everybody[who].key
        answer = case.call(app=application, headers={"Authorization": f"Bearer {key}"} if key else {})
        self.statuses.add(answer.status_code)
        case.validate_response(answer, checks=checks)


@pytest.fixture(scope="module")
def kept() -> Iterator[tuple[Office, dict[str, list[dict[str, Any]]]]]:
    """An office, and all of its stored items."""
    with open_world() as world, pytest.MonkeyPatch.context() as monkeypatch:
        office = open_office(world, monkeypatch)
        settle(office, office.alice)
        # The clock stands still, so nothing refills the budget of a minute.
        office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 1_000_000}})
        yield office, {name: items(world, name) for name in TABLES}


@pytest.fixture
def fresh(
    kept: tuple[Office, dict[str, list[dict[str, Any]]]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Requests]:
    """The office as it was before the previous operation."""
    office, stored = kept
    world = office.world
    for name, before in stored.items():
        for item in items(world, name):
            world.dynamodb.delete_item(TableName=f"test-{name}", Key={"pk": item["pk"], "sk": item["sk"]})
        for item in before:
            world.dynamodb.put_item(TableName=f"test-{name}", Item=item)
    serve(world, monkeypatch)
    requests = Requests(office)
    yield requests
    # Otherwise only refusals were tested.
    fewest = 300 if requests.can_succeed else 500
    assert min(requests.statuses) < fewest, f"no request succeeded: {sorted(requests.statuses)}"


# It has a parameter, as pytest gives schemathesis's items names of their own only then; xdist runs each name once.
@pytest.fixture(params=["office"])
def requests(fresh: Requests) -> Requests:
    return fresh


def items(world: World, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = world.dynamodb.scan(TableName=f"test-{name}")["Items"]
    return items


SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@SCHEMA.parametrize()
@SETTINGS
def test_every_operation_does_what_the_document_says(case: Any, requests: Requests) -> None:
    check(case, requests)


@pytest.mark.release
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_does_so_at_each_bound(operation: str, fresh: Requests) -> None:
    """Its requests are made here: at `parametrize` each worker would make those of all operations."""
    method, _, path = operation.partition(" ")
    config = CONFIG | {"phases": {"stateful": {"enabled": False}, "fuzzing": {"enabled": False}}}
    schema = schemathesis.openapi.from_dict(the_document(), config=SchemathesisConfig.from_dict(config))

    def test(case: Any) -> None:
        check(case, fresh)

    chosen = schema.include(method=method, path=path)
    [result] = get_all_tests(schema=chosen, test_func=test, settings=SETTINGS, given_kwargs={})
    _, send_all = result.ok()
    send_all()


def check(case: Any, requests: Requests) -> None:
    """Send the request as who may, as somebody else, and for what exists."""
    call = CALLS.get((case.method, case.operation.path))
    entitled = next((who for who, role in ROLE_OF.items() if call and role == call.role), "no key")
    requests.can_succeed = not case.operation.path.endswith("/callback")
    # In a body of lines or an array of them, each element is refused separately.
    by_line = LINES in case.operation.definition.raw.get("requestBody", {}).get("content", {})
    requests.ask(case, entitled, CONFORMANCE + [negative_data_rejection] * (not by_line))
    if other := next(requests.other_callers):
        requests.ask(case, other, CONFORMANCE)
    if call and call.names:
        # Generated ids name nothing, so such requests are refused with 404. This one names something that exists.
        case.path_parameters = dict(call.names)
        if isinstance(case.body, dict):
            case.body.pop("job_id", None)
        requests.ask(case, entitled, CONFORMANCE)
    if call and min(requests.statuses) >= 300:  # so far it was only refused: the walk's own request is not
        case.path_parameters, case.headers, case.body = dict(call.names), {}, call.body or NOT_SET
        case.query = dict(parse_qsl(urlsplit(call.url).query))
        requests.ask(case, entitled, CONFORMANCE)
