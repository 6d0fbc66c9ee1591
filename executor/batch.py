"""A batch of messages, all at once: the slowest execution decides how long it takes, and a failure harms no other."""

from __future__ import annotations

from collections.abc import Iterable

from common import telemetry
from executor.giving_back import give_back, messages_to_deliver_again
from executor.messages import Message, by_second, deliveries_of
from executor.pipeline import Executor
from executor.recorder import Report, StillRunning
from executor.redelivery import Redelivery
from executor.threads import Task, find_threads, start


def execute_batch(
    executor: Executor, messages: Iterable[Message], redelivery: Redelivery | None = None
) -> tuple[list[Report], list[str]]:
    """Execute what the messages deliver. With `redelivery`, sets when the queue delivers failed messages again.

    Returns the reports, and the ids of the messages to deliver again.
    """
    deliveries = deliveries_of(messages, executor.clock.now())
    tasks = [task for second in by_second(deliveries) for task in start(executor, second)]
    hidden = redelivery.expect_death(tasks) if redelivery else None
    for task in find_threads(tasks):
        give_back(executor, task)
    if redelivery and hidden:
        redelivery.keep_hidden(hidden, tasks)
    reports, errors = _results(tasks)
    again = messages_to_deliver_again(executor, reports, errors) if errors else {}
    if redelivery and again:
        redelivery.after_failures(again)
    return list(reports.values()), [message.message_id for message in again]


def _results(tasks: Iterable[Task]) -> tuple[dict[Task, Report], dict[Task, Exception]]:
    """The reports of all tasks, and the errors of those whose message has to come again."""
    reports: dict[Task, Report] = {}
    errors: dict[Task, Exception] = {}
    for task in tasks:
        try:
            reports[task] = task.future.result()
        except Exception as error:  # noqa: BLE001  the others continue after any error
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
