"""The first look at a tenant."""

from __future__ import annotations

import json

from api.shapes import SHAPES
from common.projection.state import ProjectionStates
from common.runs.outcome import Outcome
from tests.api.conftest import Office
from tests.worlds import job


def test_a_tenant_without_anything_has_an_overview(office: Office) -> None:
    shown = office.alice("GET", "/v1/overview")
    assert shown.status == 200
    assert shown.json["past"] is None
    assert shown.json["job_counts"] == {"total": 0, "active": 0, "paused": 0}
    assert shown.json["failing"] == {"count": 0, "jobs": []}
    assert shown.json["ahead"]["total"] == 0


def test_the_overview_has_what_a_first_look_needs(office: Office) -> None:
    world = office.world
    for name in ("good", "bad"):
        office.alice("PUT", f"/v1/jobs/{name}", job(cron="*/10 * * * *", retry={"max_attempts": 1}))
    office.alice("PUT", "/v1/jobs/idle", job(cron="0 0 1 1 *"))
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "bad", error_type="Oops", error="it broke"
    )
    world.project()
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    world.project()
    shown = office.alice("GET", "/v1/overview").json
    SHAPES["TenantOverview"].model_validate(shown)
    assert shown["job_counts"] == {"total": 3, "active": 3, "paused": 0}
    state = ProjectionStates(world.table("due"), world.table("runs")).read()
    assert state
    past = shown["past"]
    assert past["statuses"] == {"failed": 18, "succeeded": 18}
    assert sum(hour["runs"] for hour in past["hours"]) == 36
    assert shown["failing"]["count"] == 1
    assert shown["failing"]["jobs"][0]["job_id"] == "bad"
    assert [group["error_type"] for group in shown["errors"]] == ["Oops"]
    assert shown["ahead"]["total"] == 2 * 144
    assert shown["ahead"]["complete"]
    assert [(job_ahead["job_id"], job_ahead["fire_at"][11:16]) for job_ahead in shown["ahead"]["jobs"]] == [
        ("bad", "06:20"),
        ("good", "06:20"),
        ("idle", "00:00"),
    ]
    assert len(json.dumps(shown)) < 40_000


def test_a_look_without_news_has_the_same_etag(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/idle", job(cron="0 0 1 1 *"))
    first = office.alice("GET", "/v1/overview")
    assert office.alice("GET", "/v1/overview").headers["etag"] == first.headers["etag"]
    office.world.clock.sleep(60)
    again = office.alice("GET", "/v1/overview", If_None_Match=first.headers["etag"])
    assert again.status == 304
    office.alice("PUT", "/v1/jobs/another", job(cron="0 0 1 1 *"))
    assert office.alice("GET", "/v1/overview").headers["etag"] != first.headers["etag"]


def test_the_summary_of_all_jobs_has_hours_and_goes_on_with_older_runs(office: Office) -> None:
    world = office.world
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T04:05:00Z", ticks=True)
    world.project()
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    world.project()
    first = office.alice("GET", "/v1/summary").json
    assert first["complete"] is False
    assert first["hours"]
    rest = office.alice("GET", f"/v1/summary?cursor={first['next_cursor']}").json
    assert rest["complete"] is True
    runs = world.run_items("alice", "minutely")
    assert first["total"]["runs"] + rest["total"]["runs"] == len(runs)
