"""Calendars over HTTP, and their effect on the jobs that name them."""

from __future__ import annotations

from tests.api.calls import Office
from tests.worlds import job


def test_a_calendar_is_stored_listed_and_respected(office: Office) -> None:
    created = office.alice("PUT", "/v1/calendars/holidays", {"dates": ["2026-11-21", "2026-12-25"]})
    assert (created.status, created.json["dates"]) == (201, ["2026-11-21", "2026-12-25"])
    assert office.alice("PUT", "/v1/calendars/holidays", {"dates": ["2026-11-21"]}).status in (200, 201)
    assert [c["name"] for c in office.alice("GET", "/v1/calendars").json["calendars"]] == ["holidays"]
    office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *", exclude={"calendars": ["holidays"]}))
    first = "2026-11-22T00:00:00Z"
    assert office.alice("GET", "/v1/jobs/report").json["next_fire_at"] == first
    assert [listed_job["next_fire_at"] for listed_job in office.alice("GET", "/v1/jobs").json["jobs"]] == [
        first
    ]
    office.world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert office.alice("GET", "/v1/jobs/report/runs").json["runs"] == []
    following = office.alice("GET", "/v1/jobs/report/next?count=1").json["fires"]
    assert [fire["fire_at"] for fire in following] == ["2026-11-22T00:00:00Z"]


def test_a_put_that_only_creates_replaces_no_calendar_and_the_same_dates_change_nothing(
    office: Office,
) -> None:
    url, dates = "/v1/calendars/holidays", {"dates": ["2026-12-25"], "source": {"kind": "list"}}
    created = office.alice("PUT", url, dates, If_None_Match="*")
    assert (created.status, created.json["revision"]) == (201, 1)
    refused = office.alice("PUT", url, {"dates": []}, If_None_Match="*")
    assert (refused.status, refused.problem) == (412, "revision-mismatch")
    entries = office.alice_admin("GET", "/v1/audit").json["entries"]
    office.world.clock.sleep(60)
    again = office.alice("PUT", url, dates)
    assert (again.json, again.headers["etag"]) == (created.json, '"1"')
    assert office.alice_admin("GET", "/v1/audit").json["entries"] == entries
    assert office.alice("PUT", url, {**dates, "source": {}}).json["revision"] == 2


def test_a_calendar_in_use_is_not_deleted(office: Office) -> None:
    office.alice("PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]})
    office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *", exclude={"calendars": ["holidays"]}))
    refused = office.alice("DELETE", "/v1/calendars/holidays")
    assert (refused.status, refused.problem, "report" in refused.json["detail"]) == (409, "conflict", True)
    office.alice("DELETE", "/v1/jobs/report")
    assert office.alice("DELETE", "/v1/calendars/holidays").status == 204
    assert office.alice("GET", "/v1/calendars/holidays").status == 404


def test_a_job_that_names_no_calendar_of_the_tenants_is_refused(office: Office) -> None:
    office.bob("PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]})
    refused = office.alice(
        "PUT", "/v1/jobs/report", job(cron="* * * * *", exclude={"calendars": ["holidays"]})
    )
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "schedule.exclude.calendars")


def test_a_bad_calendar_is_refused_by_name(office: Office) -> None:
    for body, field in (
        ({}, "dates"),
        ({"dates": ["2026-13-01"]}, "dates.0"),
        ({"dates": "2026-12-25"}, "dates"),
        ({"dates": [], "country": "DE"}, "country"),
        ({"country": "DE"}, "country"),
        ({"icalendar": "BEGIN:VCALENDAR"}, "icalendar"),
        ({"colour": "red", "dates": []}, "colour"),
    ):
        refused = office.alice("PUT", "/v1/calendars/holidays", body)
        assert (refused.status, refused.json["errors"][0]["field"]) == (400, field), body
    assert office.alice("PUT", "/v1/calendars/a%23b", {"dates": []}).status in (400, 404)
    assert office.alice("GET", "/v1/calendars").json["calendars"] == []
