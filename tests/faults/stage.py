"""A world that can be restored to a saved state, so that one flow is played with every fault."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.outgoing import Steps
from executor.targets import Kind
from tests.faults.wire import Fault, Wire, WiredDynamoDB, wired_queue, wired_target
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import TABLES, Killed, World, make_world

_seen: set[bytes] = set()


class Stage:
    """One world, its wire, and the saved state."""

    def __init__(self, now: str) -> None:
        self.wire = Wire()
        self._dynamodb = MemoryDynamoDB()
        self.world = make_world(WiredDynamoDB(self._dynamodb, self.wire), now)
        self.world.sqs.send_message_batch = wired_queue(self.wire, self.world.sqs.send_message_batch)  # type: ignore[method-assign]
        kind = self.world.executor.kinds["lambda"]
        kinds = {"lambda": Kind(wired_target(self.wire, kind.call))}
        self.world.executor = replace(self.world.executor, kinds=kinds)
        # The connections of killed processes, which the system closes.
        self.left_open = ExitStack()
        self.save()

    def save(self) -> None:
        """Save the state that `restore` goes back to."""
        world = self.world
        self._saved = self._dynamodb.saved()
        self._now, self._rng = world.clock.now(), world.store.rng.getstate()
        self._waits, self._receives = world.redelivery.random.getstate(), dict(world.sqs._receives)
        self._lists = [(kept, list(kept)) for kept in self._kept()]

    def restore(self) -> World:
        self._dynamodb.restore(self._saved)
        self.world.clock.move_to(self._now)
        self.world.store.rng.setstate(self._rng)
        self.world.redelivery.random.setstate(self._waits)
        self.world.sqs._receives = dict(self._receives)
        for kept, content in self._lists:
            kept[:] = content
        self.wire.disarm()
        return self.world

    def _kept(self) -> list[list[Any]]:
        world = self.world
        return [
            world.sqs._waiting,
            world.sqs.delays,
            world.sqs.bodies,
            world.target.calls,
            world.reports,
            world.events,
        ]

    def is_new(self, flow: str, *also: object) -> bool:
        """Whether this flow has reached this state for the first time. Each state is checked once."""
        world = self.world
        items = [
            json.dumps([name, item], sort_keys=True)
            for name in TABLES
            for item in self._dynamodb.scan(f"test-{name}")["Items"]
            if not item["sk"]["S"].startswith(keys.AUDIT_PREFIX)  # their ids are random
        ]
        messages = sorted((visible_at, body) for visible_at, _, _, body in world.sqs._waiting)
        state = (flow, also, sorted(items), messages, world.clock.now(), world.target.calls)
        digest = hashlib.sha256(repr(state).encode()).digest()
        if digest in _seen:
            return False
        _seen.add(digest)
        return True

    def attempt(self, step: Callable[[World], object]) -> BaseException | None:
        """Do one step as its handler's process would; returns the exception that ended it."""
        try:
            step(self.world)
        except (Exception, Killed) as error:  # noqa: BLE001
            return error
        finally:
            self.wire.disarm()
        return None

    def each_call(
        self,
        step: Callable[[World], object],
        fault: Fault,
        check: Callable[[World, BaseException | None], None],
        flow: str = "",
    ) -> int:
        """Play `step` once for each of its calls, with the fault at that call, and `check` each. Returns how many.

        Of a named `flow`, each state that the faults lead to is checked once.
        """
        nth = 1
        while True:
            world = self.restore()
            self.wire.arm(nth, fault)
            died = self.attempt(step)
            if not self.wire.hit:
                return nth - 1
            met = f"call {nth}, {self.wire.hit}: {fault}; {died!r}"
            assert fault is not Fault.CONFLICTED or died is None, met  # it is retried
            try:
                if not flow or self.is_new(flow, died is None):
                    check(world, died)
            except Exception as error:
                raise AssertionError(f"{met}: {error}") from error
            nth += 1


def send_in_steps(stage: Stage) -> None:
    """Have the executor send the events of a batch as to Lambda: from one thread, before it reads an answer."""
    world = stage.world
    kind = world.executor.kinds["lambda"]

    def in_steps(*arguments: Any) -> Steps[Outcome]:
        executor_end, target_end = (stage.left_open.enter_context(end) for end in socket.socketpair())
        with executor_end, target_end:
            outcome = kind.call(*arguments)
            target_end.send(b"answer")
            yield executor_end
            return outcome

    world.executor = replace(world.executor, kinds={"lambda": replace(kind, in_steps=in_steps)})


@contextmanager
def staged(now: str) -> Iterator[Stage]:
    stage = Stage(now)
    with stage.left_open:
        yield stage


def killed_after(stage: Stage, call: str, step: Callable[[World], object], nth: int = 1) -> None:
    """Do one step and kill its process after its `nth` call of that name."""
    stage.wire.arm(nth, Fault.KILLED_AFTER, only=call)
    assert isinstance(stage.attempt(step), Killed)


def deliver_one(world: World) -> None:
    """Deliver the next visible message."""
    message = world.sqs.receive()
    assert message
    world.deliver_one(message)
