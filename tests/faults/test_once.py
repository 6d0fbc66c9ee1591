"""A creation with an idempotency key, with every fault and twice at once: repeated, it creates one job."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from common.jobs.idempotency import IdempotencyKey
from common.jobs.job import Job
from tests.faults.interleaving import every_order, play
from tests.faults.stage import Stage, staged
from tests.faults.truth import index_is_right
from tests.faults.wire import Fault
from tests.worlds import World, job

DEFINITION = job(cron="*/8 * * * *", invocation="Event")
ONCE = IdempotencyKey.of("alice", "8e03978e", DEFINITION)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as stage:
        stage.world.index.ensure_progress(stage.world.clock.now())
        stage.save()
        yield stage


def jobs(world: World) -> list[Job]:
    return list(world.store.list_jobs("alice"))


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("own_id", [True, False])
def test_a_creation_is_repeated_after_a_fault_at_each_of_its_calls(
    stage: Stage, fault: Fault, own_id: bool
) -> None:
    numbers = count()

    def create(world: World) -> Job:
        job_id = "report" if own_id else f"job-{next(numbers)}"
        return world.registry.create("alice", job_id, DEFINITION, ONCE)

    def repeats(world: World, died: BaseException | None) -> None:
        world.clock.sleep(2)
        again = create(world)
        assert jobs(world) == [again]
        world.registry.put("alice", again.job_id, job(cron="0 3 * * *"))
        assert create(world) == again
        assert len(jobs(world)) == 1
        world.run_until("2026-11-21T03:20:00Z", ticks=True)
        index_is_right(world)

    assert stage.each_call(create, fault, repeats) >= 4


@pytest.mark.parametrize("own_id", [True, False])
def test_the_same_creation_twice_at_once_in_every_order(stage: Stage, own_id: bool) -> None:
    played = 0
    for choose in every_order():
        world, played = stage.restore(), played + 1
        created: dict[str, Job] = {}

        def create(name: str, world: World = world, created: dict[str, Job] = created) -> None:
            job_id = "report" if own_id else f"job-{name}"
            created[name] = world.registry.create("alice", job_id, DEFINITION, ONCE)

        died = play(
            stage.wire,
            {name: partial(create, name) for name in ("one", "two")},
            choose,
            lambda call: call.startswith(("get_item alice", "transact_write_items")),
        )
        assert died == {"one": None, "two": None}
        assert [created["one"]] == [created["two"]] == jobs(world)
        index_is_right(world)
    assert played >= 10
