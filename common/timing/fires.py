"""When a schedule fires: evaluates windows, and applies the policy for clock changes.

The complete policy of Minute8:
- A skipped time fires once, at the first instant after the gap, if it names an hour (its hour is not `*`). It merges
  with a regular fire there.
- A repeated time fires only in the first pass if it is fixed: neither its minute nor its hour is `*`, `*/n` or `a/n`.
  All other times follow elapsed time and fire in both passes.

By EventBridge's rule a skipped time does not fire, and every repeated time fires only in the first pass. Its crons are
compiled so that the same conditions say this (`compiled.py`).

Every instant is decided alone, so the fires are the same however time is split into windows.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from heapq import merge
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from common.timing.compiled import compiled
from common.timing.cron import DATE_MARGIN_S, Cron, matching_days, on_any_date
from common.timing.date_bits import date_bits, year_days
from common.timing.excluded_days import (
    MAX_MOVE_S,
    NO_DAYS,
    DaysOfEach,
    DaysWithoutFire,
    Excluded,
    ExcludedDays,
    NamedDays,
    of_parts,
    own_days,
)
from common.timing.instants import DAY_S, EPOCH_ORDINAL
from common.timing.schedule import SKIP, AtTiming, CronTiming, EveryTiming, ManyTiming, Schedule
from common.timing.zones import REPEATED, SKIPPED, Span, gaps, iso_date, offset_at, spans

_CHUNK_S: Final = 32 * DAY_S
_SHORT_S: Final = 3_600
_YEAR_S: Final = 366 * DAY_S
# The rarest date, the 29th of February on one weekday, is up to 40 years away.
_HORIZON_S: Final = 41 * 366 * DAY_S
# Python's dates end with the year 9999, and the search looks up to a year behind its end.
_LAST_AT: Final = (date(9998, 12, 1).toordinal() - EPOCH_ORDINAL) * DAY_S


def fires(schedule: Schedule, start: int, end: int, *, excluded: Excluded = NO_DAYS) -> Iterator[int]:
    """The fire times in [start, end): epoch seconds in UTC, strictly increasing, without duplicates.

    `excluded` are the dates that the schedule's calendars exclude, in addition to its own `exclude_dates`. A fire is
    excluded by its local date (its date in UTC for `every` and `at`). It is left out, or `on_excluded` moves it.
    """
    start, end = _bounded(schedule, start, end)
    if isinstance(schedule.timing, ManyTiming):
        return _merged(fires(part, start, end, excluded=days) for part, days in of_parts(schedule, excluded))
    dates = _dates(schedule, excluded)
    match schedule.timing:
        case CronTiming() as timing:
            cron, dates = _moved(schedule, compiled(timing), dates)
            return cron_fires(cron, timing.timezone, start, end, dates)
        case EveryTiming(interval_s, anchor_at):
            return _every_fires(interval_s, anchor_at, start, end, dates)
        case AtTiming(at):
            return _every_fires(DAY_S, at, max(start, at), min(end, at + 1), dates)


def count_fires(schedule: Schedule, start: int, end: int, *, excluded: Excluded = NO_DAYS) -> int:
    """The number of fires that `fires` yields. Its time depends on the number of days, not of fires.

    Of several schedules, which may share instants, all are counted.
    """
    start, end = _bounded(schedule, start, end)
    if isinstance(schedule.timing, ManyTiming):
        return sum(1 for _ in fires(schedule, start, end, excluded=excluded))
    dates = _dates(schedule, excluded)
    match schedule.timing:
        case CronTiming() as timing:
            cron, dates = _moved(schedule, compiled(timing), dates)
            return _count_cron(cron, timing.timezone, start, end, dates)
        case EveryTiming(interval_s, anchor_at):
            return _count_every(interval_s, anchor_at, start, end, dates)
        case AtTiming(at):
            return _count_every(DAY_S, at, max(start, at), min(end, at + 1), dates)


def _merged(streams: Iterable[Iterator[int]]) -> Iterator[int]:
    """Ascending streams as one, without duplicates."""
    last = None
    for at in merge(*streams):
        if at != last:
            yield at
            last = at


def first_firing(schedule: Schedule, at: int, *, excluded: Excluded = NO_DAYS) -> int | None:
    """The place of the first of several schedules that fires at this instant; None if none does."""
    for place, (part, days) in enumerate(of_parts(schedule, excluded)):
        if next(fires(part, at, at + 1, excluded=days), None) is not None:
            return place
    return None


def newest_fires(
    schedule: Schedule, start: int, end: int, count: int, *, excluded: Excluded = NO_DAYS
) -> list[int]:
    """The last `count` fire times in [start, end), ascending; searches no further back than needed."""
    back_s = _SHORT_S
    while True:
        first = max(start, end - back_s)
        newest = deque(fires(schedule, first, end, excluded=excluded), maxlen=count)
        if len(newest) == count or first == start:
            return list(newest)
        back_s *= 4


def _bounded(schedule: Schedule, start: int, end: int) -> tuple[int, int]:
    return (
        start if schedule.start_at is None else max(start, schedule.start_at),
        end if schedule.end_at is None else min(end, schedule.end_at),
    )


def _dates(schedule: Schedule, excluded: Excluded) -> ExcludedDays | None:
    """The excluded dates from both sources; None if there are none."""
    if not (excluded or schedule.exclude_dates or schedule.exclude_weekdays):
        return None
    assert not isinstance(excluded, DaysOfEach)
    days = excluded if isinstance(excluded, ExcludedDays) else ExcludedDays.of(excluded)
    return days + own_days(schedule.exclude_dates, schedule.exclude_weekdays)


def _moved(schedule: Schedule, cron: Cron, excluded: ExcludedDays | None) -> tuple[Cron, ExcludedDays | None]:
    """If fires move or have an interval: the times of day on any date, and the dates on which none of them fires."""
    if schedule.interval is None and (excluded is None or schedule.on_excluded == SKIP):
        return cron, excluded
    named = schedule.interval or NamedDays(cron)
    return on_any_date(cron), DaysWithoutFire(named, excluded or NO_DAYS, schedule.on_excluded)


def local_date(schedule: Schedule, at: int) -> str:
    """The ISO date that exclusions use: the local date of a fire time, or its date in UTC for `every` and `at`."""
    offset = offset_at(schedule.timing.timezone, at) if isinstance(schedule.timing, CronTiming) else 0
    return iso_date((at + offset) // DAY_S + EPOCH_ORDINAL)


def cron_fires(
    cron: Cron, zone: str, start: int, end: int, excluded: ExcludedDays | None = None
) -> Iterator[int]:
    """The fire times of a compiled expression in [start, end); `excluded` holds ordinals of local dates."""
    last = start - 1
    for span in _spans_between(zone, start, end, cron, excluded):
        if (
            span.closes_at < start
            or not can_fire(cron, span)
            or (excluded is not None and excluded.leaves_out(span))
        ):
            continue
        if span.kind == SKIPPED:
            instants = iter((_on_grid(cron, span.opens_at),))
            opens_at, closes_at = max(start, last + 1), end
        else:
            opens_at, closes_at = max(last + 1, span.opens_at), min(end, span.closes_at)
            instants = _within(cron, span, opens_at)
        for at in instants:
            if at >= closes_at:
                break
            if at >= opens_at:
                yield at
                last = at


def can_fire(cron: Cron, span: Span) -> bool:
    """Whether an expression fires in a span: checks the date, the clock-change policy, then hour and minute."""
    if not cron.on_date(span.month, span.date):
        return False
    if span.kind == REPEATED and not cron.repeats:
        return False
    if span.kind == SKIPPED and not cron.names_hour:
        return False
    hours, minutes = cron.hours, cron.minutes
    for hour, mask in span.parts:  # noqa: SIM110  any() takes twice as long, and a tick asks for each group
        if hours >> hour & 1 and minutes & mask:
            return True
    return False


def _within(cron: Cron, span: Span, first: int) -> Iterator[int]:
    """The fire times on a span's date from `first` on, ascending; may include up to an hour and a minute before it.

    May include extra ones too if the span ends inside a minute.
    """
    for hour, mask in span.parts:
        # Whole hours are left out: a day has 86,400 seconds, and `first` may be the last one.
        if not cron.hours >> hour & 1 or span.midnight_at + hour * 3600 + 3660 <= first:
            continue
        minutes = cron.minutes & mask
        while minutes:
            lowest = minutes & -minutes
            minutes ^= lowest
            at = span.midnight_at + hour * 3600 + (lowest.bit_length() - 1) * 60
            if cron.by_second:
                for second in cron.seconds:
                    yield at + second
            else:
                yield _on_grid(cron, at)


def _on_grid(cron: Cron, at: int) -> int:
    """Align to whole UTC minutes, also in a zone whose offset is not whole minutes (Monrovia before 1972)."""
    return at if cron.by_second else -(-at // 60) * 60


def _spans_between(
    zone: str, start: int, end: int, cron: Cron, excluded: ExcludedDays | None
) -> Iterator[Span]:
    """The spans of a window: exact for a short window, in whole shared chunks for a long one.

    A year without a fire is skipped, and a chunk that touches none of the months: a search over decades is short.
    """
    if end - start <= _SHORT_S:
        if start < end:
            yield from spans(zone, start, end)
        return
    following = -math.inf
    for low, high in cron.stretches(start, end):
        for first, last in _years_that_fire(zone, low, high, cron, excluded):
            for chunk in range(first // _CHUNK_S * _CHUNK_S, last, _CHUNK_S):
                if chunk >= following and cron.months & _months_of(chunk):
                    # A span has a day at most, so these have closed before.
                    closed = max(0, (start - chunk) // DAY_S - 2)
                    for span in spans(zone, chunk, chunk + _CHUNK_S)[closed:]:
                        if span.opens_at >= end:
                            return
                        yield span
                following = max(following, chunk + _CHUNK_S)


def _years_that_fire(
    zone: str, start: int, end: int, cron: Cron, excluded: ExcludedDays | None
) -> Iterator[tuple[int, int]]:
    """The parts of a long window, a year each, in which a date matches that is not excluded. They overlap."""
    if end - start <= _YEAR_S:
        yield start, end
        return
    for year in range(_year_of(start - DATE_MARGIN_S), _year_of(end + DATE_MARGIN_S) + 1):
        matching = matching_days(cron, year)
        if excluded is not None:
            matching &= ~excluded.of_year(year)
        if matching or _fires_behind_gap(cron, zone, year, excluded):
            first, last = year_days(year)
            yield (
                max(start, (first - EPOCH_ORDINAL) * DAY_S - DATE_MARGIN_S),
                min(end, (last - EPOCH_ORDINAL) * DAY_S + DATE_MARGIN_S),
            )


def _fires_behind_gap(cron: Cron, zone: str, year: int, excluded: ExcludedDays | None) -> bool:
    """Whether a time that the clock skips fires on the next date, which may not match by itself."""
    return any(
        can_fire(cron, gap) and not (excluded is not None and excluded.leaves_out(gap))
        for gap in gaps(zone, year)
    )


def _year_of(at: int) -> int:
    return date.fromordinal(at // DAY_S + EPOCH_ORDINAL).year


@lru_cache(maxsize=4096)
def _months_of(chunk: int) -> int:
    """The month bits of a chunk in any zone: one day more on each side, and one for a skipped date."""
    first = chunk // DAY_S + EPOCH_ORDINAL
    mask = 0
    for day in range(first - 2, first + _CHUNK_S // DAY_S + 2):
        mask |= date_bits(day)[0]
    return mask


def _count_cron(cron: Cron, zone: str, start: int, end: int, excluded: ExcludedDays | None) -> int:
    count, behind_gap = 0, False
    for span in _spans_between(zone, start, end, cron, excluded):
        if span.kind == SKIPPED:
            behind_gap = True  # the fire after the gap merges with regular ones there
            continue
        opens_at, closes_at = max(start, span.opens_at), min(end, span.closes_at)
        is_whole_span = (opens_at, closes_at) == (span.opens_at, span.closes_at)
        if behind_gap or not is_whole_span or opens_at % 60 or closes_at % 60 or span.midnight_at % 60:
            count += sum(1 for _ in cron_fires(cron, zone, opens_at, closes_at, excluded))
        elif can_fire(cron, span) and (excluded is None or not excluded.leaves_out(span)):
            hours = (mask for hour, mask in span.parts if cron.hours >> hour & 1)
            count += len(cron.seconds) * sum((cron.minutes & mask).bit_count() for mask in hours)
        behind_gap = False
    return count


def _count_every(interval_s: int, anchor_at: int, start: int, end: int, excluded: ExcludedDays | None) -> int:
    if start >= end:
        return 0
    if excluded is None:
        return (end - 1 - anchor_at) // interval_s - (start - 1 - anchor_at) // interval_s
    return sum(
        _count_every(interval_s, anchor_at, max(start, day * DAY_S), min(end, (day + 1) * DAY_S), None)
        for day in range(start // DAY_S, (end - 1) // DAY_S + 1)
        if not excluded.has(day + EPOCH_ORDINAL)
    )


def _every_fires(
    interval_s: int, anchor_at: int, start: int, end: int, excluded: ExcludedDays | None
) -> Iterator[int]:
    at = start + (anchor_at - start) % interval_s
    is_long = end - start > _YEAR_S
    last_day = end // DAY_S + EPOCH_ORDINAL
    allowed_day = None
    while at < end:
        if excluded is not None and (day := at // DAY_S + EPOCH_ORDINAL) != allowed_day:
            allowed_day = excluded.first_outside(day, last_day) if is_long else day + excluded.has(day)
            if allowed_day != day:
                midnight = (allowed_day - EPOCH_ORDINAL) * DAY_S
                at = midnight + (anchor_at - midnight) % interval_s
                allowed_day = allowed_day if is_long else None  # the next day is not looked up yet
                continue
        yield at
        at += interval_s


def due_at(schedule: Schedule, job_key: str, fire_at: int) -> int:
    """When a fire is really started: its time, the job's place in [0, spread_s], and a jitter in [0, jitter_s].

    Always the same for the same fire.
    """
    if schedule.spread_s:
        fire_at += _hashed(f"spread|{job_key}", schedule.spread_s)
    if schedule.jitter_s:
        return fire_at + _hashed(f"{job_key}|{fire_at}", schedule.jitter_s)
    return fire_at


def scattered_at(schedule: Schedule, job_key: str, fire_at: int) -> int:
    """`due_at`, with a place in [0, tolerance_s] by hash: for a fire whose pace cannot be planned with the others."""
    at = due_at(schedule, job_key, fire_at)
    return at + _hashed(f"pace|{job_key}|{fire_at}", schedule.tolerance_s) if schedule.pace else at


def _hashed(text: str, most: int) -> int:
    """A number from 0 to `most`."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest) % (most + 1)


def next_fires(
    schedule: Schedule, after: int, count: int, until: int | None = None, *, excluded: Excluded = NO_DAYS
) -> list[int]:
    """The first `count` fire times at or after `after`, before `until`.

    Searches at most 41 years for each; if a cron names years, as far as these. It ends in the year 9998.
    """
    return list(islice(_coming(schedule, after, until, excluded), count))


def _coming(schedule: Schedule, after: int, until: int | None, excluded: Excluded) -> Iterator[int]:
    """The fire times at or after `after`, before `until`; of several schedules none further than is taken."""
    if isinstance(schedule.timing, ManyTiming):
        after = max(after, schedule.start_at or after)
        end = min((end for end in (until, schedule.end_at) if end is not None), default=None)
        yield from _merged(_coming(part, after, end, days) for part, days in of_parts(schedule, excluded))
        return
    last: int | None = after - 1
    while last is not None:
        after, last = last + 1, None
        end = _horizon(schedule, after) if until is None else min(until, _horizon(schedule, after))
        for last in fires(schedule, after, end, excluded=excluded):
            yield last


def _horizon(schedule: Schedule, after: int) -> int:
    horizon = min(after + _HORIZON_S, _LAST_AT)
    timing = schedule.timing
    if isinstance(timing, AtTiming):
        return max(horizon, timing.at + 1)
    if not isinstance(timing, CronTiming):
        return horizon
    return compiled(timing).comes_until(horizon) + (0 if schedule.on_excluded == SKIP else MAX_MOVE_S)


# The end of a schedule that fires a number of times is an instant, found when the job is stored. So nothing is counted
# while the job runs, and the same fire times are planned whatever happens to a tick, a message or an executor.
MAX_RUNS: Final = 1_000


def limited(schedule: Schedule, schedule_given: Mapping[str, Any], counted: int, from_at: int) -> Schedule:
    """The schedule with the end that its `max_runs` sets, if it has any, or its `end_at` if that is earlier.

    `schedule_given` is what the client wrote; `counted` are its fire times before `from_at`.
    """
    if schedule_given.get("max_runs") is None:
        return schedule
    from common.timing.durations import parse_instant  # no tick reads what a client wrote

    end_at = (
        parse_instant(schedule_given["end_at"], "schedule.end_at")
        if schedule_given.get("end_at") is not None
        else None
    )
    runs = int(schedule_given["max_runs"]) - counted
    limit_at = _end_after(replace(schedule, end_at=end_at), runs, from_at)
    return replace(schedule, end_at=end_at if limit_at is None else limit_at)


def _end_after(schedule: Schedule, runs: int, from_at: int) -> int | None:
    """An instant between the last of so many fire times and the one that would follow; None if none follows.

    It is in the middle, so that a later change of the zone's rules, by an hour or so, changes nothing.
    """
    if runs <= 0:
        return from_at
    fire_times = next_fires(schedule, from_at, runs + 1, from_at + _HORIZON_S)
    if len(fire_times) <= runs:
        return None
    return (fire_times[-2] + fire_times[-1]) // 2 + 1
