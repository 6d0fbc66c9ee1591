"""Refusals."""

from __future__ import annotations

from pydantic import Field

from api.shapes.parts import Answer, Shapes


class FieldProblem(Answer):
    """One thing that is wrong."""

    field: str
    message: str
    position: int | None = None
    value: str | None = None
    accepted: str | None = None


class Problem(Answer):
    """A refusal: RFC 9457."""

    type: str = Field(examples=["urn:minute8:problem:invalid-input"])
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] | None = None
    current_revision: int | None = None


TAKEN: Shapes = ()
GIVEN: Shapes = (Problem,)
