"""What a thread's call notes about its request: when it went out, and whether it may be made twice; and its steps.

Steps pause where they would wait, so one thread can have several requests in flight. A step yields the socket whose
answer the next step reads. It yields None if the next step may block for another reason.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextvars import ContextVar
from socket import socket
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")
Steps: TypeAlias = Generator[socket | None, None, Result]

_sent_at: ContextVar[float | None] = ContextVar("_sent_at", default=None)
_may_be_repeated: ContextVar[bool] = ContextVar("_may_be_repeated", default=True)


def reset(*, may_be_repeated: bool = True) -> None:
    """Forget the last request before a call: `seconds_since_sent` is None until the next one.

    `may_be_repeated`: a request that the endpoint has most likely not seen may be made once more.
    """
    _sent_at.set(None)
    _may_be_repeated.set(may_be_repeated)


def may_be_repeated() -> bool:
    """Whether a request that the endpoint has most likely not seen may be made once more."""
    return _may_be_repeated.get()


def note_sent() -> None:
    """Note the time. The connection is open, the request is complete, and its first byte is sent next."""
    _sent_at.set(time.monotonic())


def seconds_since_sent() -> float | None:
    """The seconds since the last request. None: no request was sent since `reset`, or its client did not note it."""
    sent_at = _sent_at.get()
    return None if sent_at is None else time.monotonic() - sent_at


def at_once(steps: Steps[Result]) -> Result:
    """Run all steps in this thread. Blocks where they wait, and raises what they raise."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
