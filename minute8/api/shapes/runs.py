"""Runs, and how they are started by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from common.errors import InvalidInput
from common.limits import ERROR_BYTES, LOG_TAIL_BYTES, MAX_SKIPPED, TYPE_BYTES
from common.runs.callbacks import PROGRESS_CHARS
from common.runs.outcome import Outcome
from common.timing.instants import DAY_S
from minute8.api.shapes.base import (
    ErrorText,
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
)

MAX_RETRY_S: Final = 14 * DAY_S


class Attempt(ResponseBody):
    """One call of the target."""

    attempt: Annotated[int, Meta(description="The attempt's number, from 1.")]
    started_at: Annotated[Instant, Meta(description="When the call went out.")]
    outcome: Annotated[
        Literal["running", "dispatching", "dispatched", "succeeded", "failed", "unknown"],
        Meta(description="`unknown`: its executor died, so the attempt was made again."),
    ]
    lateness_s: Annotated[
        Seconds | None, Meta(description="From when this attempt was due until its call went out.")
    ] = None
    finished_at: Instant | None = None
    duration_s: Seconds | None = None
    error_type: ErrorType | None = None
    error: ErrorText | None = None
    log_tail: Annotated[
        str | None,
        Meta(description="The last 4 KB of the function's log of this call, for a Lambda function."),
    ] = None
    request_id: Annotated[str | None, Meta(description="Of the call, as the target's logs show it.")] = None


class Progress(ResponseBody):
    """What a target that calls back last told about its work."""

    attempt: Annotated[int, Meta(description="By which attempt.")]
    at: Instant
    percent: Annotated[int | None, Meta(description="0 to 100.")] = None
    text: Annotated[str | None, Meta(description="In the target's words.")] = None


class Stop(ResponseBody):
    """That a person has ended the run."""

    requested_at: Instant
    note: Annotated[str, Meta(description="The person's reason.")]
    problem: Annotated[str | None, Meta(description="Why what it started could not be stopped.")] = None


class Run(ResponseBody, kw_only=True):
    """The record of one execution. Fields without a value are left out."""

    execution_id: Annotated[ExecutionId, Meta(examples=["alice:nightly-report:20261121T031800Z"])]
    job_id: JobId
    trace_id: Annotated[
        str,
        Meta(
            description="Of W3C's trace context, the same in each attempt; derived from the execution id.",
            examples=["9b1ad36b8ff77b2d18ecc3d4f1a5ea39"],
        ),
    ]
    status: RunStatus
    trigger: Trigger
    schedule_revision: ScheduleRevision
    fire_at: Instant
    due_at: Instant
    attempt: Annotated[
        int | None, Meta(description="The number of the last attempt; 0 before the first one.")
    ] = None
    attempts: Annotated[list[Attempt], Meta(description="Every call of the target, the first one first.")]
    reason: Annotated[str | None, Meta(description="Why it was skipped.")] = None
    detail: Annotated[str | None, Meta(description="More about the status, in a sentence.")] = None
    started_at: Annotated[Instant | None, Meta(description="When the last call went out.")] = None
    finished_at: Instant | None = None
    erased_at: Annotated[Instant | None, Meta(description="When its texts were erased.")] = None
    next_attempt_at: Instant | None = None
    lateness_s: Annotated[
        Seconds | None,
        Meta(
            description="From `due_at` until the first attempt's call went out, without `waited_s`. Of a call "
            "without an answer it is foreseen when the run is recorded, which is just before."
        ),
    ] = None
    waited_s: Annotated[
        Seconds | None,
        Meta(description="How long the first attempt waited for its turn: overlap, or a concurrency key."),
    ] = None
    duration_s: Seconds | None = None
    error_type: ErrorType | None = None
    error: ErrorText | None = None
    callback_until: Annotated[
        Instant | None,
        Meta(description="Of a run whose target calls back: the run times out without a sign until then."),
    ] = None
    started: Annotated[
        list[str] | None,
        Meta(description="ARNs of what its last call started: a durable execution, or tasks of ECS."),
    ] = None
    look_at: Annotated[
        Instant | None, Meta(description="When somebody looks again whether its durable execution has ended.")
    ] = None
    look_problem: Annotated[
        str | None, Meta(description="Why the end of its durable execution could not be seen so far.")
    ] = None
    progress: Annotated[Progress | None, Meta(description="What its target last told.")] = None
    stop: Annotated[Stop | None, Meta(description="Absent: nobody has ended it.")] = None
    work_until: Annotated[
        Instant | None,
        Meta(description="The attempt has ended, but its work can go on until then, and keeps its permits."),
    ] = None
    dead_letter_error: Annotated[
        str | None, Meta(description="Why its message is not in the job's dead-letter queue.")
    ] = None
    skipped_count: Annotated[int | None, Meta(description="How many fire times this record counts.")] = None
    skipped_from_at: Instant | None = None
    payload: Annotated[
        Any, Meta(description="Of a run that was started with a payload of its own; lists leave it out.")
    ] = None


class DamagedRun(ResponseBody):
    """A run whose record somebody has damaged."""

    execution_id: ExecutionId
    problem: Annotated[str, Meta(description="What is wrong with the record.")]


class EndedRun(ResponseBody):
    """What an end by force has done."""

    run: Run
    was_open: Annotated[bool, Meta(description="Whether the run had not ended before.")]
    freed: Annotated[
        list[str], Meta(description="What it had that other runs wait for: `overlap`, `concurrency key crm`.")
    ]


class RunPage(ResponseBody, kw_only=True):
    """Some runs, newest first, and where the list goes on."""

    runs: Annotated[list[Run], Meta(description="The runs of this page.")]
    unreadable: Annotated[
        list[DamagedRun] | None, Meta(description="Runs whose records are damaged; absent: there are none.")
    ] = None
    next_cursor: NextCursor


class TenantRunPage(RunPage, kw_only=True):
    """Some runs of all jobs, and where the list goes on. A page can be empty before the end."""

    complete_from_at: Annotated[
        Instant | None,
        Meta(
            description="With the pages so far all runs from this instant on are listed; null: not known yet."
        ),
    ]


class FailedInHour(ResponseBody):
    """How many runs failed in an hour."""

    at: Annotated[Instant, Meta(description="The beginning of the hour.")]
    failed: Annotated[int, Meta(description="By when they failed.")]


class NewMute(RequestBody):
    """Why a group of failures needs nobody, and for how long."""

    note: Note = ""
    until_at: Annotated[
        RequestedInstant | None,
        Meta(
            description="At most 30 days ahead. Without it, until the group changes: until its job, having "
            "succeeded or "
            "having been changed, fails again; 30 days at most."
        ),
    ] = None


class Mute(ResponseBody):
    """Since when a group of failures is muted, and until when."""

    note: Annotated[str, Meta(description="Why, for people.")]
    muted_at: Instant
    until_at: Annotated[Instant | None, Meta(description="null: until it changes.")]
    ends_at: Annotated[Instant, Meta(description="When it ends at the latest.")]


class MutedGroup(Mute):
    """A muted group of failures."""

    job_id: JobId
    fingerprint: Annotated[str, Meta(description="Of the error.")]
    error_type: ErrorType
    error: Annotated[str, Meta(description="Of the latest failure when it was muted; its beginning.")]


class MutedGroupList(ResponseBody):
    """All muted groups of failures."""

    groups: Annotated[list[MutedGroup], Meta(description="By job, at most 200.")]


class FailureGroup(ResponseBody):
    """Failed runs of one job with one error."""

    job_id: JobId
    fingerprint: Annotated[str, Meta(description="The same for errors that differ only in numbers and ids.")]
    error_type: ErrorType
    error: Annotated[str, Meta(description="Of the latest failure.")]
    count: Annotated[int, Meta(description="The number of failed runs in the group.")]
    first_at: Instant
    last_at: Instant
    last_execution_id: Annotated[str, Meta(description="The execution id of the latest failed run.")]
    hours: Annotated[list[FailedInHour], Meta(description="The hours with failures, the earliest first.")]
    muted: Annotated[Mute | None, Meta(description="null: the group is not muted.")]


class FailureGroups(ResponseBody):
    """Up to 2,000 failed runs by job and error; if there are more, the cursor leads to the others."""

    from_at: Instant
    groups: Annotated[list[FailureGroup], Meta(description="The group of the latest failure first.")]
    next_cursor: NextCursor


class Spread(ResponseBody):
    """How some values are spread; percentiles by nearest rank. Without values only the count."""

    count: Annotated[int, Meta(description="The number of values.")]
    p50: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None
    max: Seconds | None = None
    values: Annotated[
        list[tuple[Seconds, int]] | None,
        Meta(description="With `values=true`: each value, and how often it occurred."),
    ] = None


class Totals(ResponseBody):
    """A summary of some runs."""

    runs: Annotated[int, Meta(description="Each skipped fire time counts, also if one record holds several.")]
    statuses: Annotated[dict[str, int], Meta(description="The number of runs of each status.")]
    reasons: Annotated[dict[str, int], Meta(description="Why those that were skipped were.")]
    due: Annotated[
        int,
        Meta(
            description="Those that have ended, without those that were skipped because somebody asked for it."
        ),
    ]
    success_rate: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="(succeeded + dispatched) / due; null if none was due."),
    ]
    lateness_s: Annotated[Spread, Meta(description="Of the runs that were started.")]
    duration_s: Annotated[
        Spread, Meta(description="Of the last attempts of the runs that succeeded or failed.")
    ]


class DayTotals(Totals):
    """The runs of a UTC day, by their fire times."""

    date: Annotated[
        str, Meta(description="The UTC day.", examples=["2026-11-21"], extra_json_schema={"format": "date"})
    ]
    complete: Annotated[bool, Meta(description="False: further answers hold more runs of this day.")]


class HourTotals(ResponseBody):
    """The runs of an hour by their fire times."""

    at: Annotated[Instant, Meta(description="The beginning of the hour.")]
    runs: Annotated[int, Meta(description="Each skipped fire time counts.")]
    statuses: Annotated[dict[str, int], Meta(description="Status -> how many; only those that occur.")]
    due: Annotated[int, Meta(description="Ended, without those that were skipped on request.")]
    success_rate: Annotated[
        float | None, Meta(description="(succeeded + dispatched) / due; null if none was due.")
    ]
    started: Annotated[int, Meta(description="Those that were called.")]
    late: Annotated[int, Meta(description="Of these: over a second late.")]


class RunSummary(ResponseBody):
    """Runs by day. A job's are of up to 10,000 records; if there are more, the cursor leads to the others."""

    from_at: Instant
    until_at: Instant
    days: Annotated[list[DayTotals], Meta(description="Those with runs, the latest first.")]
    total: Totals
    complete: Annotated[bool, Meta(description="Whether this is the last answer.")]
    complete_from_at: Annotated[
        Instant | None,
        Meta(
            description="With the answers so far all runs from this instant on are counted; null: not known yet."
        ),
    ]
    next_cursor: NextCursor
    fresh_at: Annotated[
        Instant | None,
        Meta(description="Of all jobs: up to when runs are counted; later ones come within half an hour."),
    ] = None
    hours: Annotated[
        list[HourTotals] | None,
        Meta(description="Of all jobs: the hours with runs, the earliest first."),
    ] = None


class Callback(RequestBody):
    """What the target of a run tells: it goes on (`running`), or has ended. Other fields belong to one of these."""

    token: Annotated[
        str,
        Meta(max_length=200, description="The attempt's, from the event that the target got."),
    ]
    status: Annotated[Literal["running", "succeeded", "failed"], Meta(description="How the work stands.")]
    percent: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | UnsetType | None,
        Meta(description="Of `running`: how far it is."),
    ] = UNSET
    text: Annotated[
        Annotated[str, Meta(max_length=PROGRESS_CHARS)] | UnsetType | None,
        Meta(description="Of `running`: what it does, shown with the run."),
    ] = UNSET
    result: Annotated[
        Annotated[str, Meta(max_length=LOG_TAIL_BYTES)] | UnsetType,
        Meta(description="Of an end: its first 800 bytes stay as the attempt's `log_tail`."),
    ] = UNSET
    error_type: Annotated[
        Annotated[str, Meta(max_length=TYPE_BYTES)] | UnsetType, Meta(description="Of `failed`.")
    ] = UNSET
    error: Annotated[
        Annotated[str, Meta(max_length=ERROR_BYTES)] | UnsetType, Meta(description="Of `failed`.")
    ] = UNSET
    permanent: Annotated[bool | UnsetType, Meta(description="Of `failed`: no further attempt follows.")] = (
        UNSET
    )
    retry_after_s: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_RETRY_S)] | UnsetType | None,
        Meta(description="Of `failed`: the wait before the next attempt."),
    ] = UNSET

    def contradictions(self) -> Iterator[InvalidInput]:
        """Fields that do not belong to the status."""
        for name, statuses in _OF_STATUS.items():
            if getattr(self, name) is not UNSET and self.status not in statuses:
                accepted = f"with the status {' or '.join(statuses)}"
                yield InvalidInput(name, f"does not belong to the status {self.status}", accepted=accepted)

    def progress(self) -> dict[str, Any]:
        """What it tells about its work."""
        progress = {"percent": self.percent, "text": self.text}
        return {name: value for name, value in progress.items() if value not in (None, UNSET)}

    def outcome(self) -> Outcome:
        """The end that it tells."""
        if self.status == "succeeded":
            return Outcome(ok=True, log_tail=self.result or "")
        return Outcome(
            ok=False,
            permanent=self.permanent or False,
            error_type=self.error_type or "Failed",
            error=self.error or "",
            log_tail=self.result or "",
            retry_after_s=self.retry_after_s or None,
        )


_OF_STATUS: Final = {
    **dict.fromkeys(("percent", "text"), ("running",)),
    "result": ("succeeded", "failed"),
    **dict.fromkeys(("error_type", "error", "permanent", "retry_after_s"), ("failed",)),
}


class ErasedRun(ResponseBody):
    """What was erased of a run, and what was not."""

    execution_id: ExecutionId
    erased: Annotated[list[str], Meta(description="What the record had of these is gone.")]
    not_covered: Annotated[list[str], Meta(description="Where copies may be that Minute8 does not erase.")]


class CallbackAnswer(ResponseBody):
    """How the run stands after a callback."""

    execution_id: ExecutionId
    status: RunStatus
    attempt: Annotated[int, Meta(description="The attempt whose token it was.")]
    callback_until: Annotated[
        Instant | None, Meta(description="The next sign must come until then; null: none is awaited.")
    ]
    stop: Annotated[
        bool, Meta(description="True: a person has stopped the run, or it has ended: the work is to stop.")
    ]


class RunNow(RequestBody):
    """Starts a job by hand."""

    nonce: Annotated[Nonce | None, Meta(description="The same nonce starts it once, for a day.")] = None
    payload: Annotated[Any | UnsetType, Meta(description="Takes the place of the job's, for this run.")] = (
        UNSET
    )


class SkipFires(RequestBody):
    """Which coming fire times do not run."""

    count: Annotated[
        int,
        Meta(ge=1, le=MAX_SKIPPED, description="How many of the next ones."),
    ] = 1
    note: Note = ""


class SkippedFires(ResponseBody):
    """The runs of the next fire times, all within 366 days. Each is cancelled, or has begun meanwhile."""

    job_id: JobId
    runs: Annotated[list[Run], Meta(description="The runs of these fire times, the earliest first.")]


class RestoredFires(ResponseBody):
    """The fire times whose cancellation was undone. Those within a minute stay cancelled."""

    job_id: JobId
    fires: Annotated[list[Instant], Meta(description="The fire times that will run, the earliest first.")]


class NewBackfill(RequestBody):
    """The fire times of a past range."""

    examples: ClassVar = [
        {"start_at": "2026-11-20T00:00:00Z", "end_at": "2026-11-20T06:00:00Z", "dry_run": True}
    ]

    start_at: RequestedInstant
    end_at: RequestedInstant
    concurrency: Annotated[
        int,
        Meta(ge=1, le=100, description="How many of its runs go at a time."),
    ] = 1
    dry_run: Annotated[bool, Meta(description="Count the fire times, and start nothing.")] = False
    backfill_id: Annotated[Nonce | None, Meta(description="The same id is the same backfill.")] = None


class Backfill(ResponseBody):
    """A backfill, and how many of its executions are enqueued so far."""

    job_id: JobId
    total: Annotated[int, Meta(description="The number of fire times in the range.")]
    sent: Annotated[int, Meta(description="The number of executions that were enqueued so far.")]
    dry_run: Annotated[bool, Meta(description="True if the fire times were only counted.")]
    backfill_id: Annotated[str | None, Meta(description="The backfill's id; absent from a dry run.")] = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    concurrency: Annotated[
        int | None, Meta(description="The largest number of its runs that are under way at a time.")
    ] = None
    created_at: Instant | None = None
    cancelled_at: Instant | None = None


class Backfills(ResponseBody):
    """The backfills of a job, the newest first."""

    backfills: Annotated[list[Backfill], Meta(description="The backfills, the newest first.")]
    more: Annotated[bool, Meta(description="There are more than these 200.")]
