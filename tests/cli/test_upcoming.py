"""`minute8 upcoming`, `density` and `clock-changes` at a terminal."""

from __future__ import annotations

from tests.cli.conftest import Desk
from tests.worlds import job


def test_upcoming_lists_the_next_executions(desk: Desk) -> None:
    for n in range(12):
        desk.office.alice("PUT", f"/v1/jobs/daily-{n:02}", job(cron="0 4 * * *"))
    desk.office.alice("PUT", "/v1/jobs/paris", job(cron="30 2 * * *", timezone="Europe/Paris"))
    lines = desk("upcoming", "-n", "3").out.splitlines()
    assert len(lines) == 4
    assert lines[1].split() == ["2026-11-21T04:00:00Z", "in", "48", "min", "daily-00"]
    shown = desk("density").out
    assert "13 executions of 13 jobs" in shown
    assert "daily-00: cron H 4 * * *" in shown
    assert desk("density", "--within", "1h", "--json").json["executions"] == 12
    assert "it fires once" in desk("clock-changes").out
    assert "PACE" not in shown
    for n in range(3):
        pace = {"per_second": 1, "tolerance_s": 1, "key": "crm"}
        desk.office.alice("PUT", f"/v1/jobs/crm-{n}", job(cron="0 5 * * *", pace=pace))
    assert desk("density").out.splitlines()[-1].split() == ["crm", "1", "3", "1", "1", "1"]
    for command in ("density", "upcoming"):
        far = desk(command, "--within", "3d")
        assert far.code == 2
        assert "--within: is too far ahead" in far.err and "at most 2d" in far.err
    assert "accepted: a duration such as 90m or 24h" in desk("density", "--within", "soon").err
    second, *_ = desk("density", "--minute", "2026-11-21T05:00Z").out.splitlines()[2:]
    assert second.split()[0] == "2026-11-21T05:00:00Z" and second.endswith("crm-0, crm-1, crm-2")
    assert desk("density", "--minute", "48m", "--json").json["executions"] == 12
    refused = desk("density", "--platform")
    assert refused.code == 5 and "operator key" in refused.err
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    assert "tenant alice: 16" in desk("density", "--platform", "--within", "1d").out
    of_minute = desk("density", "--platform", "--minute", "2026-11-21T05:00Z").out.splitlines()
    header, second = next((row, of_minute[n + 1]) for n, row in enumerate(of_minute) if "SECOND" in row)
    assert header.split() == ["SECOND", "DUE"]
    assert (second.split()[0], second.split()[-1]) == ("2026-11-21T05:00:00Z", "3")
