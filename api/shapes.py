"""The shapes that requests and answers have, for OpenAPI and the tests. Imported when the document is asked for.

What a request's body must be is decided by `common/definition.py`; the answers are written by `api/views.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from common.definition import JOB_ID_CHARS, JobDefinition, ScheduleDefinition

Instant = Annotated[
    str,
    Field(
        description="RFC 3339, UTC.",
        json_schema_extra={"format": "date-time"},
        examples=["2026-11-21T03:18:00Z"],
    ),
]
Seconds = Annotated[float, Field(description="Seconds.", ge=0)]
JobId = Annotated[
    str,
    StringConstraints(pattern=rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{JOB_ID_CHARS - 1}}}$"),
    Field(examples=["nightly-report"]),
]


class NewJob(JobDefinition):
    """A job as a client writes it, with an id of its own choice."""

    model_config = ConfigDict(title="NewJob")

    job_id: JobId | None = Field(default=None, description="Generated if left out.")


class JobPatch(BaseModel):
    """A JSON merge patch (RFC 7396): the fields to change; null takes one back to its default."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    tags: list[str] | None = None
    schedule: dict[str, JsonValue] | None = None
    target: dict[str, JsonValue] | None = None
    payload: JsonValue = None
    timeout_s: int | None = None
    retry: dict[str, JsonValue] | None = None


class Pause(BaseModel):
    """Why a job is paused."""

    model_config = ConfigDict(extra="forbid")

    note: Annotated[str, StringConstraints(max_length=500)] = ""


class PreviewRequest(BaseModel):
    """A schedule, and how far to look ahead."""

    model_config = ConfigDict(extra="forbid")

    schedule: ScheduleDefinition
    count: int = Field(default=10, ge=1, le=100)
    from_at: Instant = Field(default="", description="Begin here; now if left out.")
    until_at: Instant = Field(default="", description="End before this.")
    job_id: JobId = Field(default="job", description="Resolves `H` as this job of yours would.")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Job(JobDefinition):
    """A job with its definition, its state, and when it fires next."""

    model_config = ConfigDict(extra="ignore")

    job_id: JobId
    schedule_resolved: dict[str, Any] = Field(
        description="What the schedule means: `H` resolved, the anchor set."
    )
    state: Literal["active", "paused"]
    note: str
    revision: int = Field(description="Moves with every change; also the ETag.")
    schedule_revision: int = Field(description="Moves when the times change.")
    created_at: Instant
    updated_at: Instant
    next_fire_at: Instant | None


class JobPage(_Answer):
    """Some jobs, in the order of their ids, and where the list goes on."""

    jobs: list[Job]
    next_cursor: str | None


class Fire(_Answer):
    """One coming fire time."""

    fire_at: Instant
    due_at: Instant = Field(description="When the target is really called: with the jitter.")
    local: str = Field(description="On the schedule's own clock.")


class Fires(_Answer):
    """When a job fires next; empty while it is paused."""

    job_id: JobId
    state: Literal["active", "paused"]
    timezone: str
    fires: list[Fire]


class PreviewedFire(_Answer):
    """One fire time."""

    fire_at: Instant
    local: str


class SchedulePreview(_Answer):
    """What a schedule means and when it fires."""

    sentence: str
    warnings: list[str]
    schedule_resolved: dict[str, Any]
    timezone: str
    fires: list[PreviewedFire]
    tzdata: str


class Attempt(_Answer):
    """One call of the target."""

    attempt: int
    started_at: Instant
    outcome: Literal["running", "dispatched", "succeeded", "failed"]
    finished_at: Instant | None = None
    duration_s: Seconds | None = None
    error_type: str | None = None
    error: str | None = None
    log_tail: str | None = None
    request_id: str | None = Field(default=None, description="Of the call, as the target's logs show it.")


class Run(_Answer):
    """What became of one execution. Fields that say nothing are left out."""

    execution_id: str = Field(examples=["alice:nightly-report:20261121T031800Z:1"])
    job_id: JobId
    status: Literal["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"]
    trigger: str
    schedule_revision: int
    fire_at: Instant
    due_at: Instant
    attempt: int | None = None
    attempts: list[Attempt]
    reason: str | None = Field(default=None, description="Why it was skipped.")
    detail: str | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    next_attempt_at: Instant | None = None
    lateness_s: Seconds | None = None
    duration_s: Seconds | None = None
    error_type: str | None = None
    error: str | None = None
    skipped_count: int | None = Field(
        default=None, description="How many fire times this one record stands for."
    )
    skipped_from_at: Instant | None = None


class RunPage(_Answer):
    """Some runs, newest first, and where the list goes on."""

    runs: list[Run]
    next_cursor: str | None


class RunNow(BaseModel):
    """Starts a job by hand."""

    model_config = ConfigDict(extra="forbid")

    nonce: str | None = Field(default=None, description="The same nonce in the same second starts it once.")


class NewBackfill(BaseModel):
    """The fire times of a past range."""

    model_config = ConfigDict(extra="forbid")

    start_at: Instant
    end_at: Instant
    concurrency: int = Field(default=1, ge=1, le=100, description="How many of its runs go at a time.")
    dry_run: bool = Field(default=False, description="Count the fire times, and start nothing.")
    backfill_id: str | None = Field(default=None, description="The same id is the same backfill.")


class Backfill(_Answer):
    """A backfill, and how many of its executions are enqueued so far."""

    job_id: JobId
    total: int
    sent: int
    dry_run: bool
    backfill_id: str | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    concurrency: int | None = None
    created_at: Instant | None = None


class NewCalendar(BaseModel):
    """A calendar: exactly one of `dates`, `icalendar` and `country`."""

    model_config = ConfigDict(extra="forbid")

    dates: list[str] | None = Field(default=None, examples=[["2026-12-24"]])
    source: dict[str, Any] | None = Field(
        default=None, description="A small note of where the dates are from."
    )
    icalendar: str | None = Field(default=None, description="iCalendar text: its all-day events.")
    country: str | None = Field(default=None, description="A country's public holidays.")
    subdivision: str | None = None
    years: list[int] | None = None


class CalendarView(_Answer):
    """Dates on which the jobs that name the calendar do not fire."""

    name: str
    dates: list[str]
    source: dict[str, Any]
    created_at: Instant
    updated_at: Instant


class CalendarPage(_Answer):
    """Some calendars, in the order of their names."""

    calendars: list[CalendarView]
    next_cursor: str | None


class KeyInUse(_Answer):
    """The key that asks."""

    key_id: str
    role: Literal["read", "write", "admin"]


class Tenant(_Answer):
    """Whose key it is."""

    tenant_id: str
    name: str
    created_at: Instant
    key: KeyInUse


class WebhookSecret(_Answer):
    """What signs calls of HTTP targets, as Standard Webhooks has it."""

    secret: str = Field(examples=["whsec_…"])


class FieldProblem(_Answer):
    """One thing that is wrong."""

    field: str
    message: str
    position: int | None = None
    value: str | None = None
    accepted: str | None = None


class Problem(_Answer):
    """A refusal: RFC 9457."""

    type: str = Field(examples=["urn:minute8:problem:invalid-input"])
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] | None = None
    current_revision: int | None = None


# By the names that routes use.
TAKEN: dict[str, type[BaseModel]] = {
    shape.__name__: shape
    for shape in (NewJob, JobPatch, Pause, PreviewRequest, RunNow, NewBackfill, NewCalendar)
}
GIVEN: dict[str, type[BaseModel]] = {
    shape.__name__: shape
    for shape in (
        Job,
        JobPage,
        Fires,
        Run,
        RunPage,
        Backfill,
        CalendarView,
        CalendarPage,
        SchedulePreview,
        Tenant,
        WebhookSecret,
        Problem,
    )
}
