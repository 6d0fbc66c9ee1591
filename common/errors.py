"""All errors that Minute8 raises on purpose. Errors are part of the interface: each contains the value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from common.limits import MAX_PROBLEMS

_MAX_SHOWN_CHARS = 120
# The caller chooses the name of a field that is not known.
_MAX_FIELD_CHARS = 200


class Minute8Error(Exception):
    """Base of all errors raised on purpose; `str(error)` is a sentence for a person."""


class InvalidInput(Minute8Error):
    """Input that is refused before anything is stored.

    `field` is a dotted path (`schedule.cron`). `position` is a 0-based character index into a text value.
    `accepted` says what would have been accepted. `also` holds the other problems of the same input.
    """

    def __init__(
        self,
        field: str,
        message: str,
        *,
        value: object = None,
        accepted: str = "",
        position: int | None = None,
        also: tuple[InvalidInput, ...] = (),
    ) -> None:
        self.field = field if len(field) <= _MAX_FIELD_CHARS else field[:_MAX_FIELD_CHARS] + "…"
        self.message = message
        self.value = shown(value)
        self.accepted = accepted
        self.position = position
        self.also = also
        super().__init__(self.field, message)

    def __str__(self) -> str:
        at = f" at position {self.position}" if self.position is not None else ""
        got = f" (got {self.value})" if self.value else ""
        accepted = f"; accepted: {self.accepted}" if self.accepted else ""
        return f"{self.field}{at}: {self.message}{got}{accepted}"


def aws_code(error: Exception) -> str:
    """The code of AWS's refusal, or the error's type. Its words are left out: they may repeat what was sent."""
    response = getattr(error, "response", None)
    return str(response["Error"]["Code"]) if response else type(error).__name__


def together(problems: Iterable[InvalidInput]) -> InvalidInput | None:
    """The first problem, with the next ones in `also`. Beyond MAX_PROBLEMS none is made: a body can have thousands."""
    first_problems = tuple(islice(problems, MAX_PROBLEMS))
    if not first_problems:
        return None
    first_problems[0].also = first_problems[1:]
    return first_problems[0]


class ItemTooLarge(InvalidInput):
    """What is to be stored exceeds DynamoDB's limit of 400 KB per item; nothing is stored.

    A backstop: the bounds of all fields together keep within the limit. `size` is in bytes, 0 if it is unknown.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = size
        message = f"takes {size} bytes to store" if size else "takes too many bytes to store"
        super().__init__("item", message, accepted="at most 400 KB in one item")


class NotFound(Minute8Error):
    """The requested thing does not exist for this tenant. What belongs to another tenant does not exist for it."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"no {kind} {shown(name)}")


class AlreadyExists(Minute8Error):
    """The name of a new thing is taken."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} {shown(name)} exists already")


# The expected revision of what must not exist yet.
NONE_YET: Final = -1


class RevisionMismatch(Minute8Error):
    """The expected revision is not the current one; with NONE_YET, it exists already."""

    def __init__(self, name: str, expected: int | None, current: int, *, kind: str = "job") -> None:
        self.name = name
        self.expected = expected
        self.current = current
        expectation = (
            "so it exists; the change was to create it"
            if expected == NONE_YET
            else f"the change expected {expected}"
        )
        super().__init__(f"{kind} {name!r} is at revision {current}, {expectation}")


class Conflict(Minute8Error):
    """The request does not fit the current state."""


class Damaged(Conflict, ValueError):
    """A stored item cannot be read: somebody has edited it, or a later version has written it."""


class UndoneSince(Conflict):
    """A request came again, by its ClientToken, after another one had undone what it did. Nothing was changed."""

    def __init__(self, kind: str, name: str, *, is_creation: bool) -> None:
        did, since, again = (
            ("made", "deleted", "make") if is_creation else ("deleted", "made again", "delete")
        )
        super().__init__(
            f"this request {did} {kind} {shown(name)} before, and it was {since} since; "
            f"send another ClientToken to {again} it again"
        )


class Busy(Minute8Error):
    """Too many writers changed the same item at once, or DynamoDB throttles. The call can be repeated."""


class KeyReused(Minute8Error):
    """An idempotency key was used again for another request; nothing was stored."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the key {shown(key)} was sent before, and with another request; "
            "send what it was sent with, or a new key"
        )


class RequestUnderWay(Minute8Error):
    """A request with the same idempotency key is still being processed. Ask again later for its answer."""

    def __init__(self, key: str) -> None:
        super().__init__(f"a request with the key {shown(key)} is under way; repeat this one for its answer")


class Unauthenticated(Minute8Error):
    """No credential, or an invalid one. The error never says whether it is unknown, malformed, expired or revoked."""

    def __init__(self, message: str = "the API key or token is not valid") -> None:
        super().__init__(message)


class Forbidden(Minute8Error):
    """The credential is valid, but its role does not allow this."""

    def __init__(self, role: str, needed: str) -> None:
        self.role = role
        self.needed = needed
        super().__init__(f"the role {role!r} may not do this; it needs the role {needed!r}")


class TenantSuspended(Minute8Error):
    """The platform has suspended the tenant. It can read everything and change nothing."""


class QuotaExceeded(Minute8Error):
    """The change exceeds a quota of the tenant. Waiting does not help, so the status is not 429."""

    def __init__(self, quota: str, most: int, used: int, needed: int) -> None:
        self.quota = quota
        self.most = most
        self.used = used
        self.needed = needed
        super().__init__(
            f"quota {quota}: {used} of {most} are in use, and this needs {needed} more; "
            "delete or slow down other jobs, or have the platform raise it"
        )


class RateExceeded(Minute8Error):
    """The tenant has sent too many requests; it may try again after `retry_after_s`."""

    def __init__(self, most: int, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"the budget of {most} requests a minute is used up; try again in {retry_after_s} s")


def shown(value: object) -> str:
    """A value for an error message: its repr, shortened, so that hostile input cannot flood a log. Never raises."""
    if value is None:
        return ""
    try:
        text = repr(value[: _MAX_SHOWN_CHARS + 1]) if isinstance(value, str) else repr(value)
    except (ValueError, RecursionError):  # an int of over 4,300 digits, a list within itself a thousand times
        return f"<{type(value).__name__}>"
    return text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "…"
