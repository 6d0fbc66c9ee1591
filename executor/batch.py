"""A batch of messages, all at once: the slowest decides how long it takes, and a failure affects only its message.

Almost all messages of a batch are due at the same second. They are held together, and one request reads all their jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import groupby
from typing import Final

from common import telemetry
from common.planning.execution import Execution, UnreadableMessage
from executor.due_jobs import HOLD_S, Jobs
from executor.pipeline import Executor, Message
from executor.recorder import Report
from executor.redelivery import Redelivery
from executor.together import Due, claim_together

# More threads than messages in any batch, so that no message waits for another. Threads are started when needed.
_MOST_THREADS: Final = 100


def execute_batch(
    executor: Executor, messages: list[Message], redelivery: Redelivery | None = None
) -> tuple[list[Report], list[str]]:
    """Process each message in its own thread. With `redelivery`, sets when the queue delivers failed ones again.

    Returns the reports, and the ids of the messages to deliver again.
    """
    reports: list[Report] = []
    failed: dict[Message, Exception] = {}
    leases: dict[Message, float] = {}
    under_way: list[tuple[Message, Future[Report]]] = []
    came_at = executor.clock.now()
    for together in _by_second(messages, came_at + HOLD_S):
        due = [Due(message, execution) for message, execution in together if execution]
        jobs = _jobs(executor, [one.execution for one in due], came_at + HOLD_S)
        begun = claim_together(executor, due, jobs)
        leases |= {message: attempt.claim.lease_until for message, attempt in begun.items()}
        for message, _ in together:
            future = _threads().submit(executor.execute, message, jobs, came_at, leases, begun)
            under_way.append((message, future))
    if redelivery:
        _expect_death(redelivery, under_way, leases)
    for message, future in under_way:
        try:
            reports.append(future.result())
        except Exception as error:  # noqa: BLE001  the other messages continue after any error
            telemetry.logger().warning(
                "message failed",
                message_id=message.message_id,
                error=repr(error),
                body=message.body[:500],
            )
            failed[message] = error
    if redelivery and failed:
        redelivery.after_failures(failed)
    return reports, [message.message_id for message in failed]


def _expect_death(
    redelivery: Redelivery, under_way: list[tuple[Message, Future[Report]]], leases: Mapping[Message, float]
) -> None:
    """Have what takes long delivered again soon if this process dies. Most batches end before, and pay nothing."""
    wait([future for _, future in under_way], timeout=redelivery.takes_long_s)
    long = {
        message: leases[message] for message, future in under_way if message in leases and not future.done()
    }
    if long:
        redelivery.after_leases(long)


@cache
def _threads() -> ThreadPoolExecutor:
    """Kept for the next batches: starting the threads takes a tenth of a batch's processor time."""
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="execute")


def _jobs(executor: Executor, executions: list[Execution], far_from: float) -> Jobs:
    if len(executions) < 2 or executions[0].visible_at > far_from:
        return {}
    try:
        return executor.due_jobs.load_when_due(executions)
    except Exception as error:  # noqa: BLE001  each reads its own then
        telemetry.logger().warning("jobs not read together", error=repr(error))
        return {}


def _by_second(messages: Iterable[Message], far_from: float) -> list[list[tuple[Message, Execution | None]]]:
    """Messages grouped by when they are due, the earliest first.

    Unreadable messages and those that go back to the queue come before all others. After waiting for others, the latter
    would be near enough to be held, and the waits of a batch would add up.
    """

    def second(one: tuple[Message, Execution | None]) -> int:
        execution = one[1]
        return execution.visible_at if execution and execution.visible_at <= far_from else -1

    read = sorted(((message, _execution(message)) for message in messages), key=second)
    return [list(together) for _, together in groupby(read, key=second)]


def _execution(message: Message) -> Execution | None:
    try:
        return Execution.decode(message.body)
    except UnreadableMessage:
        return None  # reported where it is executed
