"""Preview of a schedule before it is stored in a job."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.calls import Office
from tests.worlds import job

URL = "/v1/schedules/preview"


def test_a_schedule_in_words_and_times(settled: Office) -> None:
    preview = settled.alice_reads(
        "POST", URL, {"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "count": 2}
    )
    assert preview.status == 200
    assert "02:30" in preview.json["sentence"]
    assert preview.json["fires"] == [
        {
            "fire_at": "2026-11-22T01:30:00Z",
            "local": "2026-11-22T02:30:00+01:00",
            "due_at": "2026-11-22T01:30:00Z",
        },
        {
            "fire_at": "2026-11-23T01:30:00Z",
            "local": "2026-11-23T02:30:00+01:00",
            "due_at": "2026-11-23T01:30:00Z",
        },
    ]
    assert any("2027-03-28" in warning for warning in preview.json["warnings"])


def test_a_span_of_time(settled: Office) -> None:
    span = {"from_at": "2026-01-01T00:00:00Z", "until_at": "2026-01-03T00:00:00Z"}
    preview = settled.alice("POST", URL, {"schedule": {"cron": "0 12 * * *"}, **span}).json
    assert [fire["fire_at"] for fire in preview["fires"]] == ["2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z"]


def test_a_week_by_the_hours_of_its_own_clock(settled: Office) -> None:
    """Half past the hour of UTC is a new hour in Kolkata."""
    span = {"from_at": "2026-11-23T00:00:00Z", "week": True}
    hours = {"cron": "*/20 9-10 * * 1-5", "timezone": "Asia/Kolkata"}
    preview = settled.alice("POST", URL, {"schedule": hours, **span}).json
    days = [f"2026-11-{day}T{time}:00Z" for day in (23, 24, 25, 26, 27) for time in ("03:30", "04:30")]
    assert preview["week"] == days
    every_minute = settled.alice("POST", URL, {"schedule": {"cron": "* * * * *"}, **span}).json
    assert len(every_minute["week"]) == 7 * 24
    assert "week" not in settled.alice("POST", URL, {"schedule": hours}).json


def test_h_is_what_it_will_be_for_that_job(settled: Office) -> None:
    schedule = {"cron": "H H * * *"}
    preview = settled.alice("POST", URL, {"schedule": schedule, "job_id": "hashed"}).json
    created = settled.alice("PUT", "/v1/jobs/hashed", job(**schedule)).json
    settled.alice("DELETE", "/v1/jobs/hashed")
    assert preview["schedule_resolved"] == created["schedule_resolved"]
    assert preview["fires"][0]["fire_at"] == created["next_fire_at"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "schedule"),
        ({"schedule": "0 3 * * *"}, "schedule"),
        ({"schedule": {"cron": "61 3 * * *"}}, "schedule.cron"),
        ({"schedule": {"cron": "0 3 30 2 *"}}, "schedule.cron"),
        ({"schedule": {"cron": "0 3 * * *", "timezone": "Nowhere"}}, "schedule.timezone"),
        ({"schedule": {"cron": "0 3 * * *", "zone": "UTC"}}, "schedule"),
        ({"schedule": {"cron": "0 3 * * *"}, "count": 101}, "count"),
        ({"schedule": {"cron": "0 3 * * *"}, "count": True}, "count"),
        ({"schedule": {"cron": "0 3 * * *"}, "count": "3"}, "count"),
        ({"schedule": {"cron": "0 3 * * *"}, "from_at": "now"}, "from_at"),
        ({"schedule": {"cron": "0 3 * * *"}, "job_id": "a/b"}, "job_id"),
        ({"schedule": {"cron": "0 3 * * *"}, "tenant": "bob"}, "tenant"),
        ([], "body"),
    ],
)
def test_an_invalid_schedule_is_refused(settled: Office, body: Any, field: str) -> None:
    refused = settled.alice("POST", URL, body)
    assert (refused.status, refused.problem) == (400, "invalid-input")
    assert refused.json["errors"][0]["field"].startswith(field)


def test_several_schedules_are_shown_everywhere(office: Office) -> None:
    """2026-11-21 is a Saturday: the world begins at 03:12."""
    office.alice("PUT", "/v1/calendars/feasts", {"dates": ["2026-11-21"]})
    paris = {"cron": "0 5 * * *", "timezone": "Europe/Paris", "include_calendars": ["feasts"]}
    schedule = {
        "schedules": [
            {**paris, "payload_patch": {"a": None}},
            {"every": "30m", "anchor": "2026-11-21T03:30:00Z", "end_at": "2026-11-21T04:31:00Z"},
        ],
        "jitter_s": 0,
    }
    created = office.alice("PUT", "/v1/jobs/report", job(**schedule))
    assert (created.status, created.json["schedule"]) == (201, schedule)
    assert created.json["schedule_resolved"] == {
        "schedules": [
            paris,
            {"every_s": 1800, "anchor_at": "2026-11-21T03:30:00Z", "end_at": "2026-11-21T04:31:00Z"},
        ]
    }
    assert created.json["next_fire_at"] == "2026-11-21T03:30:00Z"
    times = ["2026-11-21T03:30:00Z", "2026-11-21T04:00:00Z", "2026-11-21T04:30:00Z"]
    coming = office.alice("GET", "/v1/jobs/report/next?count=5").json
    assert ([fire["fire_at"] for fire in coming["fires"]], coming["timezone"]) == (times, "Europe/Paris")
    span = "from_at=2026-11-21T03:00:00Z&until_at=2026-11-21T06:00:00Z"
    upcoming = office.alice("GET", f"/v1/upcoming?{span}").json["executions"]
    assert [execution["fire_at"] for execution in upcoming] == times
    assert office.alice("GET", "/v1/clock-changes").status == 200
    assert office.alice("GET", "/v1/tzdata-changes").status == 200
    explain = "/v1/jobs/report/explain?at="
    assert "Its schedules.0 fires then." in office.alice("GET", f"{explain}2026-11-21T04:00:00Z").json["text"]
    not_due = office.alice("GET", f"{explain}2026-11-21T04:10:00Z").json["text"]
    assert "schedules.0: Its minutes do not include 10." in not_due
    assert "schedules.1: It fires at" in not_due
    office.world.run_until("2026-11-21T05:00:00Z", ticks=True)
    runs = office.alice("GET", "/v1/jobs/report/runs").json["runs"]
    assert [run["fire_at"] for run in reversed(runs)] == times
    expected = office.alice("GET", f"/v1/jobs/report/expected?{span}").json
    assert [instant["status"] for instant in expected["expected"]] == ["on_time"] * 3
    patched = office.alice("PATCH", "/v1/jobs/report", {"schedule": {"schedules": [{"every": "1h"}]}})
    assert patched.json["schedule"] == {"schedules": [{"every": "1h"}], "jitter_s": 0}


def test_a_preview_of_several(settled: Office) -> None:
    body = {"schedule": {"schedules": [{"cron": "0 5 * * *"}, {"cron": "H 5 * * *"}]}, "count": 3}
    shown = settled.alice_reads("POST", URL, body)
    assert (shown.status, len(shown.json["fires"])) == (200, 3)
    refused = settled.alice_reads("POST", URL, {"schedule": {"schedules": [{"cron": "0 5 * * *"}, {}]}})
    assert refused.json["errors"][0]["field"] == "schedule.schedules.1"


def test_eleven_schedules_and_a_shared_quota_are_refused(office: Office) -> None:
    refused = office.alice("PUT", "/v1/jobs/report", job(schedules=[{"every": "1h"}] * 11))
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "schedule.schedules")
    often = job(schedules=[{"every": "1s"}] * 6)  # half of the quota
    answers = [office.alice("PUT", f"/v1/jobs/{name}", often) for name in ("one", "two")]
    assert [answer.status for answer in answers] == [201, 403], answers[1]


def test_a_preview_takes_out_the_dates_of_calendars(office: Office) -> None:
    office.alice("PUT", "/v1/calendars/feasts", {"dates": ["2026-11-22"]})
    each = {"cron": "0 5 * * *", "exclude": {"calendars": ["feasts"]}}
    for schedule in (each, {"schedules": [each, {**each, "cron": "0 6 22 * *"}]}):
        shown = office.alice("POST", URL, {"schedule": schedule, "count": 2}).json
        assert [fire["fire_at"][:13] for fire in shown["fires"]] == ["2026-11-21T05", "2026-11-23T05"]
        assert not any("not taken out" in warning for warning in shown["warnings"])
    missing = {"cron": "0 5 * * *", "exclude": {"calendars": ["gone"]}}
    assert any(
        "not taken out" in text for text in office.alice("POST", URL, {"schedule": missing}).json["warnings"]
    )
    refused = office.alice("PUT", "/v1/jobs/report", job(schedules=[each, missing]))
    assert (refused.status, refused.json["errors"][0]["field"]) == (
        400,
        "schedule.schedules.1.exclude.calendars",
    )
