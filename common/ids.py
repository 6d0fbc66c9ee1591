"""The grammar of ids: of tenants, jobs, and what a client calls a manual run or a backfill."""

from __future__ import annotations

import re

from common.errors import InvalidInput

TENANT_ID_CHARS = 64
JOB_ID_CHARS = 128
# What a client calls a manual run, or a backfill.
NONCE_CHARS = 32

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def id_pattern(longest: int) -> str:
    """What `check_id` accepts, as documents say it."""
    return rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{longest - 1}}}$"


def check_id(field: str, text: object, longest: int) -> str:
    """A tenant's or job's id: letters, digits and `._-`, so that no key, URL or message needs escaping."""
    if not isinstance(text, str) or not _ID.fullmatch(text) or len(text) > longest:
        raise InvalidInput(
            field,
            "is no valid id",
            value=text,
            accepted=f"1 to {longest} of A-Z a-z 0-9 . _ - that begin with a letter or digit",
        )
    return text
