"""Reads and checks a job's schedule as a tenant writes it.

`common/registration/cron_text.py` reads cron expressions, `common/timing/durations.py` durations and instants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from common.declared import read
from common.errors import InvalidInput
from common.hints import duration_hint
from common.limits import MAX_CALENDARS, MAX_EXCLUDED_DATES
from common.registration.cron_text import check_fires, instead_of, read_cron
from common.registration.schedule_definition import TOLERANCE_S, ScheduleDefinition
from common.timing.compiled import compiled
from common.timing.cron import on_any_date, shortest_interval_s
from common.timing.date_interval import MAX_DAYS, MAX_MONTHS, DateInterval, steps_of
from common.timing.durations import instant_hint, parse_duration, parse_instant
from common.timing.eventbridge_cron import compile_eventbridge, read_eventbridge
from common.timing.excluded_days import WEEKDAYS
from common.timing.instants import DAY_S, EPOCH_ORDINAL
from common.timing.schedule import (
    MINUTE8,
    SKIP,
    AtTiming,
    CronTiming,
    EveryTiming,
    ManyTiming,
    Pace,
    Schedule,
    Timing,
)
from common.timing.zones import check_zone, offset_at

_MAX_HINTED_CHARS: Final = 128
# What goes into each of several schedules, and not beside them.
_OF_ONE: Final = (
    *("cron", "every", "at", "timezone", "dialect", "dst", "anchor", "exclude"),
    *("include_calendars", "on_excluded"),
)


def parse_schedule(
    raw: Mapping[str, object] | ScheduleDefinition,
    *,
    job_key: str,
    now: int,
    shortest_interval_s: int = 1,
    default_spread_s: int = 0,
) -> Schedule:
    """A schedule as a tenant writes it, checked; `job_key` ("tenant/job") resolves `H`, `now` is the default anchor.

    `max_runs` is checked; `fires.limited` applies it. A cron expression that names no second gets
    `default_spread_s`, unless a spread is given. The default ends before the next fire time. A time in the past is
    accepted: it never fires. Raises InvalidInput and nothing else.
    """
    definition = raw if isinstance(raw, ScheduleDefinition) else _declared(raw)
    return _schedule(definition.written(), job_key, now, shortest_interval_s, default_spread_s)


def _declared(raw: object) -> ScheduleDefinition:
    """By its type. Raises InvalidInput, which names the place in the job."""
    if not isinstance(raw, Mapping):
        raise InvalidInput("schedule", "must be an object", value=raw, accepted=written_as_object(raw))
    try:
        return read(raw, ScheduleDefinition, "")
    except InvalidInput as refused:
        for fault in (refused, *refused.also):
            fault.field = f"schedule.{fault.field}"
        raise


def _schedule(
    fields: Mapping[str, Any], job_key: str, now: int, shortest_interval_s: int, default_spread_s: int
) -> Schedule:
    """The schedule of the fields that are given, each by its type."""
    start_at, end_at = _bound(fields, "start_at"), _bound(fields, "end_at")
    if start_at is not None and end_at is not None and end_at <= start_at:
        raise InvalidInput(
            "schedule.end_at",
            "must be after start_at",
            value=fields["end_at"],
            accepted="a time after start_at",
        )
    if "schedules" in fields:
        schedule = _several(fields, job_key, now, shortest_interval_s, default_spread_s)
        _check_together(schedule)
    else:
        schedule = _single(fields, job_key, now, shortest_interval_s, default_spread_s)
    if "max_runs" in fields:
        _check_max_runs(fields["max_runs"], schedule)
    return replace(
        schedule,
        start_at=start_at,
        end_at=end_at,
        jitter_s=fields.get("jitter_s", 0),
        spread_s=fields.get("spread_s", schedule.spread_s),
        pace=_pace(**fields["pace"]) if "pace" in fields else None,
    )


def _several(
    fields: Mapping[str, Any], job_key: str, now: int, shortest_interval_s: int, default_spread_s: int
) -> Schedule:
    """The schedules, and the least of their default spreads; no other field of all. Raises InvalidInput."""
    for key in _OF_ONE:
        if key in fields:
            raise InvalidInput(
                f"schedule.{key}",
                "goes into each of the schedules",
                value=fields[key],
                accepted=f"no {key} beside schedules",
            )
    schedules: list[Schedule] = []
    for place, part in enumerate(fields["schedules"]):
        try:
            schedules.append(_schedule(part, job_key, now, shortest_interval_s, default_spread_s))
        except InvalidInput as error:
            error.field = error.field.replace("schedule", f"schedule.schedules.{place}", 1)
            raise
    timing = ManyTiming(tuple(replace(schedule, spread_s=0) for schedule in schedules))
    return Schedule.of(timing, spread_s=min(schedule.spread_s for schedule in schedules))


def _check_together(schedule: Schedule) -> None:
    """Several schedules may name no more dates and calendars than one: ticks read them. Raises InvalidInput."""
    dates = sum(len(part.exclude_dates) for part in schedule.parts)
    for count, most, named in (
        (dates, MAX_EXCLUDED_DATES, "excluded dates"),
        (len(schedule.named_calendars), 2 * MAX_CALENDARS, "calendars"),
    ):
        if count > most:
            raise InvalidInput(
                "schedule.schedules", f"name {count} {named}", accepted=f"at most {most} in all"
            )


def _single(
    fields: Mapping[str, Any], job_key: str, now: int, shortest_interval_s: int, default_spread_s: int
) -> Schedule:
    """The timing and the exclusions, with the default spread."""
    exclude = fields.get("exclude", {})
    timing, interval = _timing(fields, job_key, now, shortest_interval_s)
    on_excluded = _on_excluded(fields, timing, shortest_interval_s)
    return Schedule.of(
        timing,
        exclude_dates=_distinct(exclude.get("dates", ())),
        exclude_weekdays=tuple(sorted(set(exclude.get("weekdays", ())), key=WEEKDAYS.index)),
        calendars=_distinct(exclude.get("calendars", ())),
        interval=interval,
        include_calendars=_distinct(fields.get("include_calendars", ())),
        on_excluded=on_excluded,
        spread_s=_default_spread(timing, on_excluded, 0 if interval else default_spread_s),
    )


def written_as_object(raw: object) -> str:
    """How to write a schedule that is a bare text: the key that its text fits."""
    if isinstance(raw, str) and len(raw) <= _MAX_HINTED_CHARS:
        for key in ("cron", "every", "at"):
            try:
                parse_schedule({key: raw}, job_key="", now=0)
            except InvalidInput:
                continue
            return json.dumps({key: raw})
        if hint := instead_of(raw, ""):
            of_text, _, more = hint.replace('" with "', '", "').partition(" in the place of cron")
            if of_text.startswith('"') and not more:
                return f"{{{of_text}}}"
            return f'an object with "cron"; {hint}'
    return 'an object such as {"every": "90m"}'


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Sorted, so that equal exclusions are stored as equal lists."""
    return tuple(sorted(set(texts)))


def _pace(per_second: int, tolerance_s: int = TOLERANCE_S, key: str = "") -> Pace:
    """A pace; without a key of its own, the key is empty."""
    return Pace(key=key, per_second=per_second, tolerance_s=tolerance_s)


def _check_max_runs(runs: int, schedule: Schedule) -> None:
    """Its end is found when the job is stored, and calendars may change afterwards. Raises InvalidInput."""
    if isinstance(schedule.timing, AtTiming):
        raise InvalidInput(
            "schedule.max_runs", "`at` fires once", value=runs, accepted="no max_runs, or cron or every"
        )
    if schedule.named_calendars:
        raise InvalidInput(
            "schedule.max_runs",
            "goes without calendars: a change of theirs would change which fire time is the last",
            value=runs,
            accepted="no calendars; exclude.dates",
        )


def _on_excluded(fields: Mapping[str, Any], timing: Timing, shortest_s: int) -> str:
    value = fields.get("on_excluded", SKIP)
    if value == SKIP:
        return SKIP
    if not isinstance(timing, CronTiming):
        raise InvalidInput(
            "schedule.on_excluded",
            "moves times of the day, so it goes with `cron` only, or an `every` with a timezone",
            value=value,
            accepted=f"{SKIP!r}",
        )
    if "cron" in fields:
        check_fires(on_any_date(compiled(timing)), fields["cron"], shortest_s)
    return str(value)


def _default_spread(timing: Timing, on_excluded: str, default_s: int) -> int:
    if not isinstance(timing, CronTiming) or (cron := compiled(timing)).by_second:
        return 0
    cron = cron if on_excluded == SKIP else on_any_date(cron)
    shortest_s = shortest_interval_s(cron)
    return default_s if shortest_s is None else min(default_s, shortest_s - 1)


def _timing(
    fields: Mapping[str, Any], job_key: str, now: int, shortest_interval_s: int
) -> tuple[Timing, DateInterval | None]:
    kinds = [kind for kind in ("cron", "every", "at") if kind in fields]
    if len(kinds) != 1:
        problem = f"{' and '.join(kinds)} together" if kinds else "no timing"
        raise InvalidInput("schedule", problem, accepted="exactly one of cron, every, at, schedules")
    if "anchor" in fields and kinds != ["every"]:
        raise InvalidInput(
            "schedule.anchor", "goes with `every` only", value=fields["anchor"], accepted="no anchor"
        )
    if kinds == ["cron"]:
        return _cron(fields, job_key, shortest_interval_s), None
    for key in ("dialect", "dst"):
        if key in fields:
            raise InvalidInput(
                f"schedule.{key}", "goes with `cron` only", value=fields[key], accepted=f"no {key}"
            )
    if kinds == ["every"]:
        every = _every_in_zone if "timezone" in fields else _every
        return every(fields, now, shortest_interval_s)
    return _at(fields), None


def _cron(fields: Mapping[str, Any], job_key: str, shortest_interval_s: int) -> CronTiming:
    zone = check_zone(fields.get("timezone", "UTC"))
    dialect, dst = fields.get("dialect", MINUTE8), fields.get("dst", MINUTE8)
    expression = fields["cron"]
    if dialect == MINUTE8:
        text = read_cron(expression, job_key=job_key, shortest_s=shortest_interval_s)
    else:
        text = read_eventbridge(expression)
        check_fires(compile_eventbridge(text), expression, shortest_interval_s)
    return CronTiming(text, zone, dialect, dst)


def _every(fields: Mapping[str, Any], now: int, shortest_interval_s: int) -> tuple[EveryTiming, None]:
    if (steps := steps_of(fields["every"])) and steps[1]:
        raise InvalidInput(
            "schedule.every",
            "has months, which count in local time",
            value=fields["every"],
            accepted="a timezone next to it, such as UTC",
        )
    try:
        interval_s = parse_duration(fields["every"])
    except InvalidInput as error:
        raise _instead(error, fields["every"], _duration_instead(fields["every"])) from None
    if interval_s < shortest_interval_s:
        raise InvalidInput(
            "schedule.every",
            "fires too often for this tenant",
            value=fields["every"],
            accepted=f"at least {shortest_interval_s} s",
        )
    anchor_at = parse_instant(fields["anchor"], "schedule.anchor") if "anchor" in fields else now
    return EveryTiming(interval_s, anchor_at), None


def _duration_instead(value: object) -> str:
    """`1M` is a minute for some and a month for others."""
    if isinstance(value, str) and re.fullmatch(r"[1-9][0-9]{0,3}M", value):
        return f"{value[:-1]}m for minutes; {value[:-1]}mo with a timezone for months"
    return duration_hint(value)


def _every_in_zone(
    fields: Mapping[str, Any], now: int, shortest_interval_s: int
) -> tuple[CronTiming, DateInterval]:
    """Days, weeks, months or years of the local calendar: the anchor's time of the day, on dates in steps from it."""
    zone = check_zone(fields["timezone"])
    steps = steps_of(fields["every"])
    if steps is None:
        raise InvalidInput(
            "schedule.timezone", "`every` is elapsed time, the same in all zones", value=zone,
            accepted="no timezone, and perhaps an anchor such as 2025-03-30T06:00:00+02:00; "
            f"or {_dates_instead(fields['every'])}, at the same local time",
        )  # fmt: skip
    days, months = steps
    if not (0 < days <= MAX_DAYS or 0 < months <= MAX_MONTHS):
        raise InvalidInput(
            "schedule.every", "is out of range", value=fields["every"],
            accepted=f"1d to {MAX_DAYS}d, 1mo to {MAX_MONTHS}mo",
        )  # fmt: skip
    at = parse_instant(fields["anchor"], "schedule.anchor", zone) if "anchor" in fields else now
    day, second = divmod(at + offset_at(zone, at), DAY_S)
    interval = DateInterval(days=days, months=months, from_date=date.fromordinal(day + EPOCH_ORDINAL))
    if interval.shortest_s < shortest_interval_s:
        raise InvalidInput(
            "schedule.every", "fires too often for this tenant", value=fields["every"],
            accepted=f"at least {shortest_interval_s} s",
        )  # fmt: skip
    clock = f"{second // 60 % 60} {second // 3600} * * *"
    return CronTiming(f"{second % 60} {clock}" if second % 60 else clock, zone), interval


def _dates_instead(value: object) -> str:
    """Whole days or months in the place of a duration: 1d for 24h, 3mo for `3 months`."""
    if isinstance(value, str) and (
        months := re.fullmatch(r"\s*([1-9]\d{0,2})\s*mon(?:th)?s?\s*", value, re.I)
    ):
        return f"{months[1]}mo"
    seconds = parse_duration(hint) if (hint := duration_hint(str(value))) else 0
    return f"{seconds // DAY_S}d" if seconds and seconds % DAY_S == 0 else "whole days, such as 2w or 3mo"


def _at(fields: Mapping[str, Any]) -> AtTiming:
    at = fields["at"]
    if "timezone" not in fields:
        try:
            return AtTiming(parse_instant(at, "schedule.at"))
        except InvalidInput as error:
            hint = instant_hint(at)
            accepted = f"{hint}, or a local time with a timezone" if hint else ""
            raise _instead(error, at, accepted) from None
    zone = check_zone(fields["timezone"])
    if isinstance(at, str) and re.search(r"[Zz]$|[+-][0-9]{2}:[0-9]{2}$", at):
        raise InvalidInput(
            "schedule.timezone", "`at` has an offset from UTC already", value=zone, accepted="one of the two"
        )
    return AtTiming(parse_instant(at, "schedule.at", zone))


def _bound(fields: Mapping[str, Any], key: str) -> int | None:
    if key not in fields:
        return None
    try:
        return parse_instant(fields[key], f"schedule.{key}")
    except InvalidInput as error:
        raise _instead(error, fields[key], _instant_instead(fields, key)) from None


def _instant_instead(fields: Mapping[str, Any], key: str) -> str:
    """A local time in the schedule's zone, with its offset; empty if it is none."""
    try:
        zone = check_zone(fields["timezone"])
        at = parse_instant(fields[key], f"schedule.{key}", zone)
    except (InvalidInput, KeyError):
        return ""
    return datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat()


def _instead(error: InvalidInput, value: object, hint: str) -> InvalidInput:
    """The error with what to write instead, if that is known."""
    return InvalidInput(error.field, error.message, value=value, accepted=hint) if hint else error
