"""The shapes of the first look at a tenant."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from minute8.api.shapes.base import ExecutionId, Instant, JobId, ResponseBody, RunStatus
from minute8.api.shapes.runs import FailureGroup, HourTotals, Totals


class JobStates(ResponseBody):
    """How many jobs there are."""

    total: Annotated[int, Meta(description="All jobs.")]
    active: Annotated[int, Meta(description="Those that fire.")]
    paused: Annotated[int, Meta(description="Those that do not fire: paused or completed.")]


class PastDay(Totals):
    """The runs with fire times in the last 24 hours."""

    from_at: Instant
    fresh_at: Annotated[
        Instant, Meta(description="Up to when runs are counted; a large tenant's newest half hour is not.")
    ]
    hours: Annotated[list[HourTotals], Meta(description="The hours with runs, the earliest first.")]


class HourAhead(ResponseBody):
    """The executions that are due in an hour."""

    at: Annotated[Instant, Meta(description="The beginning of the hour.")]
    executions: Annotated[int, Meta(description="How many are due.")]


class JobAhead(ResponseBody):
    """A job that fires soon."""

    job_id: JobId
    name: Annotated[str, Meta(description="The job's name; empty if it has none.")]
    fire_at: Annotated[Instant, Meta(description="Its next fire time.")]


class NextDay(ResponseBody):
    """The executions of the next 24 hours. Dates that calendars exclude are counted."""

    from_at: Instant
    until_at: Instant
    total: Annotated[int, Meta(description="All executions that were counted.")]
    hours: Annotated[list[HourAhead], Meta(description="The hours with executions, the earliest first.")]
    jobs_counted: Annotated[int, Meta(description="The active jobs that were counted.")]
    complete: Annotated[bool, Meta(description="Whether there was time to count all jobs.")]
    jobs: Annotated[list[JobAhead], Meta(description="At most 10, those that fire next first.")]


class FailingJob(ResponseBody):
    """A job whose last runs failed."""

    job_id: JobId
    name: Annotated[str, Meta(description="The job's name; empty if it has none.")]
    failures_in_row: Annotated[int, Meta(description="How many of its last runs failed.")]


class FailingJobs(ResponseBody):
    """The active jobs whose last run failed, without those whose failure is muted."""

    count: Annotated[int, Meta(description="How many there are.")]
    muted: Annotated[int, Meta(description="How many more fail with a muted error.")]
    jobs: Annotated[
        list[FailingJob], Meta(description="At most 10, those with the most failures in a row first.")
    ]


class Stopped(ResponseBody):
    """A job that does not run, or a subscription whose address is switched off."""

    job_id: JobId | None
    subscription: Annotated[str | None, Meta(description="The subscription's name; null for a job.")]
    reason: Annotated[str, Meta(description="The name of what stops it.", examples=["overlap", "ended"])]
    detail: Annotated[str, Meta(description="Why, in a sentence.")]
    since_at: Instant


class StoppedJobs(ResponseBody):
    """What does not run."""

    count: Annotated[int, Meta(description="How many there are.")]
    first: Annotated[list[Stopped], Meta(description="At most 20, the newest first.")]


class StuckRun(ResponseBody):
    """A run that should have gone on."""

    execution_id: ExecutionId
    job_id: JobId
    status: RunStatus
    since_at: Annotated[Instant, Meta(description="The end of its lease, or the time of its next attempt.")]


class OpenRuns(ResponseBody):
    """The runs that are not over."""

    queued: Annotated[
        int, Meta(description="They wait for the job's previous run to end, or were just started manually.")
    ]
    running: Annotated[int, Meta(description="Their attempt is under way.")]
    retrying: Annotated[int, Meta(description="They wait for their next attempt.")]
    stuck: Annotated[int, Meta(description="Those that should have gone on two minutes ago or earlier.")]
    stuck_runs: Annotated[list[StuckRun], Meta(description="At most 10, the oldest first.")]
    complete: Annotated[
        bool,
        Meta(description="False: more than 20,000 runs are new or go on; the oldest were read. Ask again."),
    ]


class TenantOverview(ResponseBody):
    """What a first look needs."""

    at: Annotated[Instant, Meta(description="When this was read.")]
    suspended: Annotated[
        bool, Meta(description="Whether the platform has suspended the tenant: nothing runs.")
    ]
    job_counts: Annotated[
        JobStates | None, Meta(description="null: the directory of jobs is being made; ask again.")
    ]
    past: PastDay
    open: OpenRuns
    ahead: Annotated[NextDay | None, Meta(description="null: as `job_counts`.")]
    failing: Annotated[FailingJobs | None, Meta(description="null: as `job_counts`.")]
    not_running: Annotated[StoppedJobs | None, Meta(description="null: as `job_counts`.")]
    errors: Annotated[
        list[FailureGroup],
        Meta(
            description="The latest failures of the last 24 hours by job and error: at most 5, "
            "of the newest 100 failures; "
            "muted groups come last."
        ),
    ]
