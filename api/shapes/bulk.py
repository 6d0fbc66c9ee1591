"""Many jobs at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from api.shapes.base import Answer, BulkLine, Instant, JobId
from api.shapes.jobs import NewJob
from common.ids import NONCE_CHARS, id_pattern
from common.texts import NOTE_CHARS


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


_Text = Annotated[str, StringConstraints(max_length=200, min_length=1)]
_Note = Annotated[str, StringConstraints(max_length=NOTE_CHARS)]


class _Many(BaseModel):
    model_config = ConfigDict(extra="forbid")

    dry_run: bool = Field(default=False, description="Only count, and change nothing.")
    cursor: str | None = Field(
        default=None, description="The `next_cursor` of the answer before.", min_length=1, max_length=2_000
    )


class ManyJobs(_Many):
    """Which jobs: those that meet all conditions."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"tag": "nightly", "dry_run": True}]}
    )

    state: Literal["active", "paused"] | None = None
    tag: _Text | None = Field(default=None, description="Only jobs with this tag.")
    name_prefix: _Text | None = Field(default=None, description="Only jobs whose id or name begins so.")
    target: Annotated[str, StringConstraints(max_length=2_000, min_length=1)] | None = Field(
        default=None, description="Only jobs with this ARN or URL as target."
    )
    error_type: _Text | None = Field(
        default=None, description="Only jobs that failed with this type of error in the last 7 days."
    )
    fingerprint: _Text | None = Field(
        default=None, description="Only jobs of these groups of failures, of the last 7 days."
    )
    all: bool = Field(default=False, description="True if no condition is given, and all jobs are meant.")


class PauseJobs(ManyJobs):
    """Which jobs to pause, and why."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"tag": "nightly", "note": "maintenance"}]}
    )

    note: _Note = ""


class RunJobs(ManyJobs):
    """Which jobs to run now."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"name_prefix": "report", "dry_run": True}]}
    )

    nonce: Annotated[str, StringConstraints(pattern=id_pattern(NONCE_CHARS))] | None = Field(
        default=None, description="The same nonce starts each job once, for a day."
    )


class RetryRuns(_Many):
    """Which failed runs to try once more."""

    from_at: Instant = Field(description="Only runs that failed at or after this.")
    until_at: Instant | None = Field(default=None, description="Only runs that failed before this.")
    job_id: _Text | None = None
    tag: _Text | None = Field(default=None, description="Only of jobs that have this tag now.")
    error_type: _Text | None = None
    fingerprint: _Text | None = Field(default=None, description="Of a group of failures.")


class CancelRuns(_Many):
    """Which waiting runs to cancel: by default those that wait for their next attempt."""

    status: Literal["retrying", "queued"] | None = None
    job_prefix: _Text | None = Field(default=None, description="Only of jobs whose id begins so.")
    from_at: Instant | None = Field(
        default=None, description="Only fire times at or after this; else of a day."
    )
    until_at: Instant | None = Field(default=None, description="Only fire times before this.")
    note: _Note = ""


class ManyRefused(Answer):
    """A job or run that refused, by its id."""

    id: str
    type: str
    detail: str


class ManyDone(Answer):
    """What one request did: `matched` jobs or runs, of which so many are `done`, and where the next one continues."""

    dry_run: bool
    matched: int
    done: int
    ids: list[str]
    refused: list[ManyRefused]
    next_cursor: str | None
