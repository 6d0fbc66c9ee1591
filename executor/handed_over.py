"""Which executions of a batch's messages were handed over: the claims of a pack note it, and a redelivery reads it.

The claim of an `Event` run is written before its call, and is its only write. If an executor dies, its packs come again
whole. What a later claim of the same pack noted is not called a second time. Noting it costs no request.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from common.runs.states import DISPATCHED
from executor.recorder import Report
from executor.stages import Delivery, Message


class HandedOver:
    """The executions that were handed over, as far as this process knows, from the begin of a batch to its end."""

    def __init__(self) -> None:
        self._sizes: Counter[str] = Counter()
        self._positions: defaultdict[str, set[int]] = defaultdict(set)

    def begin(self, deliveries: Iterable[Delivery]) -> None:
        """The batch of these deliveries begins."""
        self._sizes.update(delivery.message.message_id for delivery in deliveries)

    def end(self, messages: Iterable[Message]) -> None:
        """The batch of these messages has ended."""
        for message in messages:
            self._sizes.pop(message.message_id, None)
            self._positions.pop(message.message_id, None)

    def note(self, delivery: Delivery, report: Report) -> None:
        """Note the end of an execution of a batch that has begun: it is handed over if it was dispatched."""
        if report.result == DISPATCHED and delivery.message.message_id in self._sizes:
            self._positions[delivery.message.message_id].add(delivery.position)

    def learn(self, message_id: str, bits: int) -> None:
        """Add what an earlier delivery of the message noted."""
        self._positions[message_id] |= {n for n in range(bits.bit_length()) if bits >> n & 1}

    def bits(self, message_id: str) -> int:
        """Those of a message: bit n is its execution n, from 0."""
        return sum(1 << position for position in self._positions.get(message_id, set()).copy())

    def contains(self, delivery: Delivery) -> bool:
        """Whether it is known that this execution was handed over."""
        return delivery.position in self._positions.get(delivery.message.message_id, ())

    def take_finished(self, messages: Iterable[Message], least: int) -> Sequence[Message]:
        """The messages of which everything was handed over, each once. None if there are fewer than `least`."""
        finished = [
            message
            for message in messages
            if self._sizes[message.message_id] == len(self._positions.get(message.message_id, ()))
        ]
        finished = [message for message in finished if message.message_id in self._sizes]
        if len(finished) < least:
            return ()
        for message in finished:
            del self._sizes[message.message_id]
        return finished
