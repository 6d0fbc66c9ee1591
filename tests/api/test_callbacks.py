"""A target calls back over HTTP, without a key."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from minute8.client import Client
from tests.api.calls import Answer, HandlerTransport, Office
from tests.worlds import at, job

RUN = "alice:report:20261121T031300Z"
DUE = "2026-11-21T03:13:00Z"


def accepted(office: Office, **fields: Any) -> str:
    """The run awaits its callback. Returns its token."""
    office.alice("PUT", "/v1/jobs/report", job(at=DUE, completion="callback", **fields))
    office.world.run_until(DUE)
    return str(office.world.target.calls[-1][1]["callback"]["token"])


def call_back(office: Office, token: str, status: str, run: str = RUN, **fields: Any) -> Answer:
    body = {"token": token, "status": status, **fields}
    return office.nobody["no key"]("POST", f"/v1/runs/{run}/callback", body)


def test_a_run_shows_what_its_target_tells(office: Office) -> None:
    token = accepted(office, callback_timeout_s=600)
    office.world.clock.move_to(at(DUE) + 60)
    answer = call_back(office, token, "running", percent=40, text="rows 1 to 400")
    assert (answer.status, answer.json["callback_until"], answer.json["stop"]) == (
        200,
        "2026-11-21T03:24:00Z",
        False,
    )
    explained = office.alice("GET", f"/v1/jobs/report/explain?at={DUE}").json
    assert (explained["status"], explained["text"]) == (
        "running",
        "It was due and started 0.0 s later; it is running and waits for a callback of its target"
        " until 2026-11-21T03:24:00Z (40 %, rows 1 to 400).",
    )
    run = office.alice("GET", f"/v1/runs/{RUN}").json
    assert run["status"] == "running"
    assert run["progress"] == {
        "attempt": 1,
        "percent": 40,
        "text": "rows 1 to 400",
        "at": "2026-11-21T03:14:00Z",
    }
    assert call_back(office, token, "succeeded", result="400 rows").status == 200
    office.world.deliver()
    run = office.alice("GET", f"/v1/runs/{RUN}").json
    assert (run["status"], run["attempts"][0]["log_tail"]) == ("succeeded", "400 rows")
    assert call_back(office, token, "failed").status == 409
    assert call_back(office, token, "succeeded").status == 200


def test_a_run_that_was_cancelled_says_so_and_its_target_is_told(office: Office) -> None:
    token = accepted(office)
    stopped = office.alice("POST", f"/v1/runs/{RUN}/cancel", {"note": "wrong data"})
    assert (stopped.status, stopped.json["status"], stopped.json["stop"]["note"]) == (
        200,
        "failed",
        "wrong data",
    )
    assert call_back(office, token, "running").json["stop"]
    office.world.deliver()
    assert office.alice("GET", f"/v1/runs/{RUN}").json["error"] == "stopped by hand: wrong data"


def test_a_run_that_nobody_can_tell_is_not_stopped(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(at=DUE, invocation="Event"))
    office.world.run_until(DUE)
    refused = office.alice("POST", f"/v1/runs/{RUN}/cancel")
    assert (refused.status, "nothing can stop it" in refused.json["detail"]) == (409, True)


@pytest.mark.parametrize("run", [RUN, "alice:other:20261121T031300Z", "bob:report:20261121T031300Z", "x"])
@pytest.mark.parametrize("token", ["", "x", "🕗", "a" * 200])
def test_a_wrong_token_finds_nothing_out(office: Office, run: str, token: str) -> None:
    accepted(office)
    refused = call_back(office, token, "succeeded", run)
    assert (refused.status, refused.json["type"]) == (401, "urn:minute8:problem:unauthenticated")


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "done"},
        {"status": "running", "result": "x"},
        {"status": "running", "percent": 101},
        {"status": "running", "percent": -1},
        {"status": "running", "text": "x" * 201},
        {"status": "succeeded", "result": "x" * 801},
        {"status": "succeeded", "error": "x"},
        {"status": "failed", "error": "x" * 401},
        {"status": "failed", "error_type": "x" * 101},
        {"status": "failed", "retry_after_s": 14 * 86_400 + 1},
        {"status": "failed", "surprise": 1},
    ],
)
def test_what_a_target_tells_is_bounded(office: Office, fields: dict[str, Any]) -> None:
    token = accepted(office)
    assert call_back(office, token, **fields).status == 400
    assert office.alice("GET", f"/v1/runs/{RUN}").json["status"] == "running"


@pytest.mark.parametrize(
    ("fields", "status", "word"),
    [
        ('"percent": 5, "percent": 6', 400, "occurs twice"),
        ('"text": "a", "status": "failed"', 400, "occurs twice"),
        ('"percent": ' + "9" * 5_000, 400, "thousands of digits"),
        ('"percent": ' + "9" * 40, 400, "accepted: 0 to 100"),
        ('"percent": 1e999', 400, "larger than any number"),
        ('"percent": NaN', 400, "is not a number in JSON"),
        ('"percent": -Infinity', 400, "is not a number in JSON"),
        ('"percent": 5.5', 400, "must be a whole number"),
        ('"percent": true', 400, "must be a whole number"),
        ('"percent": "5"', 400, "must be a whole number"),
        ('"text": 5', 400, "must be a text"),
        ('"text": "\\ud800"', 400, "not valid Unicode"),
        ('"\\ud800": 1', 400, "not valid Unicode"),
        ('"text": ' + "[" * 1_000 + "]" * 1_000, 400, "nested more than 80 levels"),
        ('"text": ' + '{"a":' * 90_000, 400, "nested more than 80 levels"),
        ('"text": "' + "x" * 500_000 + '"', 400, "too long"),
        ('"text": "' + "x" * 1_000_000 + '"', 413, "over 524288 bytes"),
        ('"' + "k" * 500_000 + '": 1', 400, "not a known field"),
        (", ".join(f'"k{n}": {n}' for n in range(20_000)), 400, "not a known field"),
    ],
    ids=range(19),
)
def test_a_hostile_body_with_a_valid_token_is_refused_in_words(
    office: Office, fields: str, status: int, word: str
) -> None:
    token = accepted(office)
    before = office.stored()
    body = f'{{"token": "{token}", "status": "running", {fields}}}'.encode()
    refused = office.nobody["no key"]("POST", f"/v1/runs/{RUN}/callback", body)
    assert (refused.status, word in refused.json["detail"]) == (status, True), refused.text[:500]
    # Of a number or text it repeats the beginning.
    assert len(refused.content) < 10_000
    assert office.stored() == before


def test_signs_count_as_requests_of_the_tenant(office: Office) -> None:
    token = accepted(office)
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 3}})
    office.world.clock.sleep(120)
    statuses = [call_back(office, token, "running").status for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


def test_a_thousand_signs_in_a_second_are_the_tenants_requests_alone(office: Office) -> None:
    token = accepted(office)
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 60}})
    office.world.clock.sleep(120)
    statuses: Counter[int] = Counter()
    for _ in range(1_000):
        statuses[call_back(office, token, "running", percent=1).status] += 1
        office.world.clock.sleep(0.001)
    assert statuses.keys() == {200, 429}
    assert 60 <= statuses[200] <= 62
    assert office.bob("GET", "/v1/jobs").status == 200
    refused = call_back(office, token, "succeeded")
    assert refused.status == 429
    office.world.clock.sleep(int(refused.headers["retry-after"]))
    assert call_back(office, token, "succeeded").status == 200
    office.world.deliver()
    assert office.world.statuses("alice", "report") == ["succeeded"]


def test_the_client_calls_back(office: Office) -> None:
    token = accepted(office)
    with Client("https://api.test", "", transport=HandlerTransport()) as client:
        answer = client.call_back(RUN, token, "failed", error_type="NoRows", permanent=True)
    assert answer["status"] == "running"
    office.world.deliver()
    assert office.alice("GET", f"/v1/runs/{RUN}").json["error_type"] == "NoRows"
