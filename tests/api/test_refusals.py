"""Every refusal: its status, its message, and that nothing was stored."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from minute8.api import handler
from minute8.api.http.problems import KINDS
from minute8.api.http.requests import read_json
from tests.api.calls import Office, event, send
from tests.api.walk import ODD_IDS
from tests.worlds import ARN, job


@pytest.mark.parametrize(
    "scheme",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic {key}",
        "{key}",
        "Bearer {key} {key}",
        "Bearer {key}x",
        "Bearer\u00a0{key}",
        "Bearer {key},",
    ],
)
def test_only_a_bearer_token_counts(settled: Office, scheme: str) -> None:
    header = scheme.format(key=settled.alice.key)
    assert send("GET", "/v1/jobs", {"authorization": header}).problem == "unauthenticated"


def test_the_scheme_is_read_in_any_case(settled: Office) -> None:
    assert send("GET", "/v1/jobs", {"Authorization": f"bearer {settled.alice.key}"}).status == 200


def test_a_key_in_the_query_or_a_tenant_in_the_body_is_refused(settled: Office) -> None:
    assert send("GET", f"/v1/jobs?key={settled.alice.key}").status == 401
    body = {**job(cron="0 3 * * *"), "tenant": "bob"}
    assert settled.alice("POST", "/v1/jobs", body).json["errors"][0]["field"] == "tenant"


@pytest.mark.parametrize("job_id", [job_id for job_id in ODD_IDS if job_id != "TENANT"])
def test_odd_ids_create_nothing(settled: Office, job_id: str) -> None:
    before, path = settled.stored(), quote(job_id, safe="")
    assert settled.alice("PUT", f"/v1/jobs/{path}", job(cron="0 3 * * *")).status in (400, 404)
    refused = settled.alice("POST", "/v1/jobs", {"job_id": job_id, **job(cron="0 3 * * *")})
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "job_id")
    assert settled.stored() == before


@pytest.mark.parametrize(
    "path", ["runs", "summary", "expected", "upcoming", "density", "audit", "jobs/report/expected"]
)
def test_a_range_does_not_end_before_it_begins(settled: Office, path: str) -> None:
    later, earlier = "2026-11-21T03:12:00Z", "2026-11-21T03:11:59Z"
    refused = settled.alice_admin("GET", f"/v1/{path}?from_at={later}&until_at={earlier}")
    (error,) = refused.json["errors"]
    assert (refused.status, error["field"], error["accepted"]) == (400, "until_at", f"{later} or later")
    body = {"from_at": later, "until_at": earlier}
    assert settled.alice("POST", "/v1/runs/_all/retry", body).json["errors"][0]["field"] == "until_at"


@pytest.mark.parametrize("job_id", [7, ["report"], {"S": "report"}, True, "", [], {}, 0, False])
def test_an_id_is_text(settled: Office, job_id: Any) -> None:
    refused = settled.alice("POST", "/v1/jobs", {"job_id": job_id, **job(cron="0 3 * * *")})
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "job_id")


INVALID = [
    ({"schedule": {"cron": "61 3 * * *"}}, "schedule.cron", "61"),
    ({"schedule": {"cron": "0 3 30 2 *"}}, "schedule.cron", "0 3 30 2 *"),
    ({"schedule": {"cron": "0 3 * *"}}, "schedule.cron", "0 3 * *"),
    ({"schedule": {"cron": "0 3 * * *", "timezone": "Mars/Olympus"}}, "schedule.timezone", "Mars/Olympus"),
    ({"schedule": {"cron": "0 3 * * *", "timezone": "../../etc/passwd"}}, "schedule.timezone", "passwd"),
    ({"schedule": {"cron": "0 3 * * *", "every": "1h"}}, "schedule", ""),
    ({"schedule": {}}, "schedule", ""),
    ({"schedule": {"every": "soon"}}, "schedule.every", "soon"),
    ({"schedule": {"at": "tomorrow"}}, "schedule.at", "tomorrow"),
    ({"schedule": {"cron": 5}}, "schedule.cron", "5"),
    ({"schedule": "0 3 * * *"}, "schedule", "0 3 * * *"),
    ({"schedule": {"cron": "0 3 * * *", "zone": "UTC"}}, "schedule.zone", "UTC"),
    ({"target": {"kind": "lambda", "arn": "arn:aws:s3:::bucket"}}, "target.arn", "arn:aws:s3:::bucket"),
    ({"target": {"kind": "lambda", "arn": ARN, "invocation": "Later"}}, "target.invocation", "Later"),
    ({"target": {"kind": "pigeon", "arn": ARN}}, "target.kind", "pigeon"),
    ({"target": {"kind": "lambda"}}, "target.arn", ""),
    ({"payload": "x" * (128 * 1024)}, "payload", ""),
    ({"timeout_s": 0}, "timeout_s", "0"),
    ({"timeout_s": "60"}, "timeout_s", "60"),
    ({"timeout_s": 100_000}, "timeout_s", "100000"),
    ({"retry": {"max_attempts": 1000}}, "retry.max_attempts", "1000"),
    ({"retry": {"tries": 1}}, "retry.tries", "1"),
    ({"catch_up": "some"}, "catch_up", "some"),
    ({"start_deadline_s": -1}, "start_deadline_s", "-1"),
    ({"name": "x" * 201}, "name", "xxx"),
    ({"tags": ["x"] * 21}, "tags", "x"),
    ({"tags": "x"}, "tags", "x"),
    ({"color": "red"}, "color", "red"),
    ({"revision": 7}, "revision", "7"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "field", "value"), INVALID)
def test_invalid_jobs_are_refused_with_field_and_value(
    settled: Office, change: Any, field: str, value: str
) -> None:
    before = settled.stored()
    body = {**job(cron="0 3 * * *"), **change}
    for method, url in [("POST", "/v1/jobs"), ("PUT", "/v1/jobs/report")]:
        refused = settled.alice(method, url, body)
        assert (refused.status, refused.problem) == (400, "invalid-input")
        error = refused.json["errors"][0]
        assert error["field"].removeprefix("body.").startswith(field), error
        assert value in error.get("value", ""), error
        assert error["message"]
        assert len(refused.text) < 4_000
    assert settled.stored() == before


def test_all_problems_are_reported_at_once(settled: Office) -> None:
    body = {
        "schedule": {"cron": "0 3 * * *"},
        "target": {"kind": "lambda", "arn": ARN},
        "timeout_s": 0,
        "color": 1,
    }
    refused = settled.alice("POST", "/v1/jobs", body)
    assert {error["field"] for error in refused.json["errors"]} == {"timeout_s", "color"}


def test_a_cron_error_points_at_its_place(settled: Office) -> None:
    refused = settled.alice("POST", "/v1/jobs", job(cron="0 3 * * MONN"))
    error = refused.json["errors"][0]
    assert (error["field"], error["position"]) == ("schedule.cron", 8), error


MALFORMED = [
    b"", b"   ", b"{", b"nothing", b'{"a":1,}', b"{'a':1}", b'{"a":NaN}', b'{"a":Infinity}', b'{"a":1e999}',
    b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b"\xff\xfe{}", b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":1} extra', b"\xef\xbb\xbf{}",
]  # fmt: skip


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:12]))
def test_malformed_json(settled: Office, body: bytes) -> None:
    before = settled.stored()
    sent = event(
        "POST",
        "/v1/jobs",
        {"authorization": f"Bearer {settled.alice.key}", "content-type": "application/json"},
        body,
        base64d=True,
    )
    raw = handler.handle(sent, None)
    assert raw["statusCode"] == 400, raw
    assert "malformed-json" in raw["body"]
    assert settled.stored() == before


def test_malformed_json_tells_where(settled: Office) -> None:
    refused = settled.alice("POST", "/v1/jobs", b'{"schedule": }')
    assert refused.json["errors"][0]["position"] == 13


@pytest.mark.parametrize("body", [[], "text", 7, None, True])
def test_a_body_that_is_no_object(settled: Office, body: Any) -> None:
    for method, url in [("POST", "/v1/jobs"), ("PUT", "/v1/jobs/report"), ("POST", "/v1/jobs/report/pause")]:
        refused = settled.alice(method, url, json.dumps(body).encode())
        assert (refused.status, refused.problem) == (400, "invalid-input")


@pytest.mark.parametrize("body", [{"note": 7}, {"note": "x" * 501}, {"why": "x"}])
def test_a_note_is_short_text(settled: Office, body: Any) -> None:
    before = settled.stored()
    assert settled.alice("POST", "/v1/jobs/report/pause", body).problem == "invalid-input"
    assert settled.alice("POST", "/v1/jobs/report/resume", {"note": "x"}).problem == "invalid-input"
    assert settled.stored() == before


def test_a_body_too_large_or_of_another_type(settled: Office) -> None:
    large = settled.alice("POST", "/v1/jobs", b" " * (512 * 1024 + 1))
    assert (large.status, large.problem) == (413, "too-large")
    form = settled.alice("POST", "/v1/jobs", b"a=b", Content_Type="application/x-www-form-urlencoded")
    assert (form.status, form.problem) == (415, "unsupported-media-type")


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=-1", "limit=201", "limit=ten", "limit=", "limit=1&limit=2", "limit=1e1", "limit=٣", "Limit=2",
     "page=2", "tenant=bob", "cursor=", "cursor=x", "cursor=bm8", "cursor=W10", "cursor=e30", "cursor=%F0%9F%95%97",
     "cursor=" + "x" * 3000],
)  # fmt: skip
def test_odd_queries(settled: Office, query: str) -> None:
    for url in ("/v1/jobs", "/v1/jobs/report/runs"):
        refused = settled.alice("GET", f"{url}?{query}")
        assert (refused.status, refused.problem) == (400, "invalid-input"), url
        assert refused.json["errors"][0]["field"] == query.split("=")[0]


def test_unknown_paths_and_methods_are_refused(settled: Office) -> None:
    for url in ("/v1/", "/", "/v2/jobs", "/v1/jobs/a/b/c", "/v1/jobs/"):
        assert settled.alice("GET", url).problem == "no-such-route", url
    refused = settled.alice("PATCH", "/v1/tenant")
    assert (refused.status, refused.problem, refused.headers["allow"]) == (405, "method-not-allowed", "GET")
    assert settled.alice("PUT", "/v1/jobs").headers["allow"] == "GET, POST"


def test_kinds_of_problems_have_names_of_their_own() -> None:
    names = [kind.name for kind in KINDS.values()]
    assert len(names) == len(set(names))


def test_json_that_means_one_thing_is_read() -> None:
    assert read_json('{"a": [1, 2.5, -0, "é", null]}'.encode()) == {"a": [1, 2.5, 0, "é", None]}


def test_an_id_in_the_body_is_that_of_the_path(settled: Office) -> None:
    before = settled.stored()
    refused = settled.alice("PUT", "/v1/jobs/report", {"job_id": "other", **job(cron="0 3 * * *")})
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "job_id")
    assert settled.stored() == before
