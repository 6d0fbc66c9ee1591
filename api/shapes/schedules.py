"""Schedules."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.shapes.parts import Answer, Instant, JobId, Shapes
from common.registration.definition import ScheduleDefinition


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


TAKEN: Shapes = (PreviewRequest,)
GIVEN: Shapes = (SchedulePreview,)
