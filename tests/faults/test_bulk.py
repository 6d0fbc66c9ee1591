"""A bulk request with a fault at each of its calls, and beside other requests: repeated, it is done exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from common.jobs.ledger import TenantLedger
from common.platform.tenants import Tenants
from common.registration import bulk
from common.registration.bulk import Line, LineOutcome
from common.tenants.rules_cache import KnownTenants
from tests.faults.interleaving import anywhere, play, some_orders
from tests.faults.stage import Stage, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, NOW = "2026-11-21T03:12:00Z", "2026-11-21T03:20:10Z"
LAST_TICK, END = "2026-11-21T03:28:30Z", "2026-11-21T03:45:00Z"
# One is new, one changes its group, one is unchanged, one is not due in the planned window.
DEFINITIONS = {
    "new": job(cron="1-59/8 * * * *", invocation="Event"),
    "moved": job(cron="5-59/8 * * * *", invocation="Event"),
    "same": job(cron="*/8 * * * *", invocation="Event"),
    "far": job(cron="0 12 * * *", invocation="Event"),
}
LINES = [
    Line(n, partial(dict, text, job_id=job_id)) for n, (job_id, text) in enumerate(DEFINITIONS.items(), 1)
]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """3:20:10, planned up to 3:30; two jobs in a transaction; alice's quota is counted."""
    monkeypatch.setattr(bulk, "MAX_AT_ONCE", 2)
    with staged(BEGIN) as stage:
        world = stage.world
        table = world.table("tenants")
        Tenants(table).create("alice", "", world.clock.now(), {"allowed_targets": ["*"]})
        counting = replace(world.store, ledger=TenantLedger(table, KnownTenants(table)))
        world.registry = replace(world.registry, store=counting)
        world.registry.create("alice", "moved", DEFINITIONS["same"])
        world.registry.create("alice", "same", DEFINITIONS["same"])
        world.run_until(NOW, ticks=True)
        stage.save()
        yield stage


def put_all(world: World) -> list[LineOutcome]:
    return bulk.put_all(world.registry, "alice", LINES, until=world.clock.now() + 10, atomic=True)


def counted(world: World) -> tuple[int, int]:
    tenant = Tenants(world.table("tenants")).get("alice")
    return tenant.jobs, tenant.executions_per_day


def minutes(*numbers: int) -> list[int]:
    return [at(f"2026-11-21T03:{minute:02}:00Z") for minute in numbers]


def is_done(world: World) -> None:
    jobs = {stored.job_id: stored.spec.schedule for stored in world.store.list_jobs("alice")}
    assert jobs == {job_id: text["schedule"] for job_id, text in DEFINITIONS.items()}
    assert counted(world) == (4, (8 + 7 + 8) * 24 + 1)


@pytest.mark.parametrize("fault", Fault)
def test_a_bulk_meets_a_fault_at_each_of_its_calls_and_is_sent_again(stage: Stage, fault: Fault) -> None:
    def again(world: World, died: BaseException | None) -> None:
        world.clock.sleep(2)
        results = {outcome.job_id: outcome.result for outcome in put_all(world)}
        assert results["same"] == "unchanged"
        if not died:
            assert set(results.values()) == {"unchanged"}
        is_done(world)
        world.run_until(LAST_TICK, ticks=True)
        world.run_until(END)
        due = {"new": minutes(25, 33), "moved": minutes(16, 24, 21, 29, 37), "same": minutes(16, 24, 32)}
        everything_explained(world, {("alice", job_id): fires for job_id, fires in due.items()})
        index_is_right(world)

    assert stage.each_call(put_all, fault, again, flow="bulk") >= 12


def test_two_bulks_and_a_pause_at_once(stage: Stage) -> None:
    for choose in some_orders(12):
        world = stage.restore()
        steps = {
            "one": partial(put_all, world),
            "two": partial(put_all, world),
            "pause": partial(world.store.pause, "alice", "moved"),
        }
        died = play(stage.wire, steps, choose, anywhere)
        assert died == {"one": None, "two": None, "pause": None}
        is_done(world)
        assert world.store.get("alice", "moved").state == "paused"
        world.run_until(LAST_TICK, ticks=True)
        index_is_right(world)
