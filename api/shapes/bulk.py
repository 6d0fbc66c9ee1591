"""Many jobs at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from api.shapes.parts import Answer, JobId, Shapes
from api.shapes.problems import BulkLine
from common.registration.definition import JobDefinition
from common.texts import NOTE_CHARS


class BulkJob(JobDefinition):
    """One line: a job that is created, or replaces the one of its id."""

    model_config = ConfigDict(title="BulkJob")

    job_id: JobId
    state: Literal["active", "paused"] = Field(
        default="active", description="In which it is created; one that exists keeps its own."
    )
    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS)] = Field(
        default="", description="Why it is created paused."
    )


class ExportedJob(BulkJob):
    """One line: a job as a bulk request takes it, each line ended by a newline."""

    model_config = ConfigDict(title="ExportedJob")


class BulkResult(Answer):
    """What became of the lines, in their order."""

    dry_run: bool
    created: int
    replaced: int
    unchanged: int
    refused: int
    results: list[BulkLine]


TAKEN: Shapes = (BulkJob,)
GIVEN: Shapes = (BulkResult, ExportedJob)
