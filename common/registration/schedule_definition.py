"""What a client may write as a job's schedule. `schedule_text.py` checks what it means."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from common.declared import Check
from common.errors import InvalidInput
from common.ids import PACE_KEY_CHARS, id_pattern
from common.limits import (
    CALENDAR_NAME_CHARS,
    CRON_CHARS,
    MAX_CALENDARS,
    MAX_EXCLUDED_DATES,
    MAX_JITTER_S,
    MAX_PER_SECOND,
    MAX_SPREAD_S,
    MAX_TOLERANCE_S,
)
from common.timing.durations import MAX_DURATION_S
from common.timing.fires import MAX_RUNS
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule

MAX_SCHEDULES: Final = 10
# The tolerance of a pace that names none.
TOLERANCE_S: Final = 60


def _check_date(path: str, text: str) -> None:
    try:
        # `fromisoformat` also reads 20261224 and 2026-W52-4.
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and date.fromisoformat(text):
            return
    except ValueError:
        pass
    raise InvalidInput(path, "must be a date", value=text, accepted=_DATE)


_DATE: Final = "dates like 2025-12-24"
# A day of the calendar, in the job's own time zone.
LocalDate = Annotated[str, Meta(extra={"accepted": _DATE}), Check(_check_date)]


def _name(longest: int) -> Meta:
    return Meta(pattern=id_pattern(longest), extra={"accepted": f"up to {longest} letters, digits, ._-"})


_INSTANT: Final = {"accepted": "an RFC 3339 time, such as 2026-12-24T08:00:00Z"}
_CalendarName = Annotated[str, _name(CALENDAR_NAME_CHARS)]


def _check_json(path: str, value: object) -> None:
    """Half of a surrogate pair is JSON, and no UTF-8; NaN is neither."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(path, "must be JSON in Unicode", value=value, accepted="any JSON") from None


# Any JSON. It must be possible to store it as UTF-8.
Json = Annotated[Any, Check(_check_json)]


# `omit_defaults` compares by identity: defaults here are None, an empty list, a word of a Literal or a small number.
class ExcludeDefinition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Dates on which a job does not fire."""

    dates: Annotated[
        list[LocalDate],
        Meta(
            max_length=MAX_EXCLUDED_DATES,
            description="Local dates (2026-12-24) on which the job does not fire.",
        ),
    ] = []
    weekdays: Annotated[
        list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]],
        Meta(
            max_length=6,
            description="Days of the week on which the job does not fire; with `on_excluded`, "
            'none moves to one: ["sat", "sun"].',
        ),
    ] = []
    calendars: Annotated[
        list[_CalendarName], Meta(max_length=MAX_CALENDARS, description="Names of the tenant's calendars.")
    ] = []


class PaceDefinition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many executions a second all jobs with the same key may have, and how far that may delay them."""

    per_second: Annotated[
        int, Meta(ge=1, le=MAX_PER_SECOND, description="At most so many executions are due at one second.")
    ]
    tolerance_s: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_TOLERANCE_S,
            description="An execution is due at most so many seconds later, to keep to the pace.",
        ),
    ] = TOLERANCE_S
    key: Annotated[
        Annotated[str, _name(PACE_KEY_CHARS)] | None,
        Meta(
            description="Jobs with the same key share the pace; without it those with the same target's "
            "ARN or URL's host."
        ),
    ] = None


class SingleSchedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Fire times: exactly one of `cron`, `every` and `at`."""

    cron: Annotated[
        str | None,
        Meta(
            description=f"Five fields, or six with seconds first; or by `dialect`. At most {CRON_CHARS} "
            "characters.",
            examples=["30 2 * * *"],
            extra={"accepted": "a cron expression, such as 30 2 * * *"},
        ),
    ] = None
    every: Annotated[
        str | int | None,
        Meta(
            description="Elapsed time: 90m, PT90M, or seconds. With timezone local days: 2w, 3mo. "
            f"1 s to {MAX_DURATION_S // DAY_S} days.",
            examples=["90m"],
            extra={
                "accepted": "whole seconds as a number, `90m`, `1h30m` or `PT90M`",
                "page": "timekeeping.md#days-and-months-of-local-time",
            },
        ),
    ] = None
    at: Annotated[
        str | None, Meta(description="One instant, RFC 3339, or a local time with timezone.", extra=_INSTANT)
    ] = None
    timezone: Annotated[
        str | None,
        Meta(
            description="IANA zone; UTC if none.",
            examples=["Europe/Paris"],
            extra={"accepted": "an IANA time zone name, such as Europe/Paris"},
        ),
    ] = None
    dialect: Annotated[
        Literal["minute8", "eventbridge"],
        Meta(
            description="How `cron` is read; eventbridge: minutes hours day-of-month month day-of-week year.",
            extra={"page": "timekeeping.md#eventbridges-dialect"},
        ),
    ] = "minute8"
    dst: Annotated[
        Literal["minute8", "eventbridge"],
        Meta(
            description="The rule for clock changes of `cron`; eventbridge: skipped times do not fire, "
            "repeated ones fire once.",
            extra={"page": "timekeeping.md#eventbridges-rule-for-clock-changes"},
        ),
    ] = "minute8"
    anchor: Annotated[
        str | None,
        Meta(
            description="An instant that `every` counts from; with timezone also a local time. Else the "
            "time of registration.",
            extra=_INSTANT,
        ),
    ] = None
    start_at: Annotated[str | None, Meta(description="Nothing fires before (RFC 3339).", extra=_INSTANT)] = (
        None
    )
    end_at: Annotated[
        str | None, Meta(description="Nothing fires at or after (RFC 3339).", extra=_INSTANT)
    ] = None
    exclude: Annotated[
        ExcludeDefinition | None,
        Meta(
            description="Dates on which the job does not fire.",
            extra={"accepted": '{"dates": ["2025-12-24"], "calendars": ["holidays"]}'},
        ),
    ] = None
    include_calendars: Annotated[
        list[_CalendarName],
        Meta(
            max_length=MAX_CALENDARS,
            description="Names of calendars: the job fires only on dates that are in one of them.",
        ),
    ] = []
    on_excluded: Annotated[
        Literal["skip", "next", "previous"],
        Meta(
            description="On an excluded date the job does not fire, or at that time on the next or "
            "previous other date.",
            extra={"page": "timekeeping.md#moved-fire-times"},
        ),
    ] = "skip"


class OneOfSchedules(SingleSchedule, frozen=True, kw_only=True):
    """One of a job's schedules, with what it changes of the payload."""

    payload_patch: Annotated[
        Json,
        Meta(description="A JSON merge patch (RFC 7396) of the payload, for the runs of this schedule."),
    ] = None


_OneSchedule = Annotated[OneOfSchedules, Meta(extra={"accepted": 'an object such as {"every": "90m"}'})]


class ScheduleDefinition(SingleSchedule, frozen=True, kw_only=True):
    """When the job fires: exactly one of `cron`, `every`, `at` and `schedules`."""

    schedules: Annotated[
        Annotated[list[_OneSchedule], Meta(min_length=1, max_length=MAX_SCHEDULES)] | None,
        Meta(
            description="Several schedules; an instant that some share fires once, with the patch of the first.",
            extra={"page": "job.md#several-schedules"},
        ),
    ] = None
    max_runs: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_RUNS)] | None,
        Meta(
            description="The job ends after so many fire times; pauses, also with edits, do not count. "
            "With `cron` or "
            "`every`, without calendars.",
            extra={"page": "timekeeping.md#an-end-after-a-number-of-runs"},
        ),
    ] = None
    spread_s: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_SPREAD_S)] | None,
        Meta(
            description="All runs are due the same 0 to n seconds later, by the job's id; "
            "without it the tenant's default."
        ),
    ] = None
    jitter_s: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_JITTER_S)] | None,
        Meta(description="Spread: each run is due 0 to n seconds later."),
    ] = None
    pace: Annotated[
        PaceDefinition | None,
        Meta(
            description="How many executions a second the job shares with others.",
            extra={
                "accepted": '{"per_second": 5, "tolerance_s": 60, "key": "crm"}; the last two are optional'
            },
        ),
    ] = None

    def written(self) -> dict[str, Any]:
        """The schedule as the client wrote it, without absent fields and defaults."""
        return dict(to_builtins(self))

    def singles(self) -> Iterator[tuple[str, SingleSchedule]]:
        """Each of several schedules, or itself, with its place in the definition."""
        if self.schedules is None:
            yield "schedule", self
        for place, schedule in enumerate(self.schedules or ()):
            yield f"schedule.schedules.{place}", schedule

    def patches(self) -> Iterator[tuple[int, Any]]:
        """The payload patches, with the places of their schedules."""
        for place, schedule in enumerate(self.schedules or ()):
            if schedule.payload_patch is not None:
                yield place, schedule.payload_patch


def anchored_as(
    before: Schedule, written_before: Mapping[str, Any], schedule: Schedule, written: Mapping[str, Any]
) -> Schedule:
    """An unchanged interval without a written anchor keeps its anchor; of several schedules each by itself."""
    known = [
        part
        for part, fields in zip(before.parts, written_before.get("schedules", [written_before]), strict=True)
        if "anchor" not in fields
    ]
    parts = tuple(
        part if "anchor" in fields else next(filter(None, (_anchored(old, part) for old in known)), part)
        for part, fields in zip(schedule.parts, written.get("schedules", [written]), strict=True)
    )
    return parts[0] if schedule.schedules is None else replace(schedule, schedules=parts)


def _anchored(before: Schedule, schedule: Schedule) -> Schedule | None:
    """The schedule with the anchor of the one before; None if their intervals differ."""
    if before.every_s is not None and before.every_s == schedule.every_s:
        return replace(schedule, anchor_at=before.anchor_at)
    old, new = before.interval, schedule.interval
    if old and new and old.text == new.text and before.zone == schedule.zone:
        return replace(schedule, cron=before.cron, interval=old)
    return None
