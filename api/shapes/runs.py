"""Runs, and how they are started by hand."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from api.shapes.base import Answer, Instant, JobId, Seconds
from common.ids import NONCE_CHARS, id_pattern
from common.jobs.skips import MAX_SKIPPED
from common.texts import NOTE_CHARS


class Attempt(Answer):
    """One call of the target."""

    attempt: int
    started_at: Instant = Field(description="When the call went out.")
    outcome: Literal["running", "dispatched", "succeeded", "failed", "unknown"] = Field(
        description="`unknown`: its executor died, so the attempt was made again."
    )
    lateness_s: Seconds | None = Field(
        default=None, description="From when this attempt was due until its call went out."
    )
    finished_at: Instant | None = None
    duration_s: Seconds | None = None
    error_type: str | None = None
    error: str | None = None
    log_tail: str | None = None
    request_id: str | None = Field(default=None, description="Of the call, as the target's logs show it.")


class Run(Answer):
    """The record of one execution. Fields without a value are left out."""

    execution_id: str = Field(examples=["alice:nightly-report:20261121T031800Z:1"])
    job_id: JobId
    trace_id: str = Field(
        description="Of W3C's trace context, the same in each attempt; derived from the execution id.",
        examples=["9b1ad36b8ff77b2d18ecc3d4f1a5ea39"],
    )
    status: Literal["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"]
    trigger: str
    schedule_revision: int
    fire_at: Instant
    due_at: Instant
    attempt: int | None = None
    attempts: list[Attempt]
    reason: str | None = Field(default=None, description="Why it was skipped.")
    detail: str | None = None
    started_at: Instant | None = Field(default=None, description="When the last call went out.")
    finished_at: Instant | None = None
    next_attempt_at: Instant | None = None
    lateness_s: Seconds | None = Field(
        default=None,
        description="From `due_at` until the first attempt's call went out. Of a call without an answer it is foreseen"
        " when the run is recorded, which is just before.",
    )
    duration_s: Seconds | None = None
    error_type: str | None = None
    error: str | None = None
    dead_letter_error: str | None = Field(
        default=None, description="Why its message is not in the job's dead-letter queue."
    )
    skipped_count: int | None = Field(default=None, description="How many fire times this record counts.")
    skipped_from_at: Instant | None = None


class RunPage(Answer):
    """Some runs, newest first, and where the list goes on."""

    runs: list[Run]
    next_cursor: str | None


class TenantRunPage(RunPage):
    """Some runs of all jobs, and where the list goes on. A page can be empty before the end."""

    complete_from_at: Instant | None = Field(
        description="With the pages so far all runs from this instant on are listed; null: not known yet."
    )


class FailureGroup(Answer):
    """Failed runs of one job with one error."""

    job_id: JobId
    fingerprint: str = Field(description="The same for errors that differ only in numbers and ids.")
    error_type: str
    error: str = Field(description="Of the latest failure.")
    count: int
    first_at: Instant
    last_at: Instant
    last_execution_id: str


class FailureGroups(Answer):
    """Up to 2,000 failed runs by job and error; if there are more, the cursor leads to the others."""

    from_at: Instant
    groups: list[FailureGroup] = Field(description="The group of the latest failure first.")
    next_cursor: str | None


class Spread(Answer):
    """How some values are spread; percentiles by nearest rank. Without values only the count."""

    count: int
    p50: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None
    max: Seconds | None = None
    values: list[tuple[Seconds, int]] | None = Field(
        default=None, description="With `values=true`: each value, and how often it occurred."
    )


class Totals(Answer):
    """A summary of some runs."""

    runs: int = Field(description="Each skipped fire time counts, also if one record holds several.")
    statuses: dict[str, int]
    reasons: dict[str, int] = Field(description="Why those that were skipped were.")
    success_rate: float | None = Field(
        description="succeeded / (succeeded + failed); null if there is neither. All else is left out.",
        ge=0,
        le=1,
    )
    lateness_s: Spread = Field(description="Of the runs that were started.")
    duration_s: Spread = Field(description="Of the last attempts of the runs that succeeded or failed.")


class DayTotals(Totals):
    """The runs of a UTC day, by their fire times."""

    date: str = Field(json_schema_extra={"format": "date"}, examples=["2026-11-21"])
    complete: bool = Field(description="False: further answers hold more runs of this day.")


class RunSummary(Answer):
    """Runs by day, of up to 10,000 records; if there are more, the cursor leads to the others."""

    from_at: Instant
    until_at: Instant
    days: list[DayTotals] = Field(description="Those with runs, the latest first.")
    total: Totals
    complete: bool = Field(description="Whether this is the last answer.")
    complete_from_at: Instant | None = Field(
        description="With the answers so far all runs from this instant on are counted; null: not known yet."
    )
    next_cursor: str | None


_Nonce = Annotated[str, StringConstraints(pattern=id_pattern(NONCE_CHARS))]


class RunNow(BaseModel):
    """Starts a job by hand."""

    model_config = ConfigDict(extra="forbid")

    nonce: _Nonce | None = Field(default=None, description="The same nonce starts it once, for a day.")
    payload: JsonValue = Field(default=None, description="Takes the place of the job's, for this run.")


class SkipFires(BaseModel):
    """Which coming fire times do not run."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=1, ge=1, le=MAX_SKIPPED, description="How many of the next ones.")
    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS)] = Field(default="", description="Why.")


class SkippedFires(Answer):
    """The runs of the next fire times, all within 366 days. Each is cancelled, or has begun meanwhile."""

    job_id: JobId
    runs: list[Run]


class RestoredFires(Answer):
    """The fire times whose cancellation was undone. Those within a minute stay cancelled."""

    job_id: JobId
    fires: list[Instant]


class NewBackfill(BaseModel):
    """The fire times of a past range."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"start_at": "2026-11-20T00:00:00Z", "end_at": "2026-11-20T06:00:00Z", "dry_run": True}
            ]
        },
    )

    start_at: Instant
    end_at: Instant
    concurrency: int = Field(default=1, ge=1, le=100, description="How many of its runs go at a time.")
    dry_run: bool = Field(default=False, description="Count the fire times, and start nothing.")
    backfill_id: _Nonce | None = Field(default=None, description="The same id is the same backfill.")


class Backfill(Answer):
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
    cancelled_at: Instant | None = None


class Backfills(Answer):
    """The backfills of a job, the newest first."""

    backfills: list[Backfill]
