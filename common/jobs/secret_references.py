"""How jobs name secrets: `secret://name`, in values of headers, a URL's path or query, and strings of the payload.

A reference is as long as the characters of names go. It may stand within a text, as in `Bearer secret://token`. Names
of fields are no place for one. Values are not searched for references again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

from common.jobs.placeholders import in_strings

# What a reference to a secret begins with, and the most of a job. Each can add 4 KB to a call.
MARK: Final = "secret://"
_REFERENCE: Final = re.compile(MARK + r"([A-Za-z0-9._-]*)")

# The value by its name; None: the reference stays as it is.
ValueOf = Callable[[str], str | None]


def references(text: str) -> Iterator[re.Match[str]]:
    """Each reference of a text; its first group is the name, or empty where none follows."""
    return _REFERENCE.finditer(text)


def filled(text: str, value_of: ValueOf, encoded: Callable[[str], str] = str) -> str:
    """The text with values, `encoded`, in place of references."""

    def replaced(reference: re.Match[str]) -> str:
        value = value_of(reference[1])
        return reference[0] if value is None else encoded(value)

    return _REFERENCE.sub(replaced, text)


def filled_json(payload: str, value_of: ValueOf) -> str:
    """Compact JSON with values in place of references in its strings, but not in names of fields."""

    def as_json(value: str) -> str:
        return json.dumps(value, ensure_ascii=False)[1:-1]

    return in_strings(payload, MARK, lambda string: filled(string, value_of, as_json))
