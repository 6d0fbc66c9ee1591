"""`minute8 expected` at a terminal."""

from __future__ import annotations

from tests.cli.conftest import Desk
from tests.worlds import at, job


def test_expected_shows_overdue_and_coming_instants(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:16:10Z")
    desk.office.world.clock.move_to(at("2026-11-21T03:20:00Z"))
    span = ("--since", "1h", "--until", "2026-11-21T03:30:00Z")
    shown = desk("expected", "minutely", *span, "--problems")
    assert shown.code == 0
    assert "on time 4, overdue 3, to come 10" in shown.out
    assert "2026-11-21T03:17:00Z" in shown.out
    assert "late by 3 min" in shown.out
    assert "alice:minutely" not in shown.out
    fine = desk("expected", "minutely", "--since", "1h", "--until", "2026-11-21T03:16:00Z", "--problems")
    assert fine.out.splitlines() == ["on time 3", "no problems"]
    answer = desk("expected", *span, "--limit", "2", "--json").json
    assert answer["counts"] == {"on_time": 4, "to_come": 10, "overdue": 3}
    assert [fire["status"] for fire in answer["expected"]] == ["on_time", "on_time"]
    assert desk("expected", "nothing").code == 3
