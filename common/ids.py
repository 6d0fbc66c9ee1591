"""The grammar of ids (of tenants, jobs, calendars, secrets, manual runs and backfills), of names and of notes.

`common/planning/execution.py` has the grammar of execution ids, which contain these ids.
"""

from __future__ import annotations

import re

from common.errors import InvalidInput
from common.limits import NAME_CHARS, NOTE_CHARS

TENANT_ID_CHARS = 64
SECRET_NAME_CHARS = 64
PACE_KEY_CHARS = 64

# An id starts with a letter or digit, so `.`, `..` and command options cannot be ids.
_FIRST, _REST = "[A-Za-z0-9]", "[A-Za-z0-9._-]"
_ID = re.compile(f"{_FIRST}{_REST}*", re.ASCII)


def id_pattern(longest: int) -> str:
    """The pattern that `check_id` accepts, for documents."""
    return rf"^{_FIRST}{_REST}{{0,{longest - 1}}}$"


def words_of_ids(longest: int) -> str:
    """What `check_id` accepts, in words."""
    return f"1 to {longest} of A-Z a-z 0-9 . _ - that begin with a letter or digit"


def is_id(value: object, longest: int) -> bool:
    """Whether keys, URLs and messages can contain the text without escaping."""
    return isinstance(value, str) and len(value) <= longest and _ID.fullmatch(value) is not None


def check_id(field: str, text: object, longest: int) -> str:
    """An id that `is_id` accepts. Raises InvalidInput."""
    if not isinstance(text, str) or not is_id(text, longest):
        raise InvalidInput(
            field,
            "must be a valid id",
            value=text,
            accepted=words_of_ids(longest),
        )
    return text


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
