"""Expected against actual."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from api.shapes.base import Answer, Instant, JobId, Seconds

_Status = Literal[
    "on_time",
    "late",
    "running",
    "queued",
    "skipped",
    "missed",
    "cancelled",
    "to_come",
    "overdue",
    "no_record",
    "not_kept",
]
_Counts = dict[str, int]


class ExpectedRun(Answer):
    """The run of a due instant; `GET /v1/runs/{execution_id}` has all of it."""

    execution_id: str
    status: Literal["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"]
    error_type: str | None = None


class ExpectedFire(Answer):
    """The result of one due instant. Fields without a value are left out."""

    job_id: JobId
    fire_at: Instant
    due_at: Instant
    schedule_revision: int
    status: _Status = Field(description="`no_record` must never be: it was planned, and nothing is recorded.")
    is_due: bool = Field(description="False: a run that was planned before the job changed.")
    late_s: Seconds | None = None
    reason: str | None = Field(default=None, description="Why it was skipped.")
    detail: str | None = None
    run: ExpectedRun | None = None


class ExpectedOfJob(Answer):
    """Some of a job's due instants, the earliest first, and where the list goes on."""

    job_id: JobId
    from_at: Instant
    until_at: Instant
    known_from_at: Instant | None = Field(
        description="From when on it is known when the job was due; null: for the whole range."
    )
    counts: _Counts = Field(description="How many due instants of this page have each status.")
    expected: list[ExpectedFire]
    next_cursor: str | None


class ExpectedJob(Answer):
    """How many due instants of a job have each status."""

    job_id: JobId
    known_from_at: Instant | None = Field(
        description="From when on it is known when the job was due; null: for the whole range."
    )
    counts: _Counts
    complete: bool = Field(description="False: the next page begins with more of this job.")


class ExpectedPage(Answer):
    """The due instants of some jobs, job by job in the order of their ids, and where the list goes on."""

    from_at: Instant
    until_at: Instant
    by_job: list[ExpectedJob]
    expected: list[ExpectedFire]
    next_cursor: str | None


class Reason(Answer):
    """One thing that keeps a job from being due, or from running."""

    code: str = Field(description="One word, such as `paused`; or why a run was skipped.")
    text: str
    data: dict[str, Any] = Field(description="What it rests on: a field, a date, a calendar, by whom.")


class Change(Answer):
    """The change that put the job's times in force."""

    at: Instant
    by: str
    by_name: str | None = Field(default=None, description="The name of the key, if `by` is one.")
    action: str


class Explanation(Answer):
    """Why a job was, is or is not due at an instant."""

    job_id: JobId
    at: Instant
    timezone: str
    local: str
    status: Literal[_Status, "not_due", "unknown"]
    text: str = Field(description="All of it in a few sentences.")
    reasons: list[Reason]
    found: list[ExpectedFire] = Field(
        description="The due instant, and runs that were planned before a change."
    )
    schedule_revision: int | None
    since: Change | None = Field(description="null: it is too old for the audit.")
    next_due_at: Instant | None = Field(description="When it is due next after that, within a year.")
