"""What EventBridge Scheduler says of an error, where this is known. Pure.

`docs/eventbridge.md` lists the source of each text. An error without such a text is told in our words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from common.errors import AlreadyExists, InvalidInput, NotFound

_MAX_ECHOED_CHARS: Final = 2_100
# A header is one line of ASCII.
_NOT_PRINTABLE: Final = re.compile(r"[^ -~]")
MAX_ADVICE_CHARS: Final = 1_000


class AwsInvalid(InvalidInput):
    """An input that AWS refuses with the words `aws`."""

    def __init__(
        self, field: str, message: str, aws: str, *, value: object = None, accepted: str = ""
    ) -> None:
        self.aws = aws
        super().__init__(field, message, value=value, accepted=accepted)


class Violation(InvalidInput):
    """A member that breaks a constraint of AWS's model. `constraint` follows "Member must" in AWS's words."""

    def __init__(
        self, field: str, message: str, constraint: str, *, value: object = None, accepted: str = ""
    ) -> None:
        self.constraint = constraint
        echoed = "null" if value is None else f"'{str(value)[:_MAX_ECHOED_CHARS]}'"
        at = ".".join(_member(part) for part in field.split("."))
        self.aws = f"Value {echoed} at '{at}' failed to satisfy constraint: Member must {constraint}"
        super().__init__(field, message, value=value, accepted=accepted)


def aws_text(error: Exception) -> str | None:
    """AWS's message; None if it is not known."""
    if isinstance(error, NotFound):
        return f"{_capital(error.kind)} {error.name} does not exist."
    if isinstance(error, AlreadyExists):
        return f"{_capital(error.kind)} {error.name} already exists."
    if isinstance(error, AwsInvalid):
        return error.aws
    if isinstance(error, Violation):
        violations = [problem for problem in (error, *error.also) if isinstance(problem, Violation)]
        return _detected([problem.aws for problem in violations])
    return None


def own_text(error: Exception) -> str:
    """Our message, with some further problems of the same input."""
    further: Iterable[InvalidInput] = error.also[:4] if isinstance(error, InvalidInput) else ()
    return "; ".join(str(problem) for problem in (error, *further))


def as_header(text: str) -> str:
    """The text as the value of a header."""
    return _NOT_PRINTABLE.sub("?", text)[:MAX_ADVICE_CHARS]


def _detected(texts: list[str]) -> str:
    plural = "" if len(texts) == 1 else "s"
    return f"{len(texts)} validation error{plural} detected: {'; '.join(texts)}"


def _member(part: str) -> str:
    """A part of a path as AWS writes it: members begin with a small letter, items count from 1."""
    return f"{int(part) + 1}.member" if part.isdigit() else part[:1].lower() + part[1:]


def _capital(kind: str) -> str:
    return kind[:1].upper() + kind[1:]
