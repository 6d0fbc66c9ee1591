"""The grammar of ids: of tenants, jobs, calendars and secrets, and of the names of manual runs and backfills.

`common/planning/execution.py` has the grammar of execution ids, which contain these ids.
"""

from __future__ import annotations

import re

from common.errors import InvalidInput

TENANT_ID_CHARS = 64
JOB_ID_CHARS = 128
CALENDAR_NAME_CHARS = 64
SECRET_NAME_CHARS = 64
PACE_KEY_CHARS = 64
# The name that a client gives to a manual run or a backfill.
NONCE_CHARS = 32

# An id starts with a letter or digit, so `.`, `..` and command options cannot be ids.
_FIRST, _REST = "[A-Za-z0-9]", "[A-Za-z0-9._-]"
_ID = re.compile(f"{_FIRST}{_REST}*", re.ASCII)


def id_pattern(longest: int) -> str:
    """The pattern that `check_id` accepts, for documents."""
    return rf"^{_FIRST}{_REST}{{0,{longest - 1}}}$"


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
            accepted=f"1 to {longest} of A-Z a-z 0-9 . _ - that begin with a letter or digit",
        )
    return text
