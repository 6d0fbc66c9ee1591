"""What a person asks for beside the job: another payload for one run, fire times to skip, a backfill to end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from common.errors import Conflict
from common.runs.outcome import Outcome
from common.storage import keys
from common.tenants.audit import Audit
from tests.worlds import World, at, job

START, END = at("2026-11-21T00:00:00Z"), at("2026-11-21T03:00:00Z")


def payloads(world: World) -> list[Any]:
    seen: list[Any] = []

    def call(event: Mapping[str, Any]) -> Outcome:
        seen.append(json.loads(event["payload"]))
        return Outcome(ok=event["minute8"]["attempt"] > 1, error_type="Boom")

    world.target.answer = call
    return seen


def test_a_payload_is_for_one_run_and_all_its_attempts(world: World) -> None:
    seen = payloads(world)
    world.registry.create("alice", "job", job(cron="0 12 * * *", payload="usual", retry={"base_s": 1}))
    once = world.manual.run_now("alice", "job", "abc", json.dumps({"day": "{{fire_date}}"}))
    world.run_until("2026-11-21T03:14:00Z")
    world.manual.run_now("alice", "job", "other")
    world.run_until("2026-11-21T03:16:00Z")
    assert seen == [{"day": "2026-11-21"}] * 2 + ["usual"] * 2
    assert once.execution_id.endswith(":p-abc")
    assert world.statuses("alice", "job") == ["succeeded", "succeeded"]


def test_a_payload_of_null_is_not_the_jobs(world: World) -> None:
    seen = payloads(world)
    world.registry.create("alice", "job", job(cron="0 12 * * *", payload="usual", retry={"max_attempts": 1}))
    world.manual.run_now("alice", "job", "abc", "null")
    world.deliver()
    assert seen == [None]


def test_the_same_nonce_with_another_payload_is_refused(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *"))
    first = world.manual.run_now("alice", "job", "abc", "1")
    assert world.manual.run_now("alice", "job", "abc", "1") == first
    for other in ("2", None):
        with pytest.raises(Conflict, match="another payload"):
            world.manual.run_now("alice", "job", "abc", other)
    world.deliver()
    assert len(world.target.calls) == 1


def test_a_nonce_whose_time_nobody_can_read_starts_no_second_run(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *"))
    world.manual.run_now("alice", "job", "abc", None)
    request = keys.asked_by_hand("alice", "job", "abc")
    world.table("jobs").put({**(world.table("jobs").get(request) or {}), "fire_at": ["soon"]})
    with pytest.raises(Conflict, match="nobody can read when"):
        world.manual.run_now("alice", "job", "abc", None)


def test_a_run_without_its_payload_is_not_made_with_the_jobs(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *", payload="usual"))
    world.manual.run_now("alice", "job", "abc", "1")
    world.table("jobs").delete(keys.asked_by_hand("alice", "job", "abc"))
    world.deliver()
    assert (world.statuses("alice", "job"), world.target.calls) == (["skipped(invalid)"], [])


def test_the_next_fire_times_are_skipped_and_the_job_goes_on(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *", jitter_s=5))
    for _ in range(2):  # again: the same ones
        skipped = world.manual.skip_next("alice", "job", 2, "maintenance")
        assert [execution.fire_at for execution in skipped] == [
            at("2026-11-21T03:13:00Z"),
            at("2026-11-21T03:14:00Z"),
        ]
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job") == ["skipped(cancelled)", "skipped(cancelled)", "succeeded"]
    assert world.run_items("alice", "job")[0]["detail"] == "cancelled by hand: maintenance"
    actions = sorted(entry.action for entry in Audit(world.table("tenants")).newest("alice", 100))
    assert actions == ["job.created", "run.cancelled", "run.cancelled"]


def test_skipping_heeds_calendars_and_wants_something_to_skip(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *", exclude={"dates": ["2026-11-21"]}))
    (skipped,) = world.manual.skip_next("alice", "job", 1, "")
    assert skipped.fire_at == at("2026-11-22T12:00:00Z")
    world.store.pause("alice", "job")
    with pytest.raises(Conflict, match="is paused, so there is nothing to skip"):
        world.manual.skip_next("alice", "job", 1, "")
    world.registry.create("alice", "over", job(cron="0 12 * * *", end_at="2026-11-21T04:00:00Z"))
    with pytest.raises(Conflict, match="never fires again"):
        world.manual.skip_next("alice", "over", 1, "")


def test_a_cancelled_backfill_starts_nothing_more(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/10 * * * *", retry={"max_attempts": 1}))
    world.manual.backfills.start("alice", "job", START, END, 3, "x")
    first = world.sqs.receive()
    assert first
    world.deliver_one(first)  # its end enqueues the fourth
    for _ in range(2):
        cancelled = world.manual.backfills.cancel("alice", "job", "x", "wrong range")
        assert cancelled.cancelled_at == int(world.clock.now())
    world.deliver()
    assert len(world.target.calls) == 1
    assert world.statuses("alice", "job") == ["succeeded"] + ["skipped(cancelled)"] * 3
    entries = [
        entry for entry in Audit(world.table("tenants")).newest("alice", 100) if "cancelled" in entry.action
    ]
    assert [(entry.action, entry.after) for entry in entries] == [
        ("job.backfill_cancelled", {"backfill_id": "x", "note": "wrong range"})
    ]


def test_a_run_that_waits_for_its_next_attempt_ends_with_its_backfill(world: World) -> None:
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom", error="no")
    world.registry.create("alice", "job", job(cron="*/10 * * * *", retry={"base_s": 60}))
    world.manual.backfills.start("alice", "job", START, END, 1, "x")
    world.deliver()
    world.manual.backfills.cancel("alice", "job", "x", "")
    world.run_until("2026-11-21T03:30:00Z")
    (run,) = world.run_items("alice", "job")
    assert (run["status"], run["error_type"], len(world.target.calls)) == ("failed", "cancelled", 1)
    assert run["error"].endswith("attempt 1 failed: Boom: no")
