"""A batch of messages, all at once: the slowest execution decides how long it takes, and a failure harms no other."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from itertools import groupby

from common import telemetry
from executor.pipeline import Executor
from executor.recorder import Report, StillRunning
from executor.redelivery import (
    FINISHED_AT_ONCE,
    Redelivery,
    give_back,
    learn_handed_over,
    messages_to_deliver_again,
)
from executor.stages import Delivery, Message, deliveries_of
from executor.threads import Task, find_threads, start


def execute_batch(
    executor: Executor, messages: Iterable[Message], redelivery: Redelivery | None = None
) -> tuple[list[Report], list[str]]:
    """Execute what the messages deliver. With `redelivery`, sets when the queue delivers failed messages again.

    Returns the reports, and the ids of the messages to deliver again.
    """
    executor.turns.begin_batch()
    deliveries = deliveries_of(messages, executor.clock.now())
    learn_handed_over(executor, deliveries)
    tasks = _execute(executor, deliveries, redelivery)
    reports, errors = _results(tasks)
    again = messages_to_deliver_again(executor, reports, errors) if errors else {}
    if redelivery and again:
        redelivery.after_failures(again)
    return list(reports.values()), [message.message_id for message in again]


def _execute(executor: Executor, deliveries: Sequence[Delivery], redelivery: Redelivery | None) -> list[Task]:
    """Execute these deliveries, and return their tasks when all have ended."""
    unfinished: defaultdict[Message, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        unfinished[delivery.message].append(delivery)
    deletions: list[Future[None] | None] = []

    def delete_finished(least: int = FINISHED_AT_ONCE) -> None:
        if redelivery:
            deletions.append(redelivery.delete_finished(unfinished, least))

    hiding = redelivery.expect_death_of_crowd(deliveries) if redelivery else None
    tasks = [task for second in by_second(deliveries) for task in start(executor, second, delete_finished)]
    hidden = redelivery.expect_death(tasks, hiding) if redelivery else None
    if hidden:
        delete_finished(least=1)
    for task in find_threads(tasks):
        give_back(executor, task)
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
