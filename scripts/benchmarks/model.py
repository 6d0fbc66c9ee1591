"""The executions queue, its executors, their tables and targets as a discrete-event model of AWS's published numbers.

Time 0 is the second at which a burst is due. docs/capacity.md names the sources and what is left out.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import simpy

from scripts.benchmarks.modelled_aws import (
    ATTEMPTS,
    BATCH,
    ENVIRONMENTS_A_SECOND,
    ENVIRONMENTS_AT_ONCE,
    PARTITION_READS,
    PARTITION_WRITES,
    POLLS_A_SECOND,
    Message,
    Outcome,
    Partitions,
    Queue,
    Service,
    Setting,
    Timing,
    allowed,
    backoff_s,
    pollers,
    woken,
)

# The tenant's rules are read eventually consistent, once for each environment and tenant. In a burst after silence this
# is nearly once for each message, unless there are few tenants.
_RULES_READ_UNITS = 0.5
_STEPS = 3
# What an environment was before a batch; the fields of `Measured`.
_State = Literal["cold", "woken", "warm"]

Process = Generator[Any, Any, None]


def burst(executions: int, setting: Setting, seed: int = 8) -> Outcome:
    """All executions due at one second."""
    early_s, within_s = setting.early_s, setting.early_s - setting.latest_s
    messages = (
        Message(within_s * n / executions - early_s, 0.0, n % setting.tenants) for n in range(executions)
    )
    return simulate(messages, setting, seed)


def simulate(messages: Iterable[Message], setting: Setting, seed: int = 8) -> Outcome:
    """Simulate these messages, sorted by when they become visible, until all have ended."""
    queue = Queue(messages, setting.pack, setting.doubled, setting.again_after_s)
    return _Simulation(queue, setting, random.Random(seed)).run()


class _Simulation:
    def __init__(self, queue: Queue, setting: Setting, rng: random.Random) -> None:
        self._setting = setting
        self._queue = queue
        self._world = simpy.Environment(initial_time=self._queue.begin_at)
        self._rng = rng
        self._outcome = Outcome()
        # Executors and the targets of the same account.
        self._executors = 0
        self._running = 0
        self._targets_waiting = 0
        self._jobs = Partitions(setting.warm_reads, PARTITION_READS)
        self._tenants = Partitions(setting.warm_reads, PARTITION_READS)
        self._runs = Partitions(setting.warm_writes, PARTITION_WRITES)
        self._services = itertools.cycle(setting.services)

    def run(self) -> Outcome:
        self._wake()
        for _ in range(self._setting.functions):
            self._world.process(self._mapping())
        if self._setting.target_s:
            self._world.process(self._call_targets())
        self._world.run()
        self._outcome.throttled = sum(table.refused for table in (self._jobs, self._tenants, self._runs))
        return self._outcome

    def _wake(self) -> None:
        """Count what the wakes took. They are over before the burst."""
        outcome = self._outcome
        outcome.wakes = -(-self._setting.wakes // BATCH)
        outcome.batches += outcome.wakes
        outcome.busy_s += woken(self._setting)[1] * self._setting.functions

    def _mapping(self) -> Process:
        """One function's pollers and environments. Environments are created when needed, and reused."""
        setting, queue, outcome = self._setting, self._queue, self._outcome
        fresh, _ = woken(setting)
        function = _Function(
            setting.warm_environments + fresh, setting.warm_environments, self._world.event(), fresh
        )
        polls, was_in_vain = 0.0, False
        while not queue.is_empty:
            since_s = self._world.now - queue.begin_at
            places = min(function.free(setting, since_s), setting.account_concurrency - self._running)
            if setting.minimum_pollers:
                ready = pollers(setting, since_s)
                polls = min(ready, polls + ready * POLLS_A_SECOND * setting.look_s)
                places = min(places, int(polls))
            is_in_vain = not (places > 0 and queue.can_give(self._world.now))
            while places > 0 and queue.can_give(self._world.now):
                places, polls = places - 1, polls - 1
                self._running, self._executors = self._running + 1, self._executors + 1
                self._world.process(
                    self._invoke(
                        queue.take(self._world.now, setting.batch * setting.pack), function.begin(), function
                    )
                )
            outcome.max_executors = max(outcome.max_executors, self._executors)
            outcome.max_in_flight = max(outcome.max_in_flight, queue.in_flight)
            yield from self._until_next_look(function, is_in_vain, was_in_vain)
            was_in_vain = is_in_vain

    def _until_next_look(self, function: _Function, is_in_vain: bool, was_in_vain: bool) -> Process:
        """Wait as AWS's pollers do, or as the embedded AWS's do (ministack, `_poll_loop`)."""
        world, look_s = self._world, self._setting.look_s
        if not self._setting.after_empty_s:
            yield world.timeout(look_s)
        elif is_in_vain:
            if was_in_vain:
                yield world.timeout(self._setting.after_empty_s)
            since_look_s = (world.now - self._queue.begin_at) % look_s
            yield world.timeout(look_s - since_look_s) | function.ended
        if function.ended.triggered:
            function.ended = world.event()

    def _invoke(self, batch: list[Message], was: _State, function: _Function) -> Process:
        """One invocation of the executor: the messages of its batch run at once."""
        world, outcome = self._world, self._outcome
        invoked_at, service = world.now, self._service(len(batch), was)
        if was == "cold":
            yield world.timeout(self._setting.cold_s)
        begun_at = [max(world.now, message.due_at) for message in batch]
        # Messages become visible at different times before their second; the batch reads the tables at the latest.
        yield world.timeout(max(begun_at) + service.last_s - world.now)
        hidden = 0
        waiting = [_Request(begun_at[n] + service.lead_s(n), n, message) for n, message in enumerate(batch)]
        heapq.heapify(waiting)
        while waiting:
            request = heapq.heappop(waiting)
            if request.at > world.now:
                yield world.timeout(request.at - world.now)
            if request.message.is_copy:
                continue
            if self._got_all(request):
                outcome.lateness.append(request.at - request.message.due_at)
                self._targets_waiting += 1
            elif request.attempt < ATTEMPTS:
                request.at = world.now + backoff_s(request.attempt, self._rng)
                request.attempt += 1
                heapq.heappush(waiting, request)
            elif request.message.receives >= self._setting.max_receives:
                outcome.dead += 1
            else:
                outcome.came_back += 1
                hidden += 1
                again_s = self._setting.again_s * 2.0 ** (request.message.receives - 1)
                self._queue.hide(request.message, world.now + min(again_s, self._setting.max_again_s))
        yield world.timeout(service.whole_s - service.last_s)
        self._queue.delete(len(batch) - hidden)
        outcome.batches += 1
        outcome.busy_s += world.now - invoked_at
        self._running, self._executors = self._running - 1, self._executors - 1
        function.end()

    def _service(self, count: int, was: _State) -> Service:
        executor = self._setting.executor
        if executor is None:
            return next(self._services)
        timing: Timing = getattr(executor, was)
        return timing.service(count)

    def _got_all(self, request: _Request) -> bool:
        """Read the job and the tenant's rules, and claim the run; continues at the step that a partition throttled."""
        tenant = request.message.tenant
        while request.step < _STEPS:
            table, partition, units = (
                (self._jobs, tenant, 1.0),
                (self._tenants, tenant, _RULES_READ_UNITS if self._setting.tenants > BATCH else 0.0),
                (self._runs, self._rng.randrange(self._runs.count), 1.0),
            )[request.step]
            if not table.take(partition % table.count, units, self._world.now):
                return False
            request.step, request.attempt = request.step + 1, 1
        return True

    def _call_targets(self) -> Process:
        """`Event` calls are accepted without a limit, and run when the account has free concurrency."""
        setting, world = self._setting, self._world

        def end(count: int) -> Process:
            yield world.timeout(setting.target_s)
            self._running -= count
            self._outcome.targets_done_at = world.now

        while not self._queue.is_empty or self._targets_waiting:
            count = min(self._targets_waiting, setting.account_concurrency - self._running)
            if count > 0:
                self._targets_waiting -= count
                self._running += count
                world.process(end(count))
            yield world.timeout(setting.look_s)


@dataclass(slots=True)
class _Function:
    """The environments that one function has created: those that wait for work, and those that were only woken."""

    started: int
    idle: int
    # Happens when a batch ends.
    ended: simpy.Event
    woken: int = 0
    under_way: int = 0

    def free(self, setting: Setting, since_s: float) -> int:
        """How many more batches may begin."""
        makeable = int(ENVIRONMENTS_AT_ONCE + since_s * ENVIRONMENTS_A_SECOND) - self.started
        return min(allowed(setting, since_s) - self.under_way, self.idle + self.woken + makeable)

    def begin(self) -> _State:
        """Take an environment, if there is one; returns what it was."""
        self.under_way += 1
        if self.woken:
            self.woken -= 1
            return "woken"
        if self.idle:
            self.idle -= 1
            return "warm"
        self.started += 1
        return "cold"

    def end(self) -> None:
        self.idle, self.under_way = self.idle + 1, self.under_way - 1
        if not self.ended.triggered:
            self.ended.succeed()


@dataclass(order=True, slots=True)
class _Request:
    """A message's requests to DynamoDB: its current step and attempt."""

    at: float
    number: int
    message: Message = field(compare=False)
    step: int = field(default=0, compare=False)
    attempt: int = field(default=1, compare=False)
