"""Cursors: the position in a list. Clients cannot read them, and each is valid for one tenant and one list."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from common.errors import InvalidInput
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, rfc3339

_MAX_CURSOR_CHARS: Final = 2_000
_MAX_KEY: Final = 1_000

Parsed = TypeVar("Parsed")


def write_cursor(tenant: str, of: str, last: str) -> str:
    """A cursor for the entries after `last` in the list `of`."""
    text = json.dumps([_scope(tenant, of), last], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(tenant: str, of: str, cursor: str | None) -> str:
    """The inverse of `write_cursor`; empty if the request has no cursor.

    The scope is not a secret: it only detects mistakes of a client. Keys are always made of the credential's tenant.
    Raises InvalidInput.
    """
    if cursor is None:
        return ""
    try:
        if len(cursor) > _MAX_CURSOR_CHARS:
            raise ValueError
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        scope, last = json.loads(text)
        if scope != _scope(tenant, of) or not isinstance(last, str) or not _is_key(last):
            raise ValueError
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise not_of_this_list(cursor) from None
    return last


def parsed_cursor(tenant: str, of: str, cursor: str | None, parse: Callable[[str], Parsed]) -> Parsed | None:
    """What `parse` makes of the text in a cursor; None if the request has no cursor.

    A client can write a cursor itself, so `parse` raises ValueError or TypeError for every other text.
    Raises InvalidInput.
    """
    text = read_cursor(tenant, of, cursor)
    try:
        return parse(text) if text else None
    except (ValueError, TypeError, RecursionError):
        raise not_of_this_list(cursor) from None


def not_of_this_list(cursor: str | None) -> InvalidInput:
    """The error for a cursor that the list has not returned."""
    return InvalidInput(
        "cursor",
        "is not of this list",
        value=cursor,
        accepted="the next_cursor of an earlier answer to the same request",
    )


def _is_key(last: str) -> bool:
    """Whether DynamoDB accepts the text as part of a key. A client can write a cursor itself."""
    return last.isascii() and 0 < len(last) <= _MAX_KEY


def _scope(tenant: str, of: str) -> str:
    return hashlib.sha256(f"{tenant}#{of}".encode()).hexdigest()[:16]


# The schema of an instant in a query.
INSTANT: Final = {"type": "string", "format": "date-time"}


def bounds(query: Mapping[str, str]) -> dict[str, int]:
    """Those of `from_at` and `until_at` that are given, in epoch seconds. Raises InvalidInput."""
    return {name: parse_instant(query[name], name) for name in ("from_at", "until_at") if name in query}


def check_range(query: Mapping[str, str]) -> None:
    """Refuse a range that ends before it begins. Raises InvalidInput."""
    span = bounds(query)
    if len(span) == 2 and span["until_at"] < span["from_at"]:
        raise _ends_too_early(query["from_at"], query["until_at"])


def check_order(from_at: int, until_at: int | None) -> None:
    """The same for the range of a body."""
    if until_at is not None and until_at < from_at:
        raise _ends_too_early(rfc3339(from_at), rfc3339(until_at))


def _ends_too_early(from_at: str, until_at: str) -> InvalidInput:
    return InvalidInput("until_at", "is before from_at", value=until_at, accepted=f"{from_at} or later")


def last_day_or(query: Mapping[str, str], now: float, most_days: int) -> tuple[int, int]:
    """The requested range of at most `most_days`; the last day if there is none. Raises InvalidInput."""
    span = bounds(query)
    until_at = span.get("until_at", int(now) + 1)
    from_at = span.get("from_at", max(0, until_at - DAY_S))
    check_length(from_at, until_at, most_days)
    return from_at, until_at


def check_length(from_at: int, until_at: int, most_days: int) -> None:
    """Refuse a range of more than `most_days`. Raises InvalidInput."""
    if until_at - from_at > most_days * DAY_S:
        raise InvalidInput(
            "from_at",
            "is too far from until_at",
            value=rfc3339(from_at),
            accepted=f"a range of up to {most_days} days",
        )
