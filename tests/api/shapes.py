"""Answers beside the shapes that the document promises."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from api.shapes import SHAPES
from common.declared import faults


def check_shape(name: str, answer: Any) -> None:
    """Fail if the answer has not this shape, or a field that it has not."""
    shape = SHAPES[name]
    if issubclass(shape, Struct):
        assert list(map(str, faults(answer, shape))) == []
    else:
        shape.model_validate(answer)
        assert answer.keys() <= fields_of(name)


def fields_of(name: str) -> set[str]:
    """The names of a shape's fields."""
    shape = SHAPES[name]
    return set(shape.__struct_fields__) if issubclass(shape, Struct) else set(shape.model_fields)
