"""GET /v1/jobs with conditions and orders: by the directory of the tenant's jobs."""

from __future__ import annotations

from collections import Counter

import pytest

from executor.targets import Outcome
from tests.api.calls import Office
from tests.worlds import job

QUEUE = {"kind": "sqs", "arn": "arn:aws:sqs:us-east-1:123456789012:work"}


def listed(office: Office, query: str) -> list[str]:
    answer = office.alice("GET", f"/v1/jobs?{query}")
    assert answer.status == 200, answer
    assert answer.json["matched"] == len(answer.json["jobs"]) or "limit" in query
    return [item["job_id"] for item in answer.json["jobs"]]


@pytest.fixture
def four(office: Office) -> Office:
    for job_id, fields in {
        "a-report": {"cron": "0 5 * * *", "name": "Zebra monthly", "tags": ["red"]},
        "b-report": {"cron": "0 4 * * *", "name": "ant", "target": QUEUE},
        "c-sync": {"cron": "*/1 * * * *", "tags": ["red", "dark-green"]},
        "d": {"cron": "0 3 * * *", "name": "Report of d"},
    }.items():
        assert office.alice("PUT", f"/v1/jobs/{job_id}", job(**fields)).status == 201  # type: ignore[arg-type]
    return office


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=rep", ["a-report", "b-report", "d"]),
        ("q=REPORT%20zeb", ["a-report"]),
        ("q=green", ["c-sync"]),
        ("q=eport", []),
        ("kind=sqs", ["b-report"]),
        (f"target={QUEUE['arn']}", ["b-report"]),
        ("tag=red&sort=name", ["c-sync", "a-report"]),
        ("tag=green", []),
        ("name_prefix=Rep", ["d"]),
        ("state=active&sort=id", ["a-report", "b-report", "c-sync", "d"]),
        ("sort=name", ["b-report", "c-sync", "d", "a-report"]),
        ("sort=next", ["c-sync", "b-report", "a-report", "d"]),
        ("failing=true", []),
    ],
)
def test_conditions_and_orders(four: Office, query: str, expected: list[str]) -> None:
    four.world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert listed(four, query) == expected
    if expected:
        pages, cursor = [], ""
        for _ in range(9):
            page = four.alice("GET", f"/v1/jobs?{query}&limit=1{cursor}").json
            assert page["matched"] == len(expected)
            pages += [item["job_id"] for item in page["jobs"]]
            if not page["next_cursor"]:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert pages == expected


def test_failing_jobs_come_first_by_failures_and_a_success_or_change_takes_them_out(four: Office) -> None:
    world = four.world
    failing = {"c-sync", "d"}
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] not in failing, permanent=True, error_type="Boom", error="wrong"
    )
    world.run_until("2026-11-22T03:05:00Z", ticks=True)
    assert listed(four, "failing=true") == ["c-sync", "d"]
    assert listed(four, "sort=failures") == ["c-sync", "d", "a-report", "b-report"]
    failing.remove("c-sync")
    world.run_until("2026-11-22T03:07:00Z", ticks=True)
    assert listed(four, "failing=true") == ["d"]
    four.alice("PATCH", "/v1/jobs/d", {"name": "repaired"})
    assert listed(four, "failing=true") == []
    assert four.alice("GET", "/v1/jobs?failing=true&health=true").json["health"] == {}


def test_a_change_is_found_at_once(four: Office) -> None:
    assert listed(four, "q=fresh") == []
    four.alice("PATCH", "/v1/jobs/d", {"tags": ["fresh"]})
    four.alice("PUT", "/v1/jobs/fresh", job(cron="0 3 * * *"))
    assert listed(four, "q=fresh") == ["d", "fresh"]
    four.alice("DELETE", "/v1/jobs/d")
    four.alice("POST", "/v1/jobs/fresh/pause")
    assert (listed(four, "q=fresh"), listed(four, "state=paused")) == (["fresh"], ["fresh"])
    assert listed(four, "state=paused&sort=next") == ["fresh"]


def test_a_tag_may_have_a_line_feed(four: Office) -> None:
    """Tags of a listed job are in one text, with a line feed between them."""
    for job_id, tag in {"feed": "x\ny", "return": "x\ry"}.items():
        four.alice("PUT", f"/v1/jobs/{job_id}", job(cron="0 3 * * *", tags=[tag]))
    assert [listed(four, f"tag={tag}") for tag in ("x", "y", "x%0Ay", "x%0Dy")] == [
        [],
        [],
        ["feed"],
        ["return"],
    ]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("q=", "q"),
        ("q=--", "q"),
        (f"q={'x' * 201}", "q"),
        (f"q={'a%20' * 11}", "q"),
        ("sort=size", "sort"),
        ("sort=", "sort"),
        ("kind=ftp", "kind"),
        ("failing=yes", "failing"),
    ],
)
def test_what_is_refused(office: Office, query: str, field: str) -> None:
    refused = office.alice("GET", f"/v1/jobs?{query}")
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, field)


def test_a_cursor_belongs_to_its_search(four: Office) -> None:
    cursor = four.alice("GET", "/v1/jobs?sort=name&limit=1").json["next_cursor"]
    for query in ("sort=next", "sort=name&tag=red", "limit=1"):
        assert four.alice("GET", f"/v1/jobs?{query}&cursor={cursor}").problem == "invalid-input"


def test_another_tenants_jobs_are_not_found(four: Office) -> None:
    four.bob("PUT", "/v1/jobs/bobs-report", job(cron="0 3 * * *"))
    assert [item["job_id"] for item in four.bob("GET", "/v1/jobs?q=report").json["jobs"]] == ["bobs-report"]
    assert listed(four, "q=report") == ["a-report", "b-report", "d"]


def test_by_the_last_outcome_the_worst_come_first(four: Office) -> None:
    world = four.world
    world.project()
    four.alice("POST", "/v1/jobs/b-report/pause")
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "a-report", permanent=True, error_type="Boom", error="wrong"
    )
    world.run_until("2026-11-21T05:40:00Z", ticks=True)
    world.project()
    assert listed(four, "sort=last") == ["a-report", "c-sync", "b-report", "d"]
    page = four.alice("GET", "/v1/jobs?sort=last&limit=2").json
    rest = four.alice("GET", f"/v1/jobs?sort=last&cursor={page['next_cursor']}").json
    assert [item["job_id"] for item in rest["jobs"]] == ["b-report", "d"]


def test_a_page_with_health_costs_as_many_requests_for_any_jobs(office: Office) -> None:
    """It was a query for each job, and a read of each last run that had failed."""
    world = office.world
    for n in range(60):
        office.alice("PUT", f"/v1/jobs/j{n}", job(cron="* * * * *"))
    world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="Boom", error="wrong")
    world.project()
    world.run_until("2026-11-21T04:05:00Z", ticks=True)
    world.project()
    counts = []
    for limit in (10, 50):
        office.alice("GET", f"/v1/jobs?health=true&limit={limit}")  # what is read once
        requests: Counter[str] = Counter()
        world.dynamodb.before = lambda name, counted=requests: counted.update([name])
        health = office.alice("GET", f"/v1/jobs?health=true&limit={limit}").json["health"]
        assert len(health) == limit
        assert {len(of_job["outcomes"]) for of_job in health.values()} <= {10, 20}
        assert {of_job["last_run"]["error"] for of_job in health.values()} == {"wrong"}
        counts.append(sum(requests.values()))
    # Each hundred records of the newest runs are one.
    assert counts[1] <= counts[0] + 4
    assert counts[1] <= 20, requests
