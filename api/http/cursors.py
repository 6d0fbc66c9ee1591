"""Cursors: the position in a list. Clients cannot read them, and each is valid for one tenant and one list."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Final

from common.errors import InvalidInput

_LONGEST: Final = 2_000
_LONGEST_KEY: Final = 1_000
_ACCEPTED: Final = "the next_cursor of an earlier answer to the same request"


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
        if len(cursor) > _LONGEST:
            raise ValueError
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        scope, last = json.loads(text)
        if scope != _scope(tenant, of) or not isinstance(last, str) or not _is_key(last):
            raise ValueError
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise InvalidInput("cursor", "is not of this list", value=cursor, accepted=_ACCEPTED) from None
    return last


def _is_key(last: str) -> bool:
    """Whether DynamoDB accepts the text as part of a key. A client can write a cursor itself."""
    return last.isascii() and 0 < len(last) <= _LONGEST_KEY


def _scope(tenant: str, of: str) -> str:
    return hashlib.sha256(f"{tenant}#{of}".encode()).hexdigest()[:16]
