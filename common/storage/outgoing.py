"""The moment at which the calling thread's last request was sent, measured just before its first byte."""

from __future__ import annotations

import time
from contextvars import ContextVar

_went_at: ContextVar[float | None] = ContextVar("_went_at", default=None)


def forget() -> None:
    """Start anew before a call: `went_s_ago` is None until the next request is sent."""
    _went_at.set(None)


def goes_out() -> None:
    """Note the time. The connection is open, the request is complete, and its first byte is sent next."""
    _went_at.set(time.monotonic())


def went_s_ago() -> float | None:
    """The seconds since the last request was sent; None if none was since `forget`, or its client does not note it."""
    went_at = _went_at.get()
    return None if went_at is None else time.monotonic() - went_at
