"""Executions under way, each in its own thread or sent by one thread beside others. Bounds the wait for a thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Final

from executor.calling import Answers, Sending
from executor.messages import Delivery
from executor.pipeline import Executor, Progress
from executor.recorder import Report
from executor.stages import Admitted, Called, Claimed, Decided

# A thread for each execution of ten packs of ten: no call waits for another's end. Threads are started when needed.
MAX_CALLS: Final = 100
# An event is handed over in milliseconds, and each thread opens connections: waiting costs less than their TLS.
# One thread sends as many over kept connections. The connections of both are kept.
MAX_EVENT_THREADS: Final = 32
MAX_EVENTS_AT_ONCE: Final = 2 * MAX_EVENT_THREADS
# An event that waited so long for its answer, or to be sent, gets a thread as other calls do.
_MAX_EVENT_WAIT_S: Final = 2.0
# An execution without a thread by then goes back to the queue, for another executor.
MAX_THREAD_WAIT_S: Final = 5.0


class Running:
    """An execution under way: the stage that it has reached, and its report to come."""

    def __init__(self, executor: Executor, delivery: Delivery, progress: Progress) -> None:
        self.delivery = delivery
        self.progress = progress
        self.future: Future[Report] = Future()
        self._executor = executor

    @property
    def claimed(self) -> Claimed | None:
        """The claimed attempt, until it is recorded."""
        match self.progress:
            case Claimed():
                return self.progress
            case Sending() | Called():
                return self.progress.claimed
        return None

    @property
    def lease_until(self) -> float:
        """When the lease of the attempt ends. 0.0: it has none."""
        match self.progress:
            case Admitted(claim=claim) | Decided(claim=claim) if claim.lease_until > claim.started_at:
                return claim.lease_until
        return self.claimed.claim.lease_until if self.claimed else 0.0

    @property
    def is_event(self) -> bool:
        """Whether it is known that the call waits for no result."""
        if isinstance(self.progress, Admitted):
            return not self.progress.is_awaited
        return self.claimed is not None and not self.claimed.attempt.is_awaited

    @property
    def is_ready_event(self) -> bool:
        """Whether the next stage is a call that waits for no result, and that one thread can send beside others."""
        return isinstance(self.progress, Claimed) and self.progress.sends_only

    def finish(self) -> Report:
        """Take the remaining stages in this thread."""
        while not isinstance(self.progress, Report):
            (self.progress,) = self._executor.next_stage(self.progress)([self.progress])
        return self.progress

    def send(self, answers: Answers[Running]) -> bool:
        """Send the call if that takes no time. Returns whether its answer is to come, which `answers` waits for."""
        if not self.is_ready_event:
            return False
        assert isinstance(self.progress, Claimed)
        sending = self.progress = self._executor.sending(self.progress)
        if called := sending.step():
            self.progress = called
        elif sending.waits_for:
            answers.add(sending.waits_for, self)
            return True
        return False

    def receive(self) -> None:
        """Read the answer, and record the call if that takes no request. Otherwise a thread goes on."""
        try:
            assert isinstance(self.progress, Sending)
            self.progress = self.progress.step() or self.progress
            if isinstance(self.progress, Called) and not self.progress.takes_requests:
                self.future.set_result(self.finish())
                return
        except BaseException as error:  # noqa: BLE001  the batch's thread raises it
            self.future.set_exception(error)
        else:
            call_threads().submit(self.complete)

    def complete(self) -> None:
        """`finish` for an execution whose future no thread pool completes."""
        try:
            self.future.set_result(self.finish())
        except BaseException as error:  # noqa: BLE001  the batch's thread raises it
            self.future.set_exception(error)


# Events that wait for an answered connection, with the future that each had then.
Unsent = deque[tuple[Running, Future[Report]]]


def start(executor: Executor, deliveries: Sequence[Delivery]) -> list[Running]:
    """Start the executions of one second. Events that are ready are sent from one thread, each other gets a thread."""
    prepared = executor.prepare(deliveries)
    running = [Running(executor, *pair) for pair in zip(deliveries, prepared, strict=True)]
    answers, unsent = Answers[Running](), Unsent()
    sent = 0
    for execution in running:
        if sent == MAX_EVENT_THREADS and execution.is_ready_event:
            unsent.append((execution, execution.future))
        elif execution.send(answers):
            execution.future.set_running_or_notify_cancel()
            sent += 1
        else:
            threads = event_threads() if execution.is_event else call_threads()
            execution.future = threads.submit(execution.finish)
    if sent:
        call_threads().submit(_receive, answers, unsent)
    return running


def _receive(answers: Answers[Running], unsent: Unsent) -> None:
    """Read each answer when it comes, and send the next event over its connection.

    An event that waits too long, for its answer or to be sent, goes on in a thread of its own.
    """
    for execution in answers.taken_until(time.monotonic() + _MAX_EVENT_WAIT_S):
        execution.receive()
        _send_next(unsent, answers)
    for execution in answers.without_answer():
        call_threads().submit(execution.complete)
    for execution, future in unsent:
        if future.set_running_or_notify_cancel():
            call_threads().submit(execution.complete)


def _send_next(unsent: Unsent, answers: Answers[Running]) -> None:
    while unsent:
        execution, future = unsent.popleft()
        if not future.set_running_or_notify_cancel():
            continue  # `find_threads` has given it a thread, and another future
        try:
            if execution.send(answers):
                return
        except BaseException as error:  # noqa: BLE001  the batch's thread raises it
            execution.future.set_exception(error)
        else:
            event_threads().submit(execution.complete)


def find_threads(running: Sequence[Running]) -> list[Running]:
    """Give each execution that waits too long for a thread another one. Returns those that find none in time."""
    if have_ended(running, _MAX_EVENT_WAIT_S):
        return []
    for execution in running:
        if execution.future.cancel():
            execution.future = call_threads().submit(execution.finish)
    if have_ended(running, MAX_THREAD_WAIT_S - _MAX_EVENT_WAIT_S):
        return []
    return [execution for execution in running if execution.future.cancel()]


def have_ended(running: Sequence[Running], within_s: float | None) -> bool:
    """Wait for these executions. Returns whether all have ended."""
    if all(execution.future.done() for execution in running):
        return True
    return not wait([execution.future for execution in running], timeout=within_s).not_done


# Kept for the next batches: starting the threads takes a tenth of a batch's processor time.
@cache
def call_threads() -> ThreadPoolExecutor:
    """The threads of calls that are awaited, and of all that takes requests."""
    return ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="execute")


@cache
def event_threads() -> ThreadPoolExecutor:
    """The threads of events that this process could not send from one thread."""
    return ThreadPoolExecutor(MAX_EVENT_THREADS, thread_name_prefix="send")
