"""A pack meets every fault at every call of its executions: each ends once, and nothing that ended is called again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from common import limits
from common.planning.execution import Execution
from common.planning.packs import Pack
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.storage.table import Table
from executor import batch, threads
from executor.batch import execute_batch
from executor.pipeline import Message
from tests.faults.stage import deliver_one, send_in_steps, staged
from tests.faults.truth import everything_explained, index_is_right
from tests.faults.wire import KILLS, Fault
from tests.worlds import World, at, job

MAX_IN_A_PACK = 10

BEGIN, DUE, END = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z", "2026-11-21T05:00:00Z"
INVOCATIONS = {"waits": "RequestResponse", "event": "Event", "fails": "RequestResponse"}
FIRES = {("alice", name): [at(DUE)] for name in INVOCATIONS}
ENDS = {"waits": "succeeded", "event": "dispatched", "fails": "succeeded"}


class OneThread:
    """Runs what is submitted at once: the calls come in one order, and what kills the process ends it there."""

    def submit(self, do: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(do(*arguments))
        except Exception as error:  # noqa: BLE001
            future.set_exception(error)
        return future


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "call_threads", OneThread)
    monkeypatch.setattr(threads, "event_threads", OneThread)


def in_a_pack(world: World, names: Iterable[str] = FIRES) -> None:
    """Have what was registered travel together, and the clock at its second."""
    names = [name[1] if isinstance(name, tuple) else name for name in names]
    executions = {execution.job_id: execution for execution in map(Execution.decode, world.sqs.bodies)}
    world.sqs._waiting.clear()
    world.queue.send_packs([Pack(tuple(executions[name] for name in names))])
    world.clock.move_to(at(DUE))


def three(world: World) -> None:
    """Two calls that are awaited, one of which fails at first; and an event between them."""
    retry = {"max_attempts": 4, "base_s": 10}
    for _, name in FIRES:
        invocation = INVOCATIONS[name]
        world.registry.create("alice", name, job(at=DUE, invocation=invocation, timeout_s=30, retry=retry))
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "fails" or event["minute8"]["attempt"] > 1, error_type="Boom"
    )
    in_a_pack(world)


def all_ended(world: World, twice: int = 0) -> None:
    everything_explained(world, FIRES, twice)
    index_is_right(world)
    for name, ends in ENDS.items():
        assert world.statuses("alice", name) == [ends]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("fault", Fault)
def test_a_pack_meets_a_fault_at_each_of_its_calls(fault: Fault) -> None:
    # A killed process leaves the events that it sent unknown, as with single messages of one batch.
    doubled = 2 if fault in KILLS else 0

    def carries_on(world: World, died: BaseException | None) -> None:
        world.run_until(END)
        all_ended(world, doubled)

    with staged(BEGIN) as stage:
        three(stage.world)
        stage.save()
        assert stage.each_call(deliver_one, fault, carries_on, "pack") == 8
        assert stage.wire.calls.count("target") == 3


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("fault", Fault)
def test_events_that_are_sent_from_one_thread_meet_a_fault_at_each_call(fault: Fault) -> None:
    """One of them fails at first."""

    def carries_on(world: World, died: BaseException | None) -> None:
        world.run_until(END)
        everything_explained(world, FIRES, len(FIRES) if fault in KILLS else 0)
        index_is_right(world)

    with staged(BEGIN) as stage:
        world = stage.world
        for _, name in FIRES:
            world.registry.create("alice", name, job(at=DUE, invocation="Event", retry={"base_s": 10}))
        world.target.answer = lambda event: Outcome(
            ok=event["minute8"]["job_id"] != "fails" or event["minute8"]["attempt"] > 1
        )
        in_a_pack(world)
        send_in_steps(stage)
        stage.save()
        assert stage.each_call(deliver_one, fault, carries_on, "events") == 7
        assert stage.wire.calls == [
            *("batch_get_item", "batch_execute_statement", "target", "target", "target"),
            *("update_item", "send_message_batch"),
        ]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("fault", [Fault.FAILED, Fault.LOST, Fault.KILLED_AFTER])
def test_a_half_done_pack_comes_again_and_meets_a_fault_at_each_call(fault: Fault) -> None:
    def carries_on(world: World, died: BaseException | None) -> None:
        world.run_until(END)
        # The first process was killed behind the claim or the call of the event.
        called = Counter(c["job_id"] for _, c in world.target.calls if c["attempt"] == 1)
        assert called["event"] <= (3 if fault in KILLS else 2)
        assert all(n <= (2 if fault in KILLS else 1) for name, n in called.items() if name != "event"), called
        world.target.calls[:] = {
            (c["job_id"], c["attempt"]): (when, c) for when, c in world.target.calls
        }.values()
        all_ended(world)

    with staged(BEGIN) as stage:
        three(stage.world)
        stage.wire.arm(5, Fault.KILLED_AFTER)  # the call of the event
        stage.attempt(deliver_one)
        next_at = stage.world.sqs.next_at()
        assert next_at
        stage.world.clock.move_to(next_at)
        stage.save()
        assert stage.each_call(deliver_one, fault, carries_on, "half done") >= 4


def turned_away(*_: object) -> None:
    raise RuntimeError("throttled")


@pytest.mark.usefixtures("one_thread")
def test_a_refused_execution_of_a_pack_goes_on_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with staged(BEGIN) as stage:
        world = stage.world
        three(world)
        sent = len(world.sqs.bodies)
        with monkeypatch.context() as full:
            insert = Table.insert_many
            full.setattr(Table, "insert_many", lambda table, items: [*insert(table, items[:1]), False, False])
            full.setattr(Runs, "claim", turned_away)
            deliver_one(world)
        alone = [Execution.decode(body) for body in world.sqs.bodies[sent:]]
        assert [execution.job_id for execution in alone] == ["event", "fails"]
        assert max(execution.visible_at for execution in alone) <= at(DUE) + 3
        assert [context["job_id"] for _, context in world.target.calls] == ["waits"]
        world.run_until(END)
        all_ended(world)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("claimed_first", [1, 2, 3])
def test_two_deliveries_of_a_pack_at_once_call_each_execution_once(
    claimed_first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first claims some of it and calls one; meanwhile the second claims the others."""
    with staged(BEGIN) as stage:
        world = stage.world
        three(world)
        pack = world.sqs.receive()
        assert pack
        answer, insert, nested = world.target.answer, Table.insert_many, iter([True])

        def claim_some(table: Table, items: Sequence[Mapping[str, Any]]) -> list[bool]:
            monkeypatch.setattr(Table, "insert_many", insert)
            return insert(table, items[:claimed_first]) + [False] * (len(items) - claimed_first)

        def call(event: Mapping[str, Any]) -> Outcome:
            if next(nested, False):
                assert execute_batch(world.executor, [pack], world.redelivery)[1]
            return answer(event)

        world.target.answer = call
        monkeypatch.setattr(Table, "insert_many", claim_some)
        world.deliver_one(pack)
        assert (len(world.target.calls), len(world.sqs) > 1) == (
            3,
            claimed_first < 3,
        )  # a retry, and the pack unless it ended
        world.run_until(END)
        all_ended(world)


@pytest.mark.usefixtures("one_thread")
def test_a_copy_that_comes_late_calls_nothing_again() -> None:
    with staged(BEGIN) as stage:
        world = stage.world
        three(world)
        pack = world.sqs.receive()
        assert pack
        world.deliver_one(pack)
        world.deliver_one(Message("another", pack.body))
        world.run_until(END)
        world.deliver_one(Message("a third", pack.body))
        all_ended(world)


@pytest.mark.usefixtures("one_thread")
def test_a_line_that_nothing_can_read_harms_no_other() -> None:
    with staged(BEGIN) as stage:
        world = stage.world
        three(world)
        pack = world.sqs.receive()
        assert pack
        for n in range(5):
            world.clock.sleep(60)
            _, failed = execute_batch(
                world.executor, [Message("one", f'{pack.body}\n{{"v":99}}', receives=n)]
            )
            assert failed == ["one"]
        world.run_until(END)
        all_ended(world)


def test_at_the_bound_a_quick_call_waits_for_none_of_99_slow_ones(world: World) -> None:
    world.registry.create(
        "alice", "many", job(cron="* * * * * *", start_at=DUE, end_at="2026-11-21T03:16:00Z")
    )
    executions = [Execution("alice", "many", at(DUE) - n, at(DUE), 1) for n in range(10 * MAX_IN_A_PACK)]
    tens = [executions[first : first + MAX_IN_A_PACK] for first in range(0, 100, MAX_IN_A_PACK)]
    messages = [Message(f"m-{n}", Pack(tuple(ten)).encode()) for n, ten in enumerate(tens)]
    world.clock.move_to(at(DUE))
    quick_ended, late = threading.Event(), []

    def call(event: Mapping[str, Any]) -> Outcome:
        is_quick = event["minute8"]["execution_id"] == executions[-1].execution_id
        if not is_quick and not quick_ended.wait(60):
            late.append(event)
        return Outcome(ok=True)

    def watch() -> None:
        while world.statuses(executions[-1].tenant, executions[-1].job_id)[:1] != ["succeeded"]:
            threading.Event().wait(0.05)
        quick_ended.set()

    world.target.answer = call
    watcher = threading.Thread(target=watch)
    watcher.start()
    reports, failed = execute_batch(world.executor, messages)
    watcher.join()
    assert (len(reports), failed, late) == (100, [], [])


@pytest.mark.parametrize(("overlap", "became"), [("skip", "sent_on"), ("allow", "retrying")])
def test_what_finds_no_thread_in_time_goes_on_alone_or_is_throttled_after_its_claim(
    world: World, monkeypatch: pytest.MonkeyPatch, overlap: str, became: str
) -> None:
    names = ["slow-1", "slow-2", "quick"]
    for name in names:
        world.registry.create("alice", name, job(at=DUE, overlap=overlap))
    in_a_pack(world, names)
    is_over = threading.Event()
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["job_id"] == "quick" or is_over.wait(60))
    give_back = batch._give_back

    def ending(*arguments: Any) -> None:
        give_back(*arguments)
        is_over.set()

    with ThreadPoolExecutor(2) as two:
        monkeypatch.setattr(threads, "call_threads", lambda: two)
        monkeypatch.setattr(threads, "MAX_EVENT_WAIT_S", 0.1)
        monkeypatch.setattr(threads, "MAX_THREAD_WAIT_S", 0.2)
        monkeypatch.setattr(batch, "_give_back", ending)
        pack = world.sqs.receive()
        assert pack
        reports, failed = execute_batch(world.executor, [pack], replace(world.redelivery, slow_after_s=0.1))
        results = Counter([*(report.result for report in reports), *("again" for _ in failed)])
        assert results == {"succeeded": 2, became: 1}
        world.run_until("2026-11-21T03:17:00Z")
    everything_explained(world, {("alice", name): [at(DUE)] for name in names})
    assert world.statuses("alice", "quick") == ["succeeded"]


def test_events_behind_slow_ones_get_threads_as_other_calls_do(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"slow-{n}" for n in range(limits.MAX_EVENT_THREADS)] + ["quick"]
    for name in names:
        world.registry.create("alice", name, job(at=DUE, invocation="Event"))
    in_a_pack(world, names)
    called = threading.Event()

    def call(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["job_id"] == "quick":
            called.set()
        return Outcome(ok=called.wait(60))

    world.target.answer = call
    monkeypatch.setattr(threads, "MAX_EVENT_WAIT_S", 0.1)
    pack = world.sqs.receive()
    assert pack
    reports, failed = execute_batch(world.executor, [pack])
    assert ({report.result for report in reports}, failed) == ({"dispatched"}, [])


def test_where_it_cannot_be_sent_on_it_comes_again_with_its_pack(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["slow", "quick"]
    for name in names:
        world.registry.create("alice", name, job(at=DUE, overlap="skip"))
    in_a_pack(world, names)
    tried = threading.Event()

    def refusing(**_: Any) -> dict[str, Any]:
        tried.set()
        raise ConnectionError

    world.target.answer = lambda event: Outcome(ok=event["minute8"]["job_id"] == "quick" or tried.wait(60))
    pack = world.sqs.receive()
    assert pack
    with ThreadPoolExecutor(1) as thread, monkeypatch.context() as broken:
        broken.setattr(threads, "call_threads", lambda: thread)
        broken.setattr(threads, "MAX_EVENT_WAIT_S", 0.1)
        broken.setattr(threads, "MAX_THREAD_WAIT_S", 0.2)
        broken.setattr(world.sqs, "send_message_batch", refusing)
        assert execute_batch(world.executor, [pack])[1] == [pack.message_id]
    world.sqs.give_back(pack)
    world.run_until("2026-11-21T04:16:00Z")
    everything_explained(world, {("alice", name): [at(DUE)] for name in names})
