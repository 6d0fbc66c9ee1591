"""No body makes a route answer 500. On DynamoDB Local, since moto accepts what DynamoDB refuses."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from minute8.api.app import ROUTES
from tests.api.calls import Office
from tests.api.conftest import open_office, settle
from tests.api.walk import BODIES, ROLE_OF, calls_of_document
from tests.worlds import TABLES, job, make_world

BODY_LEVELS = 80
DEEPEST_PAYLOAD = 64

NOW = "2026-11-21T03:12:00Z"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


# Values at a bound of JSON, Python or DynamoDB, or just beyond it.
HOSTILE: dict[str, Any] = {
    "an empty name": {"": "x"},
    "an empty name inside": {"a": {"": {"": 1}}},
    "39 digits": 10**39,
    "200 digits": -(10**200),
    "1e126": 1e126,
    "1e308": 1e308,
    "the smallest float": 5e-324,
    "true": True,
    "null": None,
    "0": 0,
    "-1": -1,
    "2^63": 2**63,
    "no text": "",
    "NUL": "a\0b",
    "a long text": "x" * 300_000,
    "nested 33 deep": nested(33),
    "nested as deep as a payload may": nested(DEEPEST_PAYLOAD),
    "nested as deep as a body may": nested(BODY_LEVELS - 3),
    "nested 500 deep": nested(500),
    "a list of many": [[]] * 40_000,
    "an object of many": {str(n): n for n in range(20_000)},
    "a placeholder": "{{",
    "a list": [],
    "an object": {},
}


@pytest.fixture(scope="module")
def office(dynamodb_local: Any) -> Iterator[Office]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        office = open_office(make_world(dynamodb_local, NOW), monkeypatch)
        monkeypatch.setattr("common.platform.request_rate.RequestRate.take", lambda *_: None)
        settle(office, office.alice)
        yield office
    for name in TABLES:
        dynamodb_local.delete_table(TableName=f"test-{name}")


def places(body: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a body, and one more in each object."""
    yield at
    if isinstance(body, dict):
        yield (*at, "unknown")
        for name, value in body.items():
            yield from places(value, (*at, name))
    elif isinstance(body, list) and body:
        yield from places(body[0], (*at, 0))


def with_value(body: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(body)
    inside = changed
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    return changed


SCHEDULE = {
    "cron": "0 3 * * *",
    "exclude": {"dates": ["2026-12-24"], "calendars": ["holidays"]},
    "end_at": None,
}
HTTP = {"kind": "http", "url": "https://example.com", "headers": {"a": "b"}}
WHOLE_JOB = {
    "schedule": SCHEDULE,
    "target": HTTP,
    "payload": {"a": [1]},
    "retry": {"factor": 2},
    "tags": ["a"],
}
# More bodies than the example of each shape. Other routes of the same shape get only the example.
MORE: dict[str, list[Any]] = {
    "POST /v1/jobs": [WHOLE_JOB, job(every=60, anchor="2026-01-01T00:00:00Z", jitter_s=3, timezone="UTC")],
    "POST /v1/jobs/_bulk": [{"job_id": "bulk", **job(cron="0 3 * * *", payload=1)}],
    "PUT /v1/calendars/{name}": [
        {"dates": ["2026-12-24"], "source": {"kind": "x"}},
        {"icalendar": "BEGIN:VCALENDAR"},
        {"country": "DE", "subdivision": "BY", "years": [2026]},
    ],
    "POST /v1/jobs/{job_id}/backfills": [
        {"concurrency": 1, "dry_run": True, "backfill_id": "b"} | BODIES["NewBackfill"]
    ],
}
TAKES = {(route.method, route.path): route.body for route in ROUTES if route.body}
CALLS = [call for call in calls_of_document() if (call.method, call.path) in TAKES]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_no_body_is_answered_with_500(office: Office, call: Any) -> None:
    caller = next(office.everybody[who] for who, role in ROLE_OF.items() if role == call.role)
    shape = TAKES[call.method, call.path]
    bodies = MORE.get(f"{call.method} {call.path}") or [BODIES[shape]]
    succeeded = 0
    for body in bodies:
        for place in places(body):
            for kind, value in HOSTILE.items():
                sent = with_value(body, place, value)
                data = json.dumps(sent).encode()
                kind = "application/x-ndjson" if shape == "BulkJob" else "application/json"
                answer = caller(call.method, call.url, data, Content_Type=kind)
                assert answer.status < 500, (kind, place, answer.text[:500])
                assert "internal" not in answer.text, (kind, place, answer.text[:500])
                succeeded += answer.status < 300
    # Everything stored can be read again.
    for url in ("/v1/jobs?limit=200", "/v1/calendars", "/v1/audit"):
        assert office.alice_admin("GET", url).status == 200
    assert succeeded or f"{call.method} {call.path}" not in MORE
