"""Calendars."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.shapes.base import Answer, Instant


class NewCalendar(BaseModel):
    """A calendar's dates. The command `minute8` makes them of iCalendar files and countries."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"dates": ["2026-12-24", "2026-12-25"]}],
        },
    )

    dates: list[str] = Field(examples=[["2026-12-24"]])
    source: dict[str, Any] | None = Field(
        default=None, description="A small note of where the dates are from."
    )


class CalendarView(Answer):
    """Dates on which the jobs that name the calendar do not fire."""

    name: str
    dates: list[str]
    source: dict[str, Any]
    revision: int = Field(description="Moves with every change; also the ETag.")
    created_at: Instant
    updated_at: Instant


class CalendarPage(Answer):
    """Some calendars, in the order of their names."""

    calendars: list[CalendarView]
    next_cursor: str | None
