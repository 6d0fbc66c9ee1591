"""The outcome of one attempt, in a form that can always be stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from common.errors import shown
from common.limits import ERROR_BYTES, LOG_TAIL_BYTES, MAX_RETRY_AFTER_S, TYPE_BYTES
from common.storage.wire import Item

_MAX_FIELD_BYTES: Final = {
    "error_type": TYPE_BYTES,
    "error": ERROR_BYTES,
    "log_tail": LOG_TAIL_BYTES,
    "request_id": TYPE_BYTES,
}
# The error type of an attempt that a person stopped.
STOPPED: Final = "StoppedByHand"

T = TypeVar("T")


def cut(text: str, most_bytes: int) -> str:
    """The beginning of a text from a target, cut between characters: DynamoDB refuses an incomplete character."""
    return text[:most_bytes].encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one attempt. Only `permanent` decides whether another attempt may follow.

    `retry_after_s` is the delay that the target asked for. `throttled` says that the target refused the work before it
    began, so the attempt does not count. `accepted`: it has only accepted the work. `started`: ARNs of what it started.
    `unanswered`: nobody waits for the answer any more, but the work may go on.

    Every outcome can be stored, whatever a target answered: texts are cut between characters, and the delay is at most
    MAX_RETRY_AFTER_S.
    """

    ok: bool
    permanent: bool = False
    error_type: str = ""
    error: str = ""
    log_tail: str = ""
    request_id: str = ""
    retry_after_s: float | None = None
    throttled: bool = False
    accepted: bool = False
    started: tuple[str, ...] = ()
    unanswered: bool = False

    def __post_init__(self) -> None:
        for name, most_bytes in _MAX_FIELD_BYTES.items():
            if text := getattr(self, name):
                object.__setattr__(self, name, cut(text, most_bytes))
        if self.retry_after_s is not None:
            is_number = self.retry_after_s >= 0  # false for NaN
            object.__setattr__(
                self, "retry_after_s", min(self.retry_after_s, MAX_RETRY_AFTER_S) if is_number else None
            )

    def without_words(self) -> Outcome:
        """The outcome without what a target says that knows secrets, where nobody can look for their values."""
        error = self.error and "not kept, since it can contain the secrets of the job"
        return replace(self, error=error, log_tail="")

    def to_item(self) -> Item:
        item: Item = {name: text for name in _MAX_FIELD_BYTES if (text := getattr(self, name))}
        if self.retry_after_s is not None:
            item["retry_after_s"] = self.retry_after_s
        if self.throttled:
            item["throttled"] = True
        return item


def unless_minute8_fails(read: Callable[[], T], error_type: str) -> T | Outcome:
    """What Minute8 reads of its own; if its table or KMS fails, an outcome that is no attempt of the tenant's."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001  whatever it is, nothing was called
        return not_called(error_type, shown(str(error)))


def not_called(error_type: str, error: str) -> Outcome:
    """The outcome of what Minute8 could not do now. The attempt does not count."""
    return Outcome(ok=False, throttled=True, error_type=error_type, error=error)
