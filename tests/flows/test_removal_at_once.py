"""What is over is deleted within seconds: the executor and the API ask a planner, which does not wait for a tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.errors import NotFound
from common.planning.queue import REMOVAL_REQUEST, RemovalRequests
from scheduler import handler, removal
from scheduler.removal import RemovalLease, removal_of_tenants
from tests.platform.leftovers import TOMBSTONE, deletions_of, furnish, left_of
from tests.scheduler_handler import serve
from tests.worlds import World, at, job

GATHER_S = 2
LEASE_S = 310
MAX_REMOVAL_S = 200

DUE = "2026-11-21T03:15:00Z"


def once(world: World, job_id: str = "once", due: str = DUE, **more: Any) -> None:
    world.registry.create("alice", job_id, job(at=due, after_completion="delete", **more))


def is_left(world: World, job_id: str = "once") -> bool:
    try:
        world.store.get("alice", job_id)
    except NotFound:
        return False
    return True


def lease_of(world: World) -> RemovalLease:
    return RemovalLease(world.table("due"))


def remove(world: World, look: Callable[[], None] = lambda: None) -> None:
    """What a planner does; `look` comes before it has read what is over."""
    until = world.clock.now() + MAX_REMOVAL_S

    def run() -> None:
        world.delete_ended()
        look()
        world.round("tenants", removal_of_tenants(deletions_of(world), world.clock).steps)

    removal.run_alone(lease_of(world), world.clock, run, until)


def test_the_end_of_a_last_run_asks_for_the_removal(world: World) -> None:
    once(world)
    world.run_until("2026-11-21T03:15:01Z")
    assert world.planning.sent == [
        {"QueueUrl": "planning", "MessageBody": REMOVAL_REQUEST, "DelaySeconds": GATHER_S}
    ]
    remove(world)
    assert not is_left(world)
    once(world, due="2026-11-21T03:25:00Z")  # its name is free


def test_jobs_that_end_within_seconds_are_removed_together(world: World) -> None:
    for number in range(5):
        once(world, f"once{number}")
    once(world, "later", due="2026-11-21T03:15:03Z", payload="x" * 100_000)
    world.run_until("2026-11-21T03:15:01Z")
    assert len(world.planning.sent) == 1
    world.run_until("2026-11-21T03:15:04Z")
    assert len(world.planning.sent) == 2
    remove(world)
    assert not any(is_left(world, name) for name in ("once0", "once4", "later"))


def test_a_job_that_is_kept_asks_for_nothing(world: World) -> None:
    world.registry.create("alice", "kept", job(at=DUE))
    world.registry.create("alice", "again", job(cron="* * * * *", after_completion="delete"))
    world.run_until("2026-11-21T03:16:00Z")
    assert world.planning.sent == []


def test_a_request_that_sqs_does_not_take_is_left_to_the_tick(world: World) -> None:
    class Refusing:
        def send_message(self, **_: Any) -> None:
            raise ClientError({"Error": {"Code": "RequestThrottled"}}, "SendMessage")

    requests = RemovalRequests(Refusing(), "planning", world.clock)  # type: ignore[arg-type]
    requests.ask()
    requests.ask_soon()
    assert requests._covered_until == 0  # the next one is tried again


def test_a_second_removal_lets_the_first_begin_once_more(world: World) -> None:
    """The note comes after the first removal has looked, and its own request finds the lease taken."""
    once(world)
    once(world, "other")
    world.run_until("2026-11-21T03:14:59Z")
    seen = []

    def meanwhile() -> None:
        if not seen:
            world.run_until("2026-11-21T03:15:01Z")
            remove(world)
            assert is_left(world)  # the second one left it to the first
        seen.append(is_left(world))

    remove(world, meanwhile)
    assert seen == [True, False]
    assert not is_left(world) and not is_left(world, "other")
    assert lease_of(world).take(world.clock.now())  # it was given back


def test_a_lease_whose_process_died_expires(world: World) -> None:
    lease, now = lease_of(world), world.clock.now()
    assert lease.take(now)
    assert not lease.take(now + LEASE_S - 1)
    assert lease.take(now + LEASE_S)
    assert lease.release(now + LEASE_S)  # the mark went with the lease before


def test_a_removal_without_end_gives_the_lease_back_in_time(world: World) -> None:
    """Others ask again and again; the next tick goes on."""
    lease, began_at = lease_of(world), world.clock.now()

    def busy() -> None:
        world.clock.sleep(50)
        assert not lease_of(world).take(world.clock.now())

    removal.run_alone(lease, world.clock, busy, began_at + MAX_REMOVAL_S)
    assert MAX_REMOVAL_S <= world.clock.now() - began_at <= MAX_REMOVAL_S + 50
    assert lease.take(world.clock.now())


def test_a_deleted_tenant_is_removed_by_the_planner_too(world: World) -> None:
    furnish(world)
    deletions_of(world).begin("alice", world.clock.now())
    world.clock.sleep(600)
    remove(world)
    assert left_of(world, "alice") == TOMBSTONE


def test_ticks_delete_what_nobody_asked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looks into another partition: the eighth at the latest finds a job whose request was lost."""
    serve(world, monkeypatch)
    once(world)
    world.run_until("2026-11-21T03:15:01Z")
    for _ in range(8):
        handler.handle({}, None)
        world.clock.sleep(600)
    assert not is_left(world)


def test_a_tick_deletes_at_once_what_it_has_noted_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(world, monkeypatch)
    handler.handle({}, None)
    for number in range(8):
        once(world, f"once{number}", "2026-11-21T04:00:00Z", catch_up="none")
    world.clock.move_to(at("2026-11-21T05:28:00Z"))  # no tick ran since: they are missed
    handler.handle({}, None)
    assert not any(is_left(world, f"once{number}") for number in range(8))
