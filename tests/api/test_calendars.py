"""Calendars over HTTP, and their effect on the jobs that name them."""

from __future__ import annotations

import pytest

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


def test_a_job_fires_on_the_dates_of_a_calendar_or_moves_there(office: Office) -> None:
    """2026-11-21 is a Saturday: the world begins at 03:12."""
    office.alice("PUT", "/v1/calendars/open", {"dates": ["2026-11-23", "2026-11-24"]})
    office.alice("PUT", "/v1/calendars/shut", {"dates": ["2026-11-23"]})
    schedule = {"cron": "15 3 * * SAT", "include_calendars": ["open"], "on_excluded": "next"}
    created = office.alice("PUT", "/v1/jobs/report", job(**schedule))
    assert (created.status, created.json["next_fire_at"]) == (201, "2026-11-23T03:15:00Z")
    assert created.json["schedule"] == schedule
    assert created.json["schedule_resolved"] == {**schedule, "cron": "15 3 * * 6"}
    assert created.json["schedule_words"].endswith(
        "only on dates of open; on the next date that is not excluded, instead of an excluded one"
    )
    changed = office.alice("PUT", "/v1/jobs/report", job(**schedule, exclude={"calendars": ["shut"]}))
    assert changed.json["next_fire_at"] == "2026-11-24T03:15:00Z"
    (listed,) = office.alice("GET", "/v1/jobs").json["jobs"]
    assert listed["next_fire_at"] == changed.json["next_fire_at"]
    for url in (
        "/v1/upcoming?from_at=2026-11-23T03:00:00Z&until_at=2026-11-25T00:00:00Z",
        "/v1/jobs/report/next?count=3",
    ):
        answer = office.alice("GET", url).json
        times = [fire["fire_at"] for fire in answer.get("fires", answer.get("executions", []))]
        assert times == ["2026-11-24T03:15:00Z"], (url, answer)
    explain = "/v1/jobs/report/explain?at="
    assert "a date move to the next one" in office.alice("GET", f"{explain}2026-11-28T03:15:00Z").json["text"]
    explained = office.alice("GET", f"{explain}2026-11-24T03:15:00Z").json
    assert (explained["status"], "moves there from an excluded date" in explained["text"]) == (
        "to_come",
        True,
    )
    assert office.alice("DELETE", "/v1/calendars/open").status == 409
    office.world.run_until("2026-11-24T03:30:00Z", ticks=True)
    (run,) = office.alice("GET", "/v1/jobs/report/runs").json["runs"]
    assert (run["fire_at"], run["status"]) == ("2026-11-24T03:15:00Z", "succeeded")


def test_a_time_that_moves_into_a_planned_window_runs(office: Office) -> None:
    """Friday's times move to the Saturday on which the job is registered, three minutes before."""
    office.world.run_until("2026-11-21T03:12:00Z", ticks=True)
    office.alice("PUT", "/v1/calendars/shut", {"dates": ["2026-11-20"]})
    schedule = {"cron": "15 3 * * 5", "exclude": {"calendars": ["shut"]}, "on_excluded": "next"}
    office.alice("PUT", "/v1/jobs/report", job(**schedule))
    office.world.run_until("2026-11-21T03:30:00Z", ticks=True)
    (run,) = office.alice("GET", "/v1/jobs/report/runs").json["runs"]
    assert (run["fire_at"], run["status"]) == ("2026-11-21T03:15:00Z", "succeeded")


def test_a_date_that_is_taken_out_stops_what_is_planned(office: Office) -> None:
    office.alice("PUT", "/v1/calendars/open", {"dates": ["2026-11-21"]})
    office.alice("PUT", "/v1/jobs/report", job(cron="15 3 * * *", include_calendars=["open"]))
    office.alice("PUT", "/v1/calendars/open", {"dates": ["2026-11-22"]})
    office.world.run_until("2026-11-22T03:30:00Z", ticks=True)
    runs = office.alice("GET", "/v1/jobs/report/runs").json["runs"]
    assert [(run["fire_at"], run["status"], run.get("reason")) for run in runs] == [
        ("2026-11-22T03:15:00Z", "succeeded", None),
        ("2026-11-21T03:15:00Z", "skipped", "excluded"),
    ]


def test_a_job_that_names_no_calendar_of_the_tenants_is_refused(office: Office) -> None:
    office.bob("PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]})
    refused = office.alice(
        "PUT", "/v1/jobs/report", job(cron="* * * * *", exclude={"calendars": ["holidays"]})
    )
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "schedule.exclude.calendars")
    refused = office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *", include_calendars=["holidays"]))
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "schedule.include_calendars")


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


@pytest.mark.parametrize(
    "body", [{"country": "DE"}, {"icalendar": "BEGIN:VCALENDAR"}, {"dates": [], "country": "DE"}]
)
def test_the_api_names_the_command_that_resolves_other_sources(
    office: Office, body: dict[str, object]
) -> None:
    """It answers the same with and without the libraries, on a laptop and in Lambda."""
    (problem,) = office.alice("PUT", "/v1/calendars/holidays", body).json["errors"]
    assert "the minute8 command resolves" in problem["accepted"]
