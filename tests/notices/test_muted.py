"""Subscriptions are silent about failures whose error is muted."""

from __future__ import annotations

from common.history.failed_runs import fingerprint
from common.jobs.muted_groups import MutedGroup, MutedGroups, Mutes
from common.runs.outcome import Outcome
from tests.notices.conftest import Stage
from tests.worlds import job


def fails(stage: Stage, error: str) -> None:
    stage.world.target.answer = lambda event: Outcome(
        ok=not error, permanent=True, error_type="Boom", error=error
    )


def mute(stage: Stage, job_id: str = "a", error: str = "no such customer") -> None:
    now = stage.world.clock.now()
    group = MutedGroup("alice", job_id, fingerprint("Boom", error), int(now))
    Mutes(MutedGroups(stage.world.table("jobs")), stage.commit).mute(group, now)


def look(stage: Stage, until: str) -> list[str]:
    """What subscribers have been sent in all, after a round at that time."""
    stage.world.run_until(until, ticks=True)
    stage.round()
    return [text.partition(": ")[2] for text in stage.addresses.texts]


def test_a_muted_failure_is_not_reported_and_another_job_s_is(stage: Stage) -> None:
    for job_id in "ab":
        stage.world.registry.put("alice", job_id, job(cron="*/5 * * * *"))
    fails(stage, "no such customer")
    assert look(stage, "2026-11-21T03:15:10Z") == []
    stage.subscribe()
    mute(stage)
    assert look(stage, "2026-11-21T03:20:10Z") == ["1 job failed (b)."]


def test_a_failure_that_waits_is_dropped_when_it_is_muted(stage: Stage) -> None:
    stage.subscribe(delay_s=600)
    stage.world.registry.put("alice", "a", job(cron="*/5 * * * *"))
    fails(stage, "no such customer")
    assert look(stage, "2026-11-21T03:15:10Z") == []
    assert stage.state().waiting
    mute(stage)
    assert look(stage, "2026-11-21T03:26:10Z") == []
    assert not stage.state().waiting


def test_another_error_is_reported_and_so_is_the_same_after_a_success(stage: Stage) -> None:
    stage.subscribe(kinds=["failures"], group_s=0)
    stage.world.registry.put("alice", "a", job(cron="*/5 * * * *"))
    mute(stage)
    fails(stage, "the disk is full")
    assert look(stage, "2026-11-21T03:15:10Z") == ["1 job failed (a)."]
    fails(stage, "")
    assert look(stage, "2026-11-21T03:20:10Z") == ["1 job failed (a)."]
    fails(stage, "no such customer")
    assert look(stage, "2026-11-21T03:25:10Z") == ["1 job failed (a).", "1 job failed (a)."]


def test_the_recovery_of_a_failure_that_was_reported_before_it_was_muted_is_reported(stage: Stage) -> None:
    stage.subscribe()
    stage.world.registry.put("alice", "a", job(cron="*/5 * * * *"))
    fails(stage, "no such customer")
    assert look(stage, "2026-11-21T03:15:10Z") == ["1 job failed (a)."]
    mute(stage)
    assert look(stage, "2026-11-21T03:20:10Z") == ["1 job failed (a)."]
    fails(stage, "")
    assert look(stage, "2026-11-21T03:25:10Z") == ["1 job failed (a).", "1 job recovered (a)."]
