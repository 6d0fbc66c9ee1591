"""The shapes of the first look at a tenant."""

from __future__ import annotations

from pydantic import Field

from api.shapes.base import ExecutionId, Instant, JobId, ResponseBody, RunStatus
from api.shapes.runs import FailureGroup, HourTotals, Totals


class JobStates(ResponseBody):
    """How many jobs there are."""

    total: int = Field(description="All jobs.")
    active: int = Field(description="Those that fire.")
    paused: int = Field(description="Those that do not fire: paused or completed.")


class PastDay(Totals):
    """The runs with fire times in the last 24 hours."""

    from_at: Instant
    fresh_at: Instant = Field(
        description="Up to when runs are counted; a large tenant's newest half hour is not."
    )
    hours: list[HourTotals] = Field(description="The hours with runs, the earliest first.")


class HourAhead(ResponseBody):
    """The executions that are due in an hour."""

    at: Instant = Field(description="The beginning of the hour.")
    executions: int = Field(description="How many are due.")


class JobAhead(ResponseBody):
    """A job that fires soon."""

    job_id: JobId
    name: str = Field(description="The job's name; empty if it has none.")
    fire_at: Instant = Field(description="Its next fire time.")


class NextDay(ResponseBody):
    """The executions of the next 24 hours. Dates that calendars exclude are counted."""

    from_at: Instant
    until_at: Instant
    total: int = Field(description="All executions that were counted.")
    hours: list[HourAhead] = Field(description="The hours with executions, the earliest first.")
    jobs_counted: int = Field(description="The active jobs that were counted.")
    complete: bool = Field(description="Whether there was time to count all jobs.")
    jobs: list[JobAhead] = Field(description="At most 10, those that fire next first.")


class FailingJob(ResponseBody):
    """A job whose last runs failed."""

    job_id: JobId
    name: str = Field(description="The job's name; empty if it has none.")
    failures_in_row: int = Field(description="How many of its last runs failed.")


class FailingJobs(ResponseBody):
    """The active jobs whose last run failed, without those whose failure is muted."""

    count: int = Field(description="How many there are.")
    muted: int = Field(description="How many more fail with a muted error.")
    jobs: list[FailingJob] = Field(description="At most 10, those with the most failures in a row first.")


class StuckRun(ResponseBody):
    """A run that should have gone on."""

    execution_id: ExecutionId
    job_id: JobId
    status: RunStatus
    since_at: Instant = Field(description="The end of its lease, or the time of its next attempt.")


class OpenRuns(ResponseBody):
    """The runs that are not over."""

    queued: int = Field(
        description="They wait for the job's previous run to end, or were just started manually."
    )
    running: int = Field(description="Their attempt is under way.")
    retrying: int = Field(description="They wait for their next attempt.")
    stuck: int = Field(description="Those that should have gone on two minutes ago or earlier.")
    stuck_runs: list[StuckRun] = Field(description="At most 10, the oldest first.")
    complete: bool = Field(
        description="False: there are more; the 300 oldest were read, also of runs just over."
    )


class TenantOverview(ResponseBody):
    """What a first look needs."""

    at: Instant = Field(description="When this was read.")
    job_counts: JobStates | None = Field(description="null: the directory of jobs is being made; ask again.")
    past: PastDay
    open: OpenRuns
    ahead: NextDay | None = Field(description="null: as `job_counts`.")
    failing: FailingJobs | None = Field(description="null: as `job_counts`.")
    errors: list[FailureGroup] = Field(
        description="The latest failures of the last 24 hours by job and error: at most 5, of the newest 100 failures; "
        "muted groups come last."
    )
