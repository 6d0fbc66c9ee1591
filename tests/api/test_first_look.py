"""The first look at a tenant."""

from __future__ import annotations

import gzip
import json
from collections import Counter

from common.runs.outcome import Outcome
from common.timing.instants import rfc3339
from tests.api.conftest import Office
from tests.api.shapes import check_shape
from tests.worlds import job


def test_a_tenant_without_anything_has_an_overview(office: Office) -> None:
    shown = office.alice("GET", "/v1/overview")
    assert shown.status == 200
    assert (shown.json["past"]["runs"], shown.json["open"]["running"]) == (0, 0)
    assert shown.json["job_counts"] == {"total": 0, "active": 0, "paused": 0}
    assert shown.json["failing"] == {"count": 0, "muted": 0, "jobs": []}
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
    check_shape("TenantOverview", shown)
    assert shown["job_counts"] == {"total": 3, "active": 3, "paused": 0}
    past = shown["past"]
    assert past["statuses"] == {"failed": 19, "succeeded": 19}
    assert sum(hour["runs"] for hour in past["hours"]) == 38
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


def test_the_summary_of_all_jobs_has_hours_and_all_runs(office: Office) -> None:
    world = office.world
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T04:05:00Z", ticks=True)
    world.project()
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    world.project()
    shown = office.alice("GET", "/v1/summary").json
    assert (shown["complete"], shown["next_cursor"]) == (True, None)
    assert shown["total"]["runs"] == len(world.run_items("alice", "minutely"))
    assert sum(hour["runs"] for hour in shown["hours"]) == shown["total"]["runs"]


def test_runs_that_do_not_go_on_are_named(office: Office) -> None:
    """One died while it ran, one waits for an attempt that has not come, and one waits for its turn."""
    world = office.world
    world.project()
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    retry = {"max_attempts": 3, "base_s": 300, "cap_s": 300, "factor": 1}
    for name in ("dies", "waits", "later"):
        office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 0 1 1 *", retry=retry))
    world.target.answer = lambda event: Outcome(ok=False, error_type="Oops", error="it broke")
    for name in ("dies", "waits", "later"):
        office.alice("POST", f"/v1/jobs/{name}/run", {"nonce": "n"})
    world.run_until("2026-11-21T03:41:00Z")
    runs = {name: world.run_items("alice", name)[0] for name in ("dies", "waits", "later")}
    assert {run["status"] for run in runs.values()} == {"retrying"}
    now = int(world.clock.now())
    for name, change in {
        "dies": {"status": "running", "lease_until": now - 121},
        "waits": {"next_attempt_at": now - 600},
    }.items():
        world.table("runs").put({**runs[name], **change})
    shown = office.alice("GET", "/v1/overview").json
    check_shape("TenantOverview", shown)
    going = shown["open"]
    assert (going["running"], going["retrying"], going["queued"], going["complete"]) == (1, 2, 0, True)
    assert [run["job_id"] for run in going["stuck_runs"]] == ["dies", "waits"]
    assert going["stuck"] == 2
    assert going["stuck_runs"][0]["since_at"] == rfc3339(now - 121)
    world.table("runs").put({**runs["dies"], "status": "running", "lease_until": now - 119})
    assert office.alice("GET", "/v1/overview").json["open"]["stuck"] == 1


def test_the_first_look_costs_as_many_requests_for_any_jobs(office: Office) -> None:
    world = office.world
    world.project()
    counts = []
    for jobs in (3, 100):
        for n in range(jobs):
            office.alice("PUT", f"/v1/jobs/j{n}", job(cron="*/30 * * * *"))
        world.run_until(rfc3339(int(world.clock.now()) + 7_200), ticks=True)
        world.project()
        office.alice("GET", "/v1/overview")
        requests: Counter[str] = Counter()
        world.dynamodb.before = lambda name, counted=requests: counted.update([name])
        shown = office.alice("GET", "/v1/overview")
        counts.append(requests.total())
        assert len(gzip.compress(json.dumps(shown.json).encode())) < 40_000
    assert counts[1] <= counts[0] + 4 <= 26, counts
