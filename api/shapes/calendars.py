"""Calendars."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.shapes.parts import Answer, Instant, Shapes


class NewCalendar(BaseModel):
    """A calendar: exactly one of `dates`, `icalendar` and `country`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"dates": ["2026-12-24", "2026-12-25"]}],
            "oneOf": [
                {"required": [name], "properties": {name: {"type": kind}}}
                for name, kind in (("dates", "array"), ("icalendar", "string"), ("country", "string"))
            ],
        },
    )

    dates: list[str] | None = Field(default=None, examples=[["2026-12-24"]])
    source: dict[str, Any] | None = Field(
        default=None, description="A small note of where the dates are from."
    )
    icalendar: str | None = Field(default=None, description="iCalendar text: its all-day events.")
    country: str | None = Field(default=None, description="A country's public holidays.")
    subdivision: str | None = None
    years: list[int] | None = None


class CalendarView(Answer):
    """Dates on which the jobs that name the calendar do not fire."""

    name: str
    dates: list[str]
    source: dict[str, Any]
    created_at: Instant
    updated_at: Instant


class CalendarPage(Answer):
    """Some calendars, in the order of their names."""

    calendars: list[CalendarView]
    next_cursor: str | None


TAKEN: Shapes = (NewCalendar,)
GIVEN: Shapes = (
    CalendarView,
    CalendarPage,
)
