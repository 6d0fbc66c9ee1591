"""Answers beside the shapes that the document promises."""

from __future__ import annotations

from typing import Any

from common.declared import faults
from minute8.api.shapes import SHAPES


def check_shape(name: str, answer: Any) -> None:
    """Fail if the answer has not this shape, or a field that it has not."""
    assert list(map(str, faults(answer, SHAPES[name]))) == []


def fields_of(name: str) -> set[str]:
    """The names of a shape's fields."""
    return set(SHAPES[name].__struct_fields__)
