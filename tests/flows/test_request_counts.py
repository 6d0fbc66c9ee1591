"""The AWS requests of each step, counted at the clients: at millions of runs every request costs money.

Not counted here: the queue's own receive and delete (one each for ten messages), what a process keeps between runs
(the tenants' rules: `tests/tenants/test_rules_cache.py`), and one read for the jobs of a batch (`test_batches.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from common.runs.outcome import Outcome
from executor.pipeline import Message
from tests.worlds import World, at, job

BEFORE, DUE = "2026-11-21T03:14:00Z", "2026-11-21T03:15:00Z"
OK, FAILS = Outcome(ok=True), Outcome(ok=False, permanent=True, error_type="Boom")
# The job and what is noted of it, read and written together.
NOTED = {"get_item": 3, "transact_write_items": 1}
READ_JOB, CALL = {"get_item": 1}, {"target": 1}


class Counts:
    """The requests of one world since the last count."""

    def __init__(self, world: World) -> None:
        self._w = world
        self._seen: Counter[str] = Counter()
        self._was = self._beside()
        world.dynamodb.before = self._count

    def _count(self, name: str) -> None:
        self._seen[name] += 1

    def _beside(self) -> Counter[str]:
        world = self._w
        return Counter(
            {
                "target": len(world.target.calls),
                "PutEvents": len(world.events),
                "sent messages": len(world.sqs.bodies),
            }
        )

    @contextmanager
    def of(self, expected: dict[str, int]) -> Iterator[None]:
        """The block inside makes exactly these requests."""
        self._seen.clear()
        before = self._beside()
        yield
        counted = self._seen + (self._beside() - before)
        assert counted == Counter(expected)


@pytest.fixture
def counts(world: World) -> Counts:
    return Counts(world)


def due(world: World, outcome: Outcome = OK, **fields: Any) -> None:
    """A job whose one execution is visible now."""
    world.registry.create("alice", "once", job(at=DUE, **fields))
    world.target.answer = lambda event: outcome
    world.clock.move_to(at(DUE))


def test_a_run_that_succeeds_costs_one_read_and_two_writes(world: World, counts: Counts) -> None:
    due(world)
    with counts.of({**READ_JOB, "update_item": 2, **CALL}):
        world.deliver()
    assert world.statuses("alice", "once") == ["succeeded"]


def test_a_run_that_fails_permanently_is_also_published_and_counted(world: World, counts: Counts) -> None:
    """The first failure of a streak also notes it in the job's item."""
    due(world, FAILS)
    first = {"get_item": READ_JOB["get_item"] + 2, "update_item": 2, "transact_write_items": 1}
    with counts.of({**READ_JOB, **first, "PutEvents": 1, **CALL}):
        world.deliver()


def test_a_further_failure_in_a_row_is_one_write(world: World, counts: Counts) -> None:
    due(world, FAILS)
    world.store.failures.add(world.store.get("alice", "once"), "20261121T000000Z#1")
    with counts.of({**READ_JOB, "update_item": 3, "PutEvents": 1, **CALL}):
        world.deliver()
    assert world.store.get("alice", "once").failures_in_row == 2


def test_an_attempt_that_is_tried_again_sends_one_message(world: World, counts: Counts) -> None:
    due(world, Outcome(ok=False, error_type="Boom"))
    with counts.of({**READ_JOB, "update_item": 2, "sent messages": 1, **CALL}):
        world.deliver()


def test_an_event_run_costs_one_write_in_all(world: World, counts: Counts) -> None:
    due(world, invocation="Event")
    with counts.of({**READ_JOB, "update_item": 1, **CALL}):
        world.deliver()
    assert world.statuses("alice", "once") == ["dispatched"]


def test_a_skipped_run_costs_one_write(world: World, counts: Counts) -> None:
    world.registry.create("alice", "once", job(at=DUE))
    world.store.pause("alice", "once")
    world.clock.move_to(at(DUE))
    with counts.of({**READ_JOB, "put_item": 1, "PutEvents": 1}):
        world.deliver()


def test_a_run_that_waits_for_the_end_of_a_pause_costs_one_write_and_a_message(
    world: World, counts: Counts
) -> None:
    due(world)
    world.store.pause("alice", "once")
    with counts.of({**READ_JOB, "put_item": 1, "sent messages": 1}):
        world.deliver()


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_duplicate_costs_one_write_that_is_refused(world: World, counts: Counts, invocation: str) -> None:
    due(world, invocation=invocation)
    world.deliver()
    with counts.of({**READ_JOB, "update_item": 1}):
        world.execute(Message("copy", world.sqs.bodies[0]))


@pytest.mark.parametrize("limits", [{"overlap": "skip"}, {"concurrency": {"key": "crm", "limit": 1}}])
def test_a_lone_run_takes_its_permit_and_frees_it_with_one_write_each(
    world: World, counts: Counts, limits: dict[str, Any]
) -> None:
    due(world, **limits)
    with counts.of({**READ_JOB, "update_item": 2, "put_item": 1, "delete_item": 1, **CALL}):
        world.deliver()


def test_a_full_key_costs_one_write_and_one_look_at_its_holders(world: World, counts: Counts) -> None:
    """And the record of what is skipped, with its event; a one-off that is skipped is noted and told."""
    key = {"key": "crm", "limit": 1, "when_full": "skip"}
    world.registry.create("alice", "going", job(at=BEFORE, completion="callback", concurrency=key))
    world.run_until(BEFORE)
    due(world, concurrency=key)
    with counts.of({**READ_JOB, "put_item": 2, "batch_get_item": 1, "PutEvents": 2} | NOTED):
        world.deliver()
    assert world.statuses("alice", "once") == ["skipped(concurrency)"]


def test_a_wait_of_hours_costs_nothing_until_the_tick_of_its_window(world: World, counts: Counts) -> None:
    world.registry.create("alice", "once", job(at=DUE, retry={"base_s": 7_200, "cap_s": 7_200}))
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    world.run_until(DUE)
    with counts.of({}):
        world.run_until("2026-11-21T04:15:30Z")


def test_a_registration(world: World, counts: Counts) -> None:
    # the tenant's rules, the job, whether a job of this id was deleted, planned_until
    far = {"get_item": 4, "transact_write_items": 1, "query": 1}
    world.registry.create("alice", "first", job(cron="0 12 * * *"))  # which creates planned_until
    with counts.of(far):
        world.registry.create("alice", "far", job(cron="1 12 * * *"))
    with counts.of(far | {"transact_write_items": 2}):  # the first job of its group opens a shard
        world.registry.create("alice", "opens", job(cron="0 13 * * *"))
    near = far | {"get_item": 5, "put_item": 1, "delete_item": 1, "sent messages": 1}
    with counts.of(near):
        world.registry.create("alice", "near", job(at=DUE))
    with counts.of(
        {"get_item": 2, "transact_write_items": 1, "batch_get_item": 1}
    ):  # has its shard become empty?
        world.store.delete("alice", "far")
    # Its shard seems to be empty: is it?
    with counts.of({"get_item": 2, "transact_write_items": 2, "batch_get_item": 1, "query": 1}):
        world.store.delete("alice", "opens")


def test_a_tick_reads_what_is_due_and_nothing_for_the_rest(world: World, counts: Counts) -> None:
    for n in range(20):
        world.registry.create("alice", f"noon-{n}", job(cron="0 12 * * *"))
    world.registry.create("alice", "due", job(cron="25 3 * * *"))
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    spread = 8
    # planned_until; pending and postponed entries, one-off groups by partition; the four places of its slot, and the
    # shard found there; one group; what is set aside; planned_until twice; what was planned, and its window's record.
    requests = {"get_item": 1, "query": 3 * spread + 6, "batch_get_item": 1, "update_item": 3}
    with counts.of(requests | {"sent messages": 1, "put_item": 1}):
        world.scheduler.tick()
    # Where it goes on, and planned_until; the list of losses; of sixteen buckets what is planned, changed or to be read
    # again, in one range; the windows' records; the list of tenants, whose days are rolled up; how far it followed, and
    # how far others did before. Of a first round also the open runs: by day, by window, and those of 21 jobs.
    with counts.of({"query": 1 + 1 + 16 + 1 + 1 + 2 + 2 + 21, "get_item": 3, "put_item": 4}):
        world.project()
