"""Leases, deadlines and positions of the year 2096: each is further away than it can be, so it counts as over."""

from __future__ import annotations

import pytest

from common.runs.outcome import Outcome
from common.storage import keys
from common.truth.contradiction import RUN_STUCK
from scheduler.removal import RemovalLease
from scheduler.sealing import Sealer
from tests.scheduler_handler import go_on
from tests.truth.damage import change, truth_of
from tests.worlds import World, at, job

LEASE_S = 310

FAR_AT = at("2096-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("status", "far_at"),
    [("running", FAR_AT), ("running", at("2026-11-21T05:00:00Z")), ("retrying", FAR_AT)],
)
def test_a_run_with_an_impossible_deadline_is_named_and_goes_on(
    served: World, status: str, far_at: int
) -> None:
    world = served
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["attempt"] > 1, error_type="No")
    world.registry.put("alice", "often", job(every=60, retry={"max_attempts": 2, "base_s": 300}))
    world.run_until("2026-11-21T03:20:30Z", ticks=True)
    run = next(item for item in world.run_items("alice", "often") if item["status"] == "retrying")
    key = keys.run("alice", "often", run["sk"])
    own = f"alice:often:{run['sk']}"
    of_run = f'"fire_at":{run["fire_at"]}'
    world.sqs._waiting = [message for message in world.sqs._waiting if of_run not in message[3]]
    deadline = "lease_until" if status == "running" else "next_attempt_at"
    change(world, "runs", key, status=status, **{deadline: far_at})
    world.run_until("2026-11-21T03:48:30Z", ticks=True)
    (stuck,) = [
        item
        for _, of_subject in truth_of(world).all()
        for item in of_subject
        if item.name == RUN_STUCK and item.subject.name == own
    ]
    assert "an instant that can be none" in stuck.detail
    assert stuck.repair
    stuck.repair()
    world.run_until("2026-11-21T04:49:30Z")
    stored = world.table("runs").get(key)
    assert stored
    assert stored["status"] == "succeeded"


@pytest.mark.parametrize("until", [FAR_AT, "?", None, 10**20])
def test_a_removal_lease_that_nobody_can_have_is_taken(world: World, until: object) -> None:
    due, now = world.table("due"), world.clock.now()
    due.put({**keys.REMOVAL, **({"until": until} if until else {})})
    assert RemovalLease(due).take(now)
    assert not RemovalLease(due).take(now + LEASE_S - 1)
    assert RemovalLease(due).take(now + LEASE_S + 1)


def test_the_audit_is_sealed_after_a_round_of_the_year_2096(world: World) -> None:
    world.registry.put("alice", "often", job(every=60))
    world.clock.sleep(3_600)
    round_of_2096 = {"began_at": FAR_AT, "ended_at": FAR_AT, "after": "", "tampered": []}
    world.table("due").put({**keys.chore("sealing"), "at": round_of_2096})
    done = go_on(world, Sealer(world.tables, world.clock).steps, "sealing")
    assert done.counts["entries"] > 0
