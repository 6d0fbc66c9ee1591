"""What a client may write as a job's schedule, for OpenAPI and for the types; `schedule_text.py` reads its meaning."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from common.registration.schedule_text import TOLERANCE_S


class Strict(BaseModel):
    """A part of a definition."""

    # strict: "60" is not a number and 1 is not a boolean. An unknown field is probably a typing error, so it is
    # refused.
    model_config = ConfigDict(extra="forbid", strict=True)


class ExcludeDefinition(Strict):
    """Dates on which a job does not fire."""

    dates: list[str] = Field(
        default=[], description="Local dates (2026-12-24) on which the job does not fire."
    )
    calendars: list[str] = Field(default=[], description="Names of the tenant's calendars.")


class PaceDefinition(Strict):
    """How many executions a second all jobs with the same key may have, and how far that may delay them."""

    per_second: int = Field(description="At most so many executions are due at one second.")
    tolerance_s: int = Field(
        default=TOLERANCE_S,
        description="An execution is due at most so many seconds later, to keep to the pace.",
    )
    key: str | None = Field(
        default=None,
        description="Jobs with the same key share the pace; without it those with the same target.",
    )


class ScheduleDefinition(Strict):
    """When the job fires: exactly one of `cron`, `every` and `at`."""

    # For OpenAPI; `common.timing.schedule` checks the meaning of a schedule.
    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["cron"], "properties": {"cron": {"type": "string"}}},
                {"required": ["every"], "properties": {"every": {"type": ["string", "integer"]}}},
                {"required": ["at"], "properties": {"at": {"type": "string"}}},
            ]
        }
    )

    cron: str | None = Field(
        default=None,
        description="Five fields, or six with seconds first; or by `dialect`.",
        examples=["30 2 * * *"],
    )
    every: str | int | None = Field(
        default=None, description="Elapsed time: 90m, PT90M, or seconds.", examples=["90m"]
    )
    at: str | None = Field(default=None, description="One instant, RFC 3339, or a local time with timezone.")
    timezone: str | None = Field(
        default=None, description="IANA zone; UTC if none.", examples=["Europe/Paris"]
    )
    dialect: Literal["minute8", "eventbridge"] = Field(
        default="minute8",
        description="How `cron` is read; eventbridge: minutes hours day-of-month month day-of-week year.",
    )
    dst: Literal["minute8", "eventbridge"] = Field(
        default="minute8",
        description="The rule for clock changes; eventbridge: skipped times do not fire, repeated ones fire once.",
    )
    anchor: str | None = Field(default=None, description="An instant that `every` counts from.")
    start_at: str | None = Field(default=None, description="Nothing fires before (RFC 3339).")
    end_at: str | None = Field(default=None, description="Nothing fires at or after (RFC 3339).")
    exclude: ExcludeDefinition | None = None
    spread_s: int | None = Field(
        default=None,
        description="All runs are due the same 0 to n seconds later, by the job's id; without it the tenant's default.",
    )
    jitter_s: int | None = Field(default=None, description="Spread: each run is due 0 to n seconds later.")
    pace: PaceDefinition | None = None
