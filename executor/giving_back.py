"""Gives back to the queue: executions without a thread, and messages of which an execution failed.

An execution of a pack that nobody has claimed goes on as a message of its own. If anything else failed, the queue
delivers the whole pack again. The records of its ended executions show that these have ended. The dispatched calls are
settled before: otherwise they would be repeated, as after the death of their executor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Final

from common import telemetry
from common.runs.states import DISPATCHED
from executor.messages import Delivery, Message
from executor.pipeline import Executor
from executor.recorder import Report, StillRunning
from executor.threads import MAX_THREAD_WAIT_S, Task, call_each

# As long as a single message waits before its second delivery.
_WAIT_ALONE_S: Final = 3


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
    try:
        executor.recorder.send_alone(
            [
                replace(execution, not_before_at=max(execution.not_before_at, not_before_at))
                for execution in executions
            ]
        )
    except Exception as error:  # noqa: BLE001  then their messages are delivered again
        telemetry.logger().warning("not sent on", error=repr(error))
        return False
    return True


def _lease_until(error: Exception) -> float:
    return error.until if isinstance(error, StillRunning) else 0.0


def _is_unclaimed(executor: Executor, task: Task, error: Exception) -> bool:
    """Whether certainly nobody has claimed the execution. Only packs are looked up: a single message comes again."""
    delivery = task.delivery
    if not delivery.is_in_pack or delivery.execution is None or isinstance(error, StillRunning):
        return False
    try:
        return executor.is_unclaimed(delivery.execution)
    except Exception as unknown:  # noqa: BLE001
        telemetry.logger().warning("not known whether claimed", error=repr(unknown))
        return False


def _settle(executor: Executor, delivery: Delivery) -> None:
    if not delivery.is_in_pack or delivery.execution is None:
        return
    try:
        executor.recorder.settle(delivery.execution, delivery.message.message_id)
    except Exception as error:  # noqa: BLE001  its call is made again, as after a crash
        telemetry.logger().warning("not settled", error=repr(error))
