"""The messages of a batch, the executions that they deliver, and the order in which the executions start.

A pack delivers several executions, any other message one. A wake delivers none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from common.planning.execution import Execution, UnreadableMessage
from common.planning.packs import lines

# SQS delays by whole seconds, so a message can arrive up to a second early. The executor then holds its execution.
# An execution that is due later goes back to the queue.
MAX_HOLD_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the executions queue, with the receipt handle and the delivery count of SQS."""

    message_id: str
    body: str
    receipt: str = ""
    receives: int = 1


@dataclass(frozen=True, slots=True)
class Delivery:
    """One execution that a message delivers. `body` is the message that it would have alone.

    `execution` is None if the body cannot be read. `received_at` is when the batch arrived.
    """

    message: Message
    body: str
    execution: Execution | None
    received_at: float

    @property
    def is_in_pack(self) -> bool:
        """Whether the message also delivers other executions."""
        return self.body != self.message.body

    @property
    def is_early(self) -> bool:
        """Whether the execution is due too late to be held."""
        return self.execution is not None and self.execution.visible_at - self.received_at > MAX_HOLD_S


def deliveries_of(messages: Iterable[Message], received_at: float) -> list[Delivery]:
    """The executions of these messages; each execution of a message once.

    Two cut-off registrations of a job have the same executions, which can come into the same pack.
    """
    return [
        Delivery(message, body, _read(body), received_at)
        for message in messages
        for body in dict.fromkeys(lines(message.body))
    ]


def _read(body: str) -> Execution | None:
    try:
        return Execution.decode(body)
    except UnreadableMessage:
        return None  # the pipeline reports it


def by_second(deliveries: Iterable[Delivery]) -> list[list[Delivery]]:
    """The executions of each second together, the earliest second first. Within a second, tenants take turns.

    Executions that are due already are together as well. Unreadable and early deliveries come first, each by itself. An
    early execution must not wait for others: it would then be due soon enough to be held, and the waits of a batch
    would add up.
    """
    apart: list[list[Delivery]] = []
    due: list[tuple[int, int, Delivery]] = []
    turns: Counter[str] = Counter()
    for delivery in deliveries:
        execution = delivery.execution
        if execution is None or delivery.is_early:
            apart.append([delivery])
            continue
        second = max(execution.visible_at, math.floor(delivery.received_at))
        due.append((second, turns[execution.tenant], delivery))
        turns[execution.tenant] += 1
    due.sort(key=lambda turn: turn[:2])
    return apart + [[delivery for *_, delivery in second] for _, second in groupby(due, lambda turn: turn[0])]
