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


class QuotaProblem(Answer):
    """Which quota is in the way: `used` of `most` are taken, and `wanted` more would be needed."""

    name: str
    most: int
    used: int
    wanted: int


class Problem(Answer):
    """A refusal: RFC 9457."""

    type: str = Field(examples=["urn:minute8:problem:invalid-input"])
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] | None = None
    current_revision: int | None = None
    quota: QuotaProblem | None = None


TAKEN: Shapes = ()
GIVEN: Shapes = (Problem,)
