"""The platform's view of its tenants."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from api.shapes.base import (
    ExecutionId,
    Instant,
    JobId,
    NextCursor,
    Note,
    RequestBody,
    ResponseBody,
    Seconds,
    TenantId,
)
from api.shapes.runs import Totals
from api.shapes.tenants import QuotaView, TenantSummary, TenantView, Usage
from common.platform.run_again import MAX_RUN


class Hold(ResponseBody):
    """A pattern of targets that no run calls."""

    pattern: str = Field(description="ARNs or hosts, with wildcards; `*` is everything.")
    note: str = Field(description="Why; skipped runs show it.")
    held_at: Instant = Field(description="When it was held, or its note changed.")
    by: str = Field(description="As in the audit.")


class PlatformRuns(ResponseBody):
    """Runs of tenants in the range, or in an hour of it."""

    runs: int = Field(description="All of them.")
    failed: int = Field(description="Those that failed for good.")
    late: int = Field(description="Those that started more than 1 s late.")
    max_lateness_s: Seconds = Field(description="Of the latest one.")


class PlatformHour(PlatformRuns):
    """The runs of all tenants with fire times in an hour."""

    at: Instant = Field(description="The beginning of the hour.")


class PlatformSums(PlatformRuns):
    """All tenants together."""

    tenants: int = Field(description="The number of tenants.")
    suspended: int = Field(description="How many of them are suspended.")
    failing: int = Field(description="How many of them have failed runs.")
    jobs: int = Field(description="All jobs.")
    executions_per_day: int = Field(description="At most so many by the schedules.")
    complete: bool = Field(description="False: the first 5,000 tenants only, also in the list.")


class FailingJobOfTenant(ResponseBody):
    """A job whose last runs failed."""

    job_id: JobId
    failures_in_row: int = Field(description="How many of its last runs failed.")


class FailingJobsOfTenant(ResponseBody):
    """The jobs of a tenant that fail now."""

    count: int = Field(description="How many there are.")
    jobs: list[FailingJobOfTenant] = Field(
        description="At most 3, those with the most failures in a row first."
    )
    complete: bool = Field(description="False: of the first 1,000 jobs that have failed once only.")


class TenantLine(TenantSummary):
    """A tenant, its use of quotas, and its runs."""

    usage: Usage
    quotas: QuotaView
    quota_share: float = Field(
        description="The larger part of its quotas of jobs and executions a day; 1 is all."
    )
    past: PlatformRuns
    failing: FailingJobsOfTenant | None = Field(
        description="null: it has no failed runs, or ten tenants before it on the page have."
    )


class Overview(ResponseBody):
    """The platform's tenants, in the order of the list."""

    from_at: Instant = Field(description="Later than requested if runs were not written down before.")
    until_at: Instant
    fresh_at: Instant = Field(description="Up to when runs are counted.")
    totals: PlatformSums
    hours: list[PlatformHour] = Field(description="The hours with runs, the earliest first.")
    holds: list[Hold] = Field(description="What the platform holds for all tenants, the oldest first.")
    matched: int = Field(description="How many tenants the list has.")
    tenants: list[TenantLine] = Field(description="The tenants of this page.")
    next_cursor: NextCursor


class RunTotals(Totals):
    """The totals of a tenant's runs."""

    complete: bool = Field(description="False: the newest ones are not counted yet.")


class JobCounts(ResponseBody):
    """How many of a tenant's jobs are how, now."""

    read: int = Field(description="The number of jobs that were looked at for overdue ones.")
    active: int = Field(description="The number of active jobs.")
    paused: int = Field(description="The number of paused jobs.")
    failing: int = Field(description="Their last scheduled run failed for good.")
    overdue: int = Field(description="A due instant has passed without a run.")
    most_late_s: Seconds = Field(description="Of the most overdue one.")
    complete: bool = Field(description="False: overdue are those of the first 500 jobs only.")


class TenantHealth(ResponseBody):
    """How a tenant is, without what its jobs and runs contain."""

    tenant_id: TenantId
    from_at: Instant
    until_at: Instant
    run_totals: RunTotals
    job_counts: JobCounts


class LostTarget(ResponseBody):
    """A target that the tenant could not call any more."""

    target: str = Field(description="The target's ARN or URL.")
    jobs: int = Field(description="The number of jobs that call it.")


class Overused(ResponseBody):
    """A quota of which the tenant would use more than it has."""

    quota: str = Field(description="The quota's name.")
    used: int = Field(description="How much the tenant uses.")
    allowed: int = Field(description="How much it would be allowed.")


class RuleEffects(ResponseBody):
    """What a change of a tenant's rules would break."""

    tenant: TenantView = Field(description="As it would be.")
    jobs_read: int = Field(description="The number of jobs that were read.")
    complete: bool = Field(description="False: it read 2,000 jobs, and there are more.")
    not_allowed: int = Field(description="Jobs that run now and would be skipped as `target_not_allowed`.")
    targets: list[LostTarget] = Field(description="Their targets, those of most jobs first; 20 at most.")
    interval_too_short: int = Field(description="Jobs that go on, and could not be registered any more.")
    payload_too_large: int = Field(description="Jobs that go on, and could not be registered any more.")
    overused: list[Overused] = Field(description="It keeps its jobs, and could add none.")


class PlanningMark(ResponseBody):
    """Up to when everything is planned."""

    planned_until_at: Instant = Field(description="Everything before it is handed over.")
    planning_until_at: Instant = Field(description="Later than `planned_until_at` while a window is open.")
    lag_s: Seconds = Field(description="How far the mark is behind the present: executions are late by it.")
    ticks_missed: int = Field(description="How many ticks should have moved the mark and did not.")
    decided_at: Instant = Field(description="When the last window was announced.")
    divided: bool = Field(description="Planners have shares of the open window.")
    tzdata: str = Field(description="The release of the time zone data that ticks plan by.")


class WindowPlanned(ResponseBody):
    """How the planning of a window went."""

    start_at: Instant
    end_at: Instant
    began_at: Instant = Field(description="When its first tick began.")
    took_s: Seconds = Field(description="From the tick's begin to the end of its last part.")
    ahead_s: float = Field(description="How long before the window this was; negative: after it had begun.")
    finished: bool = Field(description="Whether the mark has passed it.")
    executions: int = Field(description="Handed over; more than are due if parts were planned again.")
    missed: int = Field(description="How many fire times were skipped as missed.")
    bad_entries: int = Field(description="How many jobs could not be planned.")
    ticks: int = Field(description="How many ticks worked at it.")
    planners: int = Field(description="How many shares were planned by planners.")


class NotPlanned(ResponseBody):
    """A group, a share or a job's entry that could not be planned."""

    kind: Literal["group", "share", "entry"] = Field(description="What it is.")
    name: str = Field(description="Of an entry: tenant and job.")
    reason: str = Field(description="Why it could not be planned.")
    seen_at: Instant = Field(description="When that was noticed last.")
    start_at: Instant | None = Field(description="From when on it is not planned.")
    end_at: Instant | None = Field(description="Until when it is not planned.")
    tries: int = Field(description="How many times it was tried again.")


class DoctorFinding(ResponseBody):
    """What a check of the doctor found."""

    check: str = Field(description="The check, as `minute8 doctor` calls it.")
    level: Literal["failed", "warning", "not_checked", "ok"] = Field(description="How bad it is.")
    found: str = Field(description="What it found.")
    remedy: str = Field(description="What to do about it.")
    since_at: Instant | None = Field(description="From when on it holds; null if that is not known.")
    runbook: str | None = Field(
        description="The page of the runbook: a path, or an address if the deployment says where its pages are."
    )


class PlatformPlanning(ResponseBody):
    """How the planning of all tenants' jobs is."""

    mark: PlanningMark | None = Field(description="Null: nothing has been planned yet.")
    shares_left: int = Field(description="Shares of the open window that planners have not finished.")
    calls_at_once: int = Field(
        description="How many calls of targets the deployment's parameters allow at once."
    )
    windows: list[WindowPlanned] = Field(description="The newest first.")
    set_aside: list[NotPlanned] = Field(description="Groups and shares first; 50 at most.")
    findings: list[DoctorFinding] = Field(
        description="The alarms that are on, then what the checks found that read only what ticks wrote down."
    )


_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class NewHold(RequestBody):
    """Which targets to hold: a pattern as in `allowed_targets`, `*` for all."""

    pattern: _Pattern = Field(
        description="ARNs or hosts, with wildcards.",
        examples=["arn:aws:lambda:*:123456789012:function:billing-*"],
    )
    note: Note = Field(default="", description="Why; skipped runs show it.")


class Release(RequestBody):
    """Which hold to end."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"pattern": "hooks.example.com"}]})

    pattern: _Pattern = Field(description="As it was held.")


class Holds(ResponseBody):
    """What is held, the oldest hold first."""

    holds: list[Hold] = Field(description="The oldest first.")


class RunUnrecorded(RequestBody):
    """Which of the executions without a record to send again."""

    execution_ids: Annotated[list[str], Field(min_length=1, max_length=MAX_RUN)] = Field(
        description="As the list has them.", examples=[["acme:nightly-report:20261121T013000Z:4"]]
    )


class WithoutRecord(ResponseBody):
    """An execution that was enqueued, and of which nothing is recorded."""

    execution_id: ExecutionId
    tenant_id: TenantId
    job_id: str = Field(description="The job's id.")
    fire_at: Instant
    due_at: Instant
    found_at: Instant = Field(description="When a tick found that it has no record.")
    sent_at: Instant | None = Field(description="When it was last sent again.")


class UnrecordedPage(ResponseBody):
    """A page of them, by their ids. It may hold fewer than were asked for, and have a cursor all the same."""

    executions: list[WithoutRecord] = Field(description="The executions of this page.")
    next_cursor: NextCursor


class RanUnrecorded(ResponseBody):
    """What became of the executions."""

    sent: list[str] = Field(description="They are in the queue again.")
    recorded: list[str] = Field(description="They have a record meanwhile, and were not sent.")


_Queue = Literal["executions", "planning", "outcomes", "registrations"]
_MessageId = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class WhichLetters(RequestBody):
    """Which given-up messages: some by their ids, or `all`, of which a request takes 100."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"all": True}]})

    message_ids: Annotated[list[_MessageId], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="As the list shows them."
    )
    all: bool = Field(default=False, description="All of the queue, 100 at most; without ids.")


class DeadLetterCount(ResponseBody):
    """How many messages of a queue were given up."""

    queue: _Queue = Field(description="The queue that they were of.")
    letters: int = Field(description="About; those that somebody looks at are included.")


class DeadLetterCounts(ResponseBody):
    """The queues with their given-up messages."""

    queues: list[DeadLetterCount] = Field(description="All that the deployment has.")


class DeadLetter(ResponseBody):
    """A given-up message, without its text."""

    message_id: str = Field(description="What SQS calls it.")
    sent_at: Instant = Field(description="When it was sent first.")
    bytes: int = Field(description="The length of its text.")
    about: list[str] = Field(
        description="Executions, the share of a window, or an event and why it was refused; 10 at most."
    )
    problem: str | None = Field(description="Why it cannot be read; then it is not sent again.")


class DeadLetterList(ResponseBody):
    """Some given-up messages of a queue, in no order."""

    queue: _Queue = Field(description="The queue that they were of.")
    letters: list[DeadLetter] = Field(description="What they are about.")
    more: bool = Field(description="There may be others.")


class DeadLettersDone(ResponseBody):
    """What became of given-up messages."""

    queue: _Queue = Field(description="The queue that they were of.")
    done: int = Field(description="How many were sent again or deleted.")
    left: list[DeadLetter] = Field(description="Those that cannot be read and stay.")
    more: bool = Field(description="Others may be left.")
