"""A batch of messages, all at once: the slowest decides how long it takes, and a failure affects only its execution.

Almost all executions of a batch are due at the same second. They are held together, and one request reads all their
jobs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from typing import Final

from common import telemetry
from common.planning.execution import Execution
from executor.due_jobs import HOLD_S, Jobs
from executor.parts import Part, parts_of, send_on, to_deliver_again
from executor.pipeline import Attempt, Executor, Message
from executor.recorder import Report, StillRunning
from executor.redelivery import AFTER_LEASE_S, Redelivery
from executor.sending import Sending, receive
from executor.together import Due, claim_together

# A thread for each execution of ten packs of ten: no call waits for another's end. Threads are started when needed.
_MAX_CALLS: Final = 100
# An event is handed over in milliseconds, and each thread opens connections: waiting costs less than their TLS.
# The same number goes over kept connections from one thread. All connections that both use are kept.
_MAX_EVENTS: Final = 32
MAX_EVENTS_AT_ONCE: Final = 2 * _MAX_EVENTS
# An event that waited so long gets a thread as other calls do.
_EVENTS_WAIT_S: Final = 2
# An execution without a thread by then goes back to the queue, for another executor.
_BEGINS_WITHIN_S: Final = 5


@dataclass(slots=True)
class _UnderWay:
    """A part, what makes its attempt, and its report to come. `attempt` may be claimed."""

    part: Part
    make: Callable[[], Report]
    future: Future[Report]
    attempt: Attempt | None


def execute_batch(
    executor: Executor, messages: list[Message], redelivery: Redelivery | None = None
) -> tuple[list[Report], list[str]]:
    """Process each execution in a thread. With `redelivery`, sets when the queue delivers failed messages again.

    Returns the reports, and the ids of the messages to deliver again.
    """
    leases: dict[Message, float] = {}
    under_way = _begin(executor, [part for message in messages for part in parts_of(message)], leases)
    long, until = _expect_death(redelivery, under_way, leases) if redelivery else (set(), 0.0)
    _find_threads(executor, under_way)
    if redelivery and long:
        _stay_hidden(redelivery, under_way, leases, long, until)
    reports: dict[Part, Report] = {}
    failed: dict[Part, Exception] = {}
    for one in under_way:
        try:
            reports[one.part] = one.future.result()
        except Exception as error:  # noqa: BLE001  the others continue after any error
            telemetry.logger().warning(
                "message failed",
                message_id=one.part.message.message_id,
                error=repr(error),
                body=one.part.line.body[:500],
                **(one.part.execution.log_fields if one.part.execution else {}),
            )
            failed[one.part] = error
            if one.part.execution and not isinstance(error, StillRunning):
                reports[one.part] = Report("unrecorded", one.part.execution, detail=type(error).__name__)
    again = to_deliver_again(executor, _calls(), reports, failed) if failed else {}
    if redelivery and again:
        redelivery.after_failures(again)
    return list(reports.values()), [message.message_id for message in again]


def _begin(executor: Executor, parts: list[Part], leases: dict[Message, float]) -> list[_UnderWay]:
    """Send each event that is ready, and start each other part in a thread, second by second."""
    under_way = []
    came_at = executor.clock.now()
    for together in _by_second(parts, came_at + HOLD_S):
        due = [Due(part.line, part.execution) for part in together if part.execution]
        jobs = _jobs(executor, [one.execution for one in due], came_at + HOLD_S)
        begun = claim_together(executor, due, jobs)
        leases |= {message: attempt.claim.lease_until for message, attempt in begun.items()}
        sent: list[Sending] = []
        for part in together:
            attempt, future = begun.get(part.line), None
            make: Callable[[], Report] = partial(executor.execute, part.line, jobs, came_at, leases, begun)
            if attempt and attempt.is_ready and len(sent) < _MAX_EVENTS:
                sending = Sending(executor.make(attempt))
                make = sending.rest
                if sending.step():
                    sent.append(sending)
                    future = sending.future
            if future is None:
                threads = _calls() if attempt is None or attempt.is_awaited else _events()
                future = threads.submit(make)
            under_way.append(_UnderWay(part, make, future, attempt))
        if sent:
            _calls().submit(receive, sent, _EVENTS_WAIT_S, _calls().submit)
    return under_way


def _expect_death(
    redelivery: Redelivery, under_way: Sequence[_UnderWay], leases: Mapping[Message, float]
) -> tuple[set[Message], float]:
    """Make SQS deliver slow executions again soon if this process dies. Most batches end before, and pay nothing.

    Returns the messages that take long, and the end of the last lease that is known.
    """
    _wait(under_way, redelivery.takes_long_s)
    long = [one.part for one in under_way if one.part.line in leases and not one.future.done()]
    messages = {part.message for part in long}
    until = max((leases[part.line] for part in long), default=0.0)
    if messages:
        redelivery.after_leases(messages, until)
    return messages, until


def _stay_hidden(
    redelivery: Redelivery,
    under_way: Sequence[_UnderWay],
    leases: Mapping[Message, float],
    messages: set[Message],
    until: float,
) -> None:
    """Keep these messages hidden while the batch goes on: an event that comes again after its lease is sent again.

    A lease may have begun after `_expect_death`, and a record may be written after its lease.
    """
    while not _wait(under_way, max(1.0, until - redelivery.clock.now())):
        going_on = (leases.get(one.part.line, 0.0) for one in under_way if not one.future.done())
        until = max(redelivery.clock.now() + AFTER_LEASE_S, *going_on, 0.0)
        redelivery.after_leases(messages, until)


def _find_threads(executor: Executor, under_way: Sequence[_UnderWay]) -> None:
    """Bound how long an execution waits for a thread: it gets another thread, and then goes back to the queue."""
    if _wait(under_way, _EVENTS_WAIT_S):
        return
    for one in under_way:
        if one.future.cancel():
            one.future = _calls().submit(one.make)
    if _wait(under_way, _BEGINS_WITHIN_S - _EVENTS_WAIT_S):
        return
    for one in under_way:
        if one.future.cancel():
            one.future = _given_back(executor, one)


def _wait(under_way: Iterable[_UnderWay], timeout_s: float | None) -> bool:
    return not wait([one.future for one in under_way], timeout=timeout_s).not_done


def _given_back(executor: Executor, one: _UnderWay) -> Future[Report]:
    """The report of an execution that goes on as a message of its own, or comes again after its claim's lease."""
    future: Future[Report] = Future()
    if one.attempt and one.attempt.is_claimed:
        claim = one.attempt.claim
        future.set_exception(StillRunning(claim.execution.execution_id, claim.lease_until))
    elif one.part.execution and send_on(executor, [one.part]):
        future.set_result(Report("sent_on", one.part.execution))
    else:
        future.set_exception(TimeoutError(f"no thread within {_BEGINS_WITHIN_S} s"))
    return future


# Kept for the next batches: starting the threads takes a tenth of a batch's processor time.
@cache
def _calls() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_CALLS, thread_name_prefix="execute")


@cache
def _events() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX_EVENTS, thread_name_prefix="send")


def _jobs(executor: Executor, executions: list[Execution], far_from: float) -> Jobs:
    if len(executions) < 2 or executions[0].visible_at > far_from:
        return {}
    try:
        return executor.due_jobs.load_when_due(executions)
    except Exception as error:  # noqa: BLE001  each reads its own then
        telemetry.logger().warning("jobs not read together", error=repr(error))
        return {}


def _by_second(parts: Iterable[Part], far_from: float) -> list[list[Part]]:
    """Parts grouped by when they are due, the earliest first; within a second one of each tenant in turn.

    Unreadable messages and those that go back to the queue come before all others. After waiting for others, the latter
    would be near enough to be held, and the waits of a batch would add up.
    """

    def second(part: Part) -> int:
        execution = part.execution
        return execution.visible_at if execution and execution.visible_at <= far_from else -1

    return [list(together) for _, together in groupby(sorted(_in_turns(parts), key=second), key=second)]


def _in_turns(parts: Iterable[Part]) -> list[Part]:
    seen: Counter[str] = Counter()
    turns = []
    for part in parts:
        tenant = part.execution.tenant if part.execution else ""
        turns.append((seen[tenant], part))
        seen[tenant] += 1
    return [part for _, part in sorted(turns, key=lambda turn: turn[0])]
