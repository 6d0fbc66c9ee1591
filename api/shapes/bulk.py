"""Many jobs at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints

from api.shapes.base import (
    BulkLine,
    JobId,
    NextCursor,
    Nonce,
    Note,
    RequestBody,
    RequestedInstant,
    ResponseBody,
)
from api.shapes.jobs import NewJob


class ExportedJob(NewJob):
    """One line: a job as a bulk request takes it, each line ended by a newline."""

    model_config = ConfigDict(title="ExportedJob", json_schema_extra={})

    job_id: JobId
    eventbridge: dict[str, JsonValue] | None = Field(
        default=None,
        description="The EventBridge schedule that this job was: CreateSchedule's request with its Name. "
        "EventBridge's API then lists the job.",
    )


class BulkJob(ExportedJob):
    """One line: a job that is created, or replaces the one of its id."""

    model_config = ConfigDict(title="BulkJob")


class BulkResult(ResponseBody):
    """The results of the lines, in their order."""

    dry_run: bool = Field(description="True if nothing was stored.")
    created: int = Field(description="The number of jobs that were created.")
    replaced: int = Field(description="The number of jobs that were replaced.")
    unchanged: int = Field(description="The number of jobs whose definition was the same already.")
    refused: int = Field(description="The number of lines that were refused.")
    results: list[BulkLine] = Field(description="The result of each line.")


_Text = Annotated[str, StringConstraints(max_length=200, min_length=1)]


class _Many(RequestBody):
    dry_run: bool = Field(default=False, description="Only count, and change nothing.")
    cursor: str | None = Field(
        default=None, description="The `next_cursor` of the answer before.", min_length=1, max_length=2_000
    )


class ManyJobs(_Many):
    """Which jobs: those that meet all conditions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tag": "nightly", "dry_run": True}]})

    state: Literal["active", "paused"] | None = Field(default=None, description="Only jobs in this state.")
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

    model_config = ConfigDict(json_schema_extra={"examples": [{"tag": "nightly", "note": "maintenance"}]})

    note: Note = ""


class RunJobs(ManyJobs):
    """Which jobs to run now."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name_prefix": "report", "dry_run": True}]})

    nonce: Nonce | None = Field(default=None, description="The same nonce starts each job once, for a day.")


class RetryRuns(_Many):
    """Which failed runs to try once more."""

    from_at: RequestedInstant = Field(description="Only runs that failed at or after this.")
    until_at: RequestedInstant | None = Field(default=None, description="Only runs that failed before this.")
    job_id: _Text | None = Field(default=None, description="Only runs of this job.")
    tag: _Text | None = Field(default=None, description="Only of jobs that have this tag now.")
    error_type: _Text | None = Field(
        default=None, description="Only runs that failed with this type of error."
    )
    fingerprint: _Text | None = Field(default=None, description="Of a group of failures.")


class CancelRuns(_Many):
    """Which waiting runs to cancel: by default those that wait for their next attempt."""

    status: Literal["retrying", "queued"] | None = Field(
        default=None, description="The status of the runs to cancel; `retrying` if left out."
    )
    job_prefix: _Text | None = Field(default=None, description="Only of jobs whose id begins so.")
    from_at: RequestedInstant | None = Field(
        default=None, description="Only fire times at or after this; else of a day."
    )
    until_at: RequestedInstant | None = Field(default=None, description="Only fire times before this.")
    note: Note = ""


class ManyRefused(ResponseBody):
    """A job or run that refused, by its id."""

    id: str = Field(description="The id of the job, or the execution id of the run.")
    type: str = Field(description="The kind of problem: a stable URN.")
    detail: str = Field(description="What prevents it, in a sentence.")


class ManyDone(ResponseBody):
    """What one request did: `matched` jobs or runs, of which so many are `done`, and where the next one continues."""

    dry_run: bool = Field(description="True if the jobs or runs were only counted.")
    matched: int = Field(description="The number of jobs or runs of this request that the filter takes.")
    done: int = Field(description="The number that was changed.")
    ids: list[str] = Field(description="The ids of the jobs or runs that the filter takes.")
    refused: list[ManyRefused] = Field(description="The jobs and runs that refused.")
    next_cursor: NextCursor
