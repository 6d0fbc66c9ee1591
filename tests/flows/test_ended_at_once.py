"""Cancel, delete and `runs end` end a record at once. A permit goes with it, or stays as long as the work can go on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from common.errors import NotFound
from common.runs.outcome import Outcome
from common.storage import keys
from tests.worlds import World, at, job

OK = Outcome(ok=True)
NO_ANSWER = Outcome(ok=False, error_type="TimedOut", error="no answer within 3 s", unanswered=True)
WEEK_S = 7 * 86_400


def minutely(world: World, **fields: Any) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", **fields))


def accepted_and_dead(world: World, **fields: Any) -> str:
    """The run of 3:13 waits a week for a worker that has died."""
    minutely(world, completion="callback", callback_timeout_s=WEEK_S, **fields)
    world.run_until("2026-11-21T03:14:30Z")
    assert world.statuses("alice", "job")[0] == "running"
    return "alice:job:" + world.run_items("alice", "job")[0]["sk"]


def permits_of(world: World, key: keys.Key) -> dict[str, Any]:
    return dict((world.table("runs").get(key) or {}).get("holders", {}))


LOCK = keys.overlap_permit("alice", "job")
CRM = keys.key_permits("alice", "crm")


def test_a_cancelled_run_whose_worker_died_locks_nothing(world: World) -> None:
    name = accepted_and_dead(world, overlap="skip")
    assert world.statuses("alice", "job") == ["running", "skipped(overlap)"]
    world.manual.cancel("alice", name, "its worker died")
    assert world.statuses("alice", "job")[0] == "failed"
    world.deliver()
    assert permits_of(world, LOCK) == {}
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job")[-1] == "running"


@pytest.mark.parametrize("limits", [{"overlap": "skip"}, {"concurrency": {"key": "crm", "limit": 1}}])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_job_that_is_deleted_and_created_again_is_not_locked(
    world: World, limits: dict[str, Any], is_killed: bool
) -> None:
    accepted_and_dead(world, **limits)
    world.store.delete("alice", "job")
    if is_killed:  # before it sent the messages
        world.sqs._waiting.clear()
    world.clock.sleep(5)
    if not is_killed:
        world.deliver()
        assert world.run_items("alice", "job")[0]["status"] == "failed"
        assert permits_of(world, LOCK) == permits_of(world, CRM) == {}
    if is_killed and "concurrency" in limits:
        return  # its lease ends it
    minutely(world, **limits)
    world.run_until("2026-11-21T03:16:30Z")
    assert world.statuses("alice", "job")[-1] == "succeeded"


def test_the_call_of_a_deleted_job_keeps_its_permit_of_a_key_until_it_ends(world: World) -> None:
    seen: list[Any] = []

    def deletes(event: Mapping[str, Any]) -> Outcome:
        world.store.delete("alice", "job")
        world.deliver()
        seen.append((world.statuses("alice", "job"), len(permits_of(world, CRM))))
        return OK

    world.target.answer = deletes
    world.registry.create(
        "alice", "job", job(at="2026-11-21T03:15:00Z", concurrency={"key": "crm", "limit": 1})
    )
    world.run_until("2026-11-21T03:15:00Z")
    assert seen == [(["failed"], 1)]
    assert permits_of(world, CRM) == {}
    assert world.run_items("alice", "job")[0]["attempts"][0]["error_type"] == "deleted"
    assert world.events == []


def test_a_call_that_is_cancelled_keeps_its_permit_until_it_ends(world: World) -> None:
    seen: list[Any] = []

    def cancels(event: Mapping[str, Any]) -> Outcome:
        world.manual.cancel("alice", event["minute8"]["execution_id"], "wrong file")
        world.deliver()
        seen.append((world.statuses("alice", "job"), len(permits_of(world, LOCK))))
        return OK

    world.target.answer = cancels
    world.registry.create("alice", "job", job(at="2026-11-21T03:15:00Z", overlap="skip"))
    world.run_until("2026-11-21T03:15:00Z")
    assert seen == [(["failed"], 1)]
    assert permits_of(world, LOCK) == {}
    (run,) = world.run_items("alice", "job")
    assert run["attempts"][0]["error"] == "stopped by hand: wrong file"
    assert run["work_until"] == pytest.approx(at("2026-11-21T03:30:15Z"), abs=2)


def test_one_at_a_time_also_after_a_timeout(world: World) -> None:
    """The function goes on for 12 s; nobody is told when it ends, so its own timeout counts."""
    world.target.answer = lambda event: NO_ANSWER
    minutely(world, overlap="skip", timeout_s=3, retry={"max_attempts": 3, "base_s": 1, "max_age_s": 86_400})
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    calls = [called_at for called_at, _ in world.target.calls]
    assert len(calls) >= 3
    assert all(after - before >= 900 for before, after in pairwise(calls))
    first = world.run_items("alice", "job")[0]
    assert first["attempts"][0]["error_type"] == "TimedOut"


def test_after_the_last_attempts_timeout_others_wait_for_its_work(world: World) -> None:
    world.target.answer = lambda event: NO_ANSWER
    minutely(world, overlap="queue_one", timeout_s=3, retry={"max_attempts": 1})
    world.run_until("2026-11-21T03:13:30Z")
    assert world.statuses("alice", "job") == ["failed"]
    world.target.answer = lambda event: OK
    world.run_until("2026-11-21T03:28:10Z", ticks=True)
    assert world.statuses("alice", "job")[:2] == ["failed", "queued"]
    world.run_until("2026-11-21T03:28:30Z", ticks=True)
    assert world.statuses("alice", "job")[:2] == ["failed", "succeeded"]


def test_without_limits_a_retry_waits_for_nothing(world: World) -> None:
    world.target.answer = lambda event: NO_ANSWER
    world.registry.create(
        "alice", "job", job(at="2026-11-21T03:15:00Z", timeout_s=3, retry={"max_attempts": 2, "base_s": 1})
    )
    world.run_until("2026-11-21T03:15:10Z")
    assert world.statuses("alice", "job") == ["failed"]
    assert len(world.target.calls) == 2


def test_an_end_by_force_frees_what_a_run_has_and_says_so(world: World) -> None:
    world.target.answer = lambda event: NO_ANSWER
    minutely(
        world, overlap="skip", timeout_s=3, retry={"max_attempts": 1}, concurrency={"key": "crm", "limit": 1}
    )
    world.run_until("2026-11-21T03:14:30Z")
    assert world.statuses("alice", "job") == ["failed", "queued"]
    name = "alice:job:" + world.run_items("alice", "job")[0]["sk"]
    done = world.manual.end("alice", name, "I looked")
    assert (done.was_open, done.freed) == (False, ["overlap", "concurrency key crm"])
    assert permits_of(world, LOCK) == permits_of(world, CRM) == {}
    again = world.manual.end("alice", name, "again")
    assert (again.was_open, again.freed) == (False, [])
    world.target.answer = lambda event: OK
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job")[-1] == "succeeded"
    with pytest.raises(NotFound):
        world.manual.end("alice", "alice:job:20261121T040000Z", "")


def test_an_end_by_force_ends_a_run_that_goes_on(world: World) -> None:
    name = accepted_and_dead(world, overlap="queue_one")
    assert world.statuses("alice", "job") == ["running", "queued"]
    done = world.manual.end("alice", name, "")
    assert (done.was_open, done.freed) == (True, ["overlap"])
    world.deliver()
    assert world.statuses("alice", "job") == ["failed", "running"]


def test_an_endpoint_that_hangs_locks_its_job_for_a_minute_after_its_timeout(world: World) -> None:
    """Nobody tells what becomes of its work; most servers give up within a minute."""
    world.target.answer = lambda event: NO_ANSWER
    target = {"kind": "http", "url": "https://example.com/slow"}
    definition = job(cron="* * * * *", overlap="skip", timeout_s=3, retry={"max_attempts": 1})
    world.registry.create("alice", "job", {**definition, "target": target})
    world.run_until("2026-11-21T03:28:30Z", ticks=True)
    calls = [called_at - at("2026-11-21T03:13:00Z") for called_at, _ in world.target.calls]
    assert calls == [120 * n for n in range(8)]
    assert world.run_items("alice", "job")[0]["work_until"] == at("2026-11-21T03:14:03Z")
