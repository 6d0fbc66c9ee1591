"""Expected against actual."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from minute8.api.shapes.base import (
    ErrorType,
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
_KnownFrom = Annotated[
    Instant | None,
    Meta(description="From when on it is known when the job was due; null: for the whole range."),
]


class ExpectedRun(ResponseBody):
    """The run of a due instant; `GET /v1/runs/{execution_id}` has all of it."""

    execution_id: ExecutionId
    status: RunStatus
    error_type: ErrorType | None = None


class ExpectedFire(ResponseBody):
    """The result of one due instant. Fields without a value are left out."""

    job_id: JobId
    fire_at: Instant
    due_at: Instant
    schedule_revision: ScheduleRevision
    status: Annotated[
        _Status, Meta(description="`no_record` must never be: it was planned, and nothing is recorded.")
    ]
    is_due: Annotated[bool, Meta(description="False: a run that was planned before the job changed.")]
    late_s: Seconds | None = None
    reason: Annotated[str | None, Meta(description="Why it was skipped.")] = None
    detail: Annotated[str | None, Meta(description="Why it was skipped, in a sentence.")] = None
    run: ExpectedRun | None = None


_Fires = Annotated[
    list[ExpectedFire], Meta(description="The due instants of this page, each with its result.")
]


class ExpectedOfJob(ResponseBody):
    """Some of a job's due instants, the earliest first, and where the list goes on."""

    job_id: JobId
    from_at: Instant
    until_at: Instant
    known_from_at: _KnownFrom
    counts: Annotated[_Counts, Meta(description="How many due instants of this page have each status.")]
    expected: _Fires
    next_cursor: NextCursor


class ExpectedJob(ResponseBody):
    """How many due instants of a job have each status."""

    job_id: JobId
    known_from_at: _KnownFrom
    counts: Annotated[_Counts, Meta(description="The number of this job's due instants of each status.")]
    complete: Annotated[bool, Meta(description="False: the next page begins with more of this job.")]


class ExpectedPage(ResponseBody):
    """The due instants of some jobs, job by job in the order of their ids, and where the list goes on."""

    from_at: Instant
    until_at: Instant
    by_job: Annotated[list[ExpectedJob], Meta(description="The counts of each job of this page.")]
    expected: _Fires
    next_cursor: NextCursor


class Reason(ResponseBody):
    """One thing that keeps a job from being due, or from running."""

    code: Annotated[str, Meta(description="One word, such as `paused`; or why a run was skipped.")]
    text: Annotated[str, Meta(description="The reason in a sentence.")]
    data: Annotated[
        dict[str, Any], Meta(description="What it rests on: a field, a date, a calendar, by whom.")
    ]


class Change(ResponseBody, kw_only=True):
    """The change that put the job's times in force."""

    at: Instant
    by: Annotated[str, Meta(description="The author, as in the audit.")]
    by_name: Annotated[str | None, Meta(description="The name of the key, if `by` is one.")] = None
    action: Annotated[str, Meta(description="What was done, such as `job.replaced`.")]


class Explanation(ResponseBody):
    """Why a job was, is or is not due at an instant."""

    job_id: JobId
    at: Instant
    timezone: Timezone
    local: Annotated[str, Meta(description="The instant on the clock of that time zone.")]
    status: Annotated[
        Literal[_Status, "not_due", "unknown"],
        Meta(
            description="The result of the instant; `not_due` if the job was not due, "
            "`unknown` if too little is stored."
        ),
    ]
    text: Annotated[str, Meta(description="All of it in a few sentences.")]
    reasons: Annotated[list[Reason], Meta(description="Each cause by itself.")]
    found: Annotated[
        list[ExpectedFire], Meta(description="The due instant, and runs that were planned before a change.")
    ]
    schedule_revision: Annotated[
        int | None,
        Meta(description="The revision of the job's times that was in force; null if it is unknown."),
    ]
    since: Annotated[Change | None, Meta(description="null: it is too old for the audit.")]
    next_due_at: Annotated[Instant | None, Meta(description="When it is due next after that, within a year.")]
