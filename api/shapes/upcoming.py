"""What is coming."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from api.shapes.base import (
    Instant,
    JobId,
    NextCursor,
    RequestBody,
    RequestedInstant,
    ResponseBody,
    TenantId,
    Timezone,
    whole_number,
)
from common.registration.definition import ScheduleDefinition


class ComingExecution(ResponseBody):
    """One coming execution."""

    job_id: JobId
    fire_at: Instant
    due_at: Instant = Field(description="When the target is really called: with the jitter.")


class UpcomingPage(ResponseBody):
    """The next executions, the earliest first, and where the list goes on."""

    from_at: Instant
    until_at: Instant
    executions: list[ComingExecution] = Field(description="The executions of this page.")
    next_cursor: NextCursor


class MinuteCount(ResponseBody):
    """How many executions are due in a minute."""

    minute_at: Instant
    executions: int = Field(description="The number of executions that are due in the minute.")


class SpreadJob(ResponseBody):
    """A job that is due in a crowded minute, and what would move it."""

    job_id: JobId
    proposal: dict[str, Any] | None = Field(
        description="Fields to change in its schedule: `cron` with `H`, or `jitter_s`; null if there are none."
    )


class CrowdedMinute(MinuteCount):
    """A minute with ten executions, and three times the average, or more."""

    jobs: list[SpreadJob] = Field(description="Up to five of the jobs without jitter.")


class Density(ResponseBody):
    """Executions by minute, of fire times in the range; jitter can move the last ones beyond it."""

    from_at: Instant
    until_at: Instant
    jobs_counted: int = Field(description="The number of jobs that were looked at for this page.")
    executions: int = Field(description="The number of their executions in the range.")
    minutes: list[MinuteCount] = Field(description="Those with executions, the earliest first.")
    next_cursor: str | None = Field(description="More jobs follow; counts of pages add up.")


class PaceLoad(ResponseBody):
    """What a pace does with the executions of this page, if no other jobs share it."""

    key: str = Field(description="What the jobs share: their target, or a key of their own.")
    per_second: int = Field(description="The smallest `per_second` among its jobs.")
    executions: int = Field(description="Of its jobs, in the range.")
    delayed: int = Field(description="Due later than without the pace.")
    longest_s: int = Field(description="The longest delay.")
    over: int = Field(description="How many find no free second within their tolerance.")


class KeyLoad(ResponseBody):
    """How the executions of this page share the places of a concurrency key."""

    key: str = Field(description="What the jobs share.")
    limit: int = Field(description="The smallest `limit` among its jobs.")
    executions: int = Field(description="Of its jobs, in the range.")
    crowded: int = Field(
        description="Due at a second at which as many as the limit are due already: these wait, or are skipped."
    )


class TenantDensity(Density):
    """Executions of a tenant's jobs by minute."""

    paces: list[PaceLoad] = Field(description="The paces of this page's jobs, those that are exceeded first.")
    concurrency: list[KeyLoad] = Field(
        description="The concurrency keys of this page's jobs, crowded ones first."
    )
    crowded: list[CrowdedMinute] = Field(description="Of this page's jobs, the fullest first.")


class TenantShare(ResponseBody):
    """How many executions of a page are a tenant's."""

    tenant_id: TenantId
    executions: int = Field(description="The number of its executions.")


class PlatformDensity(Density):
    """Executions of all tenants by minute. Those that calendars exclude are counted."""

    unreadable: int = Field(description="Entries that cannot be planned; ticks report them.")
    crowded: list[MinuteCount] = Field(description="Of this page, the fullest first.")
    tenants: list[TenantShare] = Field(description="The tenants with most executions of this page.")


class MovedJob(ResponseBody):
    """A job and the next clock change of its time zone."""

    job_id: JobId
    timezone: Timezone
    change_at: Instant
    text: str = Field(description="What the change does to it, in words.")


class ClockChangePage(ResponseBody):
    """The jobs that the next clock change of their time zones moves, in the order of their ids."""

    moved: list[MovedJob] = Field(description="The jobs of this page whose fire times the change moves.")
    next_cursor: NextCursor


class ChangedJob(ResponseBody):
    """A job and the first of its fire times in the coming year that an update of the time zone data changed."""

    job_id: JobId
    timezone: Timezone
    before_at: Instant | None = Field(description="By the earlier release; null: it was added.")
    after_at: Instant | None = Field(description="By the present release; null: it was dropped.")


class TzdataChangePage(ResponseBody):
    """The jobs that an update of the time zone data changed, in the order of their ids."""

    tzdata: str = Field(description="The present release.")
    since: str = Field(description="The earlier release.")
    moved: list[ChangedJob] = Field(description="The jobs of this page whose fire times the update changed.")
    next_cursor: NextCursor


class PreviewRequest(RequestBody):
    """A schedule, and how far to look ahead."""

    schedule: ScheduleDefinition
    count: Annotated[int, whole_number(100)] = Field(
        description="The number of fire times to return.", default=10, ge=1, le=100
    )
    from_at: RequestedInstant = Field(default_factory=int, description="Begin here; now if left out.")
    until_at: RequestedInstant = Field(default_factory=int, description="End before this.")
    job_id: JobId = Field(default="job", description="Resolves `H` as this job of yours would.")
    week: bool = Field(default=False, description="Return `week` as well.")


class PreviewedFire(ResponseBody):
    """One fire time."""

    fire_at: Instant
    local: str = Field(description="The fire time on the clock of the schedule's time zone.")
    due_at: Instant = Field(description="When the target is called: with spread and jitter.")


class SchedulePreview(ResponseBody):
    """What a schedule means and when it fires."""

    sentence: str = Field(description="The schedule in words.")
    warnings: list[str] = Field(description="What may surprise you about it, each in a sentence.")
    schedule_resolved: dict[str, Any] = Field(
        description="The schedule with `H` resolved and the anchor set."
    )
    timezone: Timezone
    fires: list[PreviewedFire] = Field(description="The fire times, the earliest first.")
    week: list[Instant] | None = Field(
        default=None,
        description="The first fire time in each hour of the time zone's clock, of seven days; if it was asked for.",
    )
    tzdata: str = Field(description="The release of the time zone data.")
