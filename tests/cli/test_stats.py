"""`minute8 stats` and `minute8 overview`."""

from __future__ import annotations

import pytest

from common.jobs.failures import NotRunningNotes
from common.jobs.not_running import REASONS, NotRunning, address_off
from common.runs.outcome import Outcome
from minute8.cli.commands.stats import bar_cell
from tests.cli.conftest import Desk
from tests.worlds import job


def a_morning(desk: Desk) -> None:
    """Three hours of two jobs; one fails."""
    world = desk.office.world
    for name in ("good", "bad"):
        fields = {"retry": {"max_attempts": 1}, "tags": [name]}
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="*/5 * * * *", **fields))
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "bad", error_type="Oops", error="it broke"
    )
    world.project()
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    world.project()


def test_a_day_is_a_picture_and_a_table(desk: Desk) -> None:
    assert desk("stats").out == "no runs\n"
    a_morning(desk)
    lines = desk("stats").out.splitlines()
    assert lines[0] == "24 runs in the fullest hour"
    assert "█" in lines[6]
    (day,) = (line for line in lines if line.startswith("2026-11-21"))
    assert day.split()[1] == str(len(desk("runs", "list", "-n", "500", "--json").json))
    shown = desk("stats", "--json").json
    assert sum(hour["runs"] for hour in shown["hours"]) <= shown["total"]["runs"]
    assert desk("stats", "--days", "7").out.splitlines()[0].endswith("in the fullest day")


def test_a_first_look(desk: Desk) -> None:
    a_morning(desk)
    out = desk("overview").out
    assert "2 jobs, 2 active" in out
    assert "24 hours ahead: 576 executions" in out
    assert "Oops: it broke" in out
    assert desk("overview", "--json").json["failing"]["count"] == 1


def test_a_list_says_when_it_is_cut_and_how_to_go_on(desk: Desk) -> None:
    a_morning(desk)
    cut = desk("runs", "list", "-n", "3")
    assert len(cut.out.splitlines()) == 4
    assert "there are more runs" in cut.err
    tagged = desk("runs", "list", "--tag", "bad", "-n", "5", "--json").json
    assert {run["job_id"] for run in tagged} == {"bad"}
    assert desk("runs", "list", "good", "--tag", "bad").code == 2


@pytest.mark.parametrize(
    ("count", "most", "cells"),
    [(0, 10, "      "), (10, 10, "██████"), (5, 10, "███   "), (1, 1_000, "▁     ")],
)
def test_any_run_shows_in_the_picture(count: int, most: int, cells: str) -> None:
    assert "".join(bar_cell(count, most, row) for row in range(6)) == cells


def test_an_operator_has_the_runs_written_down_again(desk: Desk) -> None:
    a_morning(desk)
    before = desk("stats", "--json").json["total"]["runs"]
    office = desk.office
    cursor, runs = "", 0
    while cursor is not None:
        step = office.operator("POST", f"/v1/tenants/alice/projection?days=1{cursor}").json
        runs += step["runs_read"]
        cursor = f"&cursor={step['next_cursor']}" if step["next_cursor"] else None
    assert runs > 0
    assert desk("stats", "--json").json["total"]["runs"] == before
    assert office.operator("POST", "/v1/tenants/nobody/projection").status == 404
    assert office.alice("POST", "/v1/tenants/alice/projection").status == 403


def test_each_reason_for_not_running_is_named(desk: Desk) -> None:
    """By overview, list and job; the console shows whatever reason the same answers have."""
    world, now = desk.office.world, desk.office.world.clock.now()
    notes = NotRunningNotes(world.tables.jobs, world.clock, world.deployment.events)
    of_jobs = [reason for reason in REASONS if reason != "address_off"]
    for reason in of_jobs:
        world.registry.put("alice", f"of-{reason}", job(cron="0 4 * * *"))
        if reason == "paused_after_failures":
            world.store.pause("alice", f"of-{reason}", "three failures")
        assert notes.begin("alice", f"of-{reason}", NotRunning(reason, now, f"because of {reason}"))
    desk("subscriptions", "put", "on-call", "--target", "https://hooks.example.com/minute8")
    world.tables.jobs.put(address_off("alice", "on-call", now, "Http404", now))
    shown = desk("overview").out.partition("NOT RUNNING")[2].splitlines()
    assert {tuple(row.split()[:2]) for row in shown if row.startswith("of-")} == {
        (f"of-{reason}", reason) for reason in of_jobs
    }
    assert [row.split()[:2] for row in shown if row.startswith("on-call")] == [["on-call", "address_off"]]
    listed = desk("jobs", "list", "--not-running", "--json").json
    assert {each["job_id"] for each in listed} == {f"of-{reason}" for reason in of_jobs}
    for reason in of_jobs:
        rows = [line.split() for line in desk("jobs", "show", f"of-{reason}").out.splitlines()]
        assert ["not", "running", reason] in rows


def test_a_look_is_one_request(desk: Desk) -> None:
    a_morning(desk)
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    for words in (("overview",), ("stats",), ("upcoming",), ("density",), ("tenants", "health", "alice")):
        desk.transport.requests.clear()
        assert desk(*words).code == 0
        assert len(desk.transport.requests) == 1, words
