"""Texts that people write for people: names and notes, and how long they may be."""

from __future__ import annotations

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
