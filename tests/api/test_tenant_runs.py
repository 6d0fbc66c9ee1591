"""The runs of all jobs and their summaries over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from common.history.runs_by_time import RunFilter
from common.runs.outcome import Outcome
from minute8.api.http.paging import write_cursor
from tests.api.calls import Caller, Office
from tests.worlds import job


def minutely(office: Office, who: Caller, *names: str) -> None:
    for name in names:
        assert who("PUT", f"/v1/jobs/{name}", job(cron="* * * * *")).status == 201


def pages(who: Caller, url: str) -> list[Any]:
    listed_runs, cursor = [], ""
    while True:
        answer = who("GET", f"{url}{cursor}")
        assert answer.status == 200, answer
        listed_runs.append(answer.json)
        if not answer.json["next_cursor"]:
            return listed_runs
        cursor = f"{'&' if '?' in url else '?'}cursor={answer.json['next_cursor']}"


def test_the_runs_of_all_jobs_newest_first_and_of_nobody_else(office: Office) -> None:
    empty = {"runs": [], "next_cursor": None, "complete_from_at": "2026-11-20T03:12:00Z"}
    assert office.alice("GET", "/v1/runs").json == empty
    minutely(office, office.alice, "a", "b")
    minutely(office, office.bob, "a", "c")
    office.world.run_until("2026-11-21T03:14:30Z")
    office.alice("DELETE", "/v1/jobs/b")
    first, second = pages(office.alice_reads, "/v1/runs?limit=3")
    assert [run["execution_id"] for page in (first, second) for run in page["runs"]] == [
        "alice:b:20261121T031400Z",
        "alice:a:20261121T031400Z",
        "alice:b:20261121T031300Z",
        "alice:a:20261121T031300Z",
    ]
    assert first["complete_from_at"] == "2026-11-21T03:13:01Z"
    assert second["complete_from_at"] == "2026-11-20T03:14:30Z"
    run = first["runs"][0]
    assert run == office.alice("GET", f"/v1/runs/{run['execution_id']}").json


def test_the_runs_that_are_wanted(office: Office) -> None:
    office.world.target.answer = lambda event: Outcome(ok=event["minute8"]["job_id"] == "a", permanent=True)
    minutely(office, office.alice, "a", "b")
    office.world.run_until("2026-11-21T03:15:30Z")

    def seen(query: str) -> list[tuple[str, str]]:
        answered = office.alice("GET", f"/v1/runs?{query}")
        assert answered.status == 200, answered
        return [(run["job_id"], run["fire_at"][14:16]) for run in answered.json["runs"]]

    assert seen("status=failed") == [("b", "15"), ("b", "14"), ("b", "13")]
    assert seen("from_at=2026-11-21T03:14:00Z&until_at=2026-11-21T03:15:00Z") == [("b", "14"), ("a", "14")]
    assert seen("until_at=2026-11-21T03:14:00Z&status=succeeded") == [("a", "13")]
    assert seen("until_at=2026-11-22T03:14:00Z") == [("b", "15"), ("a", "15"), ("b", "14"), ("a", "14")]
    assert seen("trigger=manual") == []
    assert seen("from_at=2026-11-21T03:14:00Z&until_at=2026-11-21T03:14:00Z") == []
    reversed_range = "from_at=2026-11-21T04:00:00Z&until_at=2026-11-21T03:00:00Z"
    words = ("status=ok", "trigger=x", "from_at=now", "until_at=", "job=a", "limit=0", "cursor=x")
    for query in (*words, reversed_range):
        assert office.alice("GET", f"/v1/runs?{query}").problem == "invalid-input", query


def test_a_cursor_is_of_one_tenant_and_one_list(few_at_once: None, office: Office) -> None:
    minutely(office, office.alice, "a", "b", "c")
    office.world.run_until("2026-11-21T03:18:30Z")
    for url, elsewhere in (
        ("/v1/runs?limit=1", ("/v1/runs?status=failed", "/v1/summary?values=true", "/v1/failures?limit=1")),
        ("/v1/jobs/a/summary?values=true", ("/v1/runs?limit=1", "/v1/jobs/b/summary?values=true")),
    ):
        cursor = office.alice("GET", url).json["next_cursor"]
        assert office.alice("GET", f"{url}&cursor={cursor}").status == 200
        assert office.bob("GET", f"{url}&cursor={cursor}").problem == "invalid-input"
        for other in elsewhere:
            assert office.alice("GET", f"{other}&cursor={cursor}").problem == "invalid-input", other


@pytest.mark.parametrize(
    ("last", "expected_runs"),
    [
        ([], ()),
        ("x", ()),
        ([1], ("/v1/runs",)),
        ([1, 2, ["20261121T031500Z", "a#b"]], ()),
        ([1, 2, ["20269999T031500Z", "a"]], ()),
        ([1, -2], ()),
        ([1, 9_000_000_000, ["20261121T031500Z", "zzz"]], ("/v1/runs",)),
    ],
)
def test_a_cursor_made_by_hand_is_refused_or_harmless(
    office: Office, last: Any, expected_runs: tuple[str, ...]
) -> None:
    minutely(office, office.alice, "a")
    minutely(office, office.bob, "b")
    office.world.run_until("2026-11-21T03:15:30Z")
    for url, name in (("/v1/summary", "summary::None:None"), ("/v1/runs", f"runs::{RunFilter()}")):
        answer = office.alice("GET", f"{url}?cursor={write_cursor('alice', name, last)}")
        if url in expected_runs:
            assert answer.status == 200
            assert {run["job_id"] for run in answer.json.get("runs", [])} <= {"a"}
        else:
            assert answer.problem == "invalid-input"


def test_a_list_over_all_jobs_counts_as_five_requests(office: Office) -> None:
    quotas = {"quotas": {"requests_per_minute": 16}}
    assert office.operator("PATCH", "/v1/tenants/alice", quotas).status == 200
    answered = [
        office.alice("GET", url).status for url in ("/v1/runs", "/v1/summary", "/v1/runs", "/v1/runs")
    ]
    assert answered == [200, 200, 200, 429]


def test_a_summary_of_a_job_and_of_all(office: Office) -> None:
    nothing = office.alice("GET", "/v1/summary").json
    assert (nothing["days"], nothing["total"]["runs"], nothing["complete"]) == ([], 0, True)
    assert (nothing["from_at"], nothing["until_at"]) == ("2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z")
    assert office.alice("GET", "/v1/jobs/never/summary").problem == "not-found"
    office.world.target.answer = lambda event: Outcome(ok=event["minute8"]["job_id"] == "a", permanent=True)
    minutely(office, office.alice, "a", "b")
    assert office.alice("GET", "/v1/jobs/a/summary").json["days"] == []
    assert office.bob("GET", "/v1/jobs/a/summary").problem == "not-found"
    minutely(office, office.bob, "c")
    office.world.run_until("2026-11-21T03:15:30Z")
    of_b = office.alice_reads("GET", "/v1/jobs/b/summary").json
    assert of_b["total"]["statuses"] == {"failed": 3}
    of_all = office.alice_reads("GET", "/v1/summary?values=true").json
    assert of_all["days"] == [
        {
            "date": "2026-11-21",
            "runs": 6,
            "statuses": {"failed": 3, "succeeded": 3},
            "reasons": {},
            "due": 6,
            "success_rate": 0.5,
            "lateness_s": {"count": 6, "p50": 0, "p95": 0, "p99": 0, "max": 0, "values": [[0, 6]]},
            "duration_s": {"count": 6, "p50": 0, "p95": 0, "p99": 0, "max": 0, "values": [[0, 6]]},
            "complete": True,
        }
    ]
    narrow = "/v1/summary?from_at=2026-11-21T03:14:00Z&until_at=2026-11-21T03:15:00Z"
    assert office.alice("GET", narrow).json["total"]["runs"] == 2
    for query in (
        "from_at=2026-01-01T00:00:00Z", "from_at=x", "values=yes", "values=",
        "cursor=", "cursor=x", "status=failed", "limit=1",
    ):  # fmt: skip
        assert office.alice("GET", f"/v1/summary?{query}").problem == "invalid-input", query


def test_a_summary_says_how_far_it_is_complete(few_at_once: None, office: Office) -> None:
    minutely(office, office.alice, "a", "b")
    office.world.run_until("2026-11-21T03:18:30Z")
    first, second = pages(office.alice, "/v1/jobs/a/summary")
    assert [part["total"]["runs"] for part in (first, second)] == [4, 2]
    assert [part["complete"] for part in (first, second)] == [False, True]
    assert [part["days"][0]["complete"] for part in (first, second)] == [False, True]
    assert first["complete_from_at"] == "2026-11-21T03:15:01Z"
    assert second["complete_from_at"] == first["from_at"]
    late = "from_at=2026-11-20T00:00:00Z&until_at=2026-11-21T03:14:00Z"
    assert office.alice("GET", f"/v1/jobs/a/summary?{late}").json["days"][0]["complete"] is True
