"""Targets that the platform holds."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.shapes.parts import Answer, Instant, Shapes
from common.texts import NOTE_CHARS

_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class NewHold(BaseModel):
    """Which targets to hold: a pattern as in `allowed_targets`, `*` for all."""

    model_config = ConfigDict(extra="forbid")

    pattern: _Pattern = Field(
        description="ARNs or hosts, with wildcards.",
        examples=["arn:aws:lambda:*:123456789012:function:billing-*"],
    )
    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS)] = Field(
        default="", description="Why; skipped runs show it."
    )


class Release(BaseModel):
    """Which hold to end."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"pattern": "hooks.example.com"}]}
    )

    pattern: _Pattern = Field(description="As it was held.")


class Hold(Answer):
    """A pattern of targets that no run calls."""

    pattern: str = Field(description="ARNs or hosts, with wildcards; `*` is everything.")
    note: str = Field(description="Why; skipped runs show it.")
    held_at: Instant = Field(description="When it was held, or its note changed.")
    by: str = Field(description="As in the audit.")


class Holds(Answer):
    """What is held, the oldest hold first."""

    holds: list[Hold] = Field(description="The oldest first.")


TAKEN: Shapes = (NewHold, Release)
GIVEN: Shapes = (Holds,)
