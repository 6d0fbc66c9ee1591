"""What shapes have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from common.ids import JOB_ID_CHARS, id_pattern

Instant = Annotated[
    str,
    Field(
        description="RFC 3339, UTC.",
        json_schema_extra={"format": "date-time"},
        examples=["2026-11-21T03:18:00Z"],
    ),
]
Seconds = Annotated[float, Field(description="Seconds.", ge=0)]
JobId = Annotated[
    str,
    StringConstraints(pattern=id_pattern(JOB_ID_CHARS)),
    Field(examples=["nightly-report"]),
]


class Answer(BaseModel):
    """What the API gives."""

    model_config = ConfigDict(extra="ignore")


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


class LineProblem(Answer):
    """Why a line is refused: RFC 9457, cut to three errors."""

    type: str = Field(examples=["urn:minute8:problem:invalid-input"])
    title: str
    status: int
    detail: str
    line: int
    errors: list[FieldProblem] | None = None
    quota: QuotaProblem | None = None


class BulkLine(Answer):
    """The result of a line, or its result without `dry_run`."""

    line: int
    job_id: str | None = Field(description="Null where the line has no valid one.")
    result: Literal["created", "replaced", "unchanged", "refused"]
    revision: int | None = None
    changed: list[str] | None = Field(default=None, description="The fields that a replaced job changes.")
    problem: LineProblem | None = None


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
    results: list[BulkLine] | None = Field(default=None, description="The lines that are in the way.")


class Version(Answer):
    """What is deployed."""

    version: str = Field(description="Of Minute8, as `minute8 --version` prints the command's.")
