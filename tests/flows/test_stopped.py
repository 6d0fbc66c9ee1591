"""Planners stop for an hour, or the scheduler for three: each fire time has a record, or lies in what was missed."""

from __future__ import annotations

from collections import Counter

import pytest

from common.timing.fires import fires
from common.timing.instants import rfc3339
from tests.planning.test_shares import Fleet
from tests.worlds import World, at, job, open_world

STOPPED_AT = at("2026-11-21T03:34:00Z")
RECOVERED_S = 1_500
JOBS = {
    (tenant, f"{policy}-{zone[:4].lower()}"): job(cron="*/2 * * * *", timezone=zone, catch_up=policy)
    for tenant in ("alice", "bob")
    for policy in ("none", "latest", "all")
    for zone in ("UTC", "Asia/Tokyo", "Europe/Berlin")  # each is a group, and so at least a share
}


@pytest.mark.parametrize(("stopped", "seconds"), [("planners", 3_600), ("scheduler", 10_800)])
def test_what_stops_loses_nothing(stopped: str, seconds: int) -> None:
    with open_world() as world:
        for (tenant, job_id), definition in JOBS.items():
            world.registry.put(tenant, job_id, definition)
        fleet = Fleet(world, share_entries=2)
        went_to_planners = 0

        def tick() -> None:
            nonlocal went_to_planners
            is_stopped = STOPPED_AT <= world.clock.now() < STOPPED_AT + seconds
            if stopped != "scheduler" or not is_stopped:
                fleet.tick()
                went_to_planners += len(fleet.queue.bodies)
            if stopped != "planners" or not is_stopped:
                fleet.plan_all()

        world.tick = tick  # type: ignore[method-assign]
        until = STOPPED_AT + seconds + RECOVERED_S
        world.run_until(rfc3339(until), ticks=True)
        assert went_to_planners
        assert {
            name: covered for name in JOBS if (covered := wrongly_recorded(world, *name, until - 60))
        } == {}
        calls = Counter(event["execution_id"] for _, event in world.target.calls)
        assert set(calls.values()) == {1}


def wrongly_recorded(world: World, tenant: str, job_id: str, until: int) -> dict[int, int]:
    """The fire times that are not in exactly one record, and in how many each is."""
    stored, records = world.store.get(tenant, job_id), world.run_items(tenant, job_id)
    due = fires(stored.schedule, stored.effective_at, until)
    covered = {
        fire_at: sum(
            run.get("skipped_from_at", run["fire_at"]) <= fire_at <= run["fire_at"] for run in records
        )
        for fire_at in due
    }
    return {fire_at: count for fire_at, count in covered.items() if count != 1}
