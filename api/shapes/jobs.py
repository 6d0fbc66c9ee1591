"""Jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from api.shapes.base import Answer, Instant, JobId, Seconds
from common.registration.definition import JobDefinition
from common.texts import NOTE_CHARS
from common.timing.instants import DAY_S


class NewJob(JobDefinition):
    """A job as a client writes it, with an id that the client chooses."""

    model_config = ConfigDict(
        title="NewJob",
        json_schema_extra={
            "examples": [
                {
                    "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"},
                    "target": {
                        "kind": "lambda",
                        "arn": "arn:aws:lambda:eu-west-1:123456789012:function:report",
                    },
                    "payload": {"customer": 7},
                }
            ]
        },
    )

    job_id: JobId | None = Field(default=None, description="Generated if left out.")
    state: Literal["active", "paused"] = Field(
        default="active", description="In which it is created; one that exists keeps its own."
    )
    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS)] = Field(
        default="", description="Why it is created paused."
    )


class JobPatch(BaseModel):
    """A JSON merge patch (RFC 7396): the fields to change; null takes one back to its default."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    tags: list[str] | None = None
    schedule: dict[str, JsonValue] | None = None
    target: dict[str, JsonValue] | None = None
    payload: JsonValue = None
    timeout_s: int | None = Field(default=None, ge=1)
    retry: dict[str, JsonValue] | None = None
    start_deadline_s: int | None = Field(default=None, ge=1, le=14 * DAY_S)
    catch_up: Literal["none", "latest", "all"] | None = None
    overlap: Literal["allow", "skip", "queue_one"] | None = None
    pause_after_failures: int | None = Field(default=None, ge=1, le=1_000)
    on_crash: Literal["retry", "fail"] | None = None
    after_completion: Literal["keep", "delete"] | None = None
    dead_letter: str | None = None
    owner: str | None = None
    runbook: str | None = None


class Pause(BaseModel):
    """Why a job is paused."""

    model_config = ConfigDict(extra="forbid")

    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS)] = ""


class Job(JobDefinition):
    """A job with its definition, its state, and when it fires next."""

    # An answer holds every field, also what the client left out.
    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)

    job_id: JobId
    schedule_resolved: dict[str, Any] = Field(
        description="What the schedule means: `H` resolved, the anchor set."
    )
    schedule_words: str = Field(description="The schedule as a sentence.")
    state: Literal["active", "paused"]
    note: str
    revision: int = Field(description="Moves with every change; also the ETag.")
    schedule_revision: int = Field(description="Moves when the times change.")
    created_at: Instant
    updated_at: Instant
    next_fire_at: Instant | None


class RunOutcome(Answer):
    """One of a job's newest runs, in short."""

    fire_at: Instant
    status: Literal["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"]
    trigger: str
    reason: str | None = Field(default=None, description="Why it was skipped.")
    lateness_s: Seconds | None = None
    duration_s: Seconds | None = None


class LastRun(RunOutcome):
    """The newest run."""

    execution_id: str
    error_type: str | None = None
    error: str | None = None


class Overdue(Answer):
    """The earliest due instant since the last scheduled run that has passed without a run."""

    fire_at: Instant
    due_at: Instant
    late_s: Seconds
    detail: str


class JobHealth(Answer):
    """How a job is, at a glance."""

    last_run: LastRun | None
    outcomes: list[RunOutcome] = Field(description="The newest 20 runs, the newest first.")
    failures_in_row: int = Field(
        description="Scheduled runs that failed since one succeeded, or the job changed."
    )
    overdue: Overdue | None


class JobPage(Answer):
    """Some jobs, in the order of their ids, and where the list goes on."""

    jobs: list[Job]
    health: dict[str, JobHealth] | None = Field(
        default=None, description="With `health=true`: the health of each job of this page, by its id."
    )
    next_cursor: str | None


class Fire(Answer):
    """One coming fire time."""

    fire_at: Instant
    due_at: Instant = Field(description="When the target is really called: with the jitter.")
    local: str = Field(description="On the schedule's own clock.")
    skipped: bool = Field(description="Whether it was cancelled beforehand.")


class Fires(Answer):
    """When a job fires next; empty while it is paused."""

    job_id: JobId
    state: Literal["active", "paused"]
    timezone: str
    fires: list[Fire]
