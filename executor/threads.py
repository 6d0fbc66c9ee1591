"""The tasks of a batch: each has a thread, or one thread sends many of them. Bounds the wait for a thread."""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from socket import socket
from typing import Any, Final, Generic, TypeVar

from common import telemetry
from common.cache import raised_by
from common.limits import MAX_CALLS, MAX_EVENT_THREADS, MAX_EVENT_WAIT_S, MAX_THREAD_WAIT_S
from common.runs.outcome import Outcome
from common.runs.states import DISPATCHED
from executor.calling import Admitted, Called, Claimed, Sending
from executor.pipeline import Decided, Delivery, Executor, Progress
from executor.recorder import Report

# One thread sends as many over kept connections. The connections of both are kept.
MAX_EVENTS_AT_ONCE: Final = 2 * MAX_EVENT_THREADS
# Before the next events of a second are claimed, at most so many are under way. All pauses of a second are bounded.
FEW_UNDER_WAY: Final = 2
MAX_PAUSE_S: Final = 0.25
_NO_THREAD: Final = Outcome(
    ok=False,
    throttled=True,
    error_type="NoThread",
    error=f"Minute8 had no thread for the call within {MAX_THREAD_WAIT_S:g} s",
)

Item = TypeVar("Item")
Result = TypeVar("Result")
Waiting = TypeVar("Waiting")


class AnswerPoll(Generic[Waiting]):
    """Waits for answers on several sockets. Each socket has a value, which is returned when the answer has come."""

    def __init__(self) -> None:
        self._waiting: dict[int, Waiting] = {}
        self._poll = select.poll()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, answer: socket, value: Waiting) -> None:
        """Wait for the answer on this socket, too, and keep its value."""
        self._waiting[answer.fileno()] = value
        self._poll.register(answer, select.POLLIN)

    def answered_until(self, ends_at: float) -> Iterator[Waiting]:
        """Each value when its answer has come, until this instant of `time.monotonic`."""
        while self._waiting and (remaining_s := ends_at - time.monotonic()) > 0:
            for number, _ in self._poll.poll(remaining_s * 1000):
                self._poll.unregister(number)
                yield self._waiting.pop(number)

    def unanswered(self) -> list[Waiting]:
        """The values whose answer has not come."""
        return list(self._waiting.values())


class Task:
    """An execution under way: the stage that it has reached, and the future of its report."""

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
    def attempt(self) -> Admitted | None:
        """The admitted attempt, until it is recorded."""
        if isinstance(self.progress, Admitted):
            return self.progress
        return self.claimed.attempt if self.claimed else None

    @property
    def is_event(self) -> bool:
        """Whether the call waits for no result. False if that is not known yet."""
        return self.attempt is not None and not self.attempt.is_awaited

    @property
    def is_ready_event(self) -> bool:
        """Whether the next stage is an `Event` call that one thread can send among others."""
        return isinstance(self.progress, Claimed) and self.progress.sends_only

    def finish(self) -> Report:
        """Take the remaining stages in this thread."""
        while not isinstance(self.progress, Report):
            self.progress = self._executor.next_stage(self.progress)
        if self.progress.result == DISPATCHED:
            self.delivery.handed_over.add(self.delivery.position)
        return self.progress

    def send(self, answers: AnswerPoll[Task]) -> bool:
        """Send the call if that takes no time. Returns whether `answers` waits for its answer."""
        if not self.is_ready_event:
            return False
        assert isinstance(self.progress, Claimed)
        sending = self.progress = self._executor.calls.begin(self.progress)
        if called := sending.step():
            self.progress = called
        elif sending.waits_for:
            answers.add(sending.waits_for, self)
            return True
        return False

    def receive(self) -> None:
        """Read the answer, and record the call if that takes no request. Otherwise a thread continues the task."""
        with raised_by(self.future):
            assert isinstance(self.progress, Sending)
            self.progress = self.progress.step() or self.progress
            if isinstance(self.progress, Called) and not self.progress.takes_requests:
                self.complete()
            else:
                in_a_thread(self.complete)

    def wait_for_thread(self, threads: ThreadPoolExecutor) -> None:
        """Have one of these threads take the remaining stages. Until one is free, `future` can be cancelled."""
        self.future = future = Future[Report]()
        _submit(threads, future, self.complete)

    def complete(self) -> None:
        """Take the remaining stages in this thread, for `future`."""
        with raised_by(self.future):
            self.future.set_result(self.finish())

    def refuse(self) -> None:
        """End a claimed attempt for which no thread was found: its call counts as throttled, if it was not made."""
        if self.claimed and not isinstance(self.progress, Called):
            self.progress = Called(self.claimed, _NO_THREAD, self._executor.clock.now())
        self.complete()


# Events that wait until another event is answered and its connection free, each with the future that it had then.
Unsent = deque[tuple[Task, Future[Report]]]


def start(
    executor: Executor, deliveries: Sequence[Delivery], between_claims: Callable[[], object] = lambda: None
) -> list[Task]:
    """Start the executions of one second. One thread sends the events that are ready. Each other task gets a thread.

    Those that take turns come last: preparing them takes the processor from others.
    """
    answers, unsent = AnswerPoll[Task](), Unsent()
    tasks: list[Task] = []
    in_turns: list[Task] = []
    pause_until = time.monotonic() + MAX_PAUSE_S
    for chunk in executor.prepare(deliveries):
        for delivery, progress in zip(deliveries[len(tasks) :], chunk, strict=False):
            task = Task(executor, delivery, progress)
            tasks.append(task)
            attempt = task.attempt  # None: not known yet
            if attempt and attempt.takes_a_turn:
                in_turns.append(task)
            elif len(answers) >= MAX_EVENT_THREADS and task.is_ready_event:
                unsent.append((task, task.future))
            elif task.send(answers):
                task.future.set_running_or_notify_cancel()
            else:
                task.wait_for_thread(event_threads() if task.is_event else call_threads())
        if len(tasks) < len(deliveries):
            _await_answers(answers, pause_until)
            between_claims()
    for task in in_turns:
        task.wait_for_thread(call_threads())
    if answers or unsent:
        in_a_thread(lambda: _receive(answers, unsent))
    return tasks


def _await_answers(answers: AnswerPoll[Task], until: float) -> None:
    """Read answers until few events are under way: an executor that dies then has few that nobody knows of."""
    while len(answers) > FEW_UNDER_WAY:
        for task in answers.answered_until(until):
            task.receive()
            if len(answers) <= FEW_UNDER_WAY:
                return
        return


def _receive(answers: AnswerPoll[Task], unsent: Unsent) -> None:
    """Read each answer when it comes, and send the next event over its connection.

    A task that waits too long, for its answer or to be sent, continues in a thread of its own.
    """
    for task in answers.answered_until(time.monotonic() + MAX_EVENT_WAIT_S):
        task.receive()
        _send_next(unsent, answers)
    for task in answers.unanswered():
        in_a_thread(task.complete)
    for task, future in unsent:
        if future.set_running_or_notify_cancel():
            in_a_thread(task.complete)


def _send_next(unsent: Unsent, answers: AnswerPoll[Task]) -> None:
    while unsent:
        task, future = unsent.popleft()
        if not future.set_running_or_notify_cancel():
            continue  # `find_threads` has given it a thread, and another future
        with raised_by(task.future):
            if task.send(answers):
                return
            in_a_thread(task.complete, event_threads())


def _submit(threads: ThreadPoolExecutor, future: Future[Any], work: Callable[[], None]) -> bool:
    """Have a thread do the work, unless `future` was cancelled. False: a thread is needed, and none can be started.

    The work then waits for a thread that becomes free.
    """

    def begin() -> None:
        if future.set_running_or_notify_cancel():
            work()

    try:
        threads.submit(begin)
    except RuntimeError as error:
        telemetry.logger().warning("no thread can be started", error=repr(error))
        return False
    return True


def in_a_thread(work: Callable[[], Result], threads: ThreadPoolExecutor | None = None) -> Future[Result]:
    """Have a thread do the work; this one, if none can be started. Returns the future of its result."""
    result, waiting = Future[Result](), Future[None]()

    def do() -> None:
        with raised_by(result):
            result.set_result(work())

    if not _submit(threads or call_threads(), waiting, do) and waiting.cancel():
        do()
    return result


def call_each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """What `function` returns for each item, in their order. Each call has a thread, if it can be started."""
    results = [in_a_thread(partial(function, item)) for item in items]
    return [result.result() for result in results]


def find_threads(tasks: Sequence[Task]) -> list[Task]:
    """Give each task that waits too long another thread. Returns the tasks that find none in time."""
    if have_ended(tasks, MAX_EVENT_WAIT_S):
        return []
    for task in tasks:
        if task.future.cancel():
            task.wait_for_thread(call_threads())
    if have_ended(tasks, MAX_THREAD_WAIT_S - MAX_EVENT_WAIT_S):
        return []
    return [task for task in tasks if task.future.cancel()]


def have_ended(tasks: Sequence[Task], within_s: float | None) -> bool:
    """Wait for these tasks, at most `within_s`. Returns whether all have ended."""
    if all(task.future.done() for task in tasks):
        return True
    return not wait([task.future for task in tasks], timeout=within_s).not_done


# Kept for the next batches: starting the threads takes a tenth of a batch's processor time.
@cache
def call_threads() -> ThreadPoolExecutor:
    """The threads of calls that are awaited, and of all that takes requests."""
    return ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="execute")


@cache
def event_threads() -> ThreadPoolExecutor:
    """The threads of events that this process could not send from one thread."""
    return ThreadPoolExecutor(MAX_EVENT_THREADS, thread_name_prefix="send")
