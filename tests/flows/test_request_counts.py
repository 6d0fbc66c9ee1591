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

from common.runs.records import Outcome
from executor.pipeline import Message
from tests.worlds import World, at, job

DUE = "2026-11-21T03:15:00Z"
OK, FAILS = Outcome(ok=True), Outcome(ok=False, permanent=True, error_type="Boom")
READ_JOB, CALL = {"get_item": 1}, {"target": 1}


class Counts:
    """The requests of one world since the last count."""

    def __init__(self, w: World) -> None:
        self._w = w
        self._seen: Counter[str] = Counter()
        self._was = self._beside()
        w.dynamodb.before = self._count

    def _count(self, name: str) -> None:
        self._seen[name] += 1

    def _beside(self) -> Counter[str]:
        w = self._w
        return Counter(
            {"target": len(w.target.calls), "PutEvents": len(w.events), "sent messages": len(w.sqs.bodies)}
        )

    @contextmanager
    def of(self, expected: dict[str, int]) -> Iterator[None]:
        """The block inside makes exactly these requests."""
        self._seen.clear()
        before = self._beside()
        yield
        found = self._seen + (self._beside() - before)
        assert found == Counter(expected)


@pytest.fixture
def counts(w: World) -> Counts:
    return Counts(w)


def due(w: World, outcome: Outcome = OK, **fields: Any) -> None:
    """A job whose one execution is visible now."""
    w.registry.create("alice", "once", job(at=DUE, **fields))
    w.target.answer = lambda event: outcome
    w.clock.move_to(at(DUE))


def test_a_run_that_succeeds_costs_one_read_and_two_writes(w: World, counts: Counts) -> None:
    due(w)
    with counts.of({**READ_JOB, "update_item": 2, **CALL}):
        w.deliver()
    assert w.statuses("alice", "once") == ["succeeded"]


def test_a_run_that_fails_permanently_is_also_published_and_counted(w: World, counts: Counts) -> None:
    due(w, FAILS)
    with counts.of({**READ_JOB, "update_item": 3, "PutEvents": 1, **CALL}):
        w.deliver()


def test_an_attempt_that_is_tried_again_sends_one_message(w: World, counts: Counts) -> None:
    due(w, Outcome(ok=False, error_type="Boom"))
    with counts.of({**READ_JOB, "update_item": 2, "sent messages": 1, **CALL}):
        w.deliver()


def test_an_event_run_costs_one_write_in_all(w: World, counts: Counts) -> None:
    due(w, invocation="Event")
    with counts.of({**READ_JOB, "update_item": 1, **CALL}):
        w.deliver()
    assert w.statuses("alice", "once") == ["dispatched"]


def test_a_skipped_run_costs_one_write(w: World, counts: Counts) -> None:
    due(w)
    w.store.pause("alice", "once")
    with counts.of({**READ_JOB, "put_item": 1, "PutEvents": 1}):
        w.deliver()


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_duplicate_costs_one_write_that_is_refused(w: World, counts: Counts, invocation: str) -> None:
    due(w, invocation=invocation)
    w.deliver()
    with counts.of({**READ_JOB, "update_item": 1}):
        w.executor.execute(Message("copy", w.sqs.bodies[0]))


def test_a_run_without_overlap_takes_its_lock_and_lets_it_go(w: World, counts: Counts) -> None:
    due(w, overlap="skip")
    with counts.of({**READ_JOB, "update_item": 4, **CALL}):
        w.deliver()


def test_a_wait_of_hours_costs_nothing_until_the_tick_of_its_window(w: World, counts: Counts) -> None:
    w.registry.create("alice", "once", job(at=DUE, retry={"base_s": 7_200, "cap_s": 7_200}))
    w.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    w.run_until(DUE)
    with counts.of({}):
        w.run_until("2026-11-21T04:15:30Z")


def test_a_registration(w: World, counts: Counts) -> None:
    far = {"get_item": 3, "transact_write_items": 1, "query": 1}  # the tenant's rules, the job, the mark
    w.registry.create("alice", "first", job(cron="0 12 * * *"))  # which creates the mark
    with counts.of(far):
        w.registry.create("alice", "far", job(cron="1 12 * * *"))
    with counts.of(far | {"transact_write_items": 2}):  # the first job of its group opens a shard
        w.registry.create("alice", "opens", job(cron="0 13 * * *"))
    near = far | {"get_item": 4, "put_item": 1, "delete_item": 1, "sent messages": 1}
    with counts.of(near):
        w.registry.create("alice", "near", job(at=DUE))
    with counts.of(
        {"get_item": 2, "transact_write_items": 1, "batch_get_item": 1}
    ):  # has its shard become empty?
        w.store.delete("alice", "far")
    with counts.of({"get_item": 2, "transact_write_items": 2, "batch_get_item": 1}):
        w.store.delete("alice", "opens")


def test_a_tick_reads_what_is_due_and_nothing_for_the_rest(w: World, counts: Counts) -> None:
    for n in range(20):
        w.registry.create("alice", f"noon-{n}", job(cron="0 12 * * *"))
    w.registry.create("alice", "due", job(cron="25 3 * * *"))
    w.clock.move_to(at("2026-11-21T03:18:00Z"))
    spread = 8
    # The mark; pending and postponed entries, one-off groups by partition; the four places of its slot, and the shard
    # found there; one group; what is set aside; the mark twice; what was planned.
    requests = {"get_item": 1, "query": 3 * spread + 6, "batch_get_item": 1, "update_item": 2}
    with counts.of(requests | {"sent messages": 1, "put_item": 1}):
        w.scheduler.tick()
    nothing_else = {"query": 5, "get_item": 1}  # the list, and the four partitions of what was planned
    with counts.of(nothing_else):
        w.reconciler.compare(w.clock.now())
