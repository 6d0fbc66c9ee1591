"""Trying again where another writer was in the way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from common.errors import Busy
from common.storage.expressions import TransactionConflict

TRIES = 12
# A transaction holds an item for some tens of milliseconds.
_FIRST_WAIT_S = 0.04
_MAX_WAIT_S = 0.5

_T = TypeVar("_T")


def retry_on_conflict(
    attempt: Callable[[], _T],
    what: str,
    *,
    on: tuple[type[Exception], ...] = (TransactionConflict,),
    tries: int = TRIES,
    sleep: Callable[[float], None] = time.sleep,
    uniform: Callable[[float, float], float] = random.uniform,
) -> _T:
    """Return what `attempt` returns. It reads, decides and writes; if it raises one of `on`, it is called again.

    The waits are random, so that two writers part: 12 tries take 2 s on average, at most 4.1 s.
    Raises Busy, which names `what`, after the last try; and whatever else `attempt` raises.
    """
    for nth in range(tries):
        if nth:
            sleep(uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2 ** (nth - 1))))
        try:
            return attempt()
        except on as error:
            lost = error
    raise Busy(f"{what} is being changed by too many writers at once") from lost
