"""Which executions travel together: those of crowded seconds, a large tenant's apart, as many as a batch takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from common.planning.execution import Execution
from common.planning.packs import Pack, Wake, hold_s, is_wake, lines
from common.planning.packs import packed as messages
from common.planning.queue import ExecutionsQueue
from executor.batch import execute_batch
from executor.pipeline import Message
from scheduler.tick import Scheduler
from tests.worlds import World, at, job

BATCH_SIZE = 10
JOB_ID_CHARS = 128
MAX_CALLS = 100
MAX_IN_A_PACK = 10
MESSAGE_LINES = 100
NEW_HOLD_S = 1.4
TENANT_ID_CHARS = 64
WAKE_HOLD_S = 0.1
WAKE_S = 5

DUE = at("2026-11-21T03:15:00Z")


def due(count: int, tenants: int = 1, at: int = DUE) -> list[Execution]:
    return [Execution(f"tenant-{n % tenants}", f"job-{n}", at, at, 1) for n in range(count)]


def packed(executions: Iterable[Execution], pack_from: int) -> list[Pack]:
    """The messages that carry executions."""
    return [message for message in messages(executions, pack_from) if isinstance(message, Pack)]


def wakes(executions: Iterable[Execution], pack_from: int = 50) -> Counter[int]:
    """How many wakes there are at each second."""
    return Counter(
        message.visible_at for message in messages(executions, pack_from) if isinstance(message, Wake)
    )


def sizes(packs: list[Pack]) -> list[int]:
    return [len(pack.executions) for pack in packs]


@pytest.mark.parametrize(
    ("count", "messages", "largest"),
    [(1, 1, 1), (50, 50, 1), (51, 26, 2), (100, 50, 2), (101, 34, 3), (500, 50, 10), (5_000, 500, 10)],
)
def test_a_crowded_second_fills_fifty_messages_before_packs_grow(
    count: int, messages: int, largest: int
) -> None:
    packs = packed(due(count), 50)
    assert (len(packs), max(sizes(packs))) == (messages, largest)
    assert [execution for pack in packs for execution in pack.executions] == due(count)


def test_every_execution_is_in_one_pack_of_its_second() -> None:
    seconds = [
        execution for second in range(9) for execution in due(40 * second, tenants=7, at=DUE + second % 5)
    ]
    packs = packed(iter(seconds), 50)
    assert Counter(execution for pack in packs for execution in pack.executions) == Counter(seconds)
    for pack in packs:
        assert {execution.visible_at for execution in pack.executions} == {pack.visible_at}
    assert [pack.visible_at for pack in packs] == sorted(pack.visible_at for pack in packs)


def test_zero_turns_packs_off() -> None:
    assert sizes(packed(due(1_000), 0)) == [1] * 1_000


@pytest.mark.parametrize(
    ("count", "woken"), [(50, 0), (51, 5), (100, 10), (1_000, 100), (1_999, 199), (2_001, 200), (40_000, 200)]
)
def test_a_crowded_second_is_preceded_by_as_many_wakes_as_it_would_have_full_packs(
    count: int, woken: int
) -> None:
    assert wakes(due(count)) == Counter({DUE - WAKE_S: woken} if woken else {})
    assert not wakes(due(count), 0)


def test_the_seconds_of_a_minute_share_their_wakes() -> None:
    executions = due(100) + due(300, at=DUE + 1) + due(200, at=DUE + 59) + due(60, at=DUE + 60)
    assert wakes(executions) == {DUE - WAKE_S: 10, DUE + 1 - WAKE_S: 20, DUE + 60 - WAKE_S: 6}


def test_wakes_come_before_their_second_also_where_it_is_near(world: World) -> None:
    queue = ExecutionsQueue(sqs := Sqs(), "queue", world.clock)  # type: ignore[arg-type]
    world.clock.move_to(DUE - 2)
    assert queue.send_packs(messages(due(500), 50)) == (500, [])
    # Several threads send, so the order is not certain.
    sent = Counter((is_wake(entry["MessageBody"]), entry["DelaySeconds"]) for entry in sqs.entries)
    assert sent == {(True, 0): 50, (False, 2): 50}


@pytest.mark.parametrize(
    ("count", "is_new", "is_long"), [(10, True, True), (9, True, False), (10, False, False), (1, True, False)]
)
def test_a_new_executor_is_busy_longer_with_a_full_batch_of_wakes(
    count: int, is_new: bool, is_long: bool
) -> None:
    """Of twenty batches before a large burst each starts an executor; a small crowd pays for no more."""
    assert hold_s(count, is_new) == (NEW_HOLD_S if is_long else WAKE_HOLD_S)


def test_an_execution_runs_beside_a_wake(world: World) -> None:
    world.registry.create("alice", "report", job(at="2026-11-21T03:15:00Z"))
    (body,) = world.sqs.bodies
    world.clock.move_to(DUE)
    (report,), again = execute_batch(world.executor, [Message("a", Wake(DUE).encode()), Message("b", body)])
    assert (report.result, again) == ("succeeded", [])
    assert len(world.target.calls) == 1


def test_a_large_tenant_has_packs_of_its_own_and_small_ones_are_mixed_in_many_groups() -> None:
    flood = [Execution("flood", f"job-{n}", DUE, DUE, 1) for n in range(995)]
    small = due(500, tenants=500)
    groups = Counter(pack.group for pack in packed(flood + small, 50))
    assert groups.pop("flood") == 99
    mixed = [pack for pack in packed(flood + small, 50) if pack.group.startswith("mixed:")]
    assert sum(execution.tenant == "flood" for pack in mixed for execution in pack.executions) == 5
    assert max(Counter(pack.group for pack in mixed).values()) == 1
    assert groups.total() == len(mixed) == 51


def test_a_batch_of_full_packs_has_a_thread_for_each_call_and_fits_in_a_request() -> None:
    assert BATCH_SIZE * MAX_IN_A_PACK <= MAX_CALLS
    longest = Execution(
        tenant="t" * TENANT_ID_CHARS,
        job_id="j" * JOB_ID_CHARS,
        fire_at=10**11,
        due_at=10**11,
        schedule_revision=10**9,
        first_due_at=10**11,
        trigger="backfill",
        trigger_id="b-" + "x" * 32,
        attempt=100,
        throttles=10**6,
        not_before_at=10**11,
    )
    pack = Pack((longest,) * MAX_IN_A_PACK)
    assert BATCH_SIZE * len(pack.encode()) < 256 * 1024 / 4
    assert len(pack.group) <= 128


def test_a_body_of_too_many_lines_is_not_taken_apart() -> None:
    body = due(1)[0].encode()
    assert len(lines("\n".join([body] * MESSAGE_LINES))) == MESSAGE_LINES
    too_many = "\n".join([body] * (MESSAGE_LINES + 1))
    assert lines(too_many) == [too_many]


class Sqs:
    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.refuses = ""

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        self.entries += Entries
        failed = [entry for entry in Entries if self.refuses and self.refuses in entry["MessageBody"]]
        return {"Failed": [{"Id": entry["Id"], "SenderFault": True, "Code": "Bad"} for entry in failed]}


def test_a_refused_pack_is_refused_for_each_of_its_executions(world: World) -> None:
    sqs = Sqs()
    sqs.refuses = '"job-7"'
    queue = ExecutionsQueue(sqs, "queue", world.clock)  # type: ignore[arg-type]
    accepted, refused = queue.send_packs(packed(due(500), 50))
    assert (accepted, len(refused)) == (490, 10)
    assert {entry["MessageGroupId"] for entry in sqs.entries} == {"tenant-0"}
    assert {entry["DelaySeconds"] for entry in sqs.entries} == {180}


def test_a_tick_packs_a_crowded_second_and_leaves_a_sparse_one(world: World) -> None:
    world.scheduler = Scheduler(replace(world.scheduler.planner, pack_from=3))
    for n in range(7):
        world.registry.create("alice", f"crowded-{n}", job(cron="25 3 * * *"))
    for n in range(3):
        world.registry.create("alice", f"sparse-{n}", job(cron="26 3 * * *"))
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    assert world.scheduler.tick().planned == 10
    assert sorted(len(lines(body)) for body in world.sqs.bodies) == [1, 1, 1, 1, 3, 3]
    world.run_until("2026-11-21T03:27:00Z")
    assert world.statuses("alice", "crowded-0") == ["succeeded"]
    assert len(world.target.calls) == 10
