"""Calendars."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from common.registration.calendar_store import CalendarDefinition
from minute8.api.shapes.base import Instant, NextCursor, ResponseBody, Revision


class NewCalendar(CalendarDefinition):
    """A calendar's dates. The command `minute8` makes them of iCalendar files and countries."""

    examples: ClassVar = [{"dates": ["2026-12-24", "2026-12-25"]}]


class CalendarView(ResponseBody):
    """Dates on which the jobs that name the calendar do not fire."""

    name: Annotated[str, Meta(description="The calendar's name, which jobs use.")]
    dates: Annotated[
        list[str],
        Meta(
            description="Local dates in ascending order, each excluded as a whole day in the job's time zone."
        ),
    ]
    source: Annotated[dict[str, Any], Meta(description="The note of the dates' origin.")]
    revision: Revision
    created_at: Instant
    updated_at: Instant
    warnings: Annotated[
        list[str] | None,
        Meta(description="After a change: at most 20 jobs that fire never again by it, and why."),
    ] = None


class CalendarPage(ResponseBody):
    """Some calendars, in the order of their names."""

    calendars: Annotated[list[CalendarView], Meta(description="The calendars of this page.")]
    next_cursor: NextCursor
