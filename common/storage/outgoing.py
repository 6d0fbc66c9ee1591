"""The time at which the calling thread sent its last request, measured just before the first byte."""

from __future__ import annotations

import time
from contextvars import ContextVar

_sent_at: ContextVar[float | None] = ContextVar("_sent_at", default=None)


def reset() -> None:
    """Forget the last request before a call: `seconds_since_sent` is None until the next one."""
    _sent_at.set(None)


def note_sent() -> None:
    """Note the time. The connection is open, the request is complete, and its first byte is sent next."""
    _sent_at.set(time.monotonic())


def seconds_since_sent() -> float | None:
    """The seconds since the last request. None: no request was sent since `reset`, or its client did not note it."""
    sent_at = _sent_at.get()
    return None if sent_at is None else time.monotonic() - sent_at
