"""Calendars."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from api.shapes.base import Instant, NextCursor, RequestBody, ResponseBody, Revision, checked
from common.registration.calendar_sources import check_dates, check_source, refuse_unresolved


class NewCalendar(RequestBody):
    """A calendar's dates. The command `minute8` makes them of iCalendar files and countries."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"dates": ["2026-12-24", "2026-12-25"]}],
        },
    )

    dates: Annotated[list[str], checked(check_dates)] = Field(
        description="Local dates. A job that names the calendar does not fire on them, in its own time zone.",
        examples=[["2026-12-24"]],
    )
    source: Annotated[dict[str, Any] | None, checked(check_source)] = Field(
        default=None, description="A small note of where the dates are from."
    )
    _refuse_unresolved = model_validator(mode="before")(refuse_unresolved)


class CalendarView(ResponseBody):
    """Dates on which the jobs that name the calendar do not fire."""

    name: str = Field(description="The calendar's name, which jobs use.")
    dates: list[str] = Field(
        description="Local dates in ascending order, each excluded as a whole day in the job's time zone."
    )
    source: dict[str, Any] = Field(description="The note of the dates' origin.")
    revision: Revision
    created_at: Instant
    updated_at: Instant


class CalendarPage(ResponseBody):
    """Some calendars, in the order of their names."""

    calendars: list[CalendarView] = Field(description="The calendars of this page.")
    next_cursor: NextCursor
