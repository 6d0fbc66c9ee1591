"""The platform's view of planning: planned_until, how windows went, what is set aside, and the doctor's findings."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from scheduler import handler
from tests.api.calls import Office
from tests.cli.conftest import Desk
from tests.cli.conftest import desk as desk
from tests.worlds import job, put_in_directory

MAX_AGE_S = 55


@pytest.fixture
def ticked(office: Office, monkeypatch: pytest.MonkeyPatch) -> Office:
    tick_twice(office, monkeypatch)
    return office


def tick_twice(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ticks, the second of which meets a group that it cannot read."""
    world = office.world
    monkeypatch.setattr(handler, "scheduler", lambda: world.scheduler)
    office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    for until in ("2026-11-21T03:18:00Z", "2026-11-21T03:28:00Z"):
        world.run_until(until)
        if until.endswith("28:00Z"):
            put_in_directory(world.table("due"), "lunar|full#0")
        world.scheduler.tick()


def view(office: Office, query: str = "") -> dict[str, Any]:
    planning: dict[str, Any] = office.operator("GET", f"/v1/operator-planning{query}").json
    return planning


def test_the_last_windows_and_the_mark(ticked: Office) -> None:
    planning = view(ticked)
    assert planning["progress"]["planned_until_at"] == "2026-11-21T03:40:00Z"
    assert (planning["progress"]["lag_s"], planning["progress"]["ticks_missed"], planning["shares_left"]) == (
        0,
        0,
        0,
    )
    second, first = planning["windows"]
    assert (first["start_at"], first["end_at"]) == ("2026-11-21T03:20:00Z", "2026-11-21T03:30:00Z")
    assert (second["executions"], second["ticks"], second["planners"]) == (10, 1, 0)
    assert (second["ahead_s"], second["finished"], second["began_at"]) == (120, True, "2026-11-21T03:28:00Z")
    assert [entry["end_at"] for entry in view(ticked, "?windows=1")["windows"]] == ["2026-11-21T03:40:00Z"]


def test_the_quarantine_and_the_doctors_findings(ticked: Office) -> None:
    planning = view(ticked)
    (group,) = planning["set_aside"]
    assert (group["kind"], group["name"]) == ("group", "lunar|full#0")
    levels = {entry["check"]: entry["level"] for entry in planning["findings"]}
    set_aside = planning["findings"][-1]
    assert set_aside["runbook"] == "docs/runbook/quarantine.md"
    assert set_aside["since_at"] == group["start_at"]
    assert [entry["since_at"] for entry in planning["findings"] if entry["level"] == "ok"] == [None] * 3
    assert levels == {
        "alarms": "ok",
        "planned until": "ok",
        "unfinished planning": "ok",
        "quarantine": "failed",
    }


def test_the_alarms_that_are_on_come_first(ticked: Office) -> None:
    ticked.board.on = {"minute8-test-no-tick": "no datapoints", "minute8-other-no-tick": "not ours"}
    assert view(ticked)["findings"][0] == {
        "check": "alarms",
        "level": "failed",
        "found": "minute8-test-no-tick is on: no datapoints",
        "remedy": "What it means. docs/runbook/no-tick.md",
        "since_at": "2026-11-21T03:00:00Z",
        "runbook": "docs/runbook/no-tick.md",
    }
    assert [entry["check"] for entry in view(ticked)["findings"]].count("alarms") == 1


def test_cloudwatch_is_asked_once_in_a_while_and_may_be_down(ticked: Office) -> None:
    board, clock = ticked.board, ticked.world.clock
    board.error = EndpointConnectionError(endpoint_url="https://monitoring.test")
    assert [view(ticked)["findings"][0]["level"] for _ in range(3)] == ["not_checked"] * 3
    assert board.requests == 1
    board.error = None
    clock.move_to(clock.now() + MAX_AGE_S - 1)
    assert view(ticked)["findings"][0]["level"] == "not_checked"
    clock.move_to(clock.now() + 1)
    assert view(ticked)["findings"][0]["found"] == "no alarm is on"
    assert board.requests == 2


def test_the_lag_of_a_mark_that_stands_still(ticked: Office) -> None:
    ticked.world.run_until("2026-11-21T04:00:00Z")
    planning = view(ticked)
    assert (planning["progress"]["lag_s"], planning["progress"]["ticks_missed"]) == (1200, 3)
    assert planning["findings"][1]["level"] == "failed"


def test_a_day_of_windows_is_an_answer(ticked: Office) -> None:
    windows = ticked.world.index.windows
    (newest,) = windows.newest(1)
    for nth in range(200):
        windows.add(type(newest)(newest.end + nth * 600, newest.end + (nth + 1) * 600, 0, 1, planned=nth))
    assert len(view(ticked, "?windows=144")["windows"]) == 144
    assert ticked.operator("GET", "/v1/operator-planning?windows=145").problem == "invalid-input"


def test_planners_add_to_their_window(ticked: Office) -> None:
    windows = ticked.world.index.windows
    (before,) = windows.newest(1)
    part = type(before)(
        before.start, before.end, before.began_at + 5, before.ended_at + 9, planned=7, planners=1
    )
    windows.add(part)
    (after,) = windows.newest(1)
    assert (after.planned, after.planners, after.ticks) == (17, 1, 1)
    assert (after.began_at, after.ended_at) == (before.began_at, before.ended_at + 9)


def test_the_command_shows_findings_and_windows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    tick_twice(desk.office, monkeypatch)
    desk.environment["MINUTE8_OPERATOR_KEY"] = str(desk.office.operator.key)
    printed = desk("planning").out
    assert "failed: 1 groups, shares or items are not planned" in printed
    assert "→ each tick tries groups and shares again" in printed
    assert "2 min before" in printed and "group lunar|full#0, 2026-11-21T03:28:00Z (now): " in printed
    assert len(desk("planning", "--windows", "1", "--json").json["windows"]) == 1


def test_is_not_for_tenants(office: Office) -> None:
    assert office.alice_admin("GET", "/v1/operator-planning").problem == "forbidden"
    assert view(office)["progress"] is None or view(office)["windows"] == []
