"""What is coming."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.shapes.base import Answer, Instant, JobId
from common.registration.definition import ScheduleDefinition


class ComingExecution(Answer):
    """One coming execution."""

    job_id: JobId
    fire_at: Instant
    due_at: Instant = Field(description="When the target is really called: with the jitter.")


class UpcomingPage(Answer):
    """The next executions, the earliest first, and where the list goes on."""

    from_at: Instant
    until_at: Instant
    executions: list[ComingExecution]
    next_cursor: str | None


class MinuteCount(Answer):
    """How many executions are due in a minute."""

    minute_at: Instant
    executions: int


class SpreadJob(Answer):
    """A job that is due in a crowded minute, and what would move it."""

    job_id: JobId
    proposal: dict[str, Any] | None = Field(
        description="Fields to change in its schedule: `cron` with `H`, or `jitter_s`; null if there are none."
    )


class CrowdedMinute(MinuteCount):
    """A minute with ten executions, and three times the average, or more."""

    jobs: list[SpreadJob] = Field(description="Up to five of the jobs without jitter.")


class Density(Answer):
    """Executions by minute, of fire times in the range; jitter can move the last ones beyond it."""

    from_at: Instant
    until_at: Instant
    jobs_counted: int
    executions: int
    minutes: list[MinuteCount] = Field(description="Those with executions, the earliest first.")
    next_cursor: str | None = Field(description="More jobs follow; counts of pages add up.")


class PaceLoad(Answer):
    """What a pace does with the executions of this page, if no other jobs share it."""

    key: str = Field(description="What the jobs share: their target, or a key of their own.")
    per_second: int = Field(description="The smallest `per_second` among its jobs.")
    executions: int = Field(description="Of its jobs, in the range.")
    delayed: int = Field(description="Due later than without the pace.")
    longest_s: int = Field(description="The longest delay.")
    over: int = Field(description="How many find no free second within their tolerance.")


class TenantDensity(Density):
    """Executions of a tenant's jobs by minute."""

    paces: list[PaceLoad] = Field(description="The paces of this page's jobs, those that are exceeded first.")
    crowded: list[CrowdedMinute] = Field(description="Of this page's jobs, the fullest first.")


class TenantShare(Answer):
    """How many executions of a page are a tenant's."""

    tenant_id: str
    executions: int


class PlatformDensity(Density):
    """Executions of all tenants by minute. Those that calendars exclude are counted."""

    unreadable: int = Field(description="Entries that cannot be planned; ticks report them.")
    crowded: list[MinuteCount] = Field(description="Of this page, the fullest first.")
    tenants: list[TenantShare] = Field(description="The tenants with most executions of this page.")


class MovedJob(Answer):
    """A job and the next clock change of its time zone."""

    job_id: JobId
    timezone: str
    change_at: Instant
    text: str = Field(description="What the change does to it, in words.")


class ClockChangePage(Answer):
    """The jobs that the next clock change of their time zones moves, in the order of their ids."""

    moved: list[MovedJob]
    next_cursor: str | None


class ChangedJob(Answer):
    """A job and the first of its fire times in the coming year that an update of the time zone data changed."""

    job_id: JobId
    timezone: str
    before_at: Instant | None = Field(description="By the earlier release; null: it was added.")
    after_at: Instant | None = Field(description="By the present release; null: it was dropped.")


class TzdataChangePage(Answer):
    """The jobs that an update of the time zone data changed, in the order of their ids."""

    tzdata: str = Field(description="The present release.")
    since: str = Field(description="The earlier release.")
    moved: list[ChangedJob]
    next_cursor: str | None


class PreviewRequest(BaseModel):
    """A schedule, and how far to look ahead."""

    model_config = ConfigDict(extra="forbid")

    schedule: ScheduleDefinition
    count: int = Field(default=10, ge=1, le=100)
    from_at: Instant = Field(default_factory=str, description="Begin here; now if left out.")
    until_at: Instant = Field(default_factory=str, description="End before this.")
    job_id: JobId = Field(default="job", description="Resolves `H` as this job of yours would.")


class PreviewedFire(Answer):
    """One fire time."""

    fire_at: Instant
    local: str
    due_at: Instant = Field(description="When the target is called: with spread and jitter.")


class SchedulePreview(Answer):
    """What a schedule means and when it fires."""

    sentence: str
    warnings: list[str]
    schedule_resolved: dict[str, Any]
    timezone: str
    fires: list[PreviewedFire]
    tzdata: str
