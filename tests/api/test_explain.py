"""Why: one instant explained over the API and at a terminal."""

from __future__ import annotations

from typing import Any

from common.runs.outcome import Outcome
from tests.api.calls import Caller, Office
from tests.cli.conftest import Desk
from tests.cli.conftest import desk as desk
from tests.worlds import Killed, at, job


def why(caller: Caller, instant: str, job_id: str = "minutely") -> dict[str, Any]:
    answer = caller("GET", f"/v1/jobs/{job_id}/explain?at={instant}")
    assert answer.status == 200, answer
    return dict(answer.json)


def status_and_reasons(caller: Caller, instant: str, job_id: str = "minutely") -> tuple[str, list[str]]:
    explanation = why(caller, instant, job_id)
    return explanation["status"], [reason["code"] for reason in explanation["reasons"]]


def test_the_life_of_a_job_explained(office: Office) -> None:
    world, alice = office.world, office.alice
    world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="Boom", error="no")
    alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:14:10Z")
    alice("POST", "/v1/jobs/minutely/pause", {"note": "maintenance"})
    world.run_until("2026-11-21T03:16:10Z")
    alice("POST", "/v1/jobs/minutely/resume")
    alice("PUT", "/v1/jobs/minutely", job(cron="*/5 * * * *"))
    world.run_until("2026-11-21T03:20:30Z", ticks=True)
    assert status_and_reasons(alice, "2026-11-21T03:11:00Z") == ("not_due", ["no_job"])
    ran = why(office.alice_reads, "2026-11-21T03:14:00Z")
    assert ran["text"] == "It was due and started 0.0 s later; it failed (Boom: no)."
    assert ran["found"][0]["run"]["execution_id"] == "alice:minutely:20261121T031400Z"
    paused = why(alice, "2026-11-21T03:15:00Z")
    (reason,) = paused["reasons"]
    assert (reason["code"], reason["data"]["note"]) == ("paused", "maintenance")
    assert (reason["data"]["at"], reason["data"]["by"]) == ("2026-11-21T03:14:10Z", paused["since"]["by"])
    assert "it was skipped: the job is paused: maintenance" in paused["text"]
    moved = why(alice, "2026-11-21T03:17:00Z")
    assert (moved["status"], moved["reasons"][0]["data"]["field"]) == ("not_due", "minute")
    assert (moved["schedule_revision"], moved["since"]["action"]) == (3, "job.changed")
    assert "planned by schedule revision 1" in moved["text"]
    assert status_and_reasons(alice, "2026-11-21T03:25:00Z") == ("to_come", [])
    assert why(alice, "2026-11-21T03:21:00Z")["next_due_at"] == "2026-11-21T03:25:00Z"
    world.clock.move_to(at("2026-11-21T03:28:00Z"))
    assert why(alice, "2026-11-21T03:25:00Z")["text"] == (
        "It was due 180.0 s ago and has not started; its run is planned."
    )
    office.operator("PATCH", "/v1/tenants/alice", {"allowed_targets": []})
    office.operator("POST", "/v1/tenants/alice/suspend", {"note": "unpaid"})
    world.clock.sleep(60)
    assert status_and_reasons(alice, "2026-11-21T03:35:00Z") == (
        "to_come",
        ["suspended", "target_not_allowed"],
    )
    assert why(alice, "2026-11-21T03:35:00Z")["text"].startswith(
        "It will be due. As things are now, it would be skipped. The platform has suspended the tenant: unpaid."
    )


def test_a_run_that_waits_for_a_place_of_its_key(office: Office) -> None:
    for name in ("first", "second"):
        concurrency = {"key": "crm", "limit": 1}
        definition = job(at="2026-11-21T03:15:00Z", concurrency=concurrency, completion="callback")
        office.alice("PUT", f"/v1/jobs/{name}", definition)
    office.world.run_until("2026-11-21T03:15:20Z")

    def texts() -> list[str]:
        explained = [why(office.alice, "2026-11-21T03:15:00Z", name)["text"] for name in ("first", "second")]
        return sorted(explained, key=lambda text: "turn" in text)

    goes, waits = texts()
    assert "waits for a callback of its target until 2026-11-21T04:15:00Z." in goes
    assert "it waits for its turn: 1 run of the concurrency key crm is going, such as " in waits
    context = office.world.target.calls[0][1]
    record = office.world.callbacks.proven(context["execution_id"], context["callback"]["token"])
    office.world.callbacks.ends(record, Outcome(ok=True), office.world.clock.now())
    office.world.run_until("2026-11-21T03:16:00Z")
    assert "It was due, waited 20.0 s for its turn and started 0.0 s later; it is running and" in texts()[1]


def test_overlap_a_local_time_and_what_is_not_found(office: Office) -> None:
    world = office.world
    office.alice("PUT", "/v1/jobs/paris", job(cron="30 4 * * *", timezone="Europe/Paris"))
    explanation = why(office.alice, "2026-11-21T04:30:00", "paris")
    assert (explanation["at"], explanation["local"], explanation["status"]) == (
        "2026-11-21T03:30:00Z",
        "2026-11-21T04:30:00+01:00",
        "to_come",
    )
    assert status_and_reasons(office.alice, "2026-10-25T02:30:00", "paris") == ("not_due", ["no_job"])
    world.scheduler.tick()
    office.alice("POST", "/v1/runs/alice:paris:20261121T033000Z/cancel", {"note": "not today"})
    cancelled = why(office.alice, "2026-11-21T03:30:00Z", "paris")
    assert (cancelled["status"], cancelled["reasons"][0]["code"]) == ("cancelled", "cancelled")
    assert "it was cancelled by hand: not today" in cancelled["text"]
    assert office.alice("GET", "/v1/jobs/paris/explain?at=nonsense").problem == "invalid-input"
    assert office.bob("GET", "/v1/jobs/paris/explain").problem == "not-found"


def test_at_a_terminal(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/minutely", job(cron="*/5 * * * *"))
    shown = desk("jobs", "explain", "minutely", "2026-11-21T03:17:00Z")
    assert shown.code == 0
    assert shown.out.startswith("not due - 2026-11-21T03:17:00Z")
    assert "It is not due. Its minutes do not include 17." in shown.out
    assert "due next 2026-11-21T03:20:00Z (in 8 min)" in shown.out
    assert desk("jobs", "explain", "minutely", "--json").json["at"] == "2026-11-21T03:15:00Z"


def test_a_held_target_is_a_reason(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.operator("POST", "/v1/blocks", {"pattern": "*", "note": "outage"})
    assert status_and_reasons(office.alice, "2026-11-21T03:13:00Z") == ("to_come", ["blocked"])
    assert "blocks the job's target: outage" in why(office.alice, "2026-11-21T03:13:00Z")["text"]


def test_without_an_instant_the_last_fire_time_is_explained(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    first = office.alice("GET", "/v1/jobs/minutely/explain").json
    assert (first["status"], first["at"]) == ("to_come", "2026-11-21T03:13:00Z")
    office.world.run_until("2026-11-21T03:15:44Z")
    status_and_reasons = office.alice("GET", "/v1/jobs/minutely/explain").json
    assert (status_and_reasons["status"], status_and_reasons["at"]) == ("on_time", "2026-11-21T03:15:00Z")
    office.alice("POST", "/v1/jobs/minutely/pause", {"note": "move"})
    office.world.run_until("2026-11-21T03:17:10Z")
    paused = office.alice("GET", "/v1/jobs/minutely/explain").json
    assert (paused["status"], paused["at"]) == ("not_due", "2026-11-21T03:17:00Z")
    assert "paused" in paused["text"]


def test_the_key_that_paused_it_is_named(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    created_key = office.alice_admin("POST", "/v1/keys", {"role": "write", "name": "laptop"}).json
    Caller(created_key["key"])("POST", "/v1/jobs/minutely/pause")
    office.world.clock.sleep(120)
    paused = why(office.alice_reads, "2026-11-21T03:13:00Z")
    assert paused["text"] == (
        f"It was not due. The job is paused by laptop ({created_key['key_id']}) at 2026-11-21T03:12:00Z."
    )
    assert (paused["reasons"][0]["data"]["by"], paused["since"]["by_name"]) == (
        created_key["key_id"],
        "laptop",
    )


def test_a_call_that_a_dead_executor_may_have_made_names_the_key_of_a_repetition(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(at="2026-11-21T03:13:00Z"))

    def die_once(event: Any) -> Outcome:
        office.world.target.answer = lambda event: Outcome(ok=True)
        raise Killed

    office.world.target.answer = die_once
    office.world.run_until("2026-11-21T03:30:00Z", ticks=True)
    text = why(office.alice, "2026-11-21T03:13:00Z", "report")["text"]
    assert "died during attempt 1, which was made again: lambda (not durable) is called at least once" in text
    assert "the event's execution_id shows a repetition" in text


def test_the_kinds_of_target_say_how_often_they_are_called(office: Office) -> None:
    rows = office.alice("GET", "/v1/targets").json["targets"]
    assert {row["called"] for row in rows if row["kind"] == "lambda"} == {
        "at least once",
        "each attempt exactly once",
    }
