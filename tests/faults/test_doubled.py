"""No target is called twice for an attempt while its executor lives: copies of messages, packs and faults together."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from botocore.exceptions import EndpointConnectionError

from common.planning.execution import Execution
from common.planning.packs import Pack, lines
from common.runs.outcome import Outcome
from common.storage.keys import key_permits
from executor import threads
from executor.batch import deliveries_of, execute_batch
from executor.calling import Admitted
from executor.pipeline import Executor, Loaded, Message
from executor.redelivery import Redelivery
from tests.faults.stage import deliver_one, send_in_steps, staged
from tests.faults.truth import everything_explained
from tests.faults.wire import KILLS, Fault
from tests.worlds import World, at, job

AFTER_LEASE_S = 10

BEGIN, DUE, END = "2026-11-21T03:12:00Z", "2026-11-21T03:15:00Z", "2026-11-21T05:00:00Z"
ALIVE = [fault for fault in Fault if fault not in KILLS]
EVENT_LEASE_S = 15
JOBS = {"waits": "RequestResponse", "event": "Event", "other": "Event"}
FIRES = {("alice", name): [at(DUE)] for name in JOBS}


def registered(world: World) -> list[Execution]:
    for _, name in FIRES:
        world.registry.create("alice", name, job(at=DUE, invocation=JOBS[name], timeout_s=30))
    executions = [Execution.decode(body) for body in world.sqs.bodies]
    world.sqs._waiting.clear()
    world.clock.move_to(at(DUE))
    return executions


def copies(executions: list[Execution], rng: random.Random) -> list[Message]:
    """Each execution two or three times: alone and in packs, as other messages and as copies of the same one."""
    unpacked = [*executions, *executions, *rng.sample(executions, 2)]
    rng.shuffle(unpacked)
    messages: list[Message] = []
    while unpacked:
        size = rng.randint(1, 4)
        pack, unpacked = Pack(tuple(unpacked[:size])), unpacked[size:]
        messages.append(Message(f"m-{len(messages)}", pack.encode(), "first"))
    again = rng.choice(messages)
    return [*messages, Message(again.message_id, again.body, "second", 2)]


@pytest.mark.parametrize("seed", range(40))
def test_copies_in_one_batch_meet_a_fault_and_each_call_is_made_once_within_a_lease(seed: int) -> None:
    rng = random.Random(seed)
    with staged(BEGIN) as stage:
        world = stage.world
        messages = copies(registered(world), rng)
        if seed % 2:
            send_in_steps(stage)
        stage.wire.arm(rng.randint(1, 16), rng.choice(ALIVE))
        _, failed = execute_batch(world.executor, messages, world.redelivery)
        stage.wire.disarm()
        for message in messages:
            if message.message_id in failed:
                world.sqs.give_back(message)
        world.run_until(END)
        calls: dict[tuple[str, int], list[float]] = {}
        for called_at, context in world.target.calls:
            calls.setdefault((context["job_id"], context["attempt"]), []).append(called_at)
        for (name, _), times in calls.items():
            gaps = [later - earlier for earlier, later in pairwise(times)]
            # The stated exception: the message of an event was delivered twice, the second time after the lease.
            assert all(gap >= EVENT_LEASE_S for gap in gaps), (seed, calls)
            assert JOBS[name] == "Event" or not gaps, (seed, calls)
        world.target.calls[:] = {
            (c["job_id"], c["attempt"]): (when, c) for when, c in world.target.calls
        }.values()
        everything_explained(world, FIRES)


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_an_execution_that_is_in_its_pack_twice_is_called_once(world: World, invocation: str) -> None:
    for name in ("a", "b"):
        world.registry.create("alice", name, job(at=DUE, invocation=invocation))
    executions = [Execution.decode(body) for body in world.sqs.bodies]
    world.sqs._waiting.clear()
    world.queue.send_packs([Pack((*executions, *executions))])
    world.run_until(END)
    everything_explained(world, {("alice", name): [at(DUE)] for name in ("a", "b")})


def test_registrations_that_are_cut_off_around_a_pause_come_in_one_pack_and_call_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"job-{n}" for n in range(4)]
    with monkeypatch.context() as broken:
        broken.delattr(type(world.sqs), "send_message_batch")
        for name in names:
            world.registry.create(
                "alice", name, job(cron="*/5 3 * * *", end_at="2026-11-21T03:50:00Z", invocation="Event")
            )
            world.store.pause("alice", name)
            world.store.resume("alice", name)
    planner = replace(world.scheduler.planner, pack_from=2)
    world.scheduler = replace(world.scheduler, planner=planner)
    world.run_until(END, ticks=True)
    fires = range(at("2026-11-21T03:15:00Z"), at("2026-11-21T03:50:00Z"), 300)
    everything_explained(world, {("alice", name): fires for name in names})
    packs = [[Execution.decode(line).execution_id for line in lines(body)] for body in world.sqs.bodies]
    assert any(len(set(pack)) < len(pack) for pack in packs), "no pack was like this"


@pytest.mark.parametrize("fault", ALIVE)
def test_a_backfills_event_is_not_sent_again_when_its_next_run_cannot_be_enqueued(fault: Fault) -> None:
    with staged(BEGIN) as stage:
        world = stage.world
        world.registry.create("alice", "b", job(cron="0 3 * * *", invocation="Event"))
        days = at("2026-11-17T00:00:00Z"), at("2026-11-21T00:00:00Z")
        world.manual.backfills.start("alice", "b", *days, concurrency=1, backfill_id="x")
        stage.save()

        def carries_on(world: World, died: BaseException | None) -> None:
            world.run_until(END)
            called = [(context["fire_at"], context["attempt"]) for _, context in world.target.calls]
            assert len(called) == len(set(called)), called
            assert world.statuses("alice", "b").count("dispatched") == 4

        assert stage.each_call(deliver_one, fault, carries_on) > 4


def test_an_event_stays_hidden_while_a_lease_that_began_later_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event is slow. When the time of its redelivery is set, the other run has no lease yet."""
    world.registry.create("alice", "event", job(at=DUE, invocation="Event"))
    world.registry.create("alice", "long", job(at=DUE, timeout_s=200, overlap="skip"))
    world.clock.move_to(at(DUE))
    messages = [message for _ in "12" if (message := world.sqs.receive())]
    told_once, told_again = threading.Event(), threading.Event()
    change, admit = world.sqs.change_message_visibility_batch, Executor._admit

    def changed(**request: Any) -> dict[str, Any]:
        answer = change(**request)
        if told_once.is_set():
            told_again.set()
        world.clock.move_to(at(DUE) + EVENT_LEASE_S)
        told_once.set()
        return answer

    def admitted(executor: Executor, loaded: Loaded, now: float) -> Any:
        assert loaded.execution.job_id == "event" or told_once.wait(60)
        return admit(executor, loaded, world.clock.now())

    def call(event: Mapping[str, Any]) -> Outcome:
        is_event = event["minute8"]["job_id"] == "event"
        return Outcome(ok=told_once.wait(60) if is_event else told_again.wait(60))

    world.target.answer = call
    monkeypatch.setattr(world.sqs, "change_message_visibility_batch", changed)
    monkeypatch.setattr(Executor, "_admit", admitted)
    monkeypatch.setattr(threads, "MAX_EVENT_WAIT_S", 0.05)
    monkeypatch.setattr(threads, "MAX_THREAD_WAIT_S", 0.1)
    redelivery = Redelivery(world.sqs, "queue", world.clock, 0.05)  # type: ignore[arg-type]
    assert execute_batch(world.executor, messages, redelivery)[1] == []
    lease_until = world.clock.now() - EVENT_LEASE_S + 200 + 5
    assert world.sqs._hidden[messages[0].receipt] >= lease_until + AFTER_LEASE_S


def slow_batch(world: World, after_first_claim: Callable[[], object]) -> None:
    """Sixty awaited calls of one second, by an executor to which something happens after its first joint claim."""
    names = [f"job-{n}" for n in range(60)]
    for name in names:
        world.registry.create("alice", name, job(at=DUE, timeout_s=30))
    world.clock.move_to(at(DUE))
    messages = [message for _ in names if (message := world.sqs.receive())]
    insert, done = world.dynamodb.batch_execute_statement, []

    def inserted(**request: Any) -> Any:
        answer = insert(**request)
        if not done:
            done.append(answer)
            after_first_claim()
        return answer

    with patch.object(world.dynamodb, "batch_execute_statement", inserted):
        execute_batch(world.executor, messages, world.redelivery)


def test_a_lease_begins_with_its_own_claim_so_that_nobody_else_calls_meanwhile(world: World) -> None:
    """The second joint claim goes out 20 s after the first one, and a copy comes 20 s after that call."""
    copy: list[Message] = []
    calls: list[int] = []

    def call(event: Mapping[str, Any]) -> Outcome:
        if event["minute8"]["job_id"] != "job-59":
            return Outcome(ok=True)
        calls.append(event["minute8"]["attempt"])
        if len(calls) == 1:
            world.clock.sleep(20)
            body = next(body for body in world.sqs.bodies if '"job-59"' in body)
            copy.append(Message("copy", body, "receipt"))
            execute_batch(world.executor, copy, world.redelivery)
        return Outcome(ok=True)

    world.target.answer = call
    slow_batch(world, lambda: world.clock.sleep(20))
    assert (len(copy), calls) == (1, [1])
    assert world.statuses("alice", "job-59") == ["succeeded"]


def test_an_attempt_keeps_the_lease_of_a_claim_whose_answer_was_lost(world: World) -> None:
    """The claim was written, with a lease of 35 s. Its answer fails after 40 s, so no call may follow."""

    def lose_the_answer() -> None:
        world.clock.sleep(40)
        raise EndpointConnectionError(endpoint_url="https://aws.test")

    slow_batch(world, lose_the_answer)
    (run,) = world.run_items("alice", "job-0")
    assert [attempt["error_type"] for attempt in run["attempts"]] == ["LeaseOver"]
    assert "job-0" not in {context["job_id"] for _, context in world.target.calls}
    world.run_until(END)
    everything_explained(world, {("alice", f"job-{n}"): [at(DUE)] for n in range(60)})


def test_an_attempt_that_waited_for_a_thread_has_its_whole_lease_and_permit(world: World) -> None:
    for name in ("a", "b"):
        world.registry.create("alice", name, job(at=DUE, timeout_s=30, concurrency={"key": "k", "limit": 1}))
    world.clock.move_to(at(DUE))
    message = world.sqs.receive()
    assert message
    (delivery,) = deliveries_of([message], world.clock.now())
    progress: Any = delivery
    while not isinstance(progress, Admitted):
        progress = world.executor.next_stage(progress)
    world.clock.sleep(60)
    claimed = world.executor.next_stage(progress)
    (run,) = world.run_items("alice", progress.claim.execution.job_id)
    (lease,) = world.table("runs").get(key_permits("alice", "k"))["holders"].values()
    assert (run["lease_until"], lease["until"]) == (at(DUE) + 60 + 35, at(DUE) + 60 + 35 + 60)
    world.executor.next_stage(claimed)
    assert len(world.target.calls) == 1
