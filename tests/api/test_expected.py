"""Expected against actual over the API: bounded pages, all jobs, and what only needs attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from common.runs.outcome import Outcome
from tests.api.calls import Caller, Office
from tests.api.conftest import open_office
from tests.worlds import at, job, open_world

SPAN = "from_at=2026-11-21T03:00:00Z&until_at=2026-11-21T03:40:00Z"


def lively(office: Office) -> None:
    """A job a minute, paused for some minutes; one that is overdue, since its second tick never comes."""
    world = office.world
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["job_id"] != "fails", error_type="Boom")
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    office.alice("PUT", "/v1/jobs/fails", job(cron="*/5 * * * *", retry={"max_attempts": 1}))
    world.run_until("2026-11-21T03:13:10Z")
    office.alice("POST", "/v1/jobs/minutely/pause", {"note": "maintenance"})
    world.run_until("2026-11-21T03:16:10Z")
    office.alice("POST", "/v1/jobs/minutely/resume")
    world.run_until("2026-11-21T03:21:10Z", ticks=True)
    world.clock.move_to(at("2026-11-21T03:31:30Z"))


@pytest.fixture(scope="module")
def office() -> Iterator[Office]:
    """Shared: the last test but one deletes a job."""
    with open_world() as world, pytest.MonkeyPatch.context() as monkeypatch:
        office = open_office(world, monkeypatch)
        lively(office)
        yield office


def all_pages(caller: Caller, url: str) -> tuple[list[dict[str, Any]], int]:
    instants, pages, cursor = [], 0, ""
    while True:
        answer = caller("GET", f"{url}{f'&cursor={cursor}' if cursor else ''}")
        assert answer.status == 200, answer
        instants += answer.json["expected"]
        pages += 1
        cursor = answer.json["next_cursor"]
        if not cursor:
            return instants, pages


def test_each_due_instant_of_a_job_and_what_became_of_it(office: Office) -> None:
    answer = office.alice_reads("GET", f"/v1/jobs/minutely/expected?{SPAN}").json
    assert answer["known_from_at"] is None
    # Due: 03:13, and from 03:17 on. The window until 03:30 is planned; its messages are not delivered.
    assert answer["counts"] == {"on_time": 6, "to_come": 8, "overdue": 10}
    first, paused = answer["expected"][0], answer["expected"][1]
    assert (first["fire_at"], first["status"], first["run"]["status"]) == (
        "2026-11-21T03:13:00Z",
        "on_time",
        "succeeded",
    )
    assert (paused["fire_at"], paused["is_due"], paused["reason"]) == (
        "2026-11-21T03:14:00Z",
        False,
        "paused",
    )
    overdue = [entry for entry in answer["expected"] if entry["status"] == "overdue"]
    assert (overdue[-1]["fire_at"], overdue[-1]["late_s"]) == ("2026-11-21T03:31:00Z", 30.0)
    assert overdue[-1]["detail"] == "no tick has planned it yet"
    assert overdue[0]["detail"] == "its run is planned"


def test_pages_of_one_job_and_of_all_are_the_whole_list(office: Office) -> None:
    all_jobs = office.alice("GET", f"/v1/expected?{SPAN}").json
    assert [entry["job_id"] for entry in all_jobs["by_job"]] == ["fails", "minutely"]
    assert all_jobs["by_job"][0]["counts"] == {"on_time": 2, "to_come": 1, "overdue": 2}
    few, pages = all_pages(office.alice, f"/v1/expected?{SPAN}&limit=4")
    assert (few, pages) == (all_jobs["expected"], 8)
    of_one = [entry for entry in all_jobs["expected"] if entry["job_id"] == "minutely"]
    assert all_pages(office.alice, f"/v1/jobs/minutely/expected?{SPAN}&limit=5")[0] == of_one


def test_problems_are_listed_alone_and_all_are_counted(office: Office) -> None:
    answer = office.alice("GET", f"/v1/expected?{SPAN}&problems=true").json
    assert {entry["status"] for entry in answer["expected"]} == {"overdue", "skipped"}
    assert answer["by_job"][1]["counts"]["on_time"] == 6


def test_a_deleted_job_is_remembered_and_an_unknown_one_is_not_found(office: Office) -> None:
    office.alice("DELETE", "/v1/jobs/minutely")
    answer = office.alice("GET", f"/v1/jobs/minutely/expected?{SPAN}").json
    assert answer["counts"] == {"on_time": 6, "overdue": 10}
    assert office.alice("GET", f"/v1/jobs/nothing/expected?{SPAN}").problem == "not-found"
    assert office.bob("GET", f"/v1/jobs/minutely/expected?{SPAN}").problem == "not-found"
    assert office.bob("GET", f"/v1/expected?{SPAN}").json["by_job"] == []


def test_an_invalid_query_is_refused(office: Office) -> None:
    for url in (
        "/v1/expected?from_at=2026-01-01T00:00:00Z&until_at=2026-05-01T00:00:00Z",
        "/v1/expected?limit=5001",
        "/v1/expected?problems=maybe",
        "/v1/expected?cursor=nonsense",
    ):
        assert office.alice("GET", url).problem == "invalid-input"
