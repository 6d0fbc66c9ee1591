"""Runs, and how they are started by hand."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from api.shapes.parts import Answer, Instant, JobId, Seconds, Shapes


class Attempt(Answer):
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


class Run(Answer):
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


class RunPage(Answer):
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


TAKEN: Shapes = (
    RunNow,
    NewBackfill,
)
GIVEN: Shapes = (
    Run,
    RunPage,
    Backfill,
)
