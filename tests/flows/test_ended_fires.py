"""What an edit ends is named: in the answers of PUT and PATCH, in a dry run, in the plan of `apply`, by `explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from common.runs.outcome import Outcome
from tests.api.calls import Office
from tests.cli.conftest import Desk
from tests.cli.conftest import desk as desk
from tests.worlds import job

FIRE = "2026-11-21T03:20:00Z"
LOST = "the job's schedule no longer has this fire time"


@pytest.fixture
def office(desk: Desk) -> Office:
    return desk.office


def waiting_in_each_way(office: Office) -> tuple[dict[str, Any], dict[str, str]]:
    """A job whose fire times wait for a retry, for their due time and for their skip; and these, by what for."""
    office.world.target.answer = lambda event: Outcome(ok=False, error_type="Boom", error="no")
    definition = job(cron="*/10 * * * *", retry={"max_attempts": 9, "base_s": 900, "cap_s": 900})
    definition["schedule"]["spread_s"] = 240
    office.alice("PUT", "/v1/jobs/many", definition)
    office.world.run_until("2026-11-21T03:29:00Z", ticks=True)
    office.alice("POST", "/v1/jobs/many/skip", {"count": 2})
    office.world.run_until("2026-11-21T03:50:01Z", ticks=True)
    skipped = office.alice("POST", "/v1/jobs/many/skip", {"count": 1}).json
    assert skipped
    return definition, {
        "2026-11-21T03:20:00Z": "retry",
        "2026-11-21T03:50:00Z": "due time",
        "2026-11-21T04:00:00Z": "skip",
    }


def test_put_and_patch_name_what_waited_and_does_not_run_and_a_dry_run_does_so_before(office: Office) -> None:
    definition, waits = waiting_in_each_way(office)
    definition["schedule"] |= {"cron": "5 4 * * *"}
    dry = office.alice("PUT", "/v1/jobs/many?dry_run=true", definition)
    assert {end["fire_at"]: end["waited_for"] for end in dry.json["ends"]} == waits
    assert {end["reason"] for end in dry.json["ends"]} == {"rescheduled"}
    assert dry.json["ends"][0]["detail"] == f"the run of {FIRE} is not tried again: {LOST}"
    assert dry.json["schedule"]["cron"] == "5 4 * * *"
    stored = office.alice("GET", "/v1/jobs/many").json
    assert (stored["schedule"]["cron"], stored["revision"]) == ("*/10 * * * *", 1)
    changes = {"schedule": {"cron": "5 4 * * *"}}
    assert office.alice("PATCH", "/v1/jobs/many?dry_run=true", changes).json["ends"] == dry.json["ends"]
    assert office.alice("PATCH", "/v1/jobs/many", changes).json["ends"] == dry.json["ends"]
    assert "ends" not in office.alice("GET", "/v1/jobs/many").json
    assert "ends" not in office.alice("PUT", "/v1/jobs/many", definition).json, "twice is once"
    office.world.run_until("2026-11-21T05:00:00Z", ticks=True)
    became = {run["fire_at"]: run.get("reason") for run in office.world.run_items("alice", "many")}
    assert sum(reason == "rescheduled" for reason in became.values()) == 1


def test_a_dry_run_of_a_new_job_stores_nothing(office: Office) -> None:
    dry = office.alice("PUT", "/v1/jobs/new?dry_run=true", job(cron="0 4 * * *"))
    assert (dry.status, dry.json["next_fire_at"]) == (200, "2026-11-21T04:00:00Z")
    assert office.alice("GET", "/v1/jobs/new").status == 404


def test_an_edit_that_leaves_the_fire_times_alone_ends_nothing(office: Office) -> None:
    definition, _ = waiting_in_each_way(office)
    definition["schedule"]["exclude"] = {"dates": ["2030-01-01"]}
    answer = office.alice("PUT", "/v1/jobs/many", definition)
    assert (answer.json["schedule_revision"], "ends" in answer.json) == (2, False)


def test_the_plan_of_apply_and_the_command_say_what_ends(desk: Desk, tmp_path: Path) -> None:
    definition, _ = waiting_in_each_way(desk.office)
    definition["schedule"] |= {"cron": "5 4 * * *"}
    (tmp_path / "jobs.json").write_text(json.dumps([{"job_id": "many", **definition}]))
    lines = [
        f"! the run of 2026-11-21T03:20:00Z is not tried again: {LOST}",
        f"! the run of 2026-11-21T03:50:00Z does not start: {LOST}",
        f"! the skip of 2026-11-21T04:00:00Z has nothing left to skip: {LOST}",
    ]
    plan = desk("apply", str(tmp_path), "--dry-run")
    assert [line.strip() for line in plan.out.splitlines() if "!" in line] == lines
    assert len(desk("apply", str(tmp_path), "--dry-run", "--json").json[0]["ends"]) == 3
    edited = desk("jobs", "edit", "many", "--cron", "5 4 * * *")
    assert edited.out.splitlines()[1:] == lines


def test_what_catch_up_never_starts_is_said_in_preview_and_apply(desk: Desk, tmp_path: Path) -> None:
    words = "catch_up runs what was missed by over 600 s, and start_deadline_s of 300 skips it"
    definition = job(cron="0 4 * * *", catch_up="all", start_deadline_s=300)
    (tmp_path / "jobs.json").write_text(json.dumps([{"job_id": "late", **definition}]))
    assert f"! {words}" in desk("apply", str(tmp_path), "--dry-run").out
    assert words in desk.office.alice("PUT", "/v1/jobs/late", definition).json["warnings"]
    body = {"schedule": {"cron": "0 4 * * *"}, "catch_up": "all", "start_deadline_s": 300}
    assert words in desk.office.alice("POST", "/v1/schedules/preview", body).json["warnings"]
    policies = ("--catch-up", "all", "--start-deadline-s", "300")
    assert f"! {words}" in desk("preview", "0 4 * * *", *policies).out.replace("\n", " ")
    assert "catch_up" not in desk("preview", "0 4 * * *", "--catch-up", "all").out


def test_explain_says_between_fire_and_due_what_the_edit_has_ended(office: Office) -> None:
    definition = job(cron="20 3 * * *")
    definition["schedule"]["spread_s"] = 240
    office.alice("PUT", "/v1/jobs/many", definition)
    office.world.run_until("2026-11-21T03:20:01Z", ticks=True)
    explained = office.alice("GET", f"/v1/jobs/many/explain?at={FIRE}").json
    assert (explained["status"], explained["reasons"]) == ("to_come", [])
    definition["schedule"] = {"cron": "50 3 * * *", "spread_s": 240}
    office.alice("PUT", "/v1/jobs/many", definition)
    explained = office.alice("GET", f"/v1/jobs/many/explain?at={FIRE}").json
    assert explained["text"].endswith(f"As things are now, it would be skipped. T{LOST[1:]}.")
    assert [reason["code"] for reason in explained["reasons"]] == ["rescheduled"]
    office.world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert office.world.statuses("alice", "many") == ["skipped(rescheduled)"]
