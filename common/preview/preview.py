"""A preview of a schedule: the next fire times, a description, and warnings about surprises. Pure and offline.

The dates of named calendars are unknown unless the caller passes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, starmap
from typing import Any, Final
from zoneinfo import ZoneInfo

from common.cache import convert
from common.errors import InvalidInput
from common.ids import PACE_KEY_CHARS, is_id
from common.preview.words import describe
from common.registration.schedule_text import parse_schedule
from common.timing.compiled import compiled, in_all_clocks
from common.timing.cron import Cron, on_any_date, shortest_interval_s
from common.timing.date_bits import LAST, weekday_bit, weekday_bits
from common.timing.date_interval import DateInterval
from common.timing.durations import duration_text, parse_instant
from common.timing.excluded_days import NO_DAYS, WEEKDAYS, Excluded, of_parts
from common.timing.fires import can_fire, fires, limited, next_fires
from common.timing.instants import DAY_S, rfc3339
from common.timing.schedule import (
    EVENTBRIDGE,
    MINUTE8,
    SKIP,
    AtTiming,
    CronTiming,
    EveryTiming,
    ManyTiming,
    Schedule,
)
from common.timing.zones import (
    REPEATED,
    SKIPPED,
    TZDATA_VERSION,
    WITHOUT_SUMMER_TIME,
    Change,
    Span,
    changes,
    check_zone,
    offset_at,
    spans,
)

MAX_COUNT: Final = 10_000
_SAME_FORM: Final = (
    *("cron", "timezone", "dialect", "dst", "at", "start_at", "end_at", "include_calendars", "on_excluded"),
    *("jitter_s", "spread_s"),
)
_YEAR_S: Final = 366 * DAY_S
_HOUR_S: Final = 3600
_FIELD_SIZES: Final = {"minute": 60, "hour": 24}
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire time: the instant, and its RFC 3339 texts in UTC and in the schedule's zone."""

    at: int
    utc: str
    local: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a schedule will do."""

    schedule: Schedule
    timezone: str
    fires: tuple[Fire, ...]
    sentence: str
    warnings: tuple[str, ...]
    tzdata: str = TZDATA_VERSION


def read_schedule(
    raw: Mapping[str, object], *, job_key: str, now: int, default_spread_s: int = 0
) -> tuple[Schedule, str]:
    """The schedule and the zone to show it in, by the rules of a registration. Raises InvalidInput."""
    schedule_fields = {key: value for key, value in raw.items() if value is not None}
    zone = check_zone(schedule_fields["timezone"]) if "timezone" in schedule_fields else None
    schedule = parse_schedule(schedule_fields, job_key=job_key, now=now, default_spread_s=default_spread_s)
    return limited(schedule, schedule_fields, 0, now), zone or schedule.timezone


def resolved_as_given(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """A schedule as answers show it (`schedule_resolved`), in the form that `preview` reads."""
    fields = {name: value for name, value in resolved.items() if name in _SAME_FORM}
    if schedules := resolved.get("schedules"):
        fields["schedules"] = [resolved_as_given(each) for each in schedules]
    if "every_s" in resolved:
        fields |= {"every": resolved["every_s"], "anchor": resolved["anchor_at"]}
    if interval := resolved.get("interval"):
        *second, minute, hour = (int(text) for text in fields.pop("cron").split(" ")[:-3])
        anchor = f"{interval['from']}T{hour:02}:{minute:02}:{sum(second):02}"
        fields |= {"every": convert(interval, DateInterval).text, "anchor": anchor}
        fields.setdefault("timezone", "UTC")
    if pace := resolved.get("pace"):  # a target is not a key that clients may write
        key = pace["key"] if is_id(pace["key"], PACE_KEY_CHARS) else None
        fields["pace"] = {**pace, "key": key}
    for name, stored in (
        ("dates", "exclude_dates"),
        ("weekdays", "exclude_weekdays"),
        ("calendars", "calendars"),
    ):
        if excluded := resolved.get(stored):
            fields.setdefault("exclude", {})[name] = excluded
    return fields


def preview(
    raw: Mapping[str, object],
    *,
    now: int,
    count: int = 10,
    until: int | None = None,
    job_key: str = "tenant/job",
    excluded: Excluded | None = None,
    default_spread_s: int = 0,
) -> Preview:
    """The next `count` fire times at or after `now` (before `until`), with words and warnings. Raises InvalidInput.

    `excluded` is what its calendars exclude; None if that is not known.
    """
    check_count(count)
    schedule, zone = read_schedule(raw, job_key=job_key, now=now, default_spread_s=default_spread_s)
    fire_times = next_fires(schedule, now, count, until, excluded=excluded or NO_DAYS)
    return Preview(
        schedule=schedule,
        timezone=zone,
        fires=tuple(Fire(at, rfc3339(at), local_text(at, zone)) for at in fire_times),
        sentence=describe(schedule, raw.get("max_runs")),
        warnings=(*written_warnings(raw), *warnings(schedule, now, excluded)),
    )


def _is_local(at: object) -> bool:
    return isinstance(at, str) and not re.search(r"([Zz]|[+-]\d\d:\d\d)$", at)


def first_of_hours(schedule: Schedule, zone: str, now: int, excluded: Excluded = NO_DAYS) -> list[int]:
    """The first fire time in each hour of the zone's clock, of the seven days from `now`."""
    hours_fires: list[int] = []
    at = now
    while fire_times := next_fires(schedule, at, 1, now + 7 * DAY_S, excluded=excluded):
        (fire_at,) = fire_times
        hours_fires.append(fire_at)
        at = fire_at + _HOUR_S - (fire_at + offset_at(zone, fire_at)) % _HOUR_S
    return hours_fires


def check_count(count: object) -> int:
    """A number of fire times to list. Raises InvalidInput."""
    if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MAX_COUNT:
        return count
    raise InvalidInput("count", "out of range", value=count, accepted=f"1 to {MAX_COUNT}")


def local_text(at: int, zone: str) -> str:
    """An instant as RFC 3339 with the zone's offset, `2025-03-30T03:00:00+02:00`."""
    return datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat()


def written_warnings(raw: Mapping[str, Any]) -> Iterator[str]:
    """What only the written schedule shows: an `at` that a clock change moves, and weekdays in others' numbers."""
    if change := clock_change_at(raw):
        yield change[1]
    for part in raw.get("schedules") or (raw,):
        fields = str(part.get("cron")).split() if part.get("dialect") in (None, MINUTE8) else []
        if "?" in fields and re.search(r"(?<![#/\dL])\d", fields[-1]):
            yield (
                "Quartz and AWS, whose crons have a `?`, count Sunday as 1; here it is 0: "
                f"names in the place of `{fields[-1]}` mean the same everywhere."
            )


def clock_change_at(raw: Mapping[str, object]) -> tuple[int, str] | None:
    """The clock change that skips or repeats the local time of a written `at`, and how; None if none does."""
    if isinstance(schedules := raw.get("schedules"), list):
        return min(filter(None, map(clock_change_at, schedules)), default=None)
    at, zone = raw.get("at"), raw.get("timezone")
    if not isinstance(at, str) or not isinstance(zone, str) or not _is_local(at):
        return None
    fires_at = parse_instant(at, "schedule.at", zone)
    wall = parse_instant(f"{at}Z", "schedule.at")
    for change in changes(zone, fires_at - DAY_S, fires_at + DAY_S):
        shift = duration_text(abs(change.after - change.before))
        shown = local_text(fires_at, zone)
        if change.at == fires_at and fires_at + change.after != wall:
            return change.at, (
                f"On {clock_text(change)} ({shift} forward) the time it names is skipped: it fires at {shown}."
            )
        if change.at <= wall - change.after < change.at + change.before - change.after:
            return change.at, (
                f"On {clock_text(change)} ({shift} back) the time it names comes twice: "
                f"it fires the first time, at {shown}."
            )
    return None


def warnings(schedule: Schedule, now: int, excluded: Excluded | None = None) -> Iterator[str]:
    """What the schedule's owner may not expect, most surprising first."""
    known = excluded or NO_DAYS
    if not next_fires(schedule, now, 1, excluded=known):
        yield "It does not fire any more: nothing is left after now."
    for place, (part, days) in enumerate(of_parts(schedule, known)):
        of_which = f"schedules.{place}: " if isinstance(schedule.timing, ManyTiming) else ""
        yield from (f"{of_which}{warning}" for warning in _timing_warnings(part, now, days))
    shortest = _shortest_s(schedule)
    if shortest is not None and schedule.jitter_s > shortest:
        yield f"Jitter of up to {schedule.jitter_s} s is longer than the {shortest} s between two fires: they may swap."
    if schedule.pace:
        yield (
            f"Its pace may delay each run by up to {schedule.tolerance_s} s. By how much depends on the other jobs with"
            " the same key, so it is not in the times here."
        )
        if shortest is not None and schedule.tolerance_s > shortest:
            yield f"That is longer than the {shortest} s between two fires: they may swap."
    if schedule.named_calendars and excluded is None:
        names = " and ".join(schedule.named_calendars)
        yield f"The dates of {names} are not taken out here: they are stored with the tenant."


def _timing_warnings(schedule: Schedule, now: int, excluded: Excluded) -> Iterator[str]:
    """What may surprise about a single schedule's times."""
    if isinstance(schedule.timing, CronTiming):
        yield from _text_warnings(schedule.timing)
        yield from _rarity_warnings(next_fires(schedule, now, 3, excluded=excluded), now)
        yield from _moved_warnings(schedule, compiled(schedule.timing))
        yield from _clock_warnings(schedule, schedule.timing, now)


def _shortest_s(schedule: Schedule) -> int | None:
    """The shortest time between two fires; None if it fires once, and for several schedules, where it is not known."""
    match schedule.timing:
        case CronTiming() as timing:
            cron = compiled(timing)
            return shortest_interval_s(cron if schedule.on_excluded == SKIP else on_any_date(cron))
        case EveryTiming(interval_s, _):
            return interval_s
        case AtTiming() | ManyTiming():
            return None


def _text_warnings(timing: CronTiming) -> Iterator[str]:
    fields = timing.expression.split(" ")
    minute, hour, day, month, weekday = fields[-5:] if timing.dialect == MINUTE8 else fields[:5]
    if timing.dialect == EVENTBRIDGE:
        day, weekday = (field.replace("?", "*") for field in (day, weekday))
    if day != "*" and weekday != "*":
        yield (
            f"Day of month ({day}) and day of week ({weekday}) are both restricted: "
            "it fires when either matches, not when both do."
        )
    if place := WITHOUT_SUMMER_TIME.get(timing.timezone):
        yield f"{timing.timezone} has no summer time; {place} has."
    days = {int(number) for number in re.findall(r"\d+", day)} if re.fullmatch(r"[\d,]+", day) else set()
    if days and min(days) > 28 and (month, weekday) == ("*", "*"):
        yield f"Months without a day {min(days)} are passed over; `L` means the last day of every month."
    items = [(name, item) for name, text in (("minute", minute), ("hour", hour)) for item in text.split(",")]
    yield from chain.from_iterable(starmap(_step_warnings, items))
    yield from _day_step_warnings(day, weekday)
    yield from _every_one_warnings(timing)


def _day_step_warnings(day: str, weekday: str) -> Iterator[str]:
    """Steps of days begin anew with the month, and steps of weekdays with the week."""
    for item in day.split(","):
        if match := re.fullmatch(r"(?:\*|\d+)/(\d+)", item):
            yield f"`{item}` of days begins anew each month, so the last gap of a month is not {match[1]} days."
    for item in weekday.split(","):
        if match := re.fullmatch(r"(\*|\d)/(\d)", item):
            first = 0 if match[1] == "*" else int(match[1])
            names = ", ".join(_WEEKDAYS[number] for number in range(first, 7, int(match[2])))
            yield f"`{item}` of weekdays means {names}, and begins anew each week."


def _every_one_warnings(timing: CronTiming) -> Iterator[str]:
    """A `*` before a restricted field fires again and again: mostly a 0 was meant."""
    fields = timing.expression.split(" ")
    if timing.dialect == EVENTBRIDGE or len(fields) == 5:
        fields = ["0", *fields]
    second, minute, hour = fields[:3]
    if minute == "*" and hour != "*":
        yield f"It fires in each minute of the hours {hour}; `0 {hour}` fires once in each."
    if second == "*" and minute != "*":
        yield f"It fires in each second of the minutes {minute}; `0 {minute}` fires once in each."


def _step_warnings(name: str, item: str) -> Iterator[str]:
    match = re.fullmatch(r"(?:(\*)|(\d+)(?:-(\d+))?)/(\d+)", item)
    if not match:
        return
    size, step = _FIELD_SIZES[name], int(match[4])
    low, high = int(match[2] or 0), int(match[3] or size - 1)
    if low + step > high:
        yield f"The step of `{item}` is never taken: it means just {low}."
    elif match[1] and size % step:
        yield f"`{item}` is not every {step} {name}s: {size} is not divisible by {step}, so the last gap is shorter."


def _moved_warnings(schedule: Schedule, cron: Cron) -> Iterator[str]:
    """Whether a time may move to a day of the week that the cron leaves out, as a Friday's to a Saturday."""
    if schedule.on_excluded == SKIP or cron.either_day:
        return
    left_out = (
        day for day in (*range(1, 7), 0) if not cron.weekdays & (weekday_bits(day) | weekday_bit(day, LAST))
    )
    if foreign_days := [day for day in left_out if WEEKDAYS[day - 1] not in schedule.exclude_weekdays]:
        names = " or ".join(_WEEKDAYS[day] for day in foreign_days)
        words = json.dumps([WEEKDAYS[day - 1] for day in foreign_days])
        yield f"A time may move to a {names}, which the cron leaves out: exclude.weekdays {words} keeps it off."


def _rarity_warnings(upcoming: list[int], now: int) -> Iterator[str]:
    waits = [later - earlier for earlier, later in zip([now, *upcoming], upcoming, strict=False)]
    if waits and max(waits) > _YEAR_S:
        yield f"It fires rarely: next at {rfc3339(upcoming[0])}, and up to {max(waits) // DAY_S} days lie between."


def _clock_warnings(schedule: Schedule, timing: CronTiming, now: int) -> Iterator[str]:
    """The first change in spring and in autumn of the coming year that moves, doubles or drops a fire."""
    warned = set()
    for change in changes(timing.timezone, now, now + _YEAR_S):
        forward = change.after > change.before
        text = None if forward in warned else _warning(schedule, timing, change)
        if text:
            warned.add(forward)
            yield text


def _warning(schedule: Schedule, timing: CronTiming, change: Change) -> str | None:
    shift = abs(change.after - change.before)
    around = spans(timing.timezone, change.at - shift, change.at + shift)
    if change.after > change.before:
        effect, direction = _forward_effect(schedule, timing, change, around), "forward"
    else:
        effect, direction = _back_effect(schedule, timing, change, around), "back"
    return f"On {clock_text(change)} ({duration_text(shift)} {direction}) {effect}" if effect else None


def _forward_effect(
    schedule: Schedule, timing: CronTiming, change: Change, around: Sequence[Span]
) -> str | None:
    named = in_all_clocks(timing)
    if not any(span.kind == SKIPPED and can_fire(named, span) for span in around):
        return None
    if timing.dst == EVENTBRIDGE:
        return "the time it names is skipped: it does not fire."
    if any(True for _ in fires(schedule, change.at, change.at + 60)):
        return f"the time it names is skipped: it fires once, at {local_text(change.at, timing.timezone)}."
    return None


def _back_effect(
    schedule: Schedule, timing: CronTiming, change: Change, around: Sequence[Span]
) -> str | None:
    cron = compiled(timing)
    if cron.repeats:
        again = cron.names_hour and any(span.kind == REPEATED and can_fire(cron, span) for span in around)
        return "it fires in both passes of the repeated time, as elapsed time goes on." if again else None
    first_pass = any(True for _ in fires(schedule, change.at - (change.before - change.after), change.at))
    return "the time it names comes twice: it fires the first time only." if first_pass else None


def next_clock_change(schedule: Schedule, now: int) -> tuple[int, str] | None:
    """The next clock change of its zone in the coming year, if it moves, doubles or drops a fire; and how."""
    if isinstance(schedule.timing, ManyTiming):
        return min(filter(None, (next_clock_change(part, now) for part in schedule.parts)), default=None)
    if not isinstance(schedule.timing, CronTiming):
        return None
    change = next(iter(changes(schedule.timing.timezone, now, now + _YEAR_S)), None)
    if change is None:
        return None
    text = _warning(schedule, schedule.timing, change)
    return (change.at, text) if text else None


def clock_text(change: Change) -> str:
    """A clock change as its date and the clock before and after: "2025-03-30, 02:00 -> 03:00"."""
    before, after = (rfc3339(change.at + offset) for offset in (change.before, change.after))
    return f"{after[:10]}, {before[11:16]} -> {after[11:16]}"
