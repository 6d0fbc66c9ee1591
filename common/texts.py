"""Texts: names and notes that people write, how long they may be, and how long texts are compressed."""

from __future__ import annotations

import base64
import zlib
from typing import Final

from common.errors import InvalidInput

NAME_CHARS = 200
NOTE_CHARS = 500


def check_name(name: object) -> str:
    """A name; empty if it is None. Raises InvalidInput."""
    if name is None:
        return ""
    if not isinstance(name, str) or len(name) > NAME_CHARS:
        raise InvalidInput(
            "name", "must be a name", value=name, accepted=f"text of up to {NAME_CHARS} characters"
        )
    return name


def check_note(note: object) -> str:
    """A note. Raises InvalidInput."""
    if not isinstance(note, str) or len(note) > NOTE_CHARS:
        raise InvalidInput("note", "must be a note", value=note, accepted=f"text of up to {NOTE_CHARS} chars")
    return note


# What `unpacked` raises for a text that is none of ours or was damaged, and what reading such an item raises.
UNREADABLE: Final = (ValueError, KeyError, TypeError, zlib.error)


def packed(text: str) -> str:
    """Compressed, as text."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpacked(data: str) -> str:
    """The inverse of `packed`."""
    return zlib.decompress(base64.b64decode(data)).decode()
