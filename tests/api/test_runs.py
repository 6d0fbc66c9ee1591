"""Runs over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from common.runs.outcome import Outcome
from minute8.api.http.paging import write_cursor
from tests.api.calls import Office
from tests.worlds import job


def test_the_runs_of_a_job_newest_first_page_by_page(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    assert office.alice("GET", "/v1/jobs/minutely/runs").json == {"runs": [], "next_cursor": None}
    office.world.run_until("2026-11-21T03:17:30Z")
    first = office.alice_reads("GET", "/v1/jobs/minutely/runs?limit=3").json
    rest = office.alice_reads("GET", f"/v1/jobs/minutely/runs?limit=3&cursor={first['next_cursor']}").json
    assert [run["fire_at"] for run in first["runs"] + rest["runs"]] == [
        f"2026-11-21T03:{minute}:00Z" for minute in (17, 16, 15, 14, 13)
    ]
    assert rest["next_cursor"] is None


def test_a_run_that_went_well(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:13:30Z")
    run = office.alice("GET", "/v1/runs/alice:minutely:20261121T031300Z")
    assert run.status == 200
    assert run.json == {
        "execution_id": "alice:minutely:20261121T031300Z",
        "job_id": "minutely",
        "trace_id": "1339d1ae8a2ec3a9887f16ba55b10e91",
        "status": "succeeded",
        "trigger": "schedule",
        "schedule_revision": 1,
        "fire_at": "2026-11-21T03:13:00Z",
        "due_at": "2026-11-21T03:13:00Z",
        "started_at": "2026-11-21T03:13:00Z",
        "finished_at": "2026-11-21T03:13:00Z",
        "lateness_s": 0,
        "duration_s": 0,
        "attempt": 1,
        "attempts": [
            {
                "attempt": 1,
                "started_at": "2026-11-21T03:13:00Z",
                "finished_at": "2026-11-21T03:13:00Z",
                "outcome": "succeeded",
                "duration_s": 0,
                "lateness_s": 0,
            }
        ],
    }
    assert office.alice("GET", "/v1/runs/alice%3Aminutely%3A20261121T031300Z").json == run.json


def test_a_failed_run_shows_the_error_of_each_attempt(office: Office) -> None:
    office.world.target.answer = lambda event: Outcome(
        ok=False, error_type="ValueError", error="no such customer"
    )
    office.alice("PUT", "/v1/jobs/failing", job(at="2026-11-21T03:13:00Z", retry={"max_attempts": 2}))
    office.world.run_until("2026-11-21T03:13:05Z")
    waiting = office.alice("GET", "/v1/jobs/failing/runs").json["runs"][0]
    assert (waiting["status"], waiting["attempt"]) == ("retrying", 1)
    assert waiting["next_attempt_at"] > "2026-11-21T03:13:05Z"
    office.world.run_until("2026-11-21T03:30:00Z")
    run = office.alice("GET", "/v1/jobs/failing/runs").json["runs"][0]
    assert (run["status"], run["error_type"], run["error"]) == ("failed", "ValueError", "no such customer")
    assert [attempt["outcome"] for attempt in run["attempts"]] == ["failed", "failed"]
    assert [attempt["error"] for attempt in run["attempts"]] == ["no such customer"] * 2


def test_a_run_that_was_skipped_says_why(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.alice("POST", "/v1/jobs/minutely/pause", {"note": "maintenance"})
    office.world.run_until("2026-11-21T03:13:30Z")
    run = office.alice("GET", "/v1/jobs/minutely/runs").json["runs"][0]
    assert (run["status"], run["reason"], run["attempts"]) == ("skipped", "paused", [])
    assert "maintenance" in run["detail"]


def test_a_run_under_way_shows_its_attempt(office: Office) -> None:
    seen = []

    def look(event: object) -> Outcome:
        seen.append(office.alice("GET", "/v1/jobs/minutely/runs").json["runs"][0])
        return Outcome(ok=True)

    office.world.target.answer = look
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:13:30Z")
    assert seen[0]["status"] == "running"
    assert seen[0]["attempts"] == [
        {"attempt": 1, "started_at": "2026-11-21T03:13:00Z", "outcome": "running", "lateness_s": 0}
    ]


def test_an_event_that_was_handed_over(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *", invocation="Event"))
    office.world.run_until("2026-11-21T03:13:30Z")
    run = office.alice("GET", "/v1/jobs/minutely/runs").json["runs"][0]
    assert (run["status"], run["attempts"][0]["outcome"]) == ("dispatched", "dispatched")


def test_the_runs_of_a_deleted_job_can_still_be_seen(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:13:30Z")
    office.alice("DELETE", "/v1/jobs/minutely")
    assert len(office.alice("GET", "/v1/jobs/minutely/runs").json["runs"]) == 1
    assert office.alice("GET", "/v1/jobs/minutely/runs?status=failed").json["runs"] == []
    assert office.alice("GET", "/v1/jobs/never/runs").problem == "not-found"
    assert office.alice("GET", "/v1/jobs/never/runs?status=failed").problem == "not-found"


def test_the_runs_that_are_wanted(office: Office) -> None:
    office.world.target.answer = lambda event: Outcome(
        ok="15:00" not in event["minute8"]["fire_at"], permanent=True
    )
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:17:30Z")

    def minutes(query: str) -> list[str]:
        answered = office.alice("GET", f"/v1/jobs/minutely/runs?{query}")
        assert answered.status == 200, answered
        return [run["fire_at"][14:16] for run in answered.json["runs"]]

    assert minutes("status=failed") == ["15"]
    assert minutes("status=succeeded&limit=2") == ["17", "16"]
    assert minutes("from_at=2026-11-21T03:14:00Z&until_at=2026-11-21T03:17:00Z") == ["16", "15", "14"]
    assert minutes("until_at=2026-11-21T03:14:00Z") == ["13"]
    assert minutes("from_at=2026-11-21T03:17:00%2B00:00") == ["17"]
    assert minutes("from_at=2026-11-21T03:17:00Z&until_at=2026-11-21T03:17:00Z") == []
    assert minutes("trigger=manual") == []
    for query in ("status=ok", "status=", "trigger=x", "from_at=now", "until_at=2026-11-21", "failed=1"):
        assert office.alice("GET", f"/v1/jobs/minutely/runs?{query}").problem == "invalid-input", query


def test_filtered_pages_hold_each_run_once(office: Office) -> None:
    odd = Outcome(ok=False, permanent=True)
    office.world.target.answer = lambda event: (
        odd if event["minute8"]["fire_at"][15] in "13579" else Outcome(ok=True)
    )
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:19:30Z")
    seen, cursor, pages = [], "", 0
    while True:
        page = office.alice("GET", f"/v1/jobs/minutely/runs?status=failed&limit=1{cursor}").json
        seen += [run["fire_at"][14:16] for run in page["runs"]]
        pages += 1
        if not page["next_cursor"]:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert (seen, pages) == (["19", "17", "15", "13"], 4)


def test_the_failures_of_all_jobs_and_of_nobody_else(office: Office) -> None:
    office.world.target.answer = lambda event: Outcome(ok=False, permanent=True, error="no")
    for who, names in ((office.alice, ("a", "b")), (office.bob, ("c",))):
        for name in names:
            who("PUT", f"/v1/jobs/{name}", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:14:30Z")
    seen, cursor, pages = [], "", 0
    while True:
        page = office.alice_reads("GET", f"/v1/failures?limit=3{cursor}").json
        seen += [(run["job_id"], run["fire_at"][14:16]) for run in page["runs"]]
        pages += 1
        if not page["next_cursor"]:
            break
        assert office.bob("GET", f"/v1/failures?cursor={page['next_cursor']}").problem == "invalid-input"
        cursor = f"&cursor={page['next_cursor']}"
    assert sorted(seen) == [("a", "13"), ("a", "14"), ("b", "13"), ("b", "14")]
    assert [minute for _, minute in seen] == ["14", "14", "13", "13"]
    assert pages == 2
    assert {run["job_id"] for run in office.bob("GET", "/v1/failures").json["runs"]} == {"c"}


@pytest.mark.parametrize(
    "last", [[], "x", ["a", 1, 2], [1, "a#b", "20261121T031300Z"], [1, "a", "~"], [1e400, 1, 1]]
)
def test_a_cursor_made_by_hand(office: Office, last: Any) -> None:
    cursor = write_cursor("alice", "failures", last)
    assert office.alice("GET", f"/v1/failures?cursor={cursor}").problem == "invalid-input"


def test_an_admin_erases_what_leaked_into_a_run_and_its_record_stays(office: Office) -> None:
    world = office.world
    world.target.answer = lambda event: Outcome(
        ok=False, permanent=True, error_type="Boom", error="leak in error", log_tail="leak in log"
    )
    office.alice("PUT", "/v1/jobs/j", job(cron="0 5 * * *"))
    started = office.alice("POST", "/v1/jobs/j/run", {"payload": {"leak": 1}}).json
    path = f"/v1/runs/{started['execution_id']}"
    assert office.alice_admin("DELETE", f"{path}/details").status == 409, "it goes on"
    world.deliver()
    (group,) = office.alice("GET", "/v1/failures/groups").json["groups"]
    office.alice("PUT", f"/v1/failures/groups/j/{group['fingerprint']}/mute", {})
    assert "leak" in str(office.alice("GET", path).json)
    assert office.alice("DELETE", f"{path}/details").status == 403
    assert office.bob("DELETE", f"{path}/details").status in (403, 404)
    done = office.alice_admin("DELETE", f"{path}/details")
    assert done.status == 200
    assert "backups of the tables" in done.json["not_covered"]
    run = office.alice("GET", path).json
    assert (run["status"], run["attempts"][0]["error_type"], "payload" in run) == ("failed", "Boom", False)
    assert run["erased_at"]
    for name in ("runs", "jobs", "due"):
        items = [item for item in world.dynamodb.tables[f"test-{name}"].values() if "leak" in str(item)]
        assert items == []
    assert (
        office.alice_admin("GET", "/v1/audit?action=run.erased").json["entries"][0]["subject"]
        == run["execution_id"]
    )
