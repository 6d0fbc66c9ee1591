"""What pydantic found, in the words of Minute8's other refusals."""

from __future__ import annotations

from typing import Any, Final

from pydantic_core import ErrorDetails

# pydantic's kinds of problems: what is wrong, and what would be accepted, with the names of its context.
# https://docs.pydantic.dev/latest/errors/validation_errors/
_WORDS: Final[dict[str, tuple[str, str]]] = {
    "missing": ("is missing", ""),
    "extra_forbidden": ("is not a known field", ""),
    "string_type": ("must be a text", ""),
    "string_unicode": ("must be a text in Unicode", ""),
    "int_type": ("must be a whole number", ""),
    "int_from_float": ("must be a whole number", ""),
    "int_parsing": ("must be a whole number", "such as 60"),
    "float_parsing": ("must be a number", "such as 0.5"),
    "float_type": ("must be a number", ""),
    "finite_number": ("must be a finite number", ""),
    "bool_type": ("must be a boolean", "true or false"),
    "list_type": ("must be a list", ""),
    "dict_type": ("must be an object", ""),
    "model_type": ("must be an object", ""),
    "model_attributes_type": ("must be an object", ""),
    "literal_error": ("must be one of a few words", "{expected}"),
    "greater_than_equal": ("is too small", "at least {ge}"),
    "less_than_equal": ("is too large", "at most {le}"),
    "string_too_short": ("is too short", "at least {min_length} characters"),
    "string_too_long": ("is too long", "at most {max_length} characters"),
    "too_short": ("has too few entries", "at least {min_length}"),
    "too_long": ("has too many entries", "at most {max_length}"),
    "string_pattern_mismatch": ("has the wrong form", "a text that matches {pattern}"),
    "union_tag_invalid": ("must be a kind of target", ""),
    "union_tag_not_found": ("must be a kind of target", ""),
    "recursion_loop": ("contains itself", ""),
}
# Of our own validators: their messages are written for people.
_OWN: Final = frozenset(
    {"bad_link", "bad_url", "bad_header", "external_id_alone", "not_fifo", "reserved_source"}
)


def message(problem: ErrorDetails) -> str:
    """What is wrong with the field."""
    if problem["type"] in _OWN:
        return problem["msg"][:1].lower() + problem["msg"][1:]
    return _WORDS.get(problem["type"], ("is not valid", ""))[0]


def accepted(problem: ErrorDetails) -> str:
    """What would be accepted; empty if the problem does not say."""
    words = _WORDS.get(problem["type"], ("", ""))[1]
    context: dict[str, Any] = problem.get("ctx") or {}
    return (
        words.format(**{name: str(value).replace("'", "") for name, value in context.items()})
        if context or "{" not in words
        else ""
    )
