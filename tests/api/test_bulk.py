"""POST /v1/jobs/_bulk: many jobs in one request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common import limits
from common.jobs.store import JobStore
from common.platform.tenants import Tenants
from minute8.api import handler
from minute8.client import Client, InvalidInput
from tests.api.calls import Answer, HandlerTransport, Office, event
from tests.api.shapes import check_shape
from tests.api.test_refusals import INVALID, MALFORMED
from tests.api.walk import ODD_IDS
from tests.worlds import ARN, job

MAX_BULK = 4_194_304
MAX_LINES = 1_000

URL = "/v1/jobs/_bulk"


def line(job_id: str, **fields: Any) -> dict[str, Any]:
    return {"job_id": job_id, **job(**({"cron": "0 3 * * *"} | fields))}


def results_of(answer: Answer) -> list[tuple[str | None, str]]:
    assert answer.status == 200, answer
    check_shape("BulkResult", answer.json)
    results = [(result["job_id"], result["result"]) for result in answer.json["results"]]
    for result in ("created", "replaced", "unchanged", "refused"):
        assert answer.json[result] == [outcome for _, outcome in results].count(result)
    return results


def ids(office: Office) -> list[str]:
    return [stored_job["job_id"] for stored_job in office.alice("GET", "/v1/jobs?limit=200").json["jobs"]]


def quotas(office: Office, **quotas: int) -> None:
    Tenants(office.world.table("tenants")).edit("alice", {"quotas": quotas}, office.world.clock.now())


def test_each_line_is_created_replaced_or_already_so(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/same", job(every="90m", tags=["x"]))
    office.alice("PUT", "/v1/jobs/other", job(cron="0 3 * * *", tags=["x"], payload=1))
    office.alice("PUT", "/v1/jobs/gone", job(cron="0 3 * * *"))
    office.alice("DELETE", "/v1/jobs/gone")
    office.world.clock.sleep(60)
    lines = (
        line("new"),
        line("other", cron="0 4 * * *", payload=1),
        {"job_id": "same", **job(every="90m", tags=["x"])},
        line("gone"),
    )
    expected = [("new", "created"), ("other", "replaced"), ("same", "unchanged"), ("gone", "created")]
    before = office.stored()
    dry = office.alice("POST", f"{URL}?dry_run=true", lines)
    assert (results_of(dry), dry.json["dry_run"]) == (expected, True)
    assert office.stored() == before
    done = office.alice("POST", URL, lines)
    assert results_of(done) == expected
    assert done.json | {"dry_run": True} == dry.json
    assert [result["line"] for result in done.json["results"]] == [1, 2, 3, 4]
    assert [result["revision"] for result in done.json["results"]] == [1, 2, 1, 3]
    assert done.json["results"][1]["changed"] == ["tags", "schedule"]
    for result in done.json["results"]:
        stored_job = office.alice("GET", f"/v1/jobs/{result['job_id']}")
        assert stored_job.json["revision"] == result["revision"]
    before = office.stored()
    assert {result for _, result in results_of(office.alice("POST", URL, lines))} == {"unchanged"}
    assert office.stored() == before


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_lines_that_only_create_replace_nothing_and_can_be_sent_again(office: Office, query: str) -> None:
    office.alice("PUT", "/v1/jobs/same", job(cron="0 3 * * *"))
    office.alice("PUT", "/v1/jobs/other", job(cron="0 3 * * *", payload=1))
    lines = (line("new"), line("same"), line("other", payload=2))
    answer = office.alice("POST", f"{URL}{query}", lines, If_None_Match="*")
    assert results_of(answer) == [("new", "created"), ("same", "unchanged"), ("other", "refused")]
    problem = answer.json["results"][2]["problem"]
    assert (problem["status"], problem["type"]) == (412, "urn:minute8:problem:revision-mismatch")
    assert office.alice("GET", "/v1/jobs/other").json["payload"] == 1
    if not query:
        again = office.alice("POST", URL, lines, If_None_Match="*")
        assert [result for _, result in results_of(again)] == ["unchanged", "unchanged", "refused"]


def test_jobs_of_a_bulk_request_run_at_once_and_are_counted_and_audited(office: Office) -> None:
    """More lines than one transaction takes, in several groups; one group is due within the announced window."""
    lines = tuple(line(f"job-{n:02}", cron=f"{15 + n % 3} 3 * * *") for n in range(40))
    assert {result for _, result in results_of(office.alice("POST", URL, lines))} == {"created"}
    office.world.run_until("2026-11-21T03:18:00Z")
    assert len(office.world.target.calls) == 40
    assert office.alice("GET", "/v1/tenant").json["usage"] == {"jobs": 40, "executions_per_day": 40}
    written = [item for item in office.stored() if item.get("action", {}).get("S") == "job.created"]
    assert len(written) == 40
    assert not [item for item in office.stored() if item["pk"]["S"].startswith("PENDING")]


def test_refused_lines_are_reported_and_the_others_stored(office: Office) -> None:
    office.bob("PUT", "/v1/jobs/bobs", job(cron="0 3 * * *"))
    bobs = office.bob("GET", "/v1/jobs/bobs").text
    lines = (
        line("good"),
        line("bad", cron="61 3 * * *"),
        line("bobs", tags=["alices"]),
        [7],
        {**line("x"), "tenant": "bob"},
    )
    answer = office.alice("POST", URL, lines)
    assert results_of(answer) == [
        ("good", "created"), ("bad", "refused"), ("bobs", "created"), (None, "refused"), ("x", "refused"),
    ]  # fmt: skip
    problem = answer.json["results"][1]["problem"]
    assert (problem["type"], problem["status"], problem["line"]) == (
        "urn:minute8:problem:invalid-input",
        400,
        2,
    )
    assert problem["errors"][0]["field"] == "schedule.cron"
    assert office.bob("GET", "/v1/jobs/bobs").text == bobs
    assert ids(office) == ["bobs", "good"]


def test_a_one_off_that_is_past_is_refused_unless_asked_for(office: Office) -> None:
    lines = (
        {"job_id": "soon", **job(at="2026-11-21T03:12:01Z")},
        {"job_id": "past", **job(at="2026-11-21T03:12:00Z")},
    )
    refused = office.alice("POST", URL, lines)
    assert results_of(refused) == [("soon", "created"), ("past", "refused")]
    (error,) = refused.json["results"][1]["problem"]["errors"]
    assert (error["field"], "past=true" in error["accepted"]) == ("schedule.at", True)
    assert office.alice("POST", f"{URL}?atomic=true", lines).status == 422
    assert results_of(office.alice("POST", f"{URL}?past=true", lines)) == [
        ("soon", "unchanged"),
        ("past", "created"),
    ]
    office.world.run_until("2026-11-21T03:13:00Z")
    assert results_of(office.alice("POST", URL, lines)) == [("soon", "unchanged"), ("past", "unchanged")]


def test_atomic_stores_nothing_unless_all_can_be(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/other", job(cron="0 3 * * *"))
    lines = (line("good"), line("other", cron="0 4 * * *"), line("bad", cron="61 3 * * *"))
    before = office.stored()
    refused = office.alice("POST", f"{URL}?atomic=true", lines)
    assert (refused.status, refused.problem) == (422, "bulk-refused")
    assert [(result["line"], result["job_id"]) for result in refused.json["results"]] == [(3, "bad")]
    check_shape("Problem", refused.json)
    assert office.stored() == before
    assert results_of(office.alice("POST", f"{URL}?atomic=true", lines[:2])) == [
        ("good", "created"),
        ("other", "replaced"),
    ]


@pytest.mark.parametrize("atomic", [False, True])
def test_quotas_are_looked_at_before_anything_is_written(office: Office, atomic: bool) -> None:
    quotas(office, jobs=20, executions_per_day=100)
    lines = tuple(line(f"job-{n:02}") for n in range(22))
    before = office.stored()
    answer = office.alice("POST", f"{URL}?atomic={str(atomic).lower()}", lines)
    if atomic:
        assert answer.problem == "bulk-refused"
        refused = answer.json["results"]
        assert office.stored() == before
    else:
        assert [result for _, result in results_of(answer)] == ["created"] * 20 + ["refused"] * 2
        refused = answer.json["results"][20:]
        assert office.alice("GET", "/v1/tenant").json["usage"]["jobs"] == 20
    assert [result["line"] for result in refused] == [21, 22]
    assert refused[0]["problem"]["quota"] == {"name": "jobs", "most": 20, "used": 20, "wanted": 1}
    quotas(office, jobs=100, executions_per_day=24)
    often = office.alice("POST", f"{URL}?dry_run=true", (line("often", cron="* * * * *"),))
    assert often.json["results"][0]["problem"]["quota"]["name"] == "executions_per_day"


def test_a_quota_that_others_use_up_meanwhile_refuses_what_no_longer_fits(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas(office, jobs=6)
    write, times = JobStore._commit, 0

    def with_others(*arguments: Any) -> Any:
        nonlocal times
        times += 1
        if times == 1:
            for n in range(4):
                assert office.alice("PUT", f"/v1/jobs/other-{n}", job(cron="0 3 * * *")).status == 201
        return write(*arguments)

    monkeypatch.setattr(JobStore, "_commit", with_others)
    answer = office.alice("POST", URL, tuple(line(f"job-{n}") for n in range(4)))
    assert [result for _, result in results_of(answer)] == ["created", "created", "refused", "refused"]
    assert answer.json["results"][2]["problem"]["type"].endswith("quota-exceeded")
    assert len(ids(office)) == 6


@pytest.mark.parametrize("atomic", [False, True])
def test_a_bulk_request_cut_off_by_its_time_is_finished_when_sent_again(
    office: Office, monkeypatch: pytest.MonkeyPatch, atomic: bool
) -> None:
    write = JobStore._commit

    def slowly(*arguments: Any) -> Any:
        office.world.clock.sleep(10)
        return write(*arguments)

    monkeypatch.setattr(JobStore, "_commit", slowly)
    url, lines = f"{URL}?atomic={str(atomic).lower()}", tuple(line(f"job-{n:02}") for n in range(40))
    first = office.alice("POST", url, lines)
    if atomic:
        assert (first.status, first.problem, first.headers["retry-after"]) == (503, "unfinished", "1")
        assert "28 lines are stored and 12 are not" in first.json["detail"]
    else:
        assert [result for _, result in results_of(first)] == ["created"] * 28 + ["refused"] * 12
        assert {result["problem"]["type"] for result in first.json["results"][28:]} == {
            "urn:minute8:problem:busy"
        }
    assert len(ids(office)) == 28
    again = results_of(office.alice("POST", url, lines))
    assert [result for _, result in again] == ["unchanged"] * 28 + ["created"] * 12


@pytest.mark.parametrize(("write_s", "stored"), [(17.9, 28), (18.0, 14)])
def test_no_transaction_begins_after_18_s(
    office: Office, monkeypatch: pytest.MonkeyPatch, write_s: float, stored: int
) -> None:
    write = JobStore._commit

    def slowly(*arguments: Any) -> Any:
        office.world.clock.sleep(write_s)
        return write(*arguments)

    monkeypatch.setattr(JobStore, "_commit", slowly)
    office.alice("POST", URL, tuple(line(f"job-{n:02}") for n in range(40)))
    assert len(ids(office)) == stored


def test_of_a_line_three_problems_are_named(office: Office) -> None:
    fields: dict[str, Any] = {f"unknown_{n}": n for n in range(4)}
    refused = office.alice("POST", URL, (line("a", **fields),)).json["results"][0]
    assert [error["field"] for error in refused["problem"]["errors"]] == [
        "unknown_0",
        "unknown_1",
        "unknown_2",
    ]


def test_an_id_on_two_lines_is_refused_on_both(office: Office) -> None:
    answer = office.alice("POST", URL, (line("a"), line("b"), line("a", cron="0 4 * * *")))
    assert results_of(answer) == [("a", "refused"), ("b", "created"), ("a", "refused")]
    assert answer.json["results"][0]["problem"]["errors"][0]["field"] == "job_id"


def test_a_job_is_created_paused_and_keeps_its_state_later(office: Office) -> None:
    paused = line("a") | {"state": "paused", "note": "until the move is done"}
    assert results_of(office.alice("POST", URL, (paused,))) == [("a", "created")]
    shown = office.alice("GET", "/v1/jobs/a").json
    assert (shown["state"], shown["note"], shown["next_fire_at"]) == (
        "paused",
        "until the move is done",
        None,
    )
    assert results_of(office.alice("POST", URL, (line("a"),))) == [("a", "unchanged")]
    assert office.alice("POST", "/v1/jobs/a/resume").json["next_fire_at"] == "2026-11-22T03:00:00Z"
    assert results_of(office.alice("POST", URL, (paused | {"tags": ["x"]},))) == [("a", "replaced")]
    assert office.alice("GET", "/v1/jobs/a").json["state"] == "active"
    for wrong in ({"state": "deleted"}, {"note": "x" * 501}, {"note": 7}, {"state": None}):
        assert results_of(office.alice("POST", URL, (line("b") | wrong,))) == [("b", "refused")]


@pytest.mark.parametrize(
    "job_id", [*sorted({*ODD_IDS} - {"TENANT"}), "", 7, None, ["report"], {"S": "report"}, True]
)
def test_odd_ids_are_refused(office: Office, job_id: Any) -> None:
    before = office.stored()
    answer = office.alice("POST", URL, ({"job_id": job_id, **job(cron="0 3 * * *")},))
    assert results_of(answer) == [(None, "refused")]
    assert answer.json["results"][0]["problem"]["errors"][0]["field"] == "job_id"
    assert len(answer.text) < 1_000
    assert office.stored() == before


def test_invalid_jobs_are_refused_as_they_are_by_themselves(office: Office) -> None:
    before = office.stored()
    lines = tuple(line(f"job-{n}") | change for n, (change, _, _) in enumerate(INVALID))
    for (_, field, value), result in zip(
        INVALID, office.alice("POST", URL, lines).json["results"], strict=True
    ):
        error = result["problem"]["errors"][0]
        assert (result["result"], error["field"].startswith(field), value in error.get("value", "")) == (
            "refused",
            True,
            True,
        )
    assert office.stored() == before


def test_malformed_lines_are_refused_by_themselves(office: Office) -> None:
    bodies = [body for body in MALFORMED if body.strip()]
    body = b"\r\n\n".join([json.dumps(line("good")).encode(), *bodies])
    raw = handler.handle(
        event(
            "POST",
            URL,
            {
                "authorization": f"Bearer {office.alice.key}",
                "content-type": "application/x-ndjson; charset=utf-8",
            },
            body,
            base64d=True,
        ),
        None,
    )
    results = json.loads(raw["body"])["results"]
    assert [result["result"] for result in results] == ["created"] + ["refused"] * len(bodies)
    assert [result["line"] for result in results] == list(range(1, 2 * len(bodies) + 2, 2))
    assert {result["problem"]["type"] for result in results[1:]} == {"urn:minute8:problem:malformed-json"}


def test_bounds(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (limits.BULK_LINES, limits.BULK_BYTES) == (MAX_LINES, MAX_BULK)
    before = office.stored()
    many = office.alice("POST", URL, tuple(line(f"job-{n}") for n in range(limits.BULK_LINES + 1)))
    assert (many.status, many.problem) == (413, "too-large")
    assert str(limits.BULK_LINES) in many.json["detail"]
    large = office.alice("POST", URL, b" " * (limits.BULK_BYTES + 1), Content_Type="application/x-ndjson")
    assert (large.status, large.problem) == (413, "too-large")
    long = office.alice("POST", URL, (line("a", payload="x" * 600_000),))
    assert long.json["results"][0]["problem"]["type"] == "urn:minute8:problem:too-large"
    for body in (b"[]", b"{}"):
        other_type = office.alice("POST", URL, body, Content_Type="text/plain")
        assert other_type.problem == "unsupported-media-type"
    for query in ("atomic=1", "dry_run=", "atomic=True", "atomic=true,false", "other=true"):
        assert office.alice("POST", f"{URL}?{query}", (line("a"),)).problem == "invalid-input"
    assert results_of(office.alice("POST", URL, b"\n\r\n ", Content_Type="application/x-ndjson")) == []
    assert office.stored() == before


def test_an_answer_is_short_whatever_is_refused(office: Office) -> None:
    """The answer to a thousand lines with long names, each full of mistakes, fits into Lambda's 6 MB."""
    patterns = [f"arn:aws:lambda:us-east-1:123456789012:function:{n:x>400}" for n in range(100)]
    edit = {"allowed_targets": patterns}
    Tenants(office.world.table("tenants")).edit("alice", edit, office.world.clock.now())
    foreign = line("a")
    mistaken = line("b") | {"é" * 1_000 + str(n): "é" * 1_000 for n in range(100)}
    answer = office.alice("POST", URL, (foreign, mistaken))
    assert [result["result"] for result in answer.json["results"]] == ["refused", "refused"]
    for result in answer.json["results"]:
        assert len(json.dumps(json.dumps(result))) < 6_000_000 / limits.BULK_LINES
    alone = office.alice("POST", "/v1/jobs", job(cron="0 3 * * *") | {f"x{n}": 1 for n in range(20_000)})
    assert alone.status == 400
    assert len(alone.text) < 50_000


def test_the_client_sends_as_many_requests_as_it_needs(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minute8.client.jobs.MAX_LINES", 3)
    monkeypatch.setattr("minute8.client.jobs.MAX_BULK", 1_000)
    transport = HandlerTransport([503])
    with Client(
        "https://api.test", office.alice.key or "", transport=transport, sleep=lambda _: None
    ) as minute8:
        jobs = [line(f"job-{n}") for n in range(4)] + [line("long", payload="é" * 400), line("bad", cron="x")]
        dry = minute8.put_jobs(jobs, dry_run=True)
        assert ids(office) == []
        done = minute8.put_jobs(jobs)
        assert done == dry
        assert [(result["line"], result["result"]) for result in done] == [
            (n, "created") for n in range(1, 6)
        ] + [(6, "refused")]
        assert len(transport.requests) == 1 + 2 * 4
        with pytest.raises(InvalidInput) as refused:
            minute8.put_jobs(jobs[-1:], atomic=True)
        assert [result["line"] for result in refused.value.document["results"]] == [1]


def test_a_target_that_is_not_allowed(office: Office) -> None:
    Tenants(office.world.table("tenants")).edit("alice", {"allowed_targets": [ARN]}, office.world.clock.now())
    other = line("b") | {"target": {"kind": "lambda", "arn": ARN + "-other"}}
    answer = office.alice("POST", URL, (line("a"), other))
    assert results_of(answer) == [("a", "created"), ("b", "refused")]
    assert answer.json["results"][1]["problem"]["errors"][0]["field"] == "target.arn"


def test_a_json_array_does_what_the_same_lines_do(office: Office) -> None:
    """Generated clients know arrays better than NDJSON. A line's number is the element's, from 1."""
    jobs = [
        line("a"),
        {"job_id": "b", "schedule": {"cron": "61 * * * *"}},
        line("c", payload=[1, {"x": "]"}]),
    ]
    dry = office.alice("POST", f"{URL}?dry_run=true", tuple(jobs))
    assert office.alice("POST", f"{URL}?dry_run=true", jobs).json == dry.json
    stored = office.alice("POST", URL, jobs)
    assert [(result["line"], result["result"]) for result in stored.json["results"]] == [
        (1, "created"),
        (2, "refused"),
        (3, "created"),
    ]
    assert office.alice("GET", "/v1/jobs/c").json["payload"] == [1, {"x": "]"}]
    assert office.alice("POST", URL, []).json["results"] == []
    assert office.alice("POST", f"{URL}?atomic=true", jobs).problem == "bulk-refused"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{}", "invalid-input"),
        (b"", "invalid-input"),
        (b"[", "malformed-json"),
        (b"[1,]", "malformed-json"),
        (b"[1 2]", "malformed-json"),
        (b"[] []", "malformed-json"),
        (b"[" * 100_000, "malformed-json"),
        (b"[" + b"9" * 5_000 + b"]", "malformed-json"),
        (b"[" + b",".join([b"1"] * (MAX_LINES + 1)) + b"]", "too-large"),
    ],
)
def test_a_json_array_is_bounded_and_well_formed(office: Office, body: bytes, problem: str) -> None:
    refused = office.alice("POST", URL, body, content_type="application/json")
    assert refused.problem == problem


def test_an_element_of_an_array_is_read_as_strictly_as_a_line(office: Office) -> None:
    """A doubled name, NaN, and an element that is too long."""
    long = json.dumps(line("long", payload="x" * 600_000)).encode()
    body = b'[{"job_id": "a", "job_id": "b"}, {"job_id": NaN}, ' + long + b"]"
    refused = office.alice("POST", URL, body, content_type="application/json")
    problems = [result["problem"]["type"].rpartition(":")[2] for result in refused.json["results"]]
    assert problems == ["malformed-json", "malformed-json", "too-large"]
