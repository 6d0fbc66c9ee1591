"""`on_crash`: whether a call whose executor died is made again. Events name the owner and the runbook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.errors import InvalidInput
from common.runs.outcome import Outcome
from tests.worlds import Killed, World, job

LINKS = {"owner": "team-payments", "runbook": "https://wiki.example.com/report"}


def dies_once(world: World) -> None:
    def call(event: Mapping[str, Any]) -> Outcome:
        if len(world.target.calls) == 1:
            raise Killed
        return Outcome(ok=True)

    world.target.answer = call


@pytest.mark.parametrize(("on_crash", "calls", "status"), [("retry", 2, "succeeded"), ("fail", 1, "failed")])
def test_a_crash_during_the_call(world: World, on_crash: str, calls: int, status: str) -> None:
    dies_once(world)
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", on_crash=on_crash))
    world.run_until("2026-11-21T04:15:00Z")
    assert (len(world.target.calls), world.statuses("alice", "once")) == (calls, [status])


def test_at_most_once_says_that_the_outcome_is_unknown(world: World) -> None:
    dies_once(world)
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", on_crash="fail", **LINKS))
    world.run_until("2026-11-21T04:15:00Z")
    (run,) = world.run_items("alice", "once")
    (attempt,) = run["attempts"]
    assert attempt["error_type"] == "ExecutorDied"
    assert "its outcome is unknown; not called again: the job's on_crash is fail" in attempt["error"]
    ((kind, detail),) = world.events
    assert kind == "Run Failed"
    assert {name: detail[name] for name in LINKS} == LINKS


def test_at_most_once_still_retries_what_failed_in_words(world: World) -> None:
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["attempt"] == 2, error_type="Boom")
    world.registry.create(
        "alice", "once", job(at="2026-11-21T03:15:00Z", on_crash="fail", retry={"base_s": 1})
    )
    world.run_until("2026-11-21T03:20:00Z")
    assert world.statuses("alice", "once") == ["succeeded"]


def test_an_event_that_was_handed_over_is_not_handed_over_again(world: World) -> None:
    dies_once(world)
    world.registry.create(
        "alice", "once", job(at="2026-11-21T03:15:00Z", invocation="Event", on_crash="fail")
    )
    world.run_until("2026-11-21T04:15:00Z")
    assert (len(world.target.calls), world.statuses("alice", "once")) == (1, ["dispatched"])


def test_the_error_of_a_waiting_retry_stays_after_the_job_is_rescheduled(world: World) -> None:
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom", error="it went wrong")
    definition = job(at="2026-11-21T03:15:00Z", retry={"base_s": 120}, **LINKS)
    world.registry.create("alice", "once", definition)
    world.run_until("2026-11-21T03:15:30Z")
    world.registry.put("alice", "once", job(cron="0 12 * * *", retry={"base_s": 120}, **LINKS))
    world.run_until("2026-11-21T03:30:00Z")
    (run,) = world.run_items("alice", "once")
    assert run["error_type"] == "rescheduled"
    assert run["error"].endswith("; attempt 1 failed: Boom: it went wrong")
    kind, detail = world.events[-1]
    assert (kind, detail["error"], detail["owner"]) == ("Run Failed", run["error"], LINKS["owner"])


@pytest.mark.parametrize("link", ["javascript:alert(1)", "wiki.example.com", "https://a b", "https://"])
def test_a_runbook_is_a_web_address(world: World, link: str) -> None:
    with pytest.raises(InvalidInput, match=r"runbook: .*accepted: an http or https URL"):
        world.registry.create("alice", "once", job(cron="* * * * *", runbook=link))
