"""What of a batch goes back to the queue, and when the queue delivers it again.

An execution of a pack that nobody has claimed goes on as a message of its own. If anything else failed, the queue
delivers the whole pack again. The records of its ended executions show that these have ended. The dispatched calls are
settled before: otherwise they would be repeated, as after the death of their executor.

A message comes again soon after DynamoDB refused a request, or soon after a dead executor's lease. The queue's own
timeout must exceed the function's, so without `Redelivery` each message would wait for minutes.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibilityBatch.html
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from common import telemetry
from common.clock import Clock
from common.limits import MAX_THREAD_WAIT_S
from common.runs.run import Run
from common.runs.states import DISPATCHED
from executor.pipeline import Executor
from executor.recorder import Report, StillRunning
from executor.stages import Delivery, Message
from executor.threads import Task, call_each, have_ended, in_a_thread

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        ChangeMessageVisibilityBatchRequestEntryTypeDef,
        DeleteMessageBatchRequestEntryTypeDef,
    )

# A batch of so many executions is hidden at its beginning, until an event's lease is over.
_CROWD: Final = 20
CROWD_HIDDEN_S: Final = 25
# So many messages are deleted at once while more executions are claimed.
FINISHED_AT_ONCE: Final = 2
# As long as a single message waits before its second delivery.
_WAIT_ALONE_S: Final = 3
# After the end of a lease, so that a living executor has recorded its run by then.
AFTER_LEASE_S: Final = 10
# From the second delivery on, each wait is twice as long. So thirty deliveries outlast an outage of nearly four hours,
# and a quarter of an hour after its end all have come again.
_FIRST_WAIT_S: Final = 2
_MAX_WAIT_S: Final = 900
# SQS hides no message for longer than 12 hours.
_MAX_HIDDEN_S: Final = 43_200


def learn_handed_over(executor: Executor, deliveries: Iterable[Delivery]) -> None:
    """Learn what the claims of earlier deliveries of these packs noted. A message's first delivery costs no read."""
    again = [delivery for delivery in deliveries if delivery.is_in_pack and delivery.message.receives > 1]
    for delivery, record in zip(
        again, call_each(lambda delivery: _record(executor, delivery), again), strict=True
    ):
        # The bits of another message mean other executions.
        if record and record.claimed_by == delivery.message.message_id:
            bits = record.handed_over
            delivery.handed_over.update(n for n in range(bits.bit_length()) if bits >> n & 1)


def _is_handed_over(deliveries: Sequence[Delivery]) -> bool:
    """Whether all of a message was handed over."""
    return len(deliveries[0].handed_over) == len(deliveries)


def _record(executor: Executor, delivery: Delivery) -> Run | None:
    with telemetry.tolerated("not known what was handed over: it is called again"):
        return executor.runs.get(delivery.execution) if delivery.execution else None
    return None


def give_back(executor: Executor, task: Task) -> None:
    """End a task that found no thread. Its execution goes on as a message of its own; a claimed attempt is throttled.

    That is our failure: it costs the job none of its attempts.
    """
    delivery, task.future = task.delivery, Future[Report]()
    if task.claimed:
        task.refuse()
    elif delivery.execution and _send_alone(executor, [delivery]):
        task.future.set_result(Report("sent_on", delivery.execution))
    else:
        task.future.set_exception(TimeoutError(f"no thread within {MAX_THREAD_WAIT_S:g} s"))


def messages_to_deliver_again(
    executor: Executor, reports: Mapping[Task, Report], errors: Mapping[Task, Exception]
) -> dict[Message, Exception]:
    """The messages that the queue has to deliver again because of these errors, each with the longest-lasting error."""
    claims = call_each(lambda task: _is_unclaimed(executor, task, errors[task]), list(errors))
    unclaimed = [task for task, is_unclaimed in zip(errors, claims, strict=True) if is_unclaimed]
    sent_alone: list[Task] = []
    if unclaimed and _send_alone(executor, [task.delivery for task in unclaimed], _WAIT_ALONE_S):
        sent_alone = unclaimed
    by_message: defaultdict[Message, list[Exception]] = defaultdict(list)
    for task, error in errors.items():
        if task not in sent_alone:
            by_message[task.delivery.message].append(error)
    dispatched = [
        task.delivery
        for task, report in reports.items()
        if report.result == DISPATCHED and task.delivery.message in by_message
    ]
    call_each(lambda delivery: _settle(executor, delivery), dispatched)
    return {message: max(by_message[message], key=_lease_until) for message in by_message}


def _send_alone(executor: Executor, deliveries: Iterable[Delivery], wait_s: int = 0) -> bool:
    """Enqueue each execution as a message of its own. False if the queue did not take them."""
    not_before_at = int(executor.clock.now()) + wait_s if wait_s else 0
    executions = (delivery.execution for delivery in deliveries if delivery.execution)
    with telemetry.tolerated("not sent on: the message comes again"):
        executor.recorder.queue.send(
            [
                structs.replace(execution, not_before_at=max(execution.not_before_at, not_before_at))
                for execution in executions
            ]
        )
        return True
    return False


def _lease_until(error: Exception) -> float:
    return error.until if isinstance(error, StillRunning) else 0.0


def _is_unclaimed(executor: Executor, task: Task, error: Exception) -> bool:
    """Whether certainly nobody has claimed the execution. Only packs are looked up: a single message comes again."""
    delivery = task.delivery
    if not delivery.is_in_pack or delivery.execution is None or isinstance(error, StillRunning):
        return False
    with telemetry.tolerated("not known whether claimed"):
        return executor.is_unclaimed(delivery.execution)
    return False


def _settle(executor: Executor, delivery: Delivery) -> None:
    if not delivery.is_in_pack or delivery.execution is None:
        return
    with telemetry.tolerated("not settled: its call is made again, as after a crash"):
        executor.runs.settle(delivery.execution, delivery.message.message_id)


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

    def expect_death_of_crowd(self, deliveries: Sequence[Delivery]) -> Future[None] | None:
        """Have SQS deliver a crowded batch again soon if this process dies, in a thread. None: it is not crowded.

        Its executions share the price of the request. The queue's own timeout is that of the function.
        """
        if len(deliveries) < _CROWD:
            return None
        messages = dict.fromkeys(delivery.message for delivery in deliveries)
        return in_a_thread(lambda: self._hide(dict.fromkeys(messages, CROWD_HIDDEN_S)))

    def expect_death(self, tasks: Sequence[Task], hiding: Future[None] | None = None) -> Hidden | None:
        """Have SQS deliver the messages of slow tasks again soon if this process dies. None: no task is slow.

        Most batches end before, and pay nothing. `hiding`: the request of `expect_death_of_crowd`.
        """
        all_ended = have_ended(tasks, self.slow_after_s)
        if hiding:
            hiding.result()  # it must not undo what follows
        if all_ended:
            return None
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
