"""Every fault at every AWS call of a last run and of the deletion after it; the deletion beside other changes."""

from __future__ import annotations

from functools import partial

import pytest

from common.errors import Minute8Error, NotFound
from common.jobs.job import Job
from common.platform.tenants import Tenants
from tests.faults.interleaving import anywhere, play, some_orders
from tests.faults.stage import Stage, deliver_one, killed_after, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, DUE, END = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z", "2026-11-21T03:58:30Z"
KEY = ("alice", "once")
LATER = "2026-11-21T12:00:00Z"


def created(stage: Stage, count: int = 1, invocation: str = "RequestResponse") -> None:
    Tenants(stage.world.table("tenants")).create(
        "alice", "", stage.world.clock.now(), {"allowed_targets": ["*"]}
    )
    for n in range(count):
        definition = job(at=DUE, after_completion="delete", timeout_s=30, invocation=invocation)
        stage.world.registry.create("alice", f"once-{n}" if n else "once", definition)


def stored_job(world: World, job_id: str = "once") -> Job | None:
    try:
        return world.store.get("alice", job_id)
    except NotFound:
        return None


def counted(world: World) -> tuple[int, int]:
    tenant = Tenants(world.table("tenants")).get("alice")
    return tenant.jobs, tenant.executions_per_day


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
@pytest.mark.parametrize("fault", Fault)
def test_a_last_run_meets_a_fault_at_each_of_its_calls(fault: Fault, invocation: str) -> None:
    def carries_on(world: World, died: BaseException | None) -> None:
        world.run_until(END, ticks=True)
        everything_explained(world, {KEY: [at(DUE)]}, twice=1)
        index_is_right(world)
        assert (stored_job(world), counted(world), list(world.completion.ended.noted())) == (None, (0, 0), [])

    with staged(BEGIN) as stage:
        created(stage, invocation=invocation)
        stage.world.clock.move_to(at(DUE))
        stage.save()
        calls = ["get_item", "update_item", "target", *(["update_item"] if invocation != "Event" else [])]
        assert stage.each_call(deliver_one, fault, carries_on) == len(calls) + 1
        assert stage.wire.calls == [*calls, "put_item"]


@pytest.mark.parametrize("fault", Fault)
def test_a_deletion_meets_a_fault_at_each_of_its_calls(fault: Fault) -> None:
    """Of three jobs in one transaction; the next tick does what is left."""

    def carries_on(world: World, died: BaseException | None) -> None:
        world.run_until(END, ticks=True)
        everything_explained(world, {("alice", name): [at(DUE)] for name in names})
        index_is_right(world)
        assert [stored_job(world, name) for name in names] == [None] * 3
        assert (counted(world), list(world.completion.ended.noted())) == ((0, 0), [])
        entries = list(world.store.audited.audit.newest("alice", 100))
        assert sorted(entry.subject for entry in entries if entry.action == "job.deleted") == names

    names = ["once", "once-1", "once-2"]
    with staged(BEGIN) as stage:
        created(stage, count=3)
        stage.world.run_until("2026-11-21T03:18:00Z")
        stage.save()
        assert stage.each_call(lambda world: world.tick(), fault, carries_on, flow="deletion") > 15


def test_a_deletion_beside_other_changes() -> None:
    """Whatever comes first: a job that was rescheduled or paused stays, and its counts and entry are right."""
    changes = {
        "reschedule": lambda world: world.registry.put(
            "alice", "once", job(at=LATER, after_completion="delete")
        ),
        "pause": lambda world: world.store.pause("alice", "once"),
        "delete": lambda world: world.store.delete("alice", "once"),
        "second tick": lambda world: world.delete_ended(),
    }
    with staged(BEGIN) as stage:
        created(stage, count=2)
        stage.world.run_until("2026-11-21T03:16:00Z")
        stage.save()
        for name, change in changes.items():
            for choose in some_orders(12):
                world = stage.restore()
                steps = {
                    "tick": world.delete_ended,
                    name: partial(change, world),
                }
                died = play(stage.wire, steps, choose, anywhere)
                assert died["tick"] is None
                assert died[name] is None or isinstance(died[name], Minute8Error), died
                kept = stored_job(world)
                if name == "reschedule" and died[name] is None:
                    assert kept and kept.spec.schedule["at"] == LATER
                assert stored_job(world, "once-1") is None
                assert counted(world) == ((1, 1) if kept else (0, 0))
                index_is_right(world)


def test_a_tick_that_is_killed_after_its_deletion_deletes_no_job_of_the_same_name() -> None:
    with staged(BEGIN) as stage:
        created(stage)
        world = stage.world
        world.run_until("2026-11-21T03:16:00Z")
        killed_after(stage, "transact_write_items", lambda world: world.delete_ended())
        assert stored_job(world) is None
        world.registry.create("alice", "once", job(at=LATER, after_completion="delete"))
        world.tick()
        assert stored_job(world)
