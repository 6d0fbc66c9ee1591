"""Events that one thread sends one after the other, and whose answers one thread reads as they come.

A thread for each would be woken for its answer, which takes a third of an execution's processor time.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextvars import copy_context
from socket import socket

from common.storage.steps import Steps
from executor.recorder import Report


class Sending:
    """An attempt in steps; `future` gets its report. One thread at a time does a step."""

    def __init__(self, steps: Steps[Report]) -> None:
        self.future: Future[Report] = Future()
        self.future.set_running_or_notify_cancel()
        self.waits_for: socket | None = None
        self._steps = steps
        # The context notes when each request went out.
        self._context = copy_context()

    def step(self) -> bool:
        """Do the next step. Returns whether it waits for an answer; else it has ended, or needs a thread."""
        self.waits_for = None
        try:
            self.waits_for = self._context.run(next, self._steps)
        except StopIteration as end:
            self.future.set_result(end.value)
        except BaseException as error:  # noqa: BLE001  it is the future's
            self.future.set_exception(error)
        return self.waits_for is not None

    def rest(self) -> Report:
        """Do all steps that are left, in this thread. Returns the report, or raises what ended it."""
        while not self.future.done():
            self.step()
        return self.future.result()


def receive(
    sent: Iterable[Sending], within_s: float, in_thread: Callable[[Callable[[], Report]], object]
) -> None:
    """Read each answer when it comes. What has none `within_s`, or does not end with it, goes on in a thread."""
    waiting = {one.waits_for.fileno(): one for one in sent if one.waits_for}
    answers = select.poll()
    for number in waiting:
        answers.register(number, select.POLLIN)
    ends_at = time.monotonic() + within_s
    while waiting and (left_s := ends_at - time.monotonic()) > 0:
        for number, _ in answers.poll(left_s * 1000):
            answers.unregister(number)
            one = waiting.pop(number)
            one.step()
            if not one.future.done():
                in_thread(one.rest)
    for one in waiting.values():
        in_thread(one.rest)
