"""What is coming."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from minute8.api.shapes.base import (
    ExecutionId,
    Instant,
    JobId,
    NextCursor,
    ResponseBody,
    TenantId,
    Timezone,
)


class ComingExecution(ResponseBody):
    """One coming execution."""

    job_id: JobId
    fire_at: Instant
    due_at: Annotated[Instant, Meta(description="When the target is really called: with the jitter.")]


class UpcomingPage(ResponseBody):
    """The next executions, the earliest first, and where the list goes on."""

    from_at: Instant
    until_at: Instant
    jobs_counted: Annotated[int, Meta(description="Of so many active jobs.")]
    complete: Annotated[bool, Meta(description="False: not of all; there was no time for them.")]
    executions: Annotated[list[ComingExecution], Meta(description="The executions of this page.")]
    next_cursor: NextCursor


class MinuteCount(ResponseBody):
    """How many executions are due in a minute."""

    minute_at: Instant
    executions: Annotated[int, Meta(description="The number of executions that are due in the minute.")]


class SpreadJob(ResponseBody):
    """A job that is due in a crowded minute, and what would move it."""

    job_id: JobId
    proposal: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Fields to change in its schedule: `cron` with `H`, or `jitter_s`; null if there are none."
        ),
    ]


class CrowdedMinute(MinuteCount):
    """A minute with ten executions, and three times the average, or more."""

    jobs: Annotated[list[SpreadJob], Meta(description="Up to five of the jobs without jitter.")]


class Density(ResponseBody):
    """Executions by minute, of fire times in the range; jitter can move the last ones beyond it."""

    from_at: Instant
    until_at: Instant
    jobs_counted: Annotated[int, Meta(description="The number of active jobs that were looked at.")]
    executions: Annotated[int, Meta(description="The number of their executions in the range.")]
    minutes: Annotated[list[MinuteCount], Meta(description="Those with executions, the earliest first.")]


class PaceLoad(ResponseBody):
    """What a pace does with the executions, if no other jobs share it."""

    key: Annotated[str, Meta(description="What the jobs share: their target, or a key of their own.")]
    per_second: Annotated[int, Meta(description="The smallest `per_second` among its jobs.")]
    executions: Annotated[int, Meta(description="Of its jobs, in the range.")]
    delayed: Annotated[int, Meta(description="Due later than without the pace.")]
    longest_s: Annotated[int, Meta(description="The longest delay.")]
    over: Annotated[int, Meta(description="How many find no free second within their tolerance.")]


class KeyLoad(ResponseBody):
    """How the executions share the places of a concurrency key."""

    key: Annotated[str, Meta(description="What the jobs share.")]
    limit: Annotated[int, Meta(description="The smallest `limit` among its jobs.")]
    executions: Annotated[int, Meta(description="Of its jobs, in the range.")]
    crowded: Annotated[
        int,
        Meta(
            description="Due at a second at which as many as the limit are due already: these wait, or are skipped."
        ),
    ]


class TenantDensity(Density):
    """Executions of a tenant's jobs by minute."""

    complete: Annotated[bool, Meta(description="False: not of all jobs; there was no time for them.")]
    paces: Annotated[list[PaceLoad], Meta(description="The jobs' paces, those that are exceeded first.")]
    concurrency: Annotated[list[KeyLoad], Meta(description="Their concurrency keys, crowded ones first.")]
    crowded: Annotated[list[CrowdedMinute], Meta(description="The fullest first.")]


class SecondCount(ResponseBody):
    """How many executions are due in a second."""

    at: Instant
    executions: Annotated[int, Meta(description="The number of executions that are due in the second.")]


class DueJob(ResponseBody):
    """A job that is due in a minute."""

    job_id: JobId
    name: Annotated[str, Meta(description="Empty without one.")]
    due_at: Instant


class MinuteDensity(MinuteCount):
    """The executions of one minute, by second."""

    jobs_counted: Annotated[int, Meta(description="Of so many active jobs.")]
    complete: Annotated[bool, Meta(description="False: not of all; there was no time for them.")]
    seconds: Annotated[list[SecondCount], Meta(description="Those with executions, the earliest first.")]
    jobs: Annotated[list[DueJob], Meta(description="Up to 1,000, the earliest first.")]


class TenantShare(ResponseBody):
    """How many executions of a page are a tenant's."""

    tenant_id: TenantId
    executions: Annotated[int, Meta(description="The number of its executions.")]


class PlatformDensity(Density):
    """Executions of all tenants by minute. Those that calendars exclude are counted."""

    next_cursor: Annotated[str | None, Meta(description="More jobs follow; counts of pages add up.")]
    unreadable: Annotated[int, Meta(description="Entries that cannot be planned; ticks report them.")]
    seconds: Annotated[
        list[SecondCount] | None, Meta(description="Of this page; null if the range is longer than a minute.")
    ]
    crowded: Annotated[list[MinuteCount], Meta(description="Of this page, the fullest first.")]
    tenants: Annotated[list[TenantShare], Meta(description="The tenants with most executions of this page.")]


class MovedJob(ResponseBody):
    """A job and the next clock change of its time zone."""

    job_id: JobId
    timezone: Timezone
    change_at: Instant
    text: Annotated[str, Meta(description="What the change does to it, in words.")]


class ClockChangePage(ResponseBody):
    """The jobs that the next clock change of their time zones moves, in the order of their ids."""

    moved: Annotated[
        list[MovedJob], Meta(description="The jobs of this page whose fire times the change moves.")
    ]
    next_cursor: NextCursor


class ChangedJob(ResponseBody):
    """A job and the first of its fire times in the coming year that an update of the time zone data changed."""

    job_id: JobId
    timezone: Timezone
    before_at: Annotated[Instant | None, Meta(description="By the earlier release; null: it was added.")]
    after_at: Annotated[Instant | None, Meta(description="By the present release; null: it was dropped.")]


class TzdataChangePage(ResponseBody):
    """The jobs that an update of the time zone data changed, in the order of their ids."""

    tzdata: Annotated[str, Meta(description="The present release.")]
    since: Annotated[str, Meta(description="The earlier release.")]
    moved: Annotated[
        list[ChangedJob], Meta(description="The jobs of this page whose fire times the update changed.")
    ]
    next_cursor: NextCursor


class PreviewedFire(ResponseBody):
    """One fire time."""

    fire_at: Instant
    local: Annotated[str, Meta(description="The fire time on the clock of the schedule's time zone.")]
    due_at: Annotated[Instant, Meta(description="When the target is called: with spread and jitter.")]


class SchedulePreview(ResponseBody, kw_only=True):
    """What a schedule means and when it fires."""

    sentence: Annotated[str, Meta(description="The schedule in words.")]
    warnings: Annotated[list[str], Meta(description="What may surprise you about it, each in a sentence.")]
    schedule_resolved: Annotated[
        dict[str, Any], Meta(description="The schedule with `H` resolved and the anchor set.")
    ]
    timezone: Timezone
    fires: Annotated[list[PreviewedFire], Meta(description="The fire times, the earliest first.")]
    week: Annotated[
        list[Instant] | None,
        Meta(
            description="The first fire time in each hour of the time zone's clock, of seven days; if it was asked for."
        ),
    ] = None
    tzdata: Annotated[str, Meta(description="The release of the time zone data.")]


class PermitHolder(ResponseBody):
    """A run that has a permit."""

    execution_id: ExecutionId
    job_id: JobId
    until_at: Annotated[
        Instant, Meta(description="The end of its lease: it has given the permit back by then.")
    ]
    since_at: Annotated[Instant | None, Meta(description="When its call went out.")] = None


class Waiter(ResponseBody):
    """A run that waits for a permit."""

    execution_id: ExecutionId
    job_id: JobId
    since_at: Instant
    until_at: Annotated[Instant, Meta(description="It is skipped if it has none by then.")]


class ConcurrencyKey(ResponseBody):
    """Who has the permits of a concurrency key, and who waits."""

    key: Annotated[str, Meta(description="The key.")]
    holders: Annotated[list[PermitHolder], Meta(description="By job.")]
    waiting: Annotated[
        list[Waiter], Meta(description="The longest wait first; up to 50, others come after these.")
    ]
