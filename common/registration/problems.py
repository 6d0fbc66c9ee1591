"""What pydantic refuses, in the words of Minute8's other refusals: the field, what is wrong, what is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from common.errors import InvalidInput, together
from common.hints import meant_key, seconds_hint
from common.registration import target_definitions
from common.registration.schedule_text import written_as_object

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


def message_of(problem: ErrorDetails) -> str:
    """What is wrong with the field."""
    if problem["type"] in _OWN:
        return problem["msg"][:1].lower() + problem["msg"][1:]
    return _WORDS.get(problem["type"], ("is not valid", ""))[0]


def accepted_of(problem: ErrorDetails) -> str:
    """What would be accepted; empty if the problem does not say."""
    if problem["type"] in ("int_type", "int_parsing") and (seconds := seconds_hint(problem["input"])):
        return seconds
    words = _WORDS.get(problem["type"], ("", ""))[1]
    context: dict[str, Any] = problem.get("ctx") or {}
    return (
        words.format(**{name: str(value).replace("'", "") for name, value in context.items()})
        if context or "{" not in words
        else ""
    )


def invalid_input(error: ValidationError, body_name: str, model: type[BaseModel]) -> InvalidInput:
    """What pydantic found wrong with a `model`; `whole` names the object itself. The other problems are in `also`."""
    refusal = together(
        InvalidInput(
            ".".join(str(part) for part in target_definitions.place(problem["type"], problem["loc"]))
            or body_name,
            message_of(problem),
            value=None if problem["type"] == "missing" else problem["input"],
            accepted=_hint(problem, model) or accepted_of(problem),
        )
        for problem in error.errors(include_url=False)
    )
    assert refusal, "a ValidationError has a problem"
    return refusal


_REQUIRED: Final = {
    ("schedule",): "an object with cron, every or at",
    ("target",): "an object with a kind, and its arn or url",
}


def _hint(problem: ErrorDetails, model: type[BaseModel]) -> str:
    kind, loc = problem["type"], problem["loc"]
    if kind == "missing" and loc in _REQUIRED:
        return _REQUIRED[loc]
    if kind == "extra_forbidden":
        fields = _fields_at(loc[:-1], model)
        meant = meant_key(str(loc[-1]), fields)
        return (f"{meant}, perhaps; " if meant else "") + "the fields " + ", ".join(fields)
    if kind == "model_type" and loc == ("schedule",):
        return written_as_object(problem["input"])
    if loc == ("dead_letter",):
        return "arn:aws:sqs:<region>:<account>:<queue>, not a FIFO queue"
    return target_definitions.accepted(kind, loc) if loc[:1] == ("target",) else ""


def _fields_at(loc: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """The names of the fields at `loc`. After a union, `loc` names the kind that the client chose."""
    models = [model]
    for part in (part for part in loc if isinstance(part, str)):  # a number is a place in a list
        fields = [candidate.model_fields[part] for candidate in models if part in candidate.model_fields]
        if fields:
            models = [inner for field in fields for inner in _models_in(field.annotation)]
        else:
            models = [
                candidate
                for candidate in models
                if part in get_args(candidate.model_fields["kind"].annotation)
            ]
    return list(models[0].model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a field's type, such as those of a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
