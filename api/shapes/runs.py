"""Runs, and how they are started by hand."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from api.shapes.base import (
    ErrorType,
    ExecutionId,
    Instant,
    JobId,
    NextCursor,
    Nonce,
    Note,
    RequestBody,
    RequestedInstant,
    ResponseBody,
    RunStatus,
    ScheduleRevision,
    Seconds,
    Trigger,
    whole_number,
)
from common.jobs.skips import MAX_SKIPPED
from common.runs.callbacks import PROGRESS_CHARS
from common.runs.outcome import ERROR_BYTES, LOG_TAIL_BYTES, TYPE_BYTES, Outcome
from common.timing.instants import DAY_S

MAX_RETRY_S: Final = 14 * DAY_S


class Attempt(ResponseBody):
    """One call of the target."""

    attempt: int = Field(description="The attempt's number, from 1.")
    started_at: Instant = Field(description="When the call went out.")
    outcome: Literal["running", "dispatched", "succeeded", "failed", "unknown"] = Field(
        description="`unknown`: its executor died, so the attempt was made again."
    )
    lateness_s: Seconds | None = Field(
        default=None, description="From when this attempt was due until its call went out."
    )
    finished_at: Instant | None = None
    duration_s: Seconds | None = None
    error_type: str | None = Field(
        default=None, description="The type of the error, such as an exception's name or `Timeout`."
    )
    error: str | None = Field(
        default=None, description="The error's text, as the target returned it or as Minute8 observed it."
    )
    log_tail: str | None = Field(
        default=None, description="The last 4 KB of the function's log of this call, for a Lambda function."
    )
    request_id: str | None = Field(default=None, description="Of the call, as the target's logs show it.")


class Progress(ResponseBody):
    """What a target that calls back last told about its work."""

    attempt: int = Field(description="By which attempt.")
    at: Instant
    percent: int | None = Field(default=None, description="0 to 100.")
    text: str | None = Field(default=None, description="In the target's words.")


class Stop(ResponseBody):
    """That a person wants the run to stop."""

    requested_at: Instant
    note: str = Field(description="The person's reason.")
    problem: str | None = Field(default=None, description="Why what it started could not be stopped.")


class Run(ResponseBody):
    """The record of one execution. Fields without a value are left out."""

    execution_id: ExecutionId = Field(examples=["alice:nightly-report:20261121T031800Z:1"])
    job_id: JobId
    trace_id: str = Field(
        description="Of W3C's trace context, the same in each attempt; derived from the execution id.",
        examples=["9b1ad36b8ff77b2d18ecc3d4f1a5ea39"],
    )
    status: RunStatus
    trigger: Trigger
    schedule_revision: ScheduleRevision
    fire_at: Instant
    due_at: Instant
    attempt: int | None = Field(
        default=None, description="The number of the last attempt; 0 before the first one."
    )
    attempts: list[Attempt] = Field(description="Every call of the target, the first one first.")
    reason: str | None = Field(default=None, description="Why it was skipped.")
    detail: str | None = Field(default=None, description="More about the status, in a sentence.")
    started_at: Instant | None = Field(default=None, description="When the last call went out.")
    finished_at: Instant | None = None
    next_attempt_at: Instant | None = None
    lateness_s: Seconds | None = Field(
        default=None,
        description="From `due_at` until the first attempt's call went out. Of a call without an answer it is foreseen"
        " when the run is recorded, which is just before.",
    )
    duration_s: Seconds | None = None
    error_type: str | None = Field(
        default=None, description="The type of the error, such as an exception's name or `Timeout`."
    )
    error: str | None = Field(
        default=None, description="The error's text, as the target returned it or as Minute8 observed it."
    )
    callback_until: Instant | None = Field(
        default=None,
        description="Of a run whose target calls back: the run times out without a sign until then.",
    )
    progress: Progress | None = Field(default=None, description="What its target last told.")
    stop: Stop | None = Field(default=None, description="Absent: nobody wants it to stop.")
    dead_letter_error: str | None = Field(
        default=None, description="Why its message is not in the job's dead-letter queue."
    )
    skipped_count: int | None = Field(default=None, description="How many fire times this record counts.")
    skipped_from_at: Instant | None = None
    payload: JsonValue = Field(
        default=None,
        description="Of a run that was started with a payload of its own; lists leave it out.",
    )


class RunPage(ResponseBody):
    """Some runs, newest first, and where the list goes on."""

    runs: list[Run] = Field(description="The runs of this page.")
    next_cursor: NextCursor


class TenantRunPage(RunPage):
    """Some runs of all jobs, and where the list goes on. A page can be empty before the end."""

    complete_from_at: Instant | None = Field(
        description="With the pages so far all runs from this instant on are listed; null: not known yet."
    )


class FailedInHour(ResponseBody):
    """How many runs failed in an hour."""

    at: Instant = Field(description="The beginning of the hour.")
    failed: int = Field(description="By when they failed.")


class NewMute(RequestBody):
    """Why a group of failures needs nobody, and for how long."""

    note: Note = ""
    until_at: RequestedInstant | None = Field(
        default=None,
        description="At most 30 days ahead. Without it, until the group changes: until its job, having succeeded or "
        "having been changed, fails again; 30 days at most.",
    )


class Mute(ResponseBody):
    """Since when a group of failures is muted, and until when."""

    note: str = Field(description="Why, for people.")
    muted_at: Instant
    until_at: Instant | None = Field(description="null: until it changes.")
    ends_at: Instant = Field(description="When it ends at the latest.")


class MutedGroup(Mute):
    """A muted group of failures."""

    job_id: JobId
    fingerprint: str = Field(description="Of the error.")
    error_type: ErrorType
    error: str = Field(description="Of the latest failure when it was muted; its beginning.")


class MutedGroupList(ResponseBody):
    """All muted groups of failures."""

    groups: list[MutedGroup] = Field(description="By job, at most 200.")


class FailureGroup(ResponseBody):
    """Failed runs of one job with one error."""

    job_id: JobId
    fingerprint: str = Field(description="The same for errors that differ only in numbers and ids.")
    error_type: ErrorType
    error: str = Field(description="Of the latest failure.")
    count: int = Field(description="The number of failed runs in the group.")
    first_at: Instant
    last_at: Instant
    last_execution_id: str = Field(description="The execution id of the latest failed run.")
    hours: list[FailedInHour] = Field(description="The hours with failures, the earliest first.")
    muted: Mute | None = Field(description="null: the group is not muted.")


class FailureGroups(ResponseBody):
    """Up to 2,000 failed runs by job and error; if there are more, the cursor leads to the others."""

    from_at: Instant
    groups: list[FailureGroup] = Field(description="The group of the latest failure first.")
    next_cursor: NextCursor


class Spread(ResponseBody):
    """How some values are spread; percentiles by nearest rank. Without values only the count."""

    count: int = Field(description="The number of values.")
    p50: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None
    max: Seconds | None = None
    values: list[tuple[Seconds, int]] | None = Field(
        default=None, description="With `values=true`: each value, and how often it occurred."
    )


class Totals(ResponseBody):
    """A summary of some runs."""

    runs: int = Field(description="Each skipped fire time counts, also if one record holds several.")
    statuses: dict[str, int] = Field(description="The number of runs of each status.")
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

    date: str = Field(
        description="The UTC day.", json_schema_extra={"format": "date"}, examples=["2026-11-21"]
    )
    complete: bool = Field(description="False: further answers hold more runs of this day.")


class HourTotals(ResponseBody):
    """The runs of an hour by their fire times."""

    at: Instant = Field(description="The beginning of the hour.")
    runs: int = Field(description="Each skipped fire time counts.")
    statuses: dict[str, int] = Field(description="Status -> how many; only those that occur.")
    late: int = Field(description="Those that started over a second late.")


class RunSummary(ResponseBody):
    """Runs by day. A job's are of up to 10,000 records; if there are more, the cursor leads to the others."""

    from_at: Instant
    until_at: Instant
    days: list[DayTotals] = Field(description="Those with runs, the latest first.")
    total: Totals
    complete: bool = Field(description="Whether this is the last answer.")
    complete_from_at: Instant | None = Field(
        description="With the answers so far all runs from this instant on are counted; null: not known yet."
    )
    next_cursor: NextCursor
    fresh_at: Instant | None = Field(
        default=None,
        description="Of all jobs: up to when runs are counted; later ones come within half an hour.",
    )
    hours: list[HourTotals] = Field(
        default=[], description="Of all jobs: the hours with runs, the earliest first."
    )


class Callback(RequestBody):
    """What the target of a run tells: it goes on (`running`), or has ended. Other fields belong to one of these."""

    token: Annotated[str, StringConstraints(max_length=200)] = Field(
        description="The attempt's, from the event that the target got."
    )
    status: Literal["running", "succeeded", "failed"] = Field(description="How the work stands.")
    percent: Annotated[int, whole_number(100)] | None = Field(
        default=None, ge=0, le=100, description="Of `running`: how far it is."
    )
    text: Annotated[str, StringConstraints(max_length=PROGRESS_CHARS)] | None = Field(
        default=None, description="Of `running`: what it does, shown with the run."
    )
    result: Annotated[str, StringConstraints(max_length=LOG_TAIL_BYTES)] = Field(
        default="", description="Of an end: its first 800 bytes stay as the attempt's `log_tail`."
    )
    error_type: Annotated[str, StringConstraints(max_length=TYPE_BYTES)] = Field(
        default="", description="Of `failed`."
    )
    error: Annotated[str, StringConstraints(max_length=ERROR_BYTES)] = Field(
        default="", description="Of `failed`."
    )
    permanent: bool = Field(default=False, description="Of `failed`: no further attempt follows.")
    retry_after_s: Annotated[int, whole_number(MAX_RETRY_S)] | None = Field(
        default=None, ge=0, le=MAX_RETRY_S, description="Of `failed`: the wait before the next attempt."
    )

    @model_validator(mode="after")
    def _belong_to_the_status(self) -> Callback:
        for name in sorted(self.model_fields_set - {"status", "token"}):
            if self.status not in _OF_STATUS[name]:
                raise PydanticCustomError(
                    "not_of_status",
                    "{name} does not belong to the status {status}",
                    {"name": name, "status": self.status},
                )
        return self

    def progress(self) -> dict[str, Any]:
        """What it tells about its work."""
        return self.model_dump(include={"percent", "text"}, exclude_none=True)

    def outcome(self) -> Outcome:
        """The end that it tells."""
        if self.status == "succeeded":
            return Outcome(ok=True, log_tail=self.result)
        return Outcome(
            ok=False,
            permanent=self.permanent,
            error_type=self.error_type or "Failed",
            error=self.error,
            log_tail=self.result,
            retry_after_s=self.retry_after_s,
        )


_OF_STATUS: Final = {
    **dict.fromkeys(("percent", "text"), ("running",)),
    "result": ("succeeded", "failed"),
    **dict.fromkeys(("error_type", "error", "permanent", "retry_after_s"), ("failed",)),
}


class CallbackAnswer(ResponseBody):
    """How the run stands after a callback."""

    execution_id: ExecutionId
    status: RunStatus
    attempt: int = Field(description="The attempt whose token it was.")
    callback_until: Instant | None = Field(
        description="The next sign must come until then; null: none is awaited."
    )
    stop: bool = Field(
        description="True: a person has stopped the run, or it has ended: the work is to stop."
    )


class RunNow(RequestBody):
    """Starts a job by hand."""

    nonce: Nonce | None = Field(default=None, description="The same nonce starts it once, for a day.")
    payload: JsonValue = Field(default=None, description="Takes the place of the job's, for this run.")


class SkipFires(RequestBody):
    """Which coming fire times do not run."""

    count: Annotated[int, whole_number(MAX_SKIPPED)] = Field(
        default=1, ge=1, le=MAX_SKIPPED, description="How many of the next ones."
    )
    note: Note = ""


class SkippedFires(ResponseBody):
    """The runs of the next fire times, all within 366 days. Each is cancelled, or has begun meanwhile."""

    job_id: JobId
    runs: list[Run] = Field(description="The runs of these fire times, the earliest first.")


class RestoredFires(ResponseBody):
    """The fire times whose cancellation was undone. Those within a minute stay cancelled."""

    job_id: JobId
    fires: list[Instant] = Field(description="The fire times that will run, the earliest first.")


class NewBackfill(RequestBody):
    """The fire times of a past range."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"start_at": "2026-11-20T00:00:00Z", "end_at": "2026-11-20T06:00:00Z", "dry_run": True}
            ]
        },
    )

    start_at: RequestedInstant
    end_at: RequestedInstant
    concurrency: Annotated[int, whole_number(100)] = Field(
        default=1, ge=1, le=100, description="How many of its runs go at a time."
    )
    dry_run: bool = Field(default=False, description="int the fire times, and start nothing.")
    backfill_id: Nonce | None = Field(default=None, description="The same id is the same backfill.")


class Backfill(ResponseBody):
    """A backfill, and how many of its executions are enqueued so far."""

    job_id: JobId
    total: int = Field(description="The number of fire times in the range.")
    sent: int = Field(description="The number of executions that were enqueued so far.")
    dry_run: bool = Field(description="True if the fire times were only counted.")
    backfill_id: str | None = Field(default=None, description="The backfill's id; absent from a dry run.")
    start_at: Instant | None = None
    end_at: Instant | None = None
    concurrency: int | None = Field(
        default=None, description="The largest number of its runs that are under way at a time."
    )
    created_at: Instant | None = None
    cancelled_at: Instant | None = None


class Backfills(ResponseBody):
    """The backfills of a job, the newest first."""

    backfills: list[Backfill] = Field(description="The backfills, the newest first.")
    more: bool = Field(description="There are more than these 200.")
