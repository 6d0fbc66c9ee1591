"""A batch of messages, all at once: the slowest execution decides how long it takes, and a failure harms no other.

An execution of a pack that nobody has claimed goes on as a message of its own. If anything else failed, the queue
delivers the whole pack again. The records of its ended executions show that these have ended. The dispatched calls are
settled before: otherwise they would be repeated, as after the death of their executor.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from itertools import groupby
from typing import Final

from msgspec import structs

from common import telemetry
from common.limits import MAX_THREAD_WAIT_S
from common.planning.execution import Execution, UnreadableMessage
from common.planning.packs import lines
from common.runs.run import Run
from common.runs.states import DISPATCHED
from executor.pipeline import Delivery, Executor, Message
from executor.recorder import Report, StillRunning
from executor.redelivery import CROWD, FINISHED_AT_ONCE, Redelivery
from executor.threads import Task, call_each, find_threads, have_ended, start

# As long as a single message waits before its second delivery.
_WAIT_ALONE_S: Final = 3


def execute_batch(
    executor: Executor, messages: Iterable[Message], redelivery: Redelivery | None = None
) -> tuple[list[Report], list[str]]:
    """Execute what the messages deliver. With `redelivery`, sets when the queue delivers failed messages again.

    Returns the reports, and the ids of the messages to deliver again.
    """
    executor.calls.turns.begin_batch()
    deliveries = deliveries_of(messages, executor.clock.now())
    _learn_handed_over(executor, deliveries)
    tasks = _execute(executor, deliveries, redelivery)
    reports, errors = _results(tasks)
    again = _messages_to_deliver_again(executor, reports, errors) if errors else {}
    if redelivery and again:
        redelivery.after_failures(again)
    return list(reports.values()), [message.message_id for message in again]


def deliveries_of(messages: Iterable[Message], received_at: float) -> list[Delivery]:
    """The executions of these messages; each execution of a message once. The first ones of all messages come first.

    Two cut-off registrations of a job have the same executions, which can come into the same pack.
    """
    deliveries: list[Delivery] = []
    for message in messages:
        handed_over: set[int] = set()
        deliveries += [
            Delivery(message, body, _read(body), received_at, position, handed_over)
            for position, body in enumerate(dict.fromkeys(lines(message.body)))
        ]
    return sorted(deliveries, key=lambda delivery: delivery.position)


def _read(body: str) -> Execution | None:
    try:
        return Execution.decode(body)
    except UnreadableMessage:
        return None  # the pipeline reports it


def _execute(executor: Executor, deliveries: Sequence[Delivery], redelivery: Redelivery | None) -> list[Task]:
    """Execute these deliveries, and return their tasks when all have ended."""
    unfinished: defaultdict[Message, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        unfinished[delivery.message].append(delivery)
    deletions: list[Future[None] | None] = []

    def delete_finished(least: int = FINISHED_AT_ONCE) -> None:
        if redelivery:
            deletions.append(redelivery.delete_finished(unfinished, least))

    is_crowd = len(deliveries) >= CROWD
    hiding = redelivery.expect_death_of_crowd(deliveries) if redelivery and is_crowd else None
    tasks = [task for second in by_second(deliveries) for task in start(executor, second, delete_finished)]
    is_slow = redelivery is not None and not have_ended(tasks, redelivery.slow_after_s)
    if hiding:
        hiding.result()  # it must not undo what follows
    hidden = redelivery.expect_death(tasks) if redelivery and is_slow else None
    if hidden:
        delete_finished(least=1)
    for task in find_threads(tasks):
        _give_back(executor, task)
    if redelivery and hidden:
        redelivery.keep_hidden(hidden, tasks)
    wait(filter(None, deletions))
    return tasks


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


def _results(tasks: Iterable[Task]) -> tuple[dict[Task, Report], dict[Task, Exception]]:
    """The reports of all tasks, and the errors of those whose message has to come again."""
    reports: dict[Task, Report] = {}
    errors: dict[Task, Exception] = {}
    for task in tasks:
        if (error := task.future.exception()) is None:
            reports[task] = task.future.result()
        elif not isinstance(error, Exception):  # this process ends
            raise error
        else:
            delivery = task.delivery
            telemetry.logger().warning(
                "message failed",
                message_id=delivery.message.message_id,
                error=repr(error),
                body=delivery.body[:500],
                **(delivery.execution.log_fields if delivery.execution else {}),
            )
            errors[task] = error
            if delivery.execution and not isinstance(error, StillRunning):
                reports[task] = Report("unrecorded", delivery.execution, detail=type(error).__name__)
    return reports, errors


def _learn_handed_over(executor: Executor, deliveries: Iterable[Delivery]) -> None:
    """Learn what the claims of earlier deliveries of these packs noted. A message's first delivery costs no read."""
    again = [delivery for delivery in deliveries if delivery.message.receives > 1 and delivery.is_in_pack]
    if not again:
        return
    for delivery, record in zip(
        again, call_each(lambda delivery: _record(executor, delivery), again), strict=True
    ):
        # The bits of another message mean other executions.
        if record and record.claimed_by == delivery.message.message_id:
            bits = record.handed_over
            delivery.handed_over.update(n for n in range(bits.bit_length()) if bits >> n & 1)


def _record(executor: Executor, delivery: Delivery) -> Run | None:
    with telemetry.tolerated("not known what was handed over: it is called again"):
        return executor.runs.get(delivery.execution) if delivery.execution else None
    return None


def _give_back(executor: Executor, task: Task) -> None:
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


def _messages_to_deliver_again(
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
