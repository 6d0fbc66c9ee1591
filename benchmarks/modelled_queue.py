"""A model of SQS: messages become visible, are in flight, and come back."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

BATCH = 10
# The most messages in flight (received and not deleted) of one queue.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
IN_FLIGHT = 120_000


@dataclass(slots=True)
class Message:
    """One execution: visible from `visible_at` on, due at `due_at`; in seconds."""

    visible_at: float
    due_at: float
    tenant: int
    receives: int = 0


class Queue:
    """Messages in the order in which they become visible, including those that come back."""

    def __init__(self, messages: Iterable[Message], pack: int = 1) -> None:
        """`pack` of the executions travel in a message."""
        self._most_in_flight = IN_FLIGHT * pack
        self._coming = iter(messages)
        self._next = next(self._coming, None)
        # In flight until their visibility timeout is over; sent again, with a delay.
        self._hidden: list[tuple[float, int, Message]] = []
        self._delayed: list[tuple[float, int, Message]] = []
        self._numbers = itertools.count()
        self.begin_at = self._next.visible_at if self._next else 0.0
        self.in_flight = 0

    @property
    def is_empty(self) -> bool:
        return self._next is None and not self._delayed and not self.in_flight

    def can_give(self, now: float) -> bool:
        """Whether a batch is available."""
        if _is_out(self._hidden, now):
            return True
        waiting = _is_out(self._delayed, now) or (self._next is not None and self._next.visible_at <= now)
        return waiting and self.in_flight < self._most_in_flight

    def take(self, now: float, most: int = BATCH) -> list[Message]:
        """A batch of visible messages."""
        batch: list[Message] = []
        while len(batch) < most and _is_out(self._hidden, now):
            batch.append(heapq.heappop(self._hidden)[2])
        while len(batch) < most and self.in_flight < self._most_in_flight and (message := self._first(now)):
            batch.append(message)
            self.in_flight += 1
        for message in batch:
            message.receives += 1
        return batch

    def hide(self, message: Message, until: float) -> None:
        """A message that was not deleted stays in flight until its visibility timeout, and is then received again."""
        heapq.heappush(self._hidden, (until, next(self._numbers), message))

    def send(self, message: Message) -> None:
        """Add a message, visible from its `visible_at` on."""
        heapq.heappush(self._delayed, (message.visible_at, next(self._numbers), message))

    def delete(self, count: int) -> None:
        self.in_flight -= count

    def _first(self, now: float) -> Message | None:
        """Take the message that has been visible for longest."""
        if self._next is not None and self._next.visible_at <= now:
            message, self._next = self._next, next(self._coming, None)
            return message
        return heapq.heappop(self._delayed)[2] if _is_out(self._delayed, now) else None


def _is_out(heap: list[tuple[float, int, Message]], now: float) -> bool:
    return bool(heap) and heap[0][0] <= now
