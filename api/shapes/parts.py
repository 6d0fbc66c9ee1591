"""What shapes have in common."""

from __future__ import annotations

from typing import Annotated

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


Shapes = tuple[type[BaseModel], ...]
