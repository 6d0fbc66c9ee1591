"""Cursors: the position in a list. Clients cannot read them, and each is valid for one tenant and one list."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import to_builtins
from msgspec.json import decode

from common.cache import convert
from common.errors import InvalidInput
from common.storage.bounded import KeyText
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, rfc3339

_MAX_CURSOR_CHARS: Final = 2_000
# It grows with what a position means. An older cursor is then refused as one of another list.
_VERSION: Final = 1


def write_cursor(tenant: str, of: str, position: Any) -> str | None:
    """A cursor for the entries after a position in the list `of`, which names its filters; None: there are none."""
    if position is None:
        return None
    text = json.dumps([_scope(tenant, of), to_builtins(position)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(
    tenant: str,
    of: str,
    cursor: str | None,
    hint: Any,
    check: Callable[[Any], object] = lambda position: None,
) -> Any:
    """The position in a cursor; None if the request has no cursor.

    A client can write a cursor itself: what is not as `hint` says, or what `check` raises ValueError for, is refused.
    The scope is not a secret: it only detects mistakes of a client. Keys are always made of the credential's tenant.
    Raises InvalidInput.
    """
    if cursor is None:
        return None
    try:
        if len(cursor) > _MAX_CURSOR_CHARS:
            raise ValueError
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        scope, values = decode(text, type=tuple[str, Any])
        if scope != _scope(tenant, of):
            raise ValueError
        position = convert(values, hint)
        check(position)
    except (ValueError, RecursionError):
        raise not_of_this_list(cursor) from None
    return position


def read_key(tenant: str, of: str, cursor: str | None) -> str:
    """The same of a list whose positions are keys; empty if the request has no cursor. Raises InvalidInput."""
    key: str | None = read_cursor(tenant, of, cursor, KeyText)
    return key or ""


def not_of_this_list(cursor: str | None) -> InvalidInput:
    """The error for a cursor that the list has not returned."""
    return InvalidInput(
        "cursor",
        "is not of this list",
        value=cursor,
        accepted="the next_cursor of an earlier answer to the same request",
    )


def _scope(tenant: str, of: str) -> str:
    return hashlib.sha256(f"{_VERSION}#{tenant}#{of}".encode()).hexdigest()[:16]


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
