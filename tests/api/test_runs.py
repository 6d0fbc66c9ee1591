"""Runs over HTTP."""

from __future__ import annotations

from common.runs import Outcome
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
    run = office.alice("GET", "/v1/runs/alice:minutely:20261121T031300Z:1")
    assert run.status == 200
    assert run.json == {
        "execution_id": "alice:minutely:20261121T031300Z:1",
        "job_id": "minutely",
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
            }
        ],
    }
    assert office.alice("GET", "/v1/runs/alice%3Aminutely%3A20261121T031300Z%3A1").json == run.json


def test_a_run_that_failed_tells_why_for_each_attempt(office: Office) -> None:
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
    assert seen[0]["attempts"] == [{"attempt": 1, "started_at": "2026-11-21T03:13:00Z", "outcome": "running"}]


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
    assert office.alice("GET", "/v1/jobs/never/runs").problem == "not-found"
