"""Conflicts with other writers: the errors of refused writes, and trying again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from common.errors import Busy, ItemTooLarge
from common.storage.keys import Key
from common.storage.wire import Item, from_wire

MAX_TRIES = 12
# A transaction holds an item for some tens of milliseconds.
_FIRST_WAIT_S = 0.04
_MAX_WAIT_S = 0.5

_T = TypeVar("_T")


class ConditionFailed(Exception):
    """A conditional write lost: a normal outcome. `existing` is the stored item, if the write requested it.

    `nth` is the number of the failed write in its transaction, from 0; if several failed, the first. `key` is its key.
    """

    def __init__(self, existing: Item | None = None, nth: int = 0, key: Key | None = None) -> None:
        super().__init__("the condition did not hold")
        self.existing = existing
        self.nth = nth
        self.key = key

    def is_of(self, name: str, token: str) -> bool:
        """Whether the write was done: its answer was lost, and it was made again. `name` holds each write's token."""
        return self.existing is not None and self.existing.get(name) == token


class TransactionConflict(Busy):
    """Another transaction was writing some of the items; nothing was written. `keys` are those that DynamoDB named.

    The same call may succeed next time.
    """

    def __init__(self, keys: Sequence[Key] = ()) -> None:
        super().__init__("another transaction was in the way")
        self.keys = keys


def refused_write(error: ClientError) -> ConditionFailed | TransactionConflict | ItemTooLarge | None:
    """Why DynamoDB refused a write, if the reason is a condition, another transaction, or an update's result."""
    response: Mapping[str, Any] = error.response
    match response.get("Error", {}).get("Code"):
        case "ConditionalCheckFailedException":
            return ConditionFailed(from_wire(response["Item"]) if response.get("Item") else None)
        case "TransactionConflictException":
            return TransactionConflict()
        case "ValidationException" if "Item size" in str(response["Error"].get("Message")):
            return ItemTooLarge()
    return None


def retry_on_conflict(
    attempt: Callable[[], _T],
    subject: str,
    *,
    on: tuple[type[Exception], ...] = (TransactionConflict,),
    tries: int = MAX_TRIES,
    sleep: Callable[[float], None] = time.sleep,
    uniform: Callable[[float, float], float] = random.uniform,
) -> _T:
    """Return what `attempt` returns. It reads, decides and writes; if it raises one of `on`, it is called again.

    The waits are random, so that two writers part: 12 tries take 2 s on average, at most 4.1 s.
    Raises Busy, which names `subject`, after the last try; and whatever else `attempt` raises.
    """
    for nth in range(tries):
        if nth:
            sleep(wait_s(nth, uniform))
        try:
            return attempt()
        except on as error:
            conflict = error
    raise busy(subject) from conflict


def retry_if_changed(
    attempt: Callable[[], _T],
    subject: str,
    *,
    tries: int = MAX_TRIES,
    sleep: Callable[[float], None] = time.sleep,
    uniform: Callable[[float, float], float] = random.uniform,
) -> _T:
    """As `retry_on_conflict`, also if an item that `attempt` read is not as it was: a condition did not hold."""
    conflicts = (ConditionFailed, TransactionConflict)
    return retry_on_conflict(attempt, subject, on=conflicts, tries=tries, sleep=sleep, uniform=uniform)


def wait_s(failed: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
    """The wait before another try, after so many that failed."""
    return uniform(0, min(_MAX_WAIT_S, _FIRST_WAIT_S * 2 ** (failed - 1)))


def busy(subject: str) -> Busy:
    """What is raised after the last try."""
    return Busy(f"{subject} is being changed by too many writers at once")
