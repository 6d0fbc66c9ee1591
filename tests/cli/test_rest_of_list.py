"""A list that is cut says so, and how to list more."""

from __future__ import annotations

import shlex
from functools import partial

import pytest

from common.clock import CpuBudget
from common.history.next_fires import Fires
from executor.targets import Outcome
from minute8.cli.rest_of_list import with_option
from tests.cli.conftest import Desk
from tests.worlds import job


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("runs list", "minute8 runs list --limit 200"),
        ("runs list -n 20 report", "minute8 runs list report --limit 200"),
        ("runs list -n20", "minute8 runs list --limit 200"),
        ("runs list --limit=20 --json", "minute8 runs list --json --limit 200"),
        ("--profile prod runs list --limit 20", "minute8 --profile prod runs list --limit 200"),
        ("--key m8_secret runs list", "minute8 runs list --limit 200"),
        ("--key=m8_secret runs list", "minute8 runs list --limit 200"),
        ("audit --subject 'a b'", "minute8 audit --subject 'a b' --limit 200"),
    ],
)
def test_the_command_that_lists_more(words: str, command: str) -> None:
    assert with_option(shlex.split(words), "--limit", "200", "-n") == command


@pytest.mark.parametrize(
    "words",
    [
        "runs list",
        "runs list a",
        "failures",
        "failures --groups",
        "upcoming",
        "audit",
        "expected a",
        "expected",
        "jobs list",
        "jobs list --no-health --sort name",
        "jobs list --json",
    ],
)
def test_each_list_that_is_cut_says_so_and_its_command_lists_more(desk: Desk, words: str) -> None:
    office = desk.office
    office.world.target.answer = lambda event: Outcome(
        ok=False, permanent=True, error_type=event["minute8"]["job_id"], error="wrong"
    )
    for name in ("a", "b", "c"):
        office.alice("PUT", f"/v1/jobs/{name}", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:15:30Z", ticks=True)
    desk.environment["MINUTE8_KEY"] = office.alice_admin.key or ""
    cut = desk(*words.split(), "--limit", "1")
    ((text, command),) = [line.rsplit(": ", 1) for line in cut.err.splitlines()]
    assert text.startswith("minute8: there are ") and "more" in text
    assert command == f"minute8 {words} --limit 10"
    more = desk(*shlex.split(command)[1:])
    assert len(more.out.splitlines()) > len(cut.out.splitlines())
    enough = desk(*words.split(), "--limit", "10000")
    assert enough.err == ""


def test_a_density_of_some_jobs_says_how_to_read_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("common.planning.platform_density.CpuBudget", partial(CpuBudget, 0))
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    for name in ("a", "b", "c"):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 * * * *"))
    for words in ("density --platform", "density --platform --json"):
        part = desk(*words.split(), "--most", "1")
        assert part.err == f"minute8: there are more jobs: minute8 {words} --most 10\n"
        assert desk(*words.split(), "--most", "10").err == ""


def test_what_is_of_some_jobs_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 * * * *"))
    monkeypatch.setattr(Fires, "of", partial(Fires.of, cpu_s=0))
    assert "0+ executions of 0+ jobs" in desk("density").out
    assert desk("upcoming").err == "minute8: these are of 0 jobs; there was no time for more\n"
