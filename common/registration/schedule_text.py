"""Reads and checks a job's schedule as a tenant writes it.

`common/registration/cron_text.py` reads cron expressions, `common/timing/durations.py` durations and instants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Final

from common.errors import InvalidInput, shown
from common.hints import duration_hint, meant_key, seconds_hint
from common.ids import CALENDAR_NAME_CHARS, PACE_KEY_CHARS, is_id
from common.registration import several_schedules
from common.registration.cron_text import check_fires, read_cron
from common.timing.compiled import compiled
from common.timing.cron import on_any_date, shortest_interval_s
from common.timing.date_interval import MAX_DAYS, MAX_MONTHS, DateInterval, steps_of
from common.timing.durations import instant_hint, parse_duration, parse_instant
from common.timing.eventbridge_cron import compile_eventbridge, read_eventbridge
from common.timing.instants import DAY_S, EPOCH_ORDINAL
from common.timing.max_runs import MAX_RUNS
from common.timing.schedule import (
    EVENTBRIDGE,
    MAX_JITTER_S,
    MAX_SPREAD_S,
    MINUTE8,
    NEXT,
    PREVIOUS,
    SKIP,
    AtTiming,
    CronTiming,
    EveryTiming,
    Pace,
    Schedule,
    Timing,
)
from common.timing.zones import check_zone, offset_at

MAX_EXCLUDED_DATES: Final = 400
MAX_CALENDARS: Final = 10
MAX_PER_SECOND: Final = 1_000
# The tolerance of a pace that names none.
TOLERANCE_S: Final = 60
MAX_TOLERANCE_S: Final = 600
_MAX_HINTED_CHARS: Final = 128
KEYS: Final = (*several_schedules.OF_ONE, "start_at", "end_at", *several_schedules.OF_ALL)


def parse_schedule(
    raw: Mapping[str, object],
    *,
    job_key: str,
    now: int,
    shortest_interval_s: int = 1,
    default_spread_s: int = 0,
) -> Schedule:
    """A schedule as a tenant writes it, checked; `job_key` ("tenant/job") resolves `H`, `now` is the default anchor.

    Keys: exactly one of cron, every, at, schedules; timezone (with cron, a local `at`, or days), dialect and dst
    (with cron; MINUTE8 or EVENTBRIDGE), anchor (with every). Also start_at, end_at, include_calendars (names),
    exclude ({"dates": [...], "calendars": [...]}), on_excluded (with cron; SKIP, NEXT or PREVIOUS), jitter_s, spread_s,
    pace ({"per_second": 5, "tolerance_s": 60, "key": "crm"}). `max_runs` is checked; `max_runs.limited` applies it.
    None counts as absent. Each of `schedules` has the same keys, but those of all, and its `payload_patch`.

    A cron expression that names no second gets `default_spread_s`, unless a spread is given. The default ends before
    the next fire time. A time in the past is accepted: it never fires. Raises InvalidInput and nothing else.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput("schedule", "must be an object", value=raw, accepted=written_as_object(raw))
    fields = {key: value for key, value in raw.items() if value is not None}
    for key in fields:
        if key not in KEYS:
            raise InvalidInput("schedule", f"unknown key {shown(key)}", value=key, accepted=_known_key(key))
    start_at, end_at = _bound(fields, "start_at"), _bound(fields, "end_at")
    if start_at is not None and end_at is not None and end_at <= start_at:
        raise InvalidInput(
            "schedule.end_at",
            "must be after start_at",
            value=fields["end_at"],
            accepted="a time after start_at",
        )
    if "schedules" in fields:
        parse = partial(
            parse_schedule,
            job_key=job_key,
            now=now,
            shortest_interval_s=shortest_interval_s,
            default_spread_s=default_spread_s,
        )
        schedule = several_schedules.read(fields, parse)
        _check_together(schedule)
    else:
        schedule = _single(fields, job_key, now, shortest_interval_s, default_spread_s)
    if "max_runs" in fields:
        _check_max_runs(fields, schedule)
    return replace(
        schedule,
        start_at=start_at,
        end_at=end_at,
        jitter_s=_whole_number("jitter_s", fields.get("jitter_s", 0), 0, MAX_JITTER_S),
        spread_s=_whole_number("spread_s", fields.get("spread_s", schedule.spread_s), 0, MAX_SPREAD_S),
        pace=_pace(fields["pace"]) if "pace" in fields else None,
    )


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
    fields: Mapping[str, object], job_key: str, now: int, shortest_interval_s: int, default_spread_s: int
) -> Schedule:
    """The timing and the exclusions, with the default spread."""
    dates, calendars = read_exclusions(fields.get("exclude", {}))
    timing, interval = _timing(fields, job_key, now, shortest_interval_s)
    on_excluded = _on_excluded(fields, timing, shortest_interval_s)
    return Schedule(
        timing=timing,
        exclude_dates=dates,
        calendars=calendars,
        interval=interval,
        include_calendars=read_included(fields.get("include_calendars", ())),
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
    return 'an object such as {"every": "90m"}'


def _known_key(key: object) -> str:
    """All keys, with the one that was probably meant."""
    meant = meant_key(str(key), KEYS)
    return f"{meant}, perhaps; the keys are {', '.join(KEYS)}" if meant else ", ".join(KEYS)


def _pace(raw: object) -> Pace:
    """A pace; without a key of its own, the key is empty."""
    if not isinstance(raw, Mapping) or not {"per_second"} <= set(raw) <= {"per_second", "tolerance_s", "key"}:
        raise InvalidInput(
            "schedule.pace",
            "must be an object with per_second",
            value=raw,
            accepted='{"per_second": 5, "tolerance_s": 60, "key": "crm"}; the last two are optional',
        )
    tolerance_s, key = raw.get("tolerance_s"), raw.get("key")
    if key is not None and not (isinstance(key, str) and is_id(key, PACE_KEY_CHARS)):
        raise InvalidInput(
            "schedule.pace.key",
            "must be a name",
            value=key,
            accepted=f"up to {PACE_KEY_CHARS} letters, digits, ._-",
        )
    return Pace(
        key=key or "",
        per_second=_whole_number("pace.per_second", raw["per_second"], 1, MAX_PER_SECOND),
        tolerance_s=_whole_number(
            "pace.tolerance_s", TOLERANCE_S if tolerance_s is None else tolerance_s, 1, MAX_TOLERANCE_S
        ),
    )


def _check_max_runs(fields: Mapping[str, object], schedule: Schedule) -> None:
    """Its end is found when the job is stored, and calendars may change afterwards. Raises InvalidInput."""
    runs = _whole_number("max_runs", fields["max_runs"], 1, MAX_RUNS)
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


def _on_excluded(fields: Mapping[str, object], timing: Timing, shortest_s: int) -> str:
    value = fields.get("on_excluded", SKIP)
    if value not in (SKIP, NEXT, PREVIOUS):
        raise InvalidInput(
            "schedule.on_excluded",
            "is not known",
            value=value,
            accepted=f"{SKIP!r}, {NEXT!r} or {PREVIOUS!r}",
        )
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
    fields: Mapping[str, object], job_key: str, now: int, shortest_interval_s: int
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


def _cron(fields: Mapping[str, object], job_key: str, shortest_interval_s: int) -> CronTiming:
    zone = check_zone(fields.get("timezone", "UTC"))
    dialect, dst = (_rules(key, fields.get(key, MINUTE8)) for key in ("dialect", "dst"))
    expression = fields["cron"]
    if dialect == MINUTE8:
        text = read_cron(expression, job_key=job_key, shortest_s=shortest_interval_s)
    else:
        text = read_eventbridge(expression)
        check_fires(compile_eventbridge(text), expression, shortest_interval_s)
    return CronTiming(text, zone, dialect, dst)


def _rules(key: str, value: object) -> str:
    if value in (MINUTE8, EVENTBRIDGE):
        return str(value)
    raise InvalidInput(
        f"schedule.{key}", "is not known", value=value, accepted=f"{MINUTE8!r} or {EVENTBRIDGE!r}"
    )


def _every(fields: Mapping[str, object], now: int, shortest_interval_s: int) -> tuple[EveryTiming, None]:
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
        raise _instead(error, fields["every"], duration_hint(fields["every"])) from None
    if interval_s < shortest_interval_s:
        raise InvalidInput(
            "schedule.every",
            "fires too often for this tenant",
            value=fields["every"],
            accepted=f"at least {shortest_interval_s} s",
        )
    anchor_at = parse_instant(fields["anchor"], "schedule.anchor") if "anchor" in fields else now
    return EveryTiming(interval_s, anchor_at), None


def _every_in_zone(
    fields: Mapping[str, object], now: int, shortest_interval_s: int
) -> tuple[CronTiming, DateInterval]:
    """Days, weeks, months or years of the local calendar: the anchor's time of the day, on dates in steps from it."""
    zone = check_zone(fields["timezone"])
    steps = steps_of(fields["every"])
    if steps is None:
        raise InvalidInput(
            "schedule.timezone", "`every` is elapsed time, the same in all zones", value=zone,
            accepted="no timezone; an anchor such as 2025-03-30T06:00:00+02:00; or whole days, such as 2w or 3mo",
        )  # fmt: skip
    days, months = steps
    if not (0 < days <= MAX_DAYS or 0 < months <= MAX_MONTHS):
        raise InvalidInput(
            "schedule.every", "is out of range", value=fields["every"],
            accepted=f"1d to {MAX_DAYS}d, 1mo to {MAX_MONTHS}mo",
        )  # fmt: skip
    at = parse_instant(fields["anchor"], "schedule.anchor", zone) if "anchor" in fields else now
    day, second = divmod(at + offset_at(zone, at), DAY_S)
    interval = DateInterval(days, months, day + EPOCH_ORDINAL)
    if interval.shortest_s < shortest_interval_s:
        raise InvalidInput(
            "schedule.every", "fires too often for this tenant", value=fields["every"],
            accepted=f"at least {shortest_interval_s} s",
        )  # fmt: skip
    clock = f"{second // 60 % 60} {second // 3600} * * *"
    return CronTiming(f"{second % 60} {clock}" if second % 60 else clock, zone), interval


def _at(fields: Mapping[str, object]) -> AtTiming:
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


def _bound(fields: Mapping[str, object], key: str) -> int | None:
    return parse_instant(fields[key], f"schedule.{key}") if key in fields else None


def _instead(error: InvalidInput, value: object, hint: str) -> InvalidInput:
    """The error with what to write instead, if that is known."""
    return InvalidInput(error.field, error.message, value=value, accepted=hint) if hint else error


def _whole_number(key: str, value: object, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    unit = " seconds" if key.endswith("_s") else ""
    accepted = seconds_hint(value) or f"{least} to {most}{unit}"
    raise InvalidInput(f"schedule.{key}", "is out of range", value=value, accepted=accepted)


def read_exclusions(raw: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The dates and the calendar names of `exclude`. Raises InvalidInput."""
    accepted = '{"dates": ["2025-12-24"], "calendars": ["holidays"]}'
    if not isinstance(raw, Mapping) or not set(raw) <= {"dates", "calendars"}:
        raise InvalidInput(
            "schedule.exclude", "must be an object of dates and calendars", value=raw, accepted=accepted
        )
    dates = _texts(_listed(raw, "dates"), "schedule.exclude.dates", MAX_EXCLUDED_DATES)
    calendars = _texts(_listed(raw, "calendars"), "schedule.exclude.calendars", MAX_CALENDARS)
    for text in dates:
        if not is_date(text):
            raise InvalidInput(
                "schedule.exclude.dates", "must be a date", value=text, accepted="dates like 2025-12-24"
            )
    for name in calendars:
        check_calendar_name(name, "schedule.exclude.calendars")
    return dates, calendars


def read_included(raw: object) -> tuple[str, ...]:
    """The calendar names of `include_calendars`. Raises InvalidInput."""
    names = _texts(raw, "schedule.include_calendars", MAX_CALENDARS)
    return tuple(check_calendar_name(name, "schedule.include_calendars") for name in names)


def check_calendar_name(name: object, where: str) -> str:
    """The name of a calendar. Raises InvalidInput."""
    if not isinstance(name, str) or not is_id(name, CALENDAR_NAME_CHARS):
        raise InvalidInput(
            where, "must be a name", value=name, accepted=f"up to {CALENDAR_NAME_CHARS} letters, digits, ._-"
        )
    return name


def _listed(raw: Mapping[str, object], key: str) -> object:
    value = raw.get(key)
    return () if value is None else value


def _texts(value: object, where: str, most: int) -> tuple[str, ...]:
    """The distinct texts of a list, sorted, so that equal exclusions are stored as equal lists."""
    if (
        not isinstance(value, (list, tuple))
        or len(value) > most
        or not all(isinstance(item, str) for item in value)
    ):
        raise InvalidInput(
            where, "must be a short list of text", value=value, accepted=f"at most {most} texts"
        )
    return tuple(sorted(set(value)))


def is_date(text: object) -> bool:
    """Whether the text is an ISO date, such as 2026-12-24."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
