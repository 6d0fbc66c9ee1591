"""GET /v1/jobs/_export: what it writes can be sent to _bulk, and gives the same jobs."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minute8.client import Client
from tests.api.calls import Caller, HandlerTransport, Office
from tests.worlds import ARN, job

URL = "/v1/jobs/_export"
HTTP = {"kind": "http", "url": "https://hooks.example.com/a"}
JOBS = {
    "a": job(cron="30 2 * * *", timezone="Europe/Paris", tags=["x"], payload={"é😀": [1.5, None, "\u2028\n"]}),
    "b": job(every="90m", retry={"max_attempts": 7, "factor": 1.5}, catch_up="all", jitter_s=30, name="B"),
    "c": job(at="2026-01-01T00:00:00Z", invocation="Event", exclude={"dates": ["2027-01-02"]}),
    "d": {**job(cron="H H * * *"), "target": HTTP, "overlap": "skip", "pause_after_failures": 3},
    "e": job(every="1h", anchor="2026-01-01T00:00:00Z", start_deadline_s=9, timeout_s=7),
}  # fmt: skip


def client(caller: Caller) -> Client:
    return Client("https://api.test", caller.key or "", transport=HandlerTransport(), sleep=lambda _: None)


def furnish(office: Office) -> None:
    for job_id, definition in JOBS.items():
        assert office.alice("PUT", f"/v1/jobs/{job_id}?past=true", definition).status == 201
    office.alice("POST", "/v1/jobs/b/pause", {"note": "until the move is done"})
    office.alice("PUT", "/v1/jobs/gone", JOBS["a"])
    office.alice("DELETE", "/v1/jobs/gone")


def test_an_export_makes_the_same_jobs_in_an_empty_tenant(office: Office) -> None:
    furnish(office)
    exported = office.alice_reads("GET", URL)
    assert (exported.status, exported.headers["content-type"]) == (200, "application/x-ndjson")
    assert "link" not in exported.headers
    lines = [json.loads(line) for line in exported.text.split("\n")[:-1]]
    assert [line["job_id"] for line in lines] == ["a", "b", "c", "d", "e"]
    assert [line.get("state") for line in lines] == [None, "paused", None, None, None]
    body = exported.text.encode()
    put = office.bob(
        "POST", "/v1/jobs/_bulk?atomic=true&past=true", body, Content_Type="application/x-ndjson"
    )
    assert (put.status, put.json["created"]) == (200, 5)
    assert office.bob("GET", URL).text == exported.text
    for job_id in JOBS:
        alices, bobs = (c("GET", f"/v1/jobs/{job_id}").json for c in (office.alice, office.bob))
        assert [alices[name] for name in ("state", "note")] == [bobs[name] for name in ("state", "note")]
    again = office.alice("POST", "/v1/jobs/_bulk", body, Content_Type="application/x-ndjson")
    assert again.json["unchanged"] == 5


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
PAYLOAD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(TEXT.filter(lambda t: "{{" not in t), inner, max_size=2)
    ),
    max_leaves=4,
)
DEFINITION = st.fixed_dictionaries(
    {
        "schedule": st.sampled_from([stored_job["schedule"] for stored_job in JOBS.values()]),
        "target": st.sampled_from([HTTP, {"kind": "lambda", "arn": ARN}]),
    },
    optional={
        "payload": PAYLOAD,
        "name": TEXT,
        "tags": st.lists(TEXT.filter(bool), max_size=3),
        "timeout_s": st.integers(1, 290),
        "start_deadline_s": st.none() | st.integers(1, 100),
        "catch_up": st.sampled_from(["none", "latest", "all"]),
        "retry": st.fixed_dictionaries(
            {}, optional={"max_attempts": st.integers(1, 9), "factor": st.floats(1, 10)}
        ),
        "state": st.sampled_from(["active", "paused"]),
    },
)


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(DEFINITION, min_size=1, max_size=4))
def test_the_round_trip_of_any_jobs(office: Office, definitions: list[dict[str, object]]) -> None:
    for caller in (office.alice, office.bob):
        for exported_job in client(caller).export_jobs():
            caller("DELETE", f"/v1/jobs/{exported_job['job_id']}")
    jobs = [{"job_id": f"job-{n}", **definition} for n, definition in enumerate(definitions)]
    put = client(office.alice).put_jobs(jobs, past=True)
    assert {result["result"] for result in put} == {"created"}, put
    exported = list(client(office.alice).export_jobs())
    assert {result["result"] for result in client(office.bob).put_jobs(exported, past=True)} == {"created"}
    assert list(client(office.bob).export_jobs()) == exported
    assert {result["result"] for result in client(office.alice).put_jobs(exported)} == {"unchanged"}


@pytest.mark.parametrize("bound", ["BULK_LINES", "MAX_PAGE_BYTES"])
def test_an_export_goes_on_by_cursor_and_holds_each_job_once(
    office: Office, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    furnish(office)
    all_jobs = list(client(office.alice).export_jobs())
    monkeypatch.setattr(f"minute8.api.routes.bulk.{bound}", 2 if bound == "BULK_LINES" else 500)
    with client(office.alice) as minute8:
        assert list(minute8.export_jobs()) == all_jobs
    first = office.alice("GET", URL)
    assert 0 < first.text.count("\n") < len(all_jobs)
    link = first.headers["link"]
    assert link.startswith("<?cursor=") and link.endswith('>; rel="next"')
    foreign = office.bob("GET", URL + link[1:].partition(">")[0])
    assert (foreign.status, foreign.problem) == (400, "invalid-input")


def test_nothing_is_exported_of_an_empty_tenant(office: Office) -> None:
    empty = office.alice("GET", URL)
    assert (empty.status, empty.text) == (200, "")
    assert list(client(office.alice).export_jobs()) == []


def test_no_job_stands_in_its_way(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/export", JOBS["a"])
    office.alice("PUT", "/v1/jobs/bulk", JOBS["a"])
    assert office.alice("GET", "/v1/jobs/export").json["job_id"] == "export"
    assert office.alice("PUT", "/v1/jobs/_export", JOBS["a"]).status == 400
    assert office.alice("GET", URL).text.count("\n") == 2
