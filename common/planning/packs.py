"""Packs: the executions of a crowded second travel together, one a line of a message. Pure.

Each line is the message that the execution would have alone, so an execution means the same in a pack and outside.
Some seconds before, Lambda starts executors for wakes, which are messages without an execution.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Final, TypeAlias

from common.limits import MAX_IN_A_PACK, MAX_WAKES, MESSAGE_LINES
from common.planning.execution import Execution

# `packFrom` of deploy/parameters.yml. Any second with two executions is packed:
# docs/decisions/planning.md#0005-packs-and-wakes
PACK_FROM: Final = 1
# A cold start takes about a second, and an environment stays for minutes.
WAKE_S: Final = 5
_WOKEN_S: Final = 60
# An executor is busy for so long with wakes: Lambda starts others for the wakes behind them. Polling grows by five
# batches a second, so a new one is busy longer if its batch is full, which says that more are coming.
WAKE_HOLD_S: Final = 0.1
NEW_HOLD_S: Final = 1.4
_FULL_BATCH: Final = 10
# Lambda begins with five batches of a queue, five hundred executions in packs, and adds five a second. Large crowds
# come out early in the second before theirs: polling has grown when they are due. Executors hold the first of them,
# which would cost a platform's day more than it gains for smaller crowds.
EARLY_FROM: Final = 2_000
_WAKE: Final = "wake"
# Executions in memory at once, among which the crowded seconds are found: some 10 MB.
_MAX_PACKED_TOGETHER: Final = 20_000


@dataclass(frozen=True, slots=True)
class Pack:
    """The executions of one message, all due at one second. `is_early`: of a large crowd (EARLY_FROM)."""

    executions: tuple[Execution, ...]
    is_early: bool = False

    @property
    def group(self) -> str:
        """The message group, by which the fair queue of SQS holds back a tenant's flood: its tenant, or mixed."""
        first = self.executions[0].tenant
        is_single_tenant = all(execution.tenant == first for execution in self.executions)
        return first if is_single_tenant else f"mixed:{first}"  # no tenant's name has a colon

    @property
    def visible_at(self) -> int:
        """The second at which all its executions are due."""
        return self.executions[0].visible_at

    def encode(self) -> str:
        """The message body; `lines` reads it."""
        return "\n".join(execution.encode() for execution in self.executions)


@dataclass(frozen=True, slots=True)
class Wake:
    """A message without an execution. Lambda starts an executor for it, before the crowded second."""

    visible_at: int
    executions: tuple[Execution, ...] = ()
    is_early: bool = False
    group: str = "wake:"  # no tenant's name has a colon

    def encode(self) -> str:
        """The message body; `is_wake` knows it."""
        return _WAKE


def hold_s(wakes: int, is_new: bool) -> float:
    """How long a batch of so many wakes keeps its executor busy. `is_new`: it has handled nothing yet."""
    return NEW_HOLD_S if is_new and wakes >= _FULL_BATCH else WAKE_HOLD_S


QueueMessage: TypeAlias = Pack | Wake


def is_wake(body: str) -> bool:
    """Whether a message has no execution, and was sent to start an executor."""
    return body == _WAKE


def alone(execution: Execution) -> Pack:
    """A message of its own."""
    return Pack((execution,))


def packed(executions: Iterable[Execution], pack_from: int) -> Iterator[QueueMessage]:
    """The messages of these executions. A second with more than `pack_from` of them is crowded; 0: none is.

    A crowded second fills at least `pack_from` messages before packs grow, since several executors share its work. A
    tenant with many executions has packs of its own: its message group then holds back nobody else. The others are
    mixed, and the mixed packs are in different groups. The first crowded second of a minute has wakes before it, as
    many as it would have full packs, `MAX_WAKES` at most. A later second that is larger adds the rest.

    Example: `pack_from` is 50, and 130 executions are due at 09:00:00: 100 of alice, 30 of 30 other tenants. 130 / 50
    rounded up gives packs of 3. So alice has 33 packs of 3, her last execution joins the 30 others, and the mixed
    executions fill 11 packs. 13 wakes (130 / MAX_IN_A_PACK) are sent for 08:59:55.
    """
    if not pack_from:
        yield from map(alone, executions)
        return
    woken: Counter[int] = Counter()
    remaining = iter(executions)
    while batch := list(islice(remaining, _MAX_PACKED_TOGETHER)):
        seconds: defaultdict[int, list[Execution]] = defaultdict(list)
        for execution in batch:
            seconds[execution.visible_at].append(execution)
        for second in sorted(seconds):
            if len(seconds[second]) > pack_from:
                yield from _wakes(second, len(seconds[second]), woken)
            yield from _packs_of_second(seconds[second], pack_from)


def _wakes(second: int, count: int, woken: Counter[int]) -> Iterator[Wake]:
    """The wakes before a second with `count` executions. `woken` counts the wakes of each minute so far."""
    minute = second // _WOKEN_S
    more = max(0, min(MAX_WAKES, count // MAX_IN_A_PACK) - woken[minute])
    woken[minute] += more
    yield from repeat(Wake(second - WAKE_S), more)


def _packs_of_second(executions: list[Execution], pack_from: int) -> Iterator[Pack]:
    size = min(MAX_IN_A_PACK, -(-len(executions) // pack_from))
    is_early = len(executions) >= EARLY_FROM
    if size == 1:
        yield from _packs_of(executions, size, is_early)
        return
    tenants: defaultdict[str, list[Execution]] = defaultdict(list)
    for execution in executions:
        tenants[execution.tenant].append(execution)
    mixed: list[Execution] = []
    for own in tenants.values():
        packed_count = len(own) - len(own) % size
        yield from _packs_of(own[:packed_count], size, is_early)
        mixed += own[packed_count:]
    yield from _packs_of(mixed, size, is_early)


def _packs_of(executions: list[Execution], size: int, is_early: bool) -> Iterator[Pack]:
    for first in range(0, len(executions), size):
        yield Pack(tuple(executions[first : first + size]), is_early)


def lines(body: str) -> list[str]:
    """The messages in a body: the body itself, the lines of a pack, or none of a wake.

    A body of too many lines is returned whole, and no executor can read it.
    """
    if is_wake(body):
        return []
    return [body] if body.count("\n") >= MESSAGE_LINES else body.split("\n")
