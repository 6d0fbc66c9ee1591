"""Failures in a row: published, counted, ended by a success; they pause the job if it asks for that."""

from __future__ import annotations

import pytest
from msgspec import structs

from common.jobs.job import Job
from common.runs.outcome import Outcome
from tests.worlds import World, job, with_spec

FAILS = Outcome(ok=False, permanent=True, error_type="Boom", error="it went wrong")
WORKS = Outcome(ok=True)


def published(world: World, *kinds: str) -> list[str]:
    return [kind for kind, _ in world.events if not kinds or kind in kinds]


def test_a_failed_run_is_published_with_its_error(world: World) -> None:
    world.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z"))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:14:00Z")
    ((kind, detail),) = world.events
    assert kind == "Run Failed"
    assert detail["execution_id"] == "alice:job:20261121T031300Z"
    assert (detail["error_type"], detail["error"]) == ("Boom", "it went wrong")


def test_a_success_after_failures_is_published_once(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:14:30Z")
    world.target.answer = lambda event: WORKS
    world.run_until("2026-11-21T03:16:30Z")
    assert published(world) == ["Run Failed", "Run Failed", "Run Recovered"]
    assert world.events[-1][1]["failures_in_row"] == 2
    assert world.store.get("alice", "job").failures_in_row == 0


def test_after_n_failures_in_a_row_the_job_is_paused_and_an_event_published(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", pause_after_failures=3))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:17:30Z")
    paused = world.store.get("alice", "job")
    assert (paused.state, paused.note) == ("paused", "paused after 3 failed runs in a row")
    assert world.statuses("alice", "job") == ["failed"] * 3 + ["skipped(paused)"] * 2
    assert published(world, "Job Paused") == ["Job Paused"]


def test_resumed_the_count_starts_anew(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", pause_after_failures=2))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:14:30Z")
    world.store.resume("alice", "job")
    world.run_until("2026-11-21T03:15:30Z")
    assert world.store.get("alice", "job").state == "active"
    world.run_until("2026-11-21T03:16:30Z")
    assert world.store.get("alice", "job").state == "paused"


@pytest.mark.parametrize("change", ["pause", "resume", "put", "patch"])
def test_a_change_of_the_job_starts_the_count_anew(world: World, change: str) -> None:
    definition = job(cron="* * * * *", pause_after_failures=2)
    world.registry.create("alice", "job", definition)
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:13:30Z")
    assert world.store.get("alice", "job").failures_in_row == 1
    if change == "put":
        world.registry.put("alice", "job", definition | {"name": "Renamed"})
    elif change == "patch":
        world.registry.patch("alice", "job", {"name": "Renamed"})
    else:
        world.store.pause("alice", "job")
        if change == "resume":
            world.store.resume("alice", "job")
    assert world.store.get("alice", "job").failures_in_row == 0


def test_the_store_starts_the_count_anew_whatever_the_change_keeps(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", pause_after_failures=3))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:14:30Z")
    failing = world.store.get("alice", "job")
    assert failing.failures_in_row == 2
    assert Job.from_item(failing.to_item()) == failing
    kept = structs.replace(with_spec(failing, name="Renamed"), revision=failing.revision + 1)
    changed = world.store.change("alice", "job", lambda old, now: kept)
    assert (changed.spec.name, changed.failures_in_row) == ("Renamed", 0)
    assert world.store.get("alice", "job") == changed


def test_a_success_in_between_ends_the_row(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", pause_after_failures=2))
    for minute, outcome in ((13, FAILS), (14, WORKS), (15, FAILS)):
        world.target.answer = lambda event, outcome=outcome: outcome  # type: ignore[misc]
        world.run_until(f"2026-11-21T03:{minute}:30Z")
    assert world.store.get("alice", "job").state == "active"


def test_a_skipped_run_is_published_with_its_reason(world: World) -> None:
    world.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z"))
    world.store.pause("alice", "job", "enough")
    world.run_until("2026-11-21T03:14:00Z")
    ((kind, detail),) = world.events
    assert (kind, detail["reason"], "enough" in detail["detail"]) == ("Run Skipped", "paused", True)
