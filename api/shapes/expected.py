"""Expected against actual."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from api.shapes.base import (
    ExecutionId,
    Instant,
    JobId,
    NextCursor,
    ResponseBody,
    RunStatus,
    ScheduleRevision,
    Seconds,
    Timezone,
)

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


class ExpectedRun(ResponseBody):
    """The run of a due instant; `GET /v1/runs/{execution_id}` has all of it."""

    execution_id: ExecutionId
    status: RunStatus
    error_type: str | None = Field(
        default=None, description="The type of the error, such as an exception's name or `Timeout`."
    )


class ExpectedFire(ResponseBody):
    """The result of one due instant. Fields without a value are left out."""

    job_id: JobId
    fire_at: Instant
    due_at: Instant
    schedule_revision: ScheduleRevision
    status: _Status = Field(description="`no_record` must never be: it was planned, and nothing is recorded.")
    is_due: bool = Field(description="False: a run that was planned before the job changed.")
    late_s: Seconds | None = None
    reason: str | None = Field(default=None, description="Why it was skipped.")
    detail: str | None = Field(default=None, description="Why it was skipped, in a sentence.")
    run: ExpectedRun | None = None


class ExpectedOfJob(ResponseBody):
    """Some of a job's due instants, the earliest first, and where the list goes on."""

    job_id: JobId
    from_at: Instant
    until_at: Instant
    known_from_at: Instant | None = Field(
        description="From when on it is known when the job was due; null: for the whole range."
    )
    counts: _Counts = Field(description="How many due instants of this page have each status.")
    expected: list[ExpectedFire] = Field(description="The due instants of this page, each with its result.")
    next_cursor: NextCursor


class ExpectedJob(ResponseBody):
    """How many due instants of a job have each status."""

    job_id: JobId
    known_from_at: Instant | None = Field(
        description="From when on it is known when the job was due; null: for the whole range."
    )
    counts: _Counts = Field(description="The number of this job's due instants of each status.")
    complete: bool = Field(description="False: the next page begins with more of this job.")


class ExpectedPage(ResponseBody):
    """The due instants of some jobs, job by job in the order of their ids, and where the list goes on."""

    from_at: Instant
    until_at: Instant
    by_job: list[ExpectedJob] = Field(description="The counts of each job of this page.")
    expected: list[ExpectedFire] = Field(description="The due instants of this page, each with its result.")
    next_cursor: NextCursor


class Reason(ResponseBody):
    """One thing that keeps a job from being due, or from running."""

    code: str = Field(description="One word, such as `paused`; or why a run was skipped.")
    text: str = Field(description="The reason in a sentence.")
    data: dict[str, Any] = Field(description="What it rests on: a field, a date, a calendar, by whom.")


class Change(ResponseBody):
    """The change that put the job's times in force."""

    at: Instant
    by: str = Field(description="The author, as in the audit.")
    by_name: str | None = Field(default=None, description="The name of the key, if `by` is one.")
    action: str = Field(description="What was done, such as `job.replaced`.")


class Explanation(ResponseBody):
    """Why a job was, is or is not due at an instant."""

    job_id: JobId
    at: Instant
    timezone: Timezone
    local: str = Field(description="The instant on the clock of that time zone.")
    status: Literal[_Status, "not_due", "unknown"] = Field(
        description="The result of the instant; `not_due` if the job was not due, `unknown` if too little is stored."
    )
    text: str = Field(description="All of it in a few sentences.")
    reasons: list[Reason] = Field(description="Each cause by itself.")
    found: list[ExpectedFire] = Field(
        description="The due instant, and runs that were planned before a change."
    )
    schedule_revision: int | None = Field(
        description="The revision of the job's times that was in force; null if it is unknown."
    )
    since: Change | None = Field(description="null: it is too old for the audit.")
    next_due_at: Instant | None = Field(description="When it is due next after that, within a year.")
