"""Jobs."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from common.jobs.delivery import Called
from minute8.api.shapes.base import (
    ErrorText,
    ErrorType,
    ExecutionId,
    Instant,
    JobId,
    JobState,
    NextCursor,
    Note,
    RequestBody,
    ResponseBody,
    RunStatus,
    Seconds,
    Timezone,
    Trigger,
)

# `minute8/api/shapes/definitions.py` has its shape.
_Job = Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Job"})]


class Pause(RequestBody):
    """Why a job is paused."""

    note: Note = ""


class RunOutcome(ResponseBody):
    """One of a job's newest runs, in short."""

    fire_at: Instant
    status: RunStatus
    trigger: Trigger
    reason: Annotated[str | None, Meta(description="Why it was skipped.")] = None
    lateness_s: Seconds | None = None
    duration_s: Seconds | None = None


class LastRun(RunOutcome, kw_only=True):
    """The newest run."""

    execution_id: ExecutionId
    error_type: ErrorType | None = None
    error: ErrorText | None = None


class Overdue(ResponseBody):
    """The earliest due instant since the last scheduled run that has passed without a run."""

    fire_at: Instant
    due_at: Instant
    late_s: Seconds
    detail: Annotated[str, Meta(description="Why no run of it is recorded, in a sentence.")]


class JobHealth(ResponseBody):
    """How a job is, at a glance."""

    last_run: LastRun | None
    outcomes: Annotated[list[RunOutcome], Meta(description="The newest 20 runs, the newest first.")]
    failures_in_row: Annotated[
        int, Meta(description="Scheduled runs that failed since one succeeded, or the job changed.")
    ]
    not_running: Annotated[
        str | None, Meta(description="The name of what stops it; null: nothing does.", examples=["overlap"])
    ]
    overdue: Overdue | None


class CorruptJob(ResponseBody):
    """A job whose stored item was damaged. It does not run. Put it again, or delete it."""

    job_id: JobId
    problem: Annotated[str, Meta(description="What is wrong with the stored item.")]


class JobPage(ResponseBody, kw_only=True):
    """Some jobs, in the order of the list, and where it goes on."""

    jobs: Annotated[list[_Job], Meta(description="The jobs of this page.")]
    health: Annotated[
        dict[str, JobHealth] | None,
        Meta(description="With `health=true`: the health of each job of this page, by its id."),
    ] = None
    suspended: Annotated[
        bool, Meta(description="Whether the platform has suspended the tenant: nothing runs.")
    ]
    corrupt: Annotated[
        list[CorruptJob],
        Meta(description="The jobs of this page that cannot be read; only in lists without a search."),
    ]
    matched: Annotated[
        int | None, Meta(description="How many jobs meet the conditions; null for the list of all jobs.")
    ] = None
    next_cursor: NextCursor


class Fire(ResponseBody):
    """One coming fire time."""

    fire_at: Instant
    due_at: Annotated[Instant, Meta(description="When the target is really called: with the jitter.")]
    local: Annotated[str, Meta(description="On the schedule's own clock.")]
    skipped: Annotated[bool, Meta(description="Whether it was cancelled beforehand.")]


class Fires(ResponseBody):
    """When a job fires next; empty while it is paused."""

    job_id: JobId
    state: JobState
    timezone: Timezone
    fires: Annotated[list[Fire], Meta(description="The fire times, the earliest first.")]


class TargetDelivery(ResponseBody):
    """How often a kind of target is called for an execution."""

    kind: str
    applies_to: Annotated[str, Meta(description="To which targets of the kind.")]
    called: Annotated[
        Called,
        Meta(description="How often, whatever dies or is delivered twice."),
    ]
    key: Annotated[str, Meta(description="By which whoever is called knows a repetition.")]
    kept: Annotated[str, Meta(description="For how long the key is compared.")]


class TargetList(ResponseBody):
    """All kinds of target."""

    targets: Annotated[
        list[TargetDelivery], Meta(description="The kinds, and variants that are called otherwise.")
    ]
