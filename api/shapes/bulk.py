"""Many jobs at once."""

from __future__ import annotations

from pydantic import ConfigDict

from api.shapes.jobs import NewJob
from api.shapes.parts import Answer, JobId, Shapes
from api.shapes.problems import BulkLine


class BulkJob(NewJob):
    """One line: a job that is created, or replaces the one of its id."""

    model_config = ConfigDict(title="BulkJob", json_schema_extra={})

    job_id: JobId


class ExportedJob(BulkJob):
    """One line: a job as a bulk request takes it, each line ended by a newline."""

    model_config = ConfigDict(title="ExportedJob")


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
