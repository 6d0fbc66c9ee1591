"""When a run's age begins, clocks that differ, and the effects of a long outage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.planning.due_entry import DueEntry
from common.planning.plan import plan
from common.runs.records import Outcome
from common.storage import keys
from common.storage.tables import Item, Table
from common.tenants.rules_cache import KnownTenants
from common.timing.instants import DAY_S
from executor.batch import execute_batch
from executor.pipeline import Message
from tests.faults.truth import everything_explained
from tests.worlds import World, at, job


def fails_first(event: Mapping[str, Any]) -> Outcome:
    return Outcome(ok=event["minute8"]["attempt"] > 1, error_type="Boom")


def test_a_run_that_is_caught_up_gets_its_retries_however_old_its_fire_time_is(w: World) -> None:
    w.target.answer = fails_first
    retry = {"base_s": 10, "max_age_s": 3_600}
    w.registry.create("alice", "daily", job(cron="30 3 * * *", catch_up="latest", retry=retry))
    w.run_until("2026-11-21T03:19:00Z")
    w.clock.move_to(at("2026-11-21T09:28:00Z"))
    w.scheduler.tick()
    w.run_until("2026-11-21T09:40:00Z", ticks=True)
    assert w.statuses("alice", "daily") == ["succeeded"]
    assert len(w.target.calls) == 2


def test_a_run_that_is_caught_up_is_not_tried_for_ever(w: World) -> None:
    w.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    retry = {"base_s": 10, "max_age_s": 3_600, "max_attempts": 100}
    w.registry.create("alice", "daily", job(cron="30 3 * * *", catch_up="latest", retry=retry))
    w.run_until("2026-11-21T03:19:00Z")
    w.clock.move_to(at("2026-11-21T09:28:00Z"))
    w.scheduler.tick()
    w.run_until("2026-11-21T13:00:00Z")
    assert w.statuses("alice", "daily") == ["failed"]
    assert max(called_at for called_at, _ in w.target.calls) <= at("2026-11-21T10:28:00Z")


def test_jitter_does_not_use_up_the_age(w: World) -> None:
    w.target.answer = fails_first
    retry = {"base_s": 1, "max_age_s": 10}
    for n in range(5):
        w.registry.create("alice", f"job-{n}", job(cron="20 3 * * *", jitter_s=300, retry=retry))
    w.scheduler.tick()
    w.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert [w.statuses("alice", f"job-{n}") for n in range(5)] == [["succeeded"]] * 5


def test_what_is_planned_again_is_the_same_message(w: World) -> None:
    w.registry.create("alice", "daily", job(cron="30 3 * * *", catch_up="all"))
    stored = w.store.get("alice", "daily")
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


def test_an_executor_whose_clock_is_nine_minutes_ahead_still_makes_the_last_attempt(w: World) -> None:
    w.target.answer = fails_first
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry={"base_s": 20, "max_age_s": 30}))
    w.run_until("2026-11-21T03:15:00Z")
    assert w.statuses("alice", "once") == ["retrying"]
    (_, retry) = w.sqs.bodies
    w.clock.move_to(at("2026-11-21T03:24:30Z"))
    execute_batch(w.executor, [Message("m", retry)])
    assert w.statuses("alice", "once") == ["succeeded"]


def test_a_run_by_hand_is_not_lost_where_the_job_was_made_by_a_clock_nine_minutes_ahead(w: World) -> None:
    w.clock.sleep(540)
    w.registry.create("alice", "report", job(cron="0 9 * * *"))
    w.clock.move_to(w.clock.now() - 540)
    w.manual.run_now("alice", "report", "now")
    w.run_until("2026-11-21T03:40:00Z")
    assert w.statuses("alice", "report") == ["succeeded"]


def test_asked_for_of_a_job_that_was_deleted_and_created_again_it_does_not_run(w: World) -> None:
    w.registry.create("alice", "report", job(cron="0 9 * * *"))
    w.clock.sleep(10)
    execution = w.manual.run_now("alice", "report", "now")
    w.clock.sleep(10)
    w.store.delete("alice", "report")
    w.clock.sleep(10)
    w.registry.create("alice", "report", job(cron="0 9 * * *"))
    w.run_until("2026-11-21T03:40:00Z")
    assert w.statuses("alice", "report") == ["skipped(deleted)"]
    assert execution.execution_id not in w.target.execution_ids


@pytest.mark.parametrize("ahead_s", [0, 540])
def test_who_waits_in_the_queue_keeps_its_place_where_clocks_differ(w: World, ahead_s: int) -> None:
    w.registry.create("alice", "job", job(cron="13,14,15 3 * * *", overlap="queue_one", timeout_s=30))
    first, second, third = (Message(f"m{n}", body) for n, body in enumerate(w.sqs.bodies))

    def others_come(event: Mapping[str, Any]) -> Outcome:
        w.target.answer = lambda event: Outcome(ok=True)
        w.clock.move_to(at("2026-11-21T03:14:00Z"))
        execute_batch(w.executor, [second])
        w.clock.move_to(at("2026-11-21T03:15:00Z") + ahead_s)
        execute_batch(w.executor, [third])
        w.clock.move_to(at("2026-11-21T03:15:01Z"))
        return Outcome(ok=True)

    w.target.answer = others_come
    w.clock.move_to(at("2026-11-21T03:13:00Z"))
    execute_batch(w.executor, [first])
    w.run_until("2026-11-21T03:40:00Z")
    assert "2026-11-21T03:14:00Z" in w.target.fire_times("job")


# Outages


def test_a_one_off_is_recorded_after_a_month_without_a_tick(w: World) -> None:
    w.registry.create("alice", "once", job(at="2026-11-21T05:00:00Z", catch_up="latest"))
    w.registry.create("alice", "lapsed", job(at="2026-11-21T05:00:00Z", catch_up="none"))
    w.clock.move_to(at("2026-12-21T05:08:00Z"))
    _expire(w.table("due"), w.clock.now())
    w.scheduler.tick()
    w.run_until("2026-12-21T05:20:00Z")
    assert w.statuses("alice", "once") == ["succeeded"]
    assert w.statuses("alice", "lapsed") == ["skipped(missed)"]
    everything_explained(w, {("alice", "once"): [at("2026-11-21T05:00:00Z")]})


def _expire(table: Table, now: float) -> None:
    """As DynamoDB's time to live does."""
    for item in table.client.scan(TableName=table.name)["Items"]:
        if float(item.get("expires_at", {"N": "inf"})["N"]) < now:
            table.delete(keys.Key(pk=item["pk"]["S"], sk=item["sk"]["S"]))


def test_a_backfill_is_kept_while_its_runs_go_on(w: World) -> None:
    w.registry.create("alice", "job", job(cron="0 * * * *"))
    start, end = at("2026-11-20T00:00:00Z"), at("2026-11-20T03:00:00Z")
    w.manual.backfills.start("alice", "job", start, end, 1, "again")
    w.clock.sleep(80 * DAY_S)
    w.deliver()
    item = w.table("jobs").get(keys.backfill("alice", "job", "again"))
    assert item
    assert item["expires_at"] > w.clock.now() + 80 * DAY_S


# Reads that lag


class Lagging(Table):
    """Its replicas are behind; only consistent reads see the items."""

    def get(self, key: keys.Key, *, consistent: bool = True) -> Item | None:
        return super().get(key) if consistent else None


def test_a_tenant_that_a_replica_does_not_know_yet_is_asked_for_again(w: World) -> None:
    tenants = w.table("tenants")
    tenants.put({**keys.tenant("alice"), "state": "active", "allowed_targets": ["*"]})
    known = KnownTenants(Lagging(tenants.client, tenants.name))
    assert known.rules("alice", w.clock.now()) is not None
    assert known.rules("nobody", w.clock.now()) is None
