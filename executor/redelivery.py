"""When the executions queue delivers messages again.

A message comes again soon after DynamoDB refused a request, or soon after a dead executor's lease. The queue's own
timeout must exceed the function's, so without `Redelivery` each message would wait for minutes.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibilityBatch.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from common import telemetry
from common.clock import Clock
from executor.pipeline import Delivery, Message
from executor.recorder import StillRunning
from executor.threads import Task, have_ended, in_a_thread

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        ChangeMessageVisibilityBatchRequestEntryTypeDef,
        DeleteMessageBatchRequestEntryTypeDef,
    )

# A batch of so many executions is hidden at its beginning, until an event's lease is over.
CROWD: Final = 20
CROWD_HIDDEN_S: Final = 25
# So many messages are deleted at once while more executions are claimed.
FINISHED_AT_ONCE: Final = 2
# After the end of a lease, so that a living executor has recorded its run by then.
AFTER_LEASE_S: Final = 10
# From the second delivery on, each wait is twice as long. So thirty deliveries outlast an outage of nearly four hours,
# and a quarter of an hour after its end all have come again.
_FIRST_WAIT_S: Final = 2
_MAX_WAIT_S: Final = 900
# SQS hides no message for longer than 12 hours.
_MAX_HIDDEN_S: Final = 43_200


def _is_handed_over(deliveries: Sequence[Delivery]) -> bool:
    """Whether all of a message was handed over."""
    return len(deliveries[0].handed_over) == len(deliveries)


class Hidden(NamedTuple):
    """Messages that stay hidden until the last lease of their executions ends, and some seconds more."""

    messages: frozenset[Message]
    lease_until: float


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Tells the executions queue when to deliver messages again.

    A batch that has not ended after `slow_after_s` expects its process to die. None: no batch does.
    """

    client: SQSClient
    url: str
    clock: Clock
    slow_after_s: float | None = 0.5
    random: Random = field(default_factory=Random)

    def after_failures(self, failed: Mapping[Message, Exception]) -> None:
        """Deliver a failed message after a growing wait, and a message that waits for a lease after its end."""
        self._hide({message: self._wait_s(message, error) for message, error in failed.items()})

    def expect_death_of_crowd(self, deliveries: Sequence[Delivery]) -> Future[None]:
        """Have SQS deliver a crowded batch again soon if this process dies, in a thread.

        Its executions share the price of the request. The queue's own timeout is that of the function.
        """
        messages = dict.fromkeys(delivery.message for delivery in deliveries)
        return in_a_thread(lambda: self._hide(dict.fromkeys(messages, CROWD_HIDDEN_S)))

    def expect_death(self, tasks: Sequence[Task]) -> Hidden | None:
        """Have SQS deliver the messages of slow tasks again soon if this process dies. None: no task is slow.

        Most batches end before `slow_after_s`, and pay nothing.
        """
        slow = [task for task in tasks if task.lease_until and not task.future.done()]
        if not slow:
            return None
        messages = frozenset(task.delivery.message for task in slow)
        hidden = Hidden(messages, max(task.lease_until for task in slow))
        self._hide_until(hidden)
        return hidden

    def delete_finished(self, unfinished: dict[Message, list[Delivery]], least: int) -> Future[None] | None:
        """Delete messages of which everything was handed over, in a thread, while their batch goes on.

        None if they are fewer than `least`: a request has its price. Lambda deletes all at the end of the batch. Takes
        them out of `unfinished`.
        """
        finished = [message for message, all_of_it in unfinished.items() if _is_handed_over(all_of_it)]
        if len(finished) < least:
            return None
        for message in finished:
            del unfinished[message]
        return in_a_thread(lambda: self._delete(finished))

    def _delete(self, messages: Sequence[Message]) -> None:
        entries: list[DeleteMessageBatchRequestEntryTypeDef] = [
            {"Id": str(number), "ReceiptHandle": message.receipt} for number, message in enumerate(messages)
        ]
        with telemetry.tolerated("messages not deleted: Lambda does it after the batch"):
            self.client.delete_message_batch(QueueUrl=self.url, Entries=entries)

    def keep_hidden(self, hidden: Hidden, tasks: Sequence[Task]) -> None:
        """Keep these messages hidden while the batch goes on. Otherwise another executor gets them after the lease.

        A lease may have begun after `expect_death`, and a record may be written after its lease.
        """
        while not have_ended(tasks, max(1.0, hidden.lease_until - self.clock.now())):
            leases = (task.lease_until for task in tasks if not task.future.done())
            hidden = hidden._replace(lease_until=max(self.clock.now() + AFTER_LEASE_S, *leases, 0.0))
            self._hide_until(hidden)

    def _hide_until(self, hidden: Hidden) -> None:
        """All get the same time: a message that succeeded stays in the queue until the whole batch has ended."""
        self._hide(dict.fromkeys(hidden.messages, hidden.lease_until + AFTER_LEASE_S - self.clock.now()))

    def _wait_s(self, message: Message, error: Exception) -> float:
        if isinstance(error, StillRunning):
            return error.until - self.clock.now() + 1
        max_wait_s = min(_MAX_WAIT_S, _FIRST_WAIT_S << min(message.receives - 1, 16))
        return self.random.uniform(0.75, 1) * max_wait_s

    def _hide(self, waits: Mapping[Message, float]) -> None:
        """Hide each message for its seconds in `waits`: a batch and a request both hold at most ten messages.

        If the time cannot be set, the queue's own timeout applies, which is longer.
        """
        entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
            {
                "Id": str(number),
                "ReceiptHandle": message.receipt,
                "VisibilityTimeout": min(_MAX_HIDDEN_S, max(1, math.ceil(wait_s))),
            }
            for number, (message, wait_s) in enumerate(waits.items())
        ]
        with telemetry.tolerated("visibility not changed: the messages come again all the same"):
            self.client.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)
