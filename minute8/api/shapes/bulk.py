"""Many jobs at once."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from minute8.api.shapes.base import (
    BulkLine,
    NextCursor,
    Nonce,
    Note,
    RequestBody,
    RequestedInstant,
    ResponseBody,
)


class BulkResult(ResponseBody):
    """The results of the lines, in their order."""

    dry_run: Annotated[bool, Meta(description="True if nothing was stored.")]
    created: Annotated[int, Meta(description="The number of jobs that were created.")]
    replaced: Annotated[int, Meta(description="The number of jobs that were replaced.")]
    unchanged: Annotated[int, Meta(description="The number of jobs whose definition was the same already.")]
    refused: Annotated[int, Meta(description="The number of lines that were refused.")]
    results: Annotated[list[BulkLine], Meta(description="The result of each line.")]


_Text = Annotated[str, Meta(max_length=200, min_length=1)]


class _Many(RequestBody):
    dry_run: Annotated[bool, Meta(description="Only count, and change nothing.")] = False
    cursor: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2_000)] | None,
        Meta(description="The `next_cursor` of the answer before."),
    ] = None


class ManyJobs(_Many):
    """Which jobs: those that meet all conditions."""

    examples: ClassVar = [{"tag": "nightly", "dry_run": True}]

    state: Annotated[Literal["active", "paused"] | None, Meta(description="Only jobs in this state.")] = None
    tag: Annotated[_Text | None, Meta(description="Only jobs with this tag.")] = None
    name_prefix: Annotated[_Text | None, Meta(description="Only jobs whose id or name begins so.")] = None
    target: Annotated[
        Annotated[str, Meta(max_length=2_000, min_length=1)] | None,
        Meta(description="Only jobs with this ARN or URL as target."),
    ] = None
    error_type: Annotated[
        _Text | None, Meta(description="Only jobs that failed with this type of error in the last 7 days.")
    ] = None
    fingerprint: Annotated[
        _Text | None, Meta(description="Only jobs of these groups of failures, of the last 7 days.")
    ] = None
    all: Annotated[bool, Meta(description="True if no condition is given, and all jobs are meant.")] = False


class PauseJobs(ManyJobs):
    """Which jobs to pause, and why."""

    examples: ClassVar = [{"tag": "nightly", "note": "maintenance"}]

    note: Note = ""


class RunJobs(ManyJobs):
    """Which jobs to run now."""

    examples: ClassVar = [{"name_prefix": "report", "dry_run": True}]

    nonce: Annotated[Nonce | None, Meta(description="The same nonce starts each job once, for a day.")] = None


class RetryRuns(_Many, kw_only=True):
    """Which failed runs to try once more."""

    from_at: Annotated[RequestedInstant, Meta(description="Only runs that failed at or after this.")]
    until_at: Annotated[RequestedInstant | None, Meta(description="Only runs that failed before this.")] = (
        None
    )
    job_id: Annotated[_Text | None, Meta(description="Only runs of this job.")] = None
    tag: Annotated[_Text | None, Meta(description="Only of jobs that have this tag now.")] = None
    error_type: Annotated[
        _Text | None, Meta(description="Only runs that failed with this type of error.")
    ] = None
    fingerprint: Annotated[_Text | None, Meta(description="Of a group of failures.")] = None


class CancelRuns(_Many):
    """Which waiting runs to cancel: by default those that wait for their next attempt."""

    status: Annotated[
        Literal["retrying", "queued"] | None,
        Meta(description="The status of the runs to cancel; `retrying` if left out."),
    ] = None
    job_prefix: Annotated[_Text | None, Meta(description="Only of jobs whose id begins so.")] = None
    from_at: Annotated[
        RequestedInstant | None, Meta(description="Only fire times at or after this; else of a day.")
    ] = None
    until_at: Annotated[RequestedInstant | None, Meta(description="Only fire times before this.")] = None
    note: Note = ""


class ManyRefused(ResponseBody):
    """A job or run that refused, by its id."""

    id: Annotated[str, Meta(description="The id of the job, or the execution id of the run.")]
    type: Annotated[str, Meta(description="The kind of problem: a stable URN.")]
    detail: Annotated[str, Meta(description="What prevents it, in a sentence.")]


class ManyDone(ResponseBody):
    """What one request did: `matched` jobs or runs, of which so many are `done`, and where the next one continues."""

    dry_run: Annotated[bool, Meta(description="True if the jobs or runs were only counted.")]
    matched: Annotated[
        int, Meta(description="The number of jobs or runs of this request that the filter takes.")
    ]
    done: Annotated[int, Meta(description="The number that was changed.")]
    ids: Annotated[list[str], Meta(description="The ids of the jobs or runs that the filter takes.")]
    refused: Annotated[list[ManyRefused], Meta(description="The jobs and runs that refused.")]
    next_cursor: NextCursor
