"""When the calling thread's last request went out, as near to the wire as a process can tell."""

from __future__ import annotations

import time
from contextvars import ContextVar

_went_at: ContextVar[float | None] = ContextVar("_went_at", default=None)


def forget() -> None:
    """Before a call: what went out until now does not count."""
    _went_at.set(None)


def goes_out() -> None:
    """The connection stands, the request is complete, and its first byte is sent next."""
    _went_at.set(time.monotonic())


def went_s_ago() -> float | None:
    """How long ago the last request went out; None: none has since `forget`, or it did not say so."""
    went_at = _went_at.get()
    return None if went_at is None else time.monotonic() - went_at
