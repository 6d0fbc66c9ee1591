"""What a client may write as a calendar."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from common.declared import Check
from common.errors import InvalidInput
from common.limits import MAX_DATES, MAX_SOURCE_CHARS
from common.registration.schedule_definition import LocalDate


def _check_source(path: str, source: dict[str, Any]) -> None:
    if (
        not all(key and _is_small(value) for key, value in source.items())
        or len(str(source)) > MAX_SOURCE_CHARS
    ):
        accepted = f"an object of at most {MAX_SOURCE_CHARS} characters with names, text and whole numbers below 2^53"
        raise InvalidInput(path, "must be a small object", value=source, accepted=accepted)


def _is_small(value: object) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 53)


class CalendarDefinition(Struct, forbid_unknown_fields=True):
    """A calendar's dates. The command `minute8` makes them of iCalendar files and countries."""

    dates: Annotated[
        list[LocalDate],
        Meta(
            max_length=MAX_DATES,
            description="Local dates. A job that names the calendar does not fire on them, in its own time zone.",
            examples=[["2026-12-24"]],
        ),
    ]
    source: Annotated[
        Annotated[dict[str, Any], Check(_check_source)] | None,
        Meta(description="A small note of where the dates are from."),
    ] = None
