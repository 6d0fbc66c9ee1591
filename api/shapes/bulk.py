"""Many jobs at once."""

from __future__ import annotations

from pydantic import ConfigDict, Field, JsonValue

from api.shapes.jobs import NewJob
from api.shapes.parts import Answer, JobId, Shapes
from api.shapes.problems import BulkLine


class ExportedJob(NewJob):
    """One line: a job as a bulk request takes it, each line ended by a newline."""

    model_config = ConfigDict(title="ExportedJob", json_schema_extra={})

    job_id: JobId


class BulkJob(ExportedJob):
    """One line: a job that is created, or replaces the one of its id."""

    model_config = ConfigDict(title="BulkJob")

    eventbridge: dict[str, JsonValue] | None = Field(
        default=None,
        description="The EventBridge schedule that this job was: CreateSchedule's request with its Name. "
        "EventBridge's API then lists the job.",
    )


class BulkResult(Answer):
    """The results of the lines, in their order."""

    dry_run: bool
    created: int
    replaced: int
    unchanged: int
    refused: int
    results: list[BulkLine]


TAKEN: Shapes = (BulkJob,)
GIVEN: Shapes = (BulkResult, ExportedJob)
