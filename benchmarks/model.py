"""The executions queue and its executors as a discrete-event model, with AWS's published numbers.

Batches of ten, since at these loads the queue always has them full. A poller takes a batch when an execution
environment is free for it; environments come at AWS's rates. docs/capacity.md names the sources.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import simpy  # type: ignore[import-not-found,unused-ignore]  # of requirements-bench.txt

BATCH = 10
# Default polling: 5 concurrent batches, 300 more each minute, at most 1,250.
_DEFAULT_START, _DEFAULT_A_MINUTE, _DEFAULT_MOST = 5, 300, 1_250
# A provisioned poller runs 10 at once; together they add 1,000 concurrency a minute, up to 20,000.
_A_POLLER, _POLLED_A_MINUTE, _POLLED_MOST = 10, 1_000, 20_000
# Lambda: 1,000 new environments in 10 s and function.
_ENVIRONMENTS_A_SECOND = 100
IN_FLIGHT = 120_000


@dataclass(frozen=True, slots=True)
class Setting:
    """What serverless.yml sets, and the account's limit."""

    queues: int = 1
    minimum_pollers: int = 0
    maximum_pollers: int = 0
    maximum_concurrency: int = 0
    account_concurrency: int = 1_000
    batch_s: float = 0.3
    cold_s: float = 1.2


@dataclass(slots=True)
class Outcome:
    """What a burst met: how late each batch began, how many ran at once."""

    lateness: list[float] = field(default_factory=list)
    most_at_once: int = 0
    timeline: list[tuple[float, int]] = field(default_factory=list)


def allowed(setting: Setting, at: float) -> int:
    """How many batches one queue's mapping may have under way `at` seconds after the burst."""
    if setting.minimum_pollers:
        ready = setting.minimum_pollers * _A_POLLER
        most = min(max(setting.maximum_pollers, setting.minimum_pollers) * _A_POLLER, _POLLED_MOST)
        return min(most, ready + int(at / 60 * _POLLED_A_MINUTE))
    grown = min(_DEFAULT_MOST, _DEFAULT_START + int(at / 60 * _DEFAULT_A_MINUTE))
    return min(grown, setting.maximum_concurrency) if setting.maximum_concurrency else grown


def burst(executions: int, setting: Setting) -> Outcome:
    """All executions due at one second, spread evenly over the queues."""
    world = simpy.Environment()
    outcome = Outcome()
    free_account = simpy.Container(
        world, capacity=setting.account_concurrency, init=setting.account_concurrency
    )
    for queue in range(setting.queues):
        share = executions // setting.queues + (queue < executions % setting.queues)
        world.process(_mapping(world, math.ceil(share / BATCH), setting, free_account, outcome))
    world.run()
    return outcome


def _mapping(
    world: simpy.Environment, batches: int, setting: Setting, account: simpy.Container, outcome: Outcome
) -> Generator[Any, Any, None]:
    """One queue and its function: environments are made as they are needed, and used again."""
    state = {"under_way": 0, "idle": 0, "made": 0}

    def invoke(cold: bool) -> Generator[Any, Any, None]:
        if cold:
            yield world.timeout(setting.cold_s)
        outcome.lateness.append(world.now)
        yield world.timeout(setting.batch_s)
        state["under_way"] -= 1
        state["idle"] += 1
        yield account.put(1)

    while batches:
        if state["under_way"] >= allowed(setting, world.now):
            yield world.timeout(0.05)
            continue
        makeable = state["made"] < 1_000 + world.now * _ENVIRONMENTS_A_SECOND
        if not state["idle"] and not makeable:
            yield world.timeout(0.05)
            continue
        yield account.get(1)
        cold = not state["idle"]
        state["made" if cold else "idle"] += 1 if cold else -1
        state["under_way"] += 1
        batches -= 1
        outcome.most_at_once = max(outcome.most_at_once, int(account.capacity - account.level))
        if len(outcome.timeline) < 100_000:
            outcome.timeline.append((world.now, len(outcome.lateness) * BATCH))
        world.process(invoke(cold))
