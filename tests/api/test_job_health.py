"""The health of jobs in lists: last outcomes, failures in a row, what is overdue; at a bounded cost."""

from __future__ import annotations

import math
from typing import Any

import pytest

from common.history import failed_runs, runs_by_time
from common.history.expected import AsOf
from common.history.health import JobHealth
from common.jobs.calendars import Calendars, RememberedCalendars
from common.runs.outcome import Outcome
from tests.api.calls import Office
from tests.worlds import at, job


def health(office: Office, **query: str) -> dict[str, Any]:
    url = "/v1/jobs?health=true" + "".join(f"&{name}={value}" for name, value in query.items())
    return dict(office.alice_reads("GET", url).json["health"])


def test_a_list_of_jobs_with_their_health(office: Office) -> None:
    world = office.world
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "fails", permanent=True, error_type="Boom", error="no"
    )
    for job_id, timing in (("fails", "* * * * *"), ("works", "* * * * *"), ("rare", "0 0 1 1 *")):
        office.alice("PUT", f"/v1/jobs/{job_id}", job(cron=timing))
    world.run_until("2026-11-21T03:16:00Z")
    job_health = health(office)
    assert job_health.keys() == {"fails", "works", "rare"}
    assert job_health["fails"]["failures_in_row"] == 4
    assert [run["status"] for run in job_health["fails"]["outcomes"]] == ["failed"] * 4
    last = job_health["fails"]["last_run"]
    assert (last["fire_at"], last["error_type"], last["error"]) == ("2026-11-21T03:16:00Z", "Boom", "no")
    assert job_health["rare"] == {
        "last_run": None,
        "outcomes": [],
        "failures_in_row": 0,
        "not_running": None,
        "overdue": None,
    }
    assert job_health["works"]["overdue"] is None
    assert office.alice("GET", "/v1/jobs/works/health").json == job_health["works"]
    assert "health" not in office.alice("GET", "/v1/jobs").json


def test_of_a_hundred_attempts_only_the_last_error_is_kept(office: Office) -> None:
    """A page of 200 jobs read 20 runs of each with all attempts: up to 640 MB."""
    world = office.world
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom", error="no", log_tail="x" * 800)
    retried = job(cron="0 3 * * *", retry={"max_attempts": 9, "base_s": 1, "factor": 1, "cap_s": 1})
    office.alice("PUT", "/v1/jobs/retried", retried)
    office.alice("POST", "/v1/jobs/retried/run")
    world.run_until("2026-11-21T03:13:00Z")
    table = world.table("runs")
    calendars = RememberedCalendars(Calendars(world.table("jobs")))
    as_of = AsOf(world.clock.now(), -math.inf, -math.inf)
    (job_health,) = JobHealth(table).of_jobs([world.store.get("alice", "retried")], as_of, calendars).values()
    (run,) = job_health.outcomes
    assert (run.status, run.attempt, run.attempts) == ("failed", 9, ())
    ((last,),) = [run.attempts for run in JobHealth(table).with_errors(job_health.outcomes)]
    assert (last.attempt, last.error) == (9, "no")
    assert health(office)["retried"]["last_run"]["error"] == "no"


def test_pages_of_runs_with_many_attempts_end_early(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred runs of a hundred attempts were an answer of 32 MB; Lambda takes 6 MB."""
    for module in (failed_runs, runs_by_time):
        monkeypatch.setattr(module, "MAX_RETRIES", 4)
    world = office.world
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom", error="no")
    retried = job(cron="0 3 * * *", retry={"max_attempts": 3, "base_s": 1, "factor": 1, "cap_s": 1})
    office.alice("PUT", "/v1/jobs/retried", retried)
    for nonce in range(5):
        office.alice("POST", "/v1/jobs/retried/run", {"nonce": str(nonce)})
    world.run_until("2026-11-21T03:13:00Z")
    for url in ("/v1/jobs/retried/runs", "/v1/runs", "/v1/failures"):
        counts, cursor = [], ""
        while not counts or cursor:
            page = office.alice(
                "GET", f"{url}?limit=200&cursor={cursor}" if cursor else f"{url}?limit=200"
            ).json
            assert all(len(run["attempts"]) == 3 for run in page["runs"])
            counts.append(len(page["runs"]))
            cursor = page["next_cursor"]
        assert counts == [2, 2, 1], url
    page = office.alice("GET", "/v1/failures/groups").json
    assert [group["count"] for group in page["groups"]] == [2]
    assert (page["groups"][0]["error"], bool(page["next_cursor"])) == ("no", True)


def test_a_passed_fire_time_without_a_run_is_late(office: Office) -> None:
    world = office.world
    office.alice("PUT", "/v1/jobs/late", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:13:00Z")
    world.clock.move_to(at("2026-11-21T03:14:10Z"))
    assert health(office)["late"]["overdue"] is None  # ten seconds are not late
    world.clock.move_to(at("2026-11-21T03:17:00Z"))
    overdue = health(office)["late"]["overdue"]
    assert (overdue["due_at"], overdue["late_s"]) == ("2026-11-21T03:14:00Z", 180)
    office.alice(
        "POST", "/v1/jobs/late/run", {"nonce": "one"}
    )  # the queue stands still, and a run was asked for
    assert health(office)["late"]["overdue"]["late_s"] == 180
    office.alice("POST", "/v1/jobs/late/pause")
    assert health(office)["late"]["overdue"] is None
    office.alice("POST", "/v1/jobs/late/resume")
    assert health(office)["late"]["overdue"] is None


def test_manual_runs_hide_no_scheduled_one(office: Office) -> None:
    world = office.world
    office.alice("PUT", "/v1/jobs/busy", job(cron="0 * * * *"))
    office.alice("PUT", "/v1/jobs/never", job(cron="0 0 1 1 *"))
    world.run_until("2026-11-21T03:18:00Z")
    world.scheduler.tick()
    world.run_until("2026-11-21T04:00:01Z", ticks=True)
    for n in range(25):
        office.alice("POST", "/v1/jobs/busy/run", {"nonce": f"n{n}"})
        world.run_until(f"2026-11-21T04:10:{n + 1:02}Z")
    job_health = health(office)["busy"]
    assert len(job_health["outcomes"]) == 20
    assert {run["trigger"] for run in job_health["outcomes"]} == {"manual"}
    assert job_health["overdue"] is None
    world.clock.move_to(at("2026-11-21T05:02:00Z"))
    assert health(office)["busy"]["overdue"]["due_at"] == "2026-11-21T05:00:00Z"


def test_a_page_with_health_counts_as_more_requests(office: Office) -> None:
    for n in range(50):
        office.alice("PUT", f"/v1/jobs/j{n}", job(cron="0 0 1 1 *"))
    office.world.clock.sleep(60)
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 10}})
    office.world.clock.sleep(60)
    answers = [office.alice("GET", "/v1/jobs?health=true&limit=50").status for _ in range(6)]
    assert (answers.count(200), answers.count(429)) == (3, 3)  # two queries of half a unit for each job


def test_a_run_that_goes_on_has_an_outcome_too(office: Office) -> None:
    world = office.world
    office.alice("PUT", "/v1/jobs/handed-over", job(cron="* * * * *", invocation="Event"))
    world.run_until("2026-11-21T03:13:00Z")
    job_health = health(office)["handed-over"]
    assert [run["status"] for run in job_health["outcomes"]] == ["dispatched"]
    assert job_health["last_run"]["status"] == "dispatched"
