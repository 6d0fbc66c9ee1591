"""The platform's view of its tenants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from common.errors import InvalidInput
from common.platform.dead_letters import MAX_LETTERS
from common.platform.run_again import MAX_RUN
from minute8.api.shapes.base import (
    ExecutionId,
    Instant,
    JobId,
    NextCursor,
    Note,
    RequestBody,
    RequestedInstant,
    ResponseBody,
    Seconds,
    TenantId,
)
from minute8.api.shapes.runs import Totals
from minute8.api.shapes.tenants import QuotaView, TenantSummary, TenantView, Usage


class Block(ResponseBody):
    """A pattern of targets that no run calls."""

    pattern: Annotated[str, Meta(description="ARNs or hosts, with wildcards; `*` is everything.")]
    note: Annotated[str, Meta(description="Why; skipped runs show it.")]
    blocked_at: Annotated[Instant, Meta(description="When it was blocked, or its note changed.")]
    by: Annotated[str, Meta(description="As in the audit.")]


class PlatformRuns(ResponseBody):
    """Runs of tenants in the range, or in an hour of it."""

    runs: Annotated[int, Meta(description="All of them.")]
    failed: Annotated[int, Meta(description="Those that failed for good.")]
    late: Annotated[int, Meta(description="Those that started more than 1 s late.")]
    max_lateness_s: Annotated[Seconds, Meta(description="Of the latest one.")]


class PlatformHour(PlatformRuns):
    """The runs of all tenants with fire times in an hour."""

    at: Annotated[Instant, Meta(description="The beginning of the hour.")]


class PlatformSums(PlatformRuns):
    """All tenants together."""

    tenants: Annotated[int, Meta(description="The number of tenants.")]
    suspended: Annotated[int, Meta(description="How many of them are suspended.")]
    failing: Annotated[int, Meta(description="How many of them have failed runs.")]
    not_running: Annotated[int, Meta(description="How many of them have jobs that do not run.")]
    jobs: Annotated[int, Meta(description="All jobs.")]
    executions_per_day: Annotated[int, Meta(description="At most so many by the schedules.")]
    complete: Annotated[
        bool,
        Meta(description="False: of 5,000 tenants only, or not all that do not run."),
    ]


class FailingJobOfTenant(ResponseBody):
    """A job whose last runs failed."""

    job_id: JobId
    failures_in_row: Annotated[int, Meta(description="How many of its last runs failed.")]


class FailingJobsOfTenant(ResponseBody):
    """The jobs of a tenant that fail now."""

    count: Annotated[int, Meta(description="How many there are.")]
    jobs: Annotated[
        list[FailingJobOfTenant], Meta(description="At most 3, those with the most failures in a row first.")
    ]
    complete: Annotated[bool, Meta(description="False: of the first 1,000 jobs that have failed once only.")]


class StoppedJobOfTenant(ResponseBody):
    """A job that does not run, or an address of a subscription that is switched off."""

    job_id: Annotated[str | None, Meta(description="The job's id.")]
    subscription: Annotated[str | None, Meta(description="The subscription's name.")]
    reason: Annotated[str, Meta(description="Why.", examples=["target_not_allowed"])]
    since_at: Instant


class StoppedJobsOfTenant(ResponseBody):
    """What does not run of a tenant now."""

    count: Annotated[int, Meta(description="How many there are.")]
    reasons: Annotated[dict[str, int], Meta(description="Reason -> how many.")]
    first: Annotated[list[StoppedJobOfTenant], Meta(description="At most 3, the newest first.")]
    complete: Annotated[bool, Meta(description="False: of the first 500 only.")]


class TenantLine(TenantSummary):
    """A tenant, its use of quotas, and its runs."""

    usage: Usage
    quotas: QuotaView
    quota_share: Annotated[
        float, Meta(description="The larger part of its quotas of jobs and executions a day; 1 is all.")
    ]
    past: PlatformRuns
    failing: Annotated[
        FailingJobsOfTenant | None,
        Meta(description="null: it has no failed runs, or ten tenants before it on the page have."),
    ]
    not_running: Annotated[
        StoppedJobsOfTenant | None,
        Meta(description="null: all run, or 200 tenants before it have such jobs."),
    ]


class Overview(ResponseBody):
    """The platform's tenants, in the order of the list."""

    from_at: Annotated[
        Instant, Meta(description="Later than requested if runs were not written down before.")
    ]
    until_at: Instant
    fresh_at: Annotated[Instant, Meta(description="Up to when runs are counted.")]
    totals: PlatformSums
    hours: Annotated[list[PlatformHour], Meta(description="The hours with runs, the earliest first.")]
    blocks: Annotated[
        list[Block], Meta(description="What the platform blocks for all tenants, the oldest first.")
    ]
    matched: Annotated[int, Meta(description="How many tenants the list has.")]
    tenants: Annotated[list[TenantLine], Meta(description="The tenants of this page.")]
    next_cursor: NextCursor


class RunTotals(Totals):
    """The totals of a tenant's runs."""

    complete: Annotated[bool, Meta(description="False: the newest ones are not counted yet.")]


class JobCounts(ResponseBody):
    """How many of a tenant's jobs are how, now."""

    read: Annotated[int, Meta(description="The number of jobs that were looked at for overdue ones.")]
    active: Annotated[int, Meta(description="The number of active jobs.")]
    paused: Annotated[int, Meta(description="The number of paused jobs.")]
    failing: Annotated[int, Meta(description="Their last scheduled run failed for good.")]
    not_running: Annotated[
        int, Meta(description="Something stops them; with addresses that are switched off.")
    ]
    stopped_by: Annotated[dict[str, int], Meta(description="Reason -> how many of these.")]
    overdue: Annotated[int, Meta(description="A due instant has passed without a run.")]
    most_late_s: Annotated[Seconds, Meta(description="Of the most overdue one.")]
    complete: Annotated[bool, Meta(description="False: overdue are those of the first 500 jobs only.")]


class TenantHealth(ResponseBody):
    """How a tenant is, without what its jobs and runs contain."""

    tenant_id: TenantId
    from_at: Instant
    until_at: Instant
    run_totals: RunTotals
    job_counts: JobCounts


class LostTarget(ResponseBody):
    """A target that the tenant could not call any more."""

    target: Annotated[str, Meta(description="The target's ARN or URL.")]
    jobs: Annotated[int, Meta(description="The number of jobs that call it.")]


class Overused(ResponseBody):
    """A quota of which the tenant would use more than it has."""

    quota: Annotated[str, Meta(description="The quota's name.")]
    used: Annotated[int, Meta(description="How much the tenant uses.")]
    allowed: Annotated[int, Meta(description="How much it would be allowed.")]


class RuleEffects(ResponseBody):
    """What a change of a tenant's rules would break."""

    tenant: Annotated[TenantView, Meta(description="As it would be.")]
    jobs_read: Annotated[int, Meta(description="The number of jobs that were read.")]
    complete: Annotated[bool, Meta(description="False: it read 2,000 jobs, and there are more.")]
    not_allowed: Annotated[
        int, Meta(description="Jobs that run now and would be skipped as `target_not_allowed`.")
    ]
    targets: Annotated[
        list[LostTarget], Meta(description="Their targets, those of most jobs first; 20 at most.")
    ]
    interval_too_short: Annotated[
        int, Meta(description="Jobs that go on, and could not be registered any more.")
    ]
    payload_too_large: Annotated[
        int, Meta(description="Jobs that go on, and could not be registered any more.")
    ]
    overused: Annotated[list[Overused], Meta(description="It keeps its jobs, and could add none.")]


class PlanningProgress(ResponseBody):
    """Up to when everything is planned."""

    planned_until_at: Annotated[Instant, Meta(description="Everything before it is handed over.")]
    planning_until_at: Annotated[
        Instant, Meta(description="Later than `planned_until_at` while a window is open.")
    ]
    lag_s: Annotated[
        Seconds, Meta(description="How far planned_until is behind the present: executions are late by it.")
    ]
    ticks_missed: Annotated[
        int, Meta(description="How many ticks should have moved planned_until and did not.")
    ]
    decided_at: Annotated[Instant, Meta(description="When the last window was announced.")]
    divided: Annotated[bool, Meta(description="Planners have shares of the open window.")]
    tzdata: Annotated[str, Meta(description="The release of the time zone data that ticks plan by.")]


class WindowPlanned(ResponseBody):
    """How the planning of a window went."""

    start_at: Instant
    end_at: Instant
    began_at: Annotated[Instant, Meta(description="When its first tick began.")]
    took_s: Annotated[Seconds, Meta(description="From the tick's begin to the end of its last part.")]
    ahead_s: Annotated[
        float, Meta(description="How long before the window this was; negative: after it had begun.")
    ]
    finished: Annotated[bool, Meta(description="Whether planned_until has passed it.")]
    executions: Annotated[
        int, Meta(description="Handed over; more than are due if parts were planned again.")
    ]
    missed: Annotated[int, Meta(description="How many fire times were skipped as missed.")]
    bad_entries: Annotated[int, Meta(description="How many jobs could not be planned.")]
    ticks: Annotated[int, Meta(description="How many ticks worked at it.")]
    planners: Annotated[int, Meta(description="How many shares were planned by planners.")]


class NotPlanned(ResponseBody):
    """A group, a share or a job's entry that could not be planned."""

    kind: Annotated[Literal["group", "item", "share", "entry"], Meta(description="What it is.")]
    name: Annotated[str, Meta(description="Of an entry: tenant and job.")]
    reason: Annotated[str, Meta(description="Why it could not be planned.")]
    seen_at: Annotated[Instant, Meta(description="When that was noticed last.")]
    start_at: Annotated[Instant | None, Meta(description="From when on it is not planned.")]
    end_at: Annotated[Instant | None, Meta(description="Until when it is not planned.")]
    tries: Annotated[int, Meta(description="How many times it was tried again.")]


class DoctorFinding(ResponseBody):
    """What a check of the doctor found."""

    check: Annotated[str, Meta(description="The check, as `minute8 doctor` calls it.")]
    level: Annotated[Literal["failed", "warning", "not_checked", "ok"], Meta(description="How bad it is.")]
    found: Annotated[str, Meta(description="What it found.")]
    remedy: Annotated[str, Meta(description="What to do about it.")]
    since_at: Annotated[Instant | None, Meta(description="From when on it holds; null if that is not known.")]
    runbook: Annotated[
        str | None,
        Meta(
            description="The page of the runbook: a path, or an address if the deployment says where its pages are."
        ),
    ]


class PlatformPlanning(ResponseBody):
    """How the planning of all tenants' jobs is."""

    progress: Annotated[PlanningProgress | None, Meta(description="Null: nothing has been planned yet.")]
    shares_left: Annotated[
        int, Meta(description="Shares of the open window that planners have not finished.")
    ]
    calls_at_once: Annotated[
        int, Meta(description="How many calls of targets the deployment's parameters allow at once.")
    ]
    windows: Annotated[list[WindowPlanned], Meta(description="The newest first.")]
    set_aside: Annotated[list[NotPlanned], Meta(description="Groups, items and shares first; 50 at most.")]
    findings: Annotated[
        list[DoctorFinding],
        Meta(
            description="The alarms that are on, then what the checks found that read only what ticks wrote down."
        ),
    ]


_Pattern = Annotated[str, Meta(min_length=1, max_length=512)]


class NewBlock(RequestBody):
    """Which targets to block: a pattern as in `allowed_targets`, `*` for all."""

    pattern: Annotated[
        _Pattern,
        Meta(
            description="ARNs or hosts, with wildcards.",
            examples=["arn:aws:lambda:*:123456789012:function:billing-*"],
        ),
    ]
    note: Annotated[Note, Meta(description="Why; skipped runs show it.")] = ""


class Release(RequestBody):
    """Which block to end."""

    examples: ClassVar = [{"pattern": "hooks.example.com"}]

    pattern: Annotated[_Pattern, Meta(description="As it was blocked.")]


class Blocks(ResponseBody):
    """What is blocked, the oldest block first."""

    blocks: Annotated[list[Block], Meta(description="The oldest first.")]


class RunUnrecorded(RequestBody):
    """Which of the executions without a record to send again."""

    execution_ids: Annotated[
        list[str],
        Meta(
            min_length=1,
            max_length=MAX_RUN,
            description="As the list has them.",
            examples=[["acme:nightly-report:20261121T013000Z"]],
        ),
    ]
    send: Annotated[bool, Meta(description="Send them; else only say what would be sent.")] = False


class WithoutRecord(ResponseBody):
    """An execution that was enqueued, and of which nothing is recorded."""

    execution_id: ExecutionId
    tenant_id: TenantId
    job_id: Annotated[str, Meta(description="The job's id.")]
    fire_at: Instant
    due_at: Instant
    found_at: Annotated[Instant, Meta(description="When a tick found that it has no record.")]
    sent_at: Annotated[Instant | None, Meta(description="When it was last sent again.")]
    known_by: Annotated[
        str | None,
        Meta(description="What knows that it had a record, such as `projection`: it is not sent again."),
    ]


class UnrecordedPage(ResponseBody):
    """A page of them, by their ids. It may hold fewer than were asked for, and have a cursor all the same."""

    executions: Annotated[list[WithoutRecord], Meta(description="The executions of this page.")]
    next_cursor: NextCursor


class WithoutRecordOfJob(ResponseBody):
    """The executions of a job that have no record."""

    tenant_id: TenantId
    job_id: Annotated[str, Meta(description="The job's id.")]
    executions: Annotated[int, Meta(description="How many.")]
    first_due_at: Instant
    last_due_at: Instant
    sent_before: Annotated[
        int, Meta(description="So many of them were sent before: nobody knows whether they ran.")
    ]
    known_by: Annotated[
        dict[str, int],
        Meta(description="So many of them had a record, by what knows of it. These are not sent again."),
    ]


class RanUnrecorded(ResponseBody):
    """What became of the executions, or with `dry_run` what would."""

    dry_run: Annotated[bool, Meta(description="True if nothing was sent.")]
    sent: Annotated[list[str], Meta(description="They are in the queue again; with `dry_run` they would be.")]
    jobs: Annotated[list[WithoutRecordOfJob], Meta(description="These and the next, counted by job.")]
    known: Annotated[
        list[str], Meta(description="They had a record, and get one as `dispatched`; they are not sent.")
    ]
    recorded: Annotated[list[str], Meta(description="They have a record meanwhile, and were not sent.")]


_Queue = Literal["executions", "planning", "outcomes", "registrations"]
_MessageId = Annotated[str, Meta(min_length=1, max_length=100)]


class WhichDeadLetters(RequestBody):
    """Which given-up messages: some by their ids, or `all`, of which a request takes 100."""

    examples: ClassVar = [{"all": True}]

    message_ids: Annotated[
        Annotated[list[_MessageId], Meta(min_length=1, max_length=MAX_LETTERS)] | None,
        Meta(description="As the list shows them."),
    ] = None
    all: Annotated[bool, Meta(description="All of the queue, 100 at most; without ids.")] = False
    began_at: Annotated[
        RequestedInstant | None,
        Meta(description="Only those sent before; as the first of several answers says."),
    ] = None

    def contradictions(self) -> Iterator[InvalidInput]:
        """Both, or neither."""
        if self.all == (self.message_ids is not None):
            accepted = f"1 to {MAX_LETTERS} ids, or `all`: true"
            yield InvalidInput(
                "message_ids", "must say which dead letters", value=self.message_ids, accepted=accepted
            )


class DeadLetterCount(ResponseBody):
    """How many messages of a queue were given up."""

    queue: Annotated[_Queue, Meta(description="The queue that they were of.")]
    dead_letters: Annotated[int, Meta(description="About; those that somebody looks at are included.")]


class DeadLetterCounts(ResponseBody):
    """The queues with their given-up messages."""

    queues: Annotated[list[DeadLetterCount], Meta(description="All that the deployment has.")]


class DeadLetter(ResponseBody):
    """A given-up message, without its text."""

    message_id: Annotated[str, Meta(description="What SQS calls it.")]
    sent_at: Annotated[Instant, Meta(description="When it was sent first.")]
    bytes: Annotated[int, Meta(description="The length of its text.")]
    about: Annotated[
        list[str],
        Meta(
            description="Executions, the share of a window, or an event and why it was refused; 10 at most."
        ),
    ]
    problem: Annotated[str | None, Meta(description="Why it stays: it cannot be read, or was refused again.")]


class DeadLetterList(ResponseBody):
    """Some given-up messages of a queue, in no order."""

    queue: Annotated[_Queue, Meta(description="The queue that they were of.")]
    dead_letters: Annotated[list[DeadLetter], Meta(description="What they are about.")]
    more: Annotated[bool, Meta(description="There may be others.")]


class DeadLettersDone(ResponseBody):
    """What became of given-up messages."""

    queue: Annotated[_Queue, Meta(description="The queue that they were of.")]
    done: Annotated[int, Meta(description="How many were sent again or deleted.")]
    left: Annotated[
        list[DeadLetter], Meta(description="Those that stay: they cannot be read, or were refused again.")
    ]
    more: Annotated[bool, Meta(description="Others may be left.")]
    began_at: Annotated[Instant, Meta(description="Those sent since were not asked for.")]
