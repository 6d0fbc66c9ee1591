"""When a run's age begins, clocks that differ, and the effects of a long outage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.planning.due_entry import DueEntry
from common.planning.plan import plan
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item
from common.tenants.rules_cache import KnownTenants
from common.timing.instants import DAY_S
from executor.batch import execute_batch
from executor.pipeline import Message
from tests.faults.truth import everything_explained
from tests.worlds import World, at, job


def fails_first(event: Mapping[str, Any]) -> Outcome:
    return Outcome(ok=event["minute8"]["attempt"] > 1, error_type="Boom")


def test_a_run_that_is_caught_up_gets_its_retries_however_old_its_fire_time_is(world: World) -> None:
    world.target.answer = fails_first
    retry = {"base_s": 10, "max_age_s": 3_600}
    world.registry.create("alice", "daily", job(cron="30 3 * * *", catch_up="latest", retry=retry))
    world.run_until("2026-11-21T03:19:00Z")
    world.clock.move_to(at("2026-11-21T09:28:00Z"))
    world.scheduler.tick()
    world.run_until("2026-11-21T09:40:00Z", ticks=True)
    assert world.statuses("alice", "daily") == ["succeeded"]
    assert len(world.target.calls) == 2


def test_a_run_that_is_caught_up_is_not_tried_for_ever(world: World) -> None:
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    retry = {"base_s": 10, "max_age_s": 3_600, "max_attempts": 100}
    world.registry.create("alice", "daily", job(cron="30 3 * * *", catch_up="latest", retry=retry))
    world.run_until("2026-11-21T03:19:00Z")
    world.clock.move_to(at("2026-11-21T09:28:00Z"))
    world.scheduler.tick()
    world.run_until("2026-11-21T13:00:00Z")
    assert world.statuses("alice", "daily") == ["failed"]
    assert max(called_at for called_at, _ in world.target.calls) <= at("2026-11-21T10:28:00Z")


def test_jitter_does_not_use_up_the_age(world: World) -> None:
    world.target.answer = fails_first
    retry = {"base_s": 1, "max_age_s": 10}
    for n in range(5):
        world.registry.create("alice", f"job-{n}", job(cron="20 3 * * *", jitter_s=300, retry=retry))
    world.scheduler.tick()
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert [world.statuses("alice", f"job-{n}") for n in range(5)] == [["succeeded"]] * 5


def test_an_execution_that_is_planned_again_is_the_same_message(world: World) -> None:
    world.registry.create("alice", "daily", job(cron="30 3 * * *", catch_up="all"))
    stored = world.store.get("alice", "daily")
    entry = DueEntry("alice", "daily", stored.schedule, stored.effective_at, 1, "all")
    start, end, decided_at = (
        at("2026-11-21T03:20:00Z"),
        at("2026-11-21T09:40:00Z"),
        at("2026-11-21T09:28:00Z"),
    )
    first = plan(entry, start, end, decided_at)
    assert first == plan(entry, start, end, decided_at)
    assert [execution.first_due_at for execution in first.executions] == [decided_at]


# Clocks


def test_an_executor_whose_clock_is_nine_minutes_ahead_still_makes_the_last_attempt(world: World) -> None:
    world.target.answer = fails_first
    world.registry.create(
        "alice", "once", job(at="2026-11-21T03:15:00Z", retry={"base_s": 20, "max_age_s": 30})
    )
    world.run_until("2026-11-21T03:15:00Z")
    assert world.statuses("alice", "once") == ["retrying"]
    (_, retry) = world.sqs.bodies
    world.clock.move_to(at("2026-11-21T03:24:30Z"))
    execute_batch(world.executor, [Message("m", retry)])
    assert world.statuses("alice", "once") == ["succeeded"]


def test_a_run_by_hand_is_not_lost_where_the_job_was_made_by_a_clock_nine_minutes_ahead(world: World) -> None:
    world.clock.sleep(540)
    world.registry.create("alice", "report", job(cron="0 9 * * *"))
    world.clock.move_to(world.clock.now() - 540)
    world.manual.run_now("alice", "report", "now")
    world.run_until("2026-11-21T03:40:00Z")
    assert world.statuses("alice", "report") == ["succeeded"]


def test_a_manual_run_of_a_deleted_job_does_not_run_the_job_created_again(world: World) -> None:
    world.registry.create("alice", "report", job(cron="0 9 * * *"))
    world.clock.sleep(10)
    execution = world.manual.run_now("alice", "report", "now")
    world.clock.sleep(10)
    world.store.delete("alice", "report")
    world.clock.sleep(10)
    world.registry.create("alice", "report", job(cron="0 9 * * *"))
    world.run_until("2026-11-21T03:40:00Z")
    assert world.statuses("alice", "report") == ["skipped(deleted)"]
    assert execution.execution_id not in world.target.execution_ids


@pytest.mark.parametrize("ahead_s", [0, 540])
def test_a_queued_run_keeps_its_place_where_clocks_differ(world: World, ahead_s: int) -> None:
    world.registry.create("alice", "job", job(cron="13,14,15 3 * * *", overlap="queue_one", timeout_s=30))
    first, second, third = (Message(f"m{n}", body) for n, body in enumerate(world.sqs.bodies))

    def others_come(event: Mapping[str, Any]) -> Outcome:
        world.target.answer = lambda event: Outcome(ok=True)
        world.clock.move_to(at("2026-11-21T03:14:00Z"))
        execute_batch(world.executor, [second])
        world.clock.move_to(at("2026-11-21T03:15:00Z") + ahead_s)
        execute_batch(world.executor, [third])
        world.clock.move_to(at("2026-11-21T03:15:01Z"))
        return Outcome(ok=True)

    world.target.answer = others_come
    world.clock.move_to(at("2026-11-21T03:13:00Z"))
    execute_batch(world.executor, [first])
    world.run_until("2026-11-21T03:40:00Z")
    assert "2026-11-21T03:14:00Z" in world.target.fire_times("job")


# Outages


def test_a_one_off_is_recorded_after_a_month_without_a_tick(world: World) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T05:00:00Z", catch_up="latest"))
    world.registry.create("alice", "lapsed", job(at="2026-11-21T05:00:00Z", catch_up="none"))
    world.clock.move_to(at("2026-12-21T05:08:00Z"))
    _expire(world.table("due"), world.clock.now())
    world.scheduler.tick()
    world.run_until("2026-12-21T05:20:00Z")
    assert world.statuses("alice", "once") == ["succeeded"]
    assert world.statuses("alice", "lapsed") == ["skipped(missed)"]
    everything_explained(world, {("alice", "once"): [at("2026-11-21T05:00:00Z")]})


def _expire(table: Table, now: float) -> None:
    """As DynamoDB's time to live does."""
    for item in table.client.scan(TableName=table.name)["Items"]:
        if float(item.get("expires_at", {"N": "inf"})["N"]) < now:
            table.delete(keys.Key(pk=item["pk"]["S"], sk=item["sk"]["S"]))


def test_a_backfill_is_kept_while_its_runs_go_on(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 * * * *"))
    start, end = at("2026-11-20T00:00:00Z"), at("2026-11-20T03:00:00Z")
    world.manual.backfills.start("alice", "job", start, end, 1, "again")
    world.clock.sleep(80 * DAY_S)
    world.deliver()
    item = world.table("jobs").get(keys.backfill("alice", "job", "again"))
    assert item
    assert item["expires_at"] > world.clock.now() + 80 * DAY_S


# Reads that lag


class Lagging(Table):
    """Its replicas are behind; only consistent reads see the items."""

    def get(self, key: keys.Key, *, consistent: bool = True) -> Item | None:
        return super().get(key) if consistent else None


def test_a_tenant_that_a_replica_does_not_know_yet_is_read_again(world: World) -> None:
    tenants = world.table("tenants")
    tenants.put({**keys.tenant("alice"), "state": "active", "allowed_targets": ["*"]})
    known = KnownTenants(Lagging(tenants.client, tenants.name))
    assert known.rules("alice", world.clock.now()) is not None
    assert known.rules("nobody", world.clock.now()) is None
