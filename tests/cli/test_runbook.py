"""Pages of the runbook whose faults a world in memory can have, followed command by command."""

from __future__ import annotations

import shlex
from string import Template

import pytest

from common.planning.execution import Execution
from common.storage import aws
from tests.cli.conftest import Desk
from tests.runbook.pages import commands
from tests.worlds import at, job


def follow(desk: Desk, page: str, *parts: str, **variables: str) -> str:
    """Run the commands of a page, agree to what they ask, and return all that they print."""
    printed = ""
    for command in commands(page, "prod", *parts):
        program, *words = shlex.split(Template(command).substitute(variables))
        if program == "minute8":
            done = desk(*words, stdin="y\n" * 9)
            assert done.code == 0, f"$ {command}\n{done.out}{done.err}"
            printed += done.out
    return printed


def test_a_weekend_with_a_clock_change(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/night", job(cron="30 2 * * *", timezone="Europe/Paris"))
    assert "night" in follow(desk, "clock-change", "First look")
    follow(desk, "clock-change", "Fix", JOB="night")
    listed, _, _ = follow(desk, "clock-change", "Verify", JOB="night").partition("IN ")
    assert "night" not in listed


def test_a_release_of_tzdata(desk: Desk) -> None:
    """The release before the present one had other rules for Havana."""
    desk.office.alice("PUT", "/v1/jobs/south", job(cron="0 9 * * *", timezone="America/Havana"))
    assert "south" in follow(desk, "tzdata-release", "Verify")


def test_executions_without_a_record(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    w, due_at = desk.office.world, at("2026-11-21T03:20:00Z")
    desk.environment |= {"MINUTE8_STAGE": "test", "EXECUTIONS_QUEUE_URL": "queue"}
    monkeypatch.setattr(aws, "sqs", lambda: w.sqs)
    w.registry.create("alice", "lost", job(at="2026-11-21T03:20:00Z", start_deadline_s=3_600))
    w.sqs._waiting.clear()
    w.reconciler.unrecorded.add([Execution("alice", "lost", due_at, due_at, 1)], due_at + 1_500)
    w.clock.move_to(due_at + 1_500)
    printed = follow(desk, "no-record", "First look", "Fix")
    assert "alice:lost:" in printed and "1 executions are in the queue again" in printed
    w.deliver()
    assert w.target.fire_times("lost") == ["2026-11-21T03:20:00Z"]
    assert follow(desk, "no-record", "Verify") == "every planned execution has a record\n"
